"""Kernels in which a constant tells an operation's line at every stage: no two are alike.

Exclusive or and maximum take turns: no compiler joins them, so that each constant stays to the end.
"""

import triton
import triton.language as tl
from marked_helpers import apart_elsewhere, elsewhere, elsewhere_outer, keyed_elsewhere


@triton.jit
def inner(x):
    return tl.maximum(x, 1101)


@triton.jit
def middle(x):
    x = x ^ 1203
    x = inner(x)  # of middle
    return x ^ 1305


@triton.jit
def outer(x):
    x = tl.maximum(x, 1407)
    x = middle(x)
    return tl.maximum(x, 1509)


@triton.jit
def keyed(x, key: tl.constexpr, floor: tl.constexpr):
    x = x ^ key
    return tl.maximum(x, floor)


@triton.jit
def keyed_outer(x, key: tl.constexpr):
    return keyed(x, key, 1601)


@triton.jit
def either(a, b):
    return a | b


@triton.jit
def inlined(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    x = x ^ 2101
    x = tl.maximum(x, 2203)
    x = x ^ 2251
    x = outer(x)
    x = keyed(x, 2305, 2407)
    x = keyed(  # over lines
        x,
        2509,
        2601,
    )
    x = keyed_outer(x, 2703)
    x = x ^ 2805
    x = keyed_outer(tl.maximum(x, 2907), 3001)
    x = tl.maximum(x ^ 3103, 3205)
    x = elsewhere(x)
    x = tl.maximum(x, 3307)
    x = keyed_elsewhere(x, 3409)
    x = keyed_elsewhere(x, 3501)
    x = x ^ 3603
    x = elsewhere_outer(x)
    for step in tl.static_range(2):
        x = keyed(x, 3705 + 64 * step, 3807 + 64 * step)
    x = x ^ 3909
    tl.store(y_ptr + offsets, x)


@triton.jit(noinline=True)
def apart(x):
    x = x ^ 4101
    x = inner(x)  # of apart
    x = x ^ 4203
    return tl.maximum(x, 4305)


@triton.jit
def to_apart(x):
    x = x ^ 4407
    return apart(x)


@triton.jit
def called(x_ptr, y_ptr, count):
    x = tl.load(x_ptr)
    x = x ^ 4509
    x = apart(x)  # the first
    x = tl.maximum(x, 4601)
    x = to_apart(x)
    x = tl.maximum(x, 4703)
    x = apart_elsewhere(x)
    x = x ^ 4805
    for _ in range(count):
        x = tl.maximum(x, 4907)
        x = keyed(x, 5009, 6101)
    if count == 6203:
        tl.store(y_ptr + 1, x)
    tl.store(y_ptr, x)


@triton.jit
def functions(x_ptr, y_ptr, z_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    x = tl.exp2(x)
    x = tl.log2(x)
    x = tl.sqrt(x)
    x = tl.sin(x)
    x = tl.rsqrt(x)
    x = tl.floor(x)
    x = 1.0 / x
    tl.store(y_ptr + offsets, x)
    n = tl.load(z_ptr + offsets, cache_modifier=".cg")
    most = tl.max(n)
    least = tl.min(n)
    odd = tl.xor_sum(n)
    every = tl.reduce(n, 0, either)
    # On AMD an atomic has the location of its pointer.
    tl.atomic_add(z_ptr + 1, most)
    tl.atomic_xchg(z_ptr + 2, least)
    tl.atomic_min(z_ptr + 3, odd)
    tl.atomic_and(z_ptr + 4, every)
