"""Functions that kernels/locations.py calls, in a file of their own."""

import triton
import triton.language as tl


@triton.jit
def scaled(x, factor):
    return x * factor


@triton.jit
def shifted(x, factor, offset):
    moved = scaled(x, factor) + offset
    return moved


@triton.jit(noinline=True)
def damped(x):
    halved = x * 0.5
    return halved - 1.0
