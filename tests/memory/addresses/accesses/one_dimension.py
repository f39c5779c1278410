"""Vectors: strides, orders, masks, indices that wrap, repeat or are permuted."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tests.memory.addresses.accesses.case import both, case, model, t, up_to


@model
def masked_model(pid):
    o = pid[0] * 1024 + up_to(1024)
    return both(o, o < 2900)


@case((3,), lambda: (t(4096), t(4096), 2900), BLOCK=1024)
@triton.jit
def masked(x, out, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + o, tl.load(x + o, mask=o < n), mask=o < n)


@model
def strided_model(pid):
    o = pid[0] * 1024 + up_to(1024)
    return {"load x": [(o * 16, True)], "store out": [(o, True)]}


@case((2,), lambda: (t(2048 * 16), t(2048)), BLOCK=1024)
@triton.jit
def strided(x, out, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + o, tl.load(x + o * 16))


@model
def every_second_model(pid):
    o = pid[0] * 1024 + up_to(1024)
    return {"load x": [(o * 2, True)], "store out": [(o * 4 + 2, True)]}


@case((2,), lambda: (t(4096), t(8192)), BLOCK=1024)
@triton.jit
def every_second(x, out, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + o * 4 + 2, tl.load(x + o * 2))


@model
def stride_argument_model(pid):
    o = pid[0] * 256 + up_to(256)
    return {"load x": [(o * 7, o < 500)], "store out": [(o, o < 500)]}


@case((2,), lambda: (t(3584), t(512), 500, 7), BLOCK=256)
@triton.jit
def stride_argument(x, out, n, stride, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + o, tl.load(x + o * stride, mask=o < n), mask=o < n)


@model
def structs_model(pid):
    o = pid[0] * 512 + up_to(512)
    return {"load x": [(o * 3 + 1, True)], "store out": [(o, True)]}


@case((3,), lambda: (t(4608), t(1536)), BLOCK=512)
@triton.jit
def structs(x, out, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + o, tl.load(x + o * 3 + 1))


@model
def reversed_order_model(pid):
    o = pid[0] * 512 + up_to(512)
    return {"load x": [(1535 - o, True)], "store out": [(o, True)]}


@case((3,), lambda: (t(1536), t(1536), 1536), BLOCK=512)
@triton.jit
def reversed_order(x, out, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + o, tl.load(x + n - 1 - o))


@model
def negative_stride_model(pid):
    o = pid[0] * 256 + up_to(256)
    return {"load x": [(1024 - 4 * o, True)], "store out": [(o, True)]}


@case((1,), lambda: (t(2048), t(256), -4), BLOCK=256)
@triton.jit
def negative_stride(x, out, stride, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + o, tl.load(x + 1024 + o * stride))


@model
def repeated_model(pid):
    o = pid[0] * 512 + up_to(512)
    return {"load x": [(o // 4, True)], "store out": [(o, True)]}


@case((2,), lambda: (t(512), t(1024)), BLOCK=512)
@triton.jit
def repeated(x, out, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + o, tl.load(x + o // 4))


@model
def scrambled_model(pid):
    o = up_to(512)
    return {"load x": [((o * 37 + pid[0]) % 512, True)], "store out": [(o ^ 5, True)]}


@case((2,), lambda: (t(512), t(512)), BLOCK=512)
@triton.jit
def scrambled(x, out, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(out + (o ^ 5), tl.load(x + (o * 37 + tl.program_id(0)) % BLOCK))


@model
def wrapping_model(pid):
    o = up_to(256).astype(np.int32) * np.int32(0x01000193)
    return {"load x": [(((o >> 20) & 1023).astype(np.int64), True)], "store out": [(up_to(256), True)]}


@case((1,), lambda: (t(1024), t(256)), BLOCK=256)
@triton.jit
def wrapping(x, out, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK) * 0x01000193
    tl.store(out + tl.arange(0, BLOCK), tl.load(x + ((o >> 20) & 1023)))


@model
def far_model(pid):
    o = (pid[0] * 256 + up_to(256)).astype(np.int64) * 1_000_000_007
    return {"load x": [(o, True)], "store out": [(pid[0] * 256 + up_to(256), True)]}


@case((2,), lambda: (t(64), t(512)), BLOCK=256)
@triton.jit
def far(x, out, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + o, tl.load(x + o.to(tl.int64) * 1000000007))


@model
def unaligned_model(pid):
    o = pid[0] * 512 + up_to(512)
    return both(o)


@case((2,), lambda: (t(1025)[1:], t(1028)[4:]), BLOCK=512)
@triton.jit
def unaligned(x, out, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + o, tl.load(x + o))


@model
def in_tuples_model(pid):
    o = pid[0] * 256 + up_to(256)
    return {"load pointers[0]": [(o, o < 500)], "store pointers[1]": [(o * 3, o < 500)]}


@case((2,), lambda: ((t(512), t(2049)[1:]), (1, 3), 500), BLOCK=256)
@triton.jit
def in_tuples(pointers, sizes, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(pointers[0] + o * sizes[0], mask=o < n)
    tl.store(pointers[1] + o * sizes[1], v, mask=o < n)


@model
def clamped_model(pid):
    o = pid[0] * 256 + up_to(256)
    return {"load x": [(np.minimum(np.maximum(o - 3, 0), 499), True)], "store out": [(o, True)]}


@case((2,), lambda: (t(512), t(512), 500), BLOCK=256)
@triton.jit
def clamped(x, out, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + o, tl.load(x + tl.minimum(tl.maximum(o - 3, 0), n - 1)))


@model
def chosen_model(pid):
    o = up_to(256)
    return {"load x": [(np.where(o % 2 == 0, o, 256 + o), True)], "store out": [(o, (o & 3) != 1)]}


@case((1,), lambda: (t(512), t(256)), BLOCK=256)
@triton.jit
def chosen(x, out, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    p = tl.where(o % 2 == 0, x + o, x + BLOCK + o)
    tl.store(out + o, tl.load(p), mask=(o & 3) != 1)


@model
def empty_mask_model(pid):
    o = pid[0] * 256 + up_to(256)
    return both(o, o < 0)


@case((2,), lambda: (t(512), t(512), 0), BLOCK=256)
@triton.jit
def empty_mask(x, out, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + o, tl.load(x + o, mask=o < n), mask=o < n)
