"""Slow kernels with their faster twins: whether `irscope why` names the cause first, and what the GPU says of it."""
