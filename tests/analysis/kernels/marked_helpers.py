"""Helpers of marked.py, in a file of their own; no two constants of the two files are alike."""

import triton
import triton.language as tl


@triton.jit
def elsewhere(x):
    x = x ^ 5101
    x = tl.maximum(x, 5203)
    return x ^ 5305


@triton.jit
def elsewhere_outer(x):
    x = tl.maximum(x, 5407)
    x = elsewhere(x)
    return tl.maximum(x, 5509)


@triton.jit
def keyed_elsewhere(x, key: tl.constexpr):
    x = x ^ key
    return tl.maximum(x, 5601)


@triton.jit(noinline=True)
def apart_elsewhere(x):
    x = x ^ 5703
    x = tl.maximum(x, 5805)
    return x ^ 5907
