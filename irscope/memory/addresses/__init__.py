"""Addresses of global memory accesses: the kernel's integer arithmetic, for given programs and iterations."""
