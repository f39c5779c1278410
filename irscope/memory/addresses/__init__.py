"""Addresses of global memory accesses: the kernel's integer arithmetic, evaluated for given programs and loop turns."""
