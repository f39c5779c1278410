"""`irscope why`: what is slow in a kernel, because of what, and what mends it."""
