"""Kernels whose compile ends the process, or never ends: `hostile.py abort|hang|exit|raise`."""

import os
import sys
import time

import triton
import triton.language as tl


def misbehave(_):
    """Called by the compiler for the kernel's name."""
    if sys.argv[1] == "abort":
        os.abort()
    time.sleep(600)


@triton.jit
def fine(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)


@triton.jit(repr=misbehave)
def hostile(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)


if __name__ == "__main__":
    from triton.runtime.jit import MockTensor

    class Float32:
        def __str__(self):
            return "torch.float32"

    x = MockTensor(Float32())
    fine.warmup(x, BLOCK=128, grid=(1,))
    if sys.argv[1] == "exit":
        sys.exit("the user asked for it")
    if sys.argv[1] == "raise":
        raise RuntimeError("no such luck")
    hostile.warmup(x, BLOCK=128, grid=(1,))
