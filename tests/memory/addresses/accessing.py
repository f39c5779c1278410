"""Kernels, and beside each what its meaning says that it accesses. As a script it launches them all.

A model says for a program which elements of each argument it accesses, in the order of the tensor of pointers, and
under which mask: nothing in it knows of layouts, lanes or the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

try:
    from triton.tools.tensor_descriptor import TensorDescriptor
except ImportError:  # pragma: no cover
    TensorDescriptor = None

Touched = Sequence[tuple[np.ndarray, Any]]
Model = Callable[..., dict[str, Touched]]
"""From the program ids to argument → (elements, mask) of each execution; `load x`, `store out`, …"""


@dataclass
class Case:
    """A kernel, its launch, and the model of what it accesses."""

    kernel: Any
    grid: tuple[int, ...]
    arguments: Callable[[], tuple[Any, ...]]
    options: dict[str, Any]
    model: Model
    is_pipelined: bool = False
    """Whether copies that are masked off stand among its instructions."""


CASES: dict[str, Case] = {}
_MODELS: dict[str, Model] = {}


def case(grid: tuple[int, ...], arguments: Callable[[], tuple[Any, ...]], pipelined: bool = False, **options: Any):
    """Register a kernel; its model is the function `NAME_model` registered before it."""

    def register(kernel: Any) -> Any:
        name = kernel.fn.__name__
        CASES[name] = Case(kernel, grid, arguments, options, _MODELS[name], pipelined)
        return kernel

    return register


def model(function: Model) -> Model:
    """Register the model of the kernel that follows."""
    _MODELS[function.__name__.removesuffix("_model")] = function
    return function


def t(*shape: int, dtype: Any = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="cuda")


def up_to(count: int) -> np.ndarray:
    return np.arange(count)


def both(elements: np.ndarray, mask: Any = True) -> dict[str, Touched]:
    """The same of the load from x and the store to out."""
    return {"load x": [(elements, mask)], "store out": [(elements, mask)]}


# One dimension


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


# Element sizes


@model
def sizes_model(pid):
    o = pid[0] * 512 + up_to(512)
    row = [(o, o < 900)]
    return {f"{what} {name}": row for what, names in (("load", "abcde"), ("store", "fghij")) for name in names}


@case(
    (2,),
    lambda: (
        *(t(1024, dtype=d) for d in (torch.int8, torch.float16, torch.bfloat16, torch.int64, torch.float64)),
        *(t(1024, dtype=d) for d in (torch.int8, torch.float16, torch.bfloat16, torch.int64, torch.float64)), 900,
    ),
    BLOCK=512,
)  # fmt: skip
@triton.jit
def sizes(a, b, c, d, e, f, g, h, i, j, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    tl.store(f + o, tl.load(a + o, mask=m), mask=m)
    tl.store(g + o, tl.load(b + o, mask=m), mask=m)
    tl.store(h + o, tl.load(c + o, mask=m), mask=m)
    tl.store(i + o, tl.load(d + o, mask=m), mask=m)
    tl.store(j + o, tl.load(e + o, mask=m), mask=m)


@model
def strided_sizes_model(pid):
    o = up_to(512)
    return {
        "load a": [(o * 3, True)],
        "load b": [(o * 5, True)],
        "store f": [(o * 2, True)],
        "store g": [(o * 9, True)],
    }


@case((1,), lambda: (t(2048, dtype=torch.int8), t(4096, dtype=torch.float64), t(2048, dtype=torch.float16),
                     t(8192, dtype=torch.int64)), BLOCK=512)  # fmt: skip
@triton.jit
def strided_sizes(a, b, f, g, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(f + o * 2, tl.load(a + o * 3).to(tl.float16))
    tl.store(g + o * 9, tl.load(b + o * 5).to(tl.int64))


# Two and three dimensions


@model
def tile_model(pid):
    r, c = pid[0] * 32 + up_to(32)[:, None], pid[1] * 64 + up_to(64)[None, :]
    return {"load x": [(r * 100 + c, (r < 50) & (c < 100))], "store out": [(r * 128 + c, (r < 50) & (c < 100))]}


@case((2, 2), lambda: (t(50, 100), t(64, 128), 50, 100, 100, 128), ROWS=32, COLUMNS=64)
@triton.jit
def tile(x, out, m, n, stride_x, stride_out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    c = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    mask = (r < m) & (c < n)
    tl.store(out + r * stride_out + c, tl.load(x + r * stride_x + c, mask=mask), mask=mask)


@model
def transposed_model(pid):
    r, c = pid[0] * 32 + up_to(32)[:, None], up_to(32)[None, :]
    return {"load x": [(r * 32 + c, True)], "store out": [((c * 64 + r).T, True)]}


@case((2,), lambda: (t(64, 32), t(32, 64)), SIZE=32)
@triton.jit
def transposed(x, out, SIZE: tl.constexpr):
    r = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    c = tl.arange(0, SIZE)
    tile = tl.load(x + r[:, None] * SIZE + c[None, :])
    tl.store(out + c[:, None] * 64 + r[None, :], tl.trans(tile))


@model
def column_model(pid):
    r = pid[0] * 128 + up_to(128)
    return {"load x": [(r * 40 + 7, r < 200)], "store out": [(r, r < 200)]}


@case((2,), lambda: (t(200, 40), t(256), 200, 40, 7), BLOCK=128)
@triton.jit
def column(x, out, rows, columns, which, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + r, tl.load(x + r * columns + which, mask=r < rows), mask=r < rows)


@model
def row_broadcast_model(pid):
    r, c = up_to(64)[:, None], up_to(64)[None, :]
    return {"load x": [(0 * r + c, True)], "store out": [(r * 64 + c, True)]}


@case((1,), lambda: (t(64), t(64, 64)), SIZE=64)
@triton.jit
def row_broadcast(x, out, SIZE: tl.constexpr):
    r, c = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    tl.store(out + r * SIZE + c, tl.load(x + r * 0 + c))


@model
def row_once_model(pid):
    c = up_to(64)
    r = up_to(64)[:, None]
    return {"load x": [(c, True)], "load y": [(up_to(64), True)], "store out": [(r * 64 + c[None, :], True)]}


@case((1,), lambda: (t(64), t(64), t(64, 64)), SIZE=64)
@triton.jit
def row_once(x, y, out, SIZE: tl.constexpr):
    r, c = tl.arange(0, SIZE), tl.arange(0, SIZE)
    tile = tl.load(x + c)[None, :] + tl.load(y + r)[:, None]
    tl.store(out + r[:, None] * SIZE + c[None, :], tile)


@model
def small_model(pid):
    return both(up_to(16), up_to(16) < 13)


@case((2,), lambda: (t(16), t(16), 13), SIZE=16)
@triton.jit
def small(x, out, n, SIZE: tl.constexpr):
    o = tl.arange(0, SIZE)
    tl.store(out + o, tl.load(x + o, mask=o < n), mask=o < n)


@model
def three_dimensions_model(pid):
    i, j, k = up_to(4)[:, None, None], up_to(8)[None, :, None], up_to(32)[None, None, :]
    at = pid[0] * 2048 + i * 320 + j * 40 + k
    return {"load x": [(at, j < 7)], "store out": [((k * 32 + j * 4 + i), True)]}


@case((2,), lambda: (t(8192), t(1024), 320, 40, 7), A=4, B=8, C=32)
@triton.jit
def three_dimensions(x, out, si, sj, n, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    i = tl.arange(0, A)[:, None, None]
    j = tl.arange(0, B)[None, :, None]
    k = tl.arange(0, C)[None, None, :]
    v = tl.load(x + tl.program_id(0) * 2048 + i * si + j * sj + k, mask=j < n)
    tl.store(out + k * (A * B) + j * A + i, v)


@model
def reshaped_model(pid):
    o = (up_to(1024).reshape(32, 32).T * 3).reshape(-1)
    return {"load x": [(o, True)], "store out": [(up_to(1024), True)]}


@case((1,), lambda: (t(4096), t(1024)), BLOCK=1024)
@triton.jit
def reshaped(x, out, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    p = tl.reshape(tl.trans(tl.reshape(o, 32, 32)), BLOCK) * 3
    tl.store(out + o, tl.load(x + p))


@model
def interleaved_model(pid):
    o = np.stack([up_to(128), up_to(128) + 1000], -1).reshape(-1)
    return {"load x": [(o, True)], "store out": [(up_to(256), True)]}


@case((1,), lambda: (t(2048), t(256)), BLOCK=128)
@triton.jit
def interleaved(x, out, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    p = tl.interleave(o, o + 1000)
    tl.store(out + tl.arange(0, 2 * BLOCK), tl.load(x + p))


@model
def summed_model(pid):
    o = np.cumsum(up_to(128))
    return {"load x": [(o, True)], "store out": [(up_to(128) + np.sum(up_to(128)) - 8000, True)]}


@case((1,), lambda: (t(16384), t(512)), BLOCK=128)
@triton.jit
def summed(x, out, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    p = tl.cumsum(o, 0)
    tl.store(out + o + tl.sum(o, 0) - 8000, tl.load(x + p))


@model
def greatest_model(pid):
    o = (up_to(64) * 29) % 64
    return {"load x": [(o + np.argmax(o), True)], "store out": [(up_to(64) + o.max(), True)]}


@case((1,), lambda: (t(128), t(128)), BLOCK=64)
@triton.jit
def greatest(x, out, BLOCK: tl.constexpr):
    o = (tl.arange(0, BLOCK) * 29) % BLOCK
    tl.store(out + tl.arange(0, BLOCK) + tl.max(o, 0), tl.load(x + o + tl.argmax(o, 0)))


# Scalars and atomics


@model
def scalars_model(pid):
    one = np.array([pid[0] * 3])
    return {"load x": [(one, True)], "store out": [(one, True)]}


@case((4,), lambda: (t(16), t(16)))
@triton.jit
def scalars(x, out):
    at = tl.program_id(0) * 3
    tl.store(out + at, tl.load(x + at) + 1)


@model
def atomics_model(pid):
    o = pid[0] * 256 + up_to(256)
    return {"load x": [(o, o < 400)], "atomic out": [(o // 2, o < 400)], "atomic count": [(np.array([0]), True)]}


@case((2,), lambda: (t(512), t(512), t(1, dtype=torch.int32), 400), BLOCK=256)
@triton.jit
def atomics(x, out, count, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + o // 2, tl.load(x + o, mask=o < n), mask=o < n)
    tl.atomic_add(count, 1)


@model
def swapped_model(pid):
    o = up_to(128)
    return {"atomic x": [(o * 2, True)]}


@case((1,), lambda: (t(256, dtype=torch.int32), t(4)), BLOCK=128)
@triton.jit
def swapped(x, out, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.atomic_cas(x + o * 2, tl.zeros((BLOCK,), tl.int32), o)


# Control


@model
def looped_model(pid):
    at = [turn * 96 + pid[0] * 32 + up_to(32) for turn in range(20)]
    return {"load x": [(o, True) for o in at], "store out": [(pid[0] * 32 + up_to(32), True)]}


@case((3,), lambda: (t(1920), t(96), 20), BLOCK=32, num_stages=1)
@triton.jit
def looped(x, out, turns, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    p = x + o
    for _ in range(turns):
        total += tl.load(p)
        p += 3 * BLOCK
    tl.store(out + o, total)


@model
def loop_with_a_tail_model(pid):
    at = [(turn * 64 + up_to(64)) for turn in range(16)]
    return {"load x": [(pid[0] * 1000 + o, o < 1000) for o in at], "store out": [(np.array([pid[0]]), True)]}


@case((3,), lambda: (t(3, 1000), t(3), 1000), BLOCK=64, num_stages=1)
@triton.jit
def loop_with_a_tail(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        o = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * n + o, mask=o < n, other=0.0)
    tl.store(out + row, tl.sum(total, 0))


@model
def triangle_model(pid):
    rows = [(turn, row) for turn in range(12) for row in range(turn + pid[0])]
    return {
        "load x": [(turn * 64 + row * 16 + up_to(16), True) for turn, row in rows],
        "store out": [(up_to(16), True)],
    }


@case((2,), lambda: (t(2048), t(16), 12), BLOCK=16, num_stages=1)
@triton.jit
def triangle(x, out, turns, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(turns):
        for j in range(i + tl.program_id(0)):
            total += tl.load(x + i * 64 + j * 16 + o)
    tl.store(out + o, total)


@model
def growing_model(pid):
    at, step, rows = 0, 1, []
    for _ in range(14):
        rows.append((at + up_to(32), True))
        at, step = at + step, step + 3
    return {"load x": rows, "store out": [(up_to(32), True)]}


@case((1,), lambda: (t(2048), t(32), 14), BLOCK=32, num_stages=1)
@triton.jit
def growing(x, out, turns, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    at = 0
    step = 1
    for _ in range(turns):
        total += tl.load(x + at + o)
        at += step
        step += 3
    tl.store(out + o, total)


@model
def branching_model(pid):
    o = up_to(64)
    if pid[0] == 2:
        return {"load x": [(o * 8, True)], "store out": []}
    return {"load x": [], "store out": [(o + pid[0] * 64, True)]}


@case((5,), lambda: (t(512), t(512)), BLOCK=64)
@triton.jit
def branching(x, out, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    if tl.program_id(0) == 2:
        v = tl.load(x + o * 8)
        tl.device_assert(v > 0)
        tl.debug_barrier()
        tl.inline_asm_elementwise("mov.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=False, pack=1)
    else:
        tl.store(out + o + tl.program_id(0) * 64, 1.0)


@model
def returning_model(pid):
    o = pid[0] * 64 + up_to(64)
    return both(o) if pid[0] < 3 else {"load x": [], "store out": []}


@case((5,), lambda: (t(512), t(512), 3), BLOCK=64)
@triton.jit
def returning(x, out, programs, BLOCK: tl.constexpr):
    if tl.program_id(0) >= programs:
        return
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + o, tl.load(x + o))


@model
def doubling_model(pid):
    rows, i = [], 1
    while i < 700:
        rows.append((i + up_to(32), True))
        i = i * 2 + pid[0]
    return {"load x": rows, "store out": [(up_to(32), True)]}


@case((2,), lambda: (t(1024), t(32), 700), BLOCK=32)
@triton.jit
def doubling(x, out, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    i = 1
    while i < n:
        total += tl.load(x + i + o)
        i = i * 2 + tl.program_id(0)
    tl.store(out + o, total)


@triton.jit(noinline=True)
def _place(row, stride):
    return row * stride + 5


@model
def calling_model(pid):
    o = up_to(64)
    return {"load x": [(pid[0] * 33 + 5 + o, True)], "store out": [(pid[0] * 64 + o, True)]}


@case((3,), lambda: (t(256), t(256), 33), BLOCK=64)
@triton.jit
def calling(x, out, stride, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0) * BLOCK + o, tl.load(x + _place(tl.program_id(0), stride) + o))


@model
def grouped_model(pid):
    rows, columns, group = 5, 4, 2
    first = pid[0] // (group * columns) * group
    size = min(rows - first, group)
    i, j = first + pid[0] % (group * columns) % size, pid[0] % (group * columns) // size
    at = (i * 16 + up_to(16)[:, None]) * 64 + j * 16 + up_to(16)[None, :]
    return both(at)


@case((20,), lambda: (t(80, 64), t(80, 64), 5, 4), SIZE=16)
@triton.jit
def grouped(x, out, rows, columns, SIZE: tl.constexpr):
    pid = tl.program_id(0)
    first = pid // (2 * columns) * 2
    size = min(rows - first, 2)
    i = first + pid % (2 * columns) % size
    j = pid % (2 * columns) // size
    at = (i * SIZE + tl.arange(0, SIZE)[:, None]) * 64 + j * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(out + at, tl.load(x + at))


@model
def persistent_model(pid):
    at = [tile * 128 + up_to(128) for tile in range(pid[0], 11, 4)]
    return {"load x": [(o, o < 1300) for o in at], "store out": [(o, o < 1300) for o in at]}


@case((4,), lambda: (t(1408), t(1408), 1300), BLOCK=128, num_stages=1)
@triton.jit
def persistent(x, out, n, BLOCK: tl.constexpr):
    for tile in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        o = tile * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + o, tl.load(x + o, mask=o < n), mask=o < n)


@model
def multiplied_model(pid):
    r, c, k = up_to(32)[:, None], up_to(32)[None, :], up_to(32)
    steps = range(0, 190, 32)
    return {
        "load a": [((pid[0] * 32 + r) * 190 + s + k[None, :], (s + k[None, :] < 190) & (r >= 0)) for s in steps],
        "load b": [((s + k[:, None]) * 64 + pid[1] * 32 + c, (s + k[:, None] < 190) & (c >= 0)) for s in steps],
        "store out": [((pid[0] * 32 + r) * 64 + pid[1] * 32 + c, True)],
    }


@case((2, 2), lambda: (t(64, 190, dtype=torch.float16), t(190, 64, dtype=torch.float16), t(64, 64), 190),
      pipelined=True, SIZE=32, num_stages=3)  # fmt: skip
@triton.jit
def multiplied(a, b, out, depth, SIZE: tl.constexpr):
    r = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    c = tl.program_id(1) * SIZE + tl.arange(0, SIZE)
    k = tl.arange(0, SIZE)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for start in range(0, depth, SIZE):
        x = tl.load(a + r[:, None] * depth + start + k[None, :], mask=start + k[None, :] < depth, other=0.0)
        y = tl.load(b + (start + k[:, None]) * 64 + c[None, :], mask=start + k[:, None] < depth, other=0.0)
        total += tl.dot(x, y)
    tl.store(out + r[:, None] * 64 + c[None, :], total)


@model
def eight_warps_model(pid):
    o = pid[0] * 128 + up_to(128)
    return both(o, o < 200)


@case((2,), lambda: (t(256), t(256), 200), BLOCK=128, num_warps=8)
@triton.jit
def eight_warps(x, out, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + o, tl.load(x + o, mask=o < n), mask=o < n)


# What data decides: models take the indices that were loaded.


def rows_model(pid, indices):
    r = pid[0] * 32 + up_to(32)
    at = indices[r][:, None] * 128 + up_to(128)[None, :]
    return {"load table": [(at, (r < 120)[:, None])]}


@triton.jit
def rows(index, table, out, n, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, WIDTH)
    i = tl.load(index + r, mask=r < n, other=0)
    v = tl.load(table + i[:, None] * WIDTH + c[None, :], mask=(r < n)[:, None])
    tl.store(out + r[:, None] * WIDTH + c[None, :], v, mask=(r < n)[:, None])


def words_model(pid, indices):
    i = indices[pid[0] * 32 + up_to(32)]
    return {"load table": [(np.concatenate([i, i]), True)]}


@triton.jit
def words(index, table, out, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    i = tl.load(index + tl.program_id(0) * 32 + o % 32)
    tl.store(out + o, tl.load(table + i))


def dropped_model(pid, indices):
    o = pid[0] * 32 + up_to(32)
    return {"load table": [(o, indices[o] % 2 == 0)]}


@triton.jit
def dropped(index, table, out, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.load(index + o) % 2 == 0
    tl.store(out + o, tl.load(table + o, mask=keep))


def _indices() -> torch.Tensor:
    return t(128, dtype=torch.int32)


OF_DATA = {
    "rows": Case(rows, (4,), lambda: (_indices(), t(1000, 128, dtype=torch.float16), t(128, 128), 120),
                 {"ROWS": 32, "WIDTH": 128}, rows_model),
    "words": Case(words, (4,), lambda: (_indices(), t(1000), t(64)), {"BLOCK": 64, "num_warps": 1}, words_model),
    "dropped": Case(dropped, (4,), lambda: (_indices(), t(128), t(128)), {"BLOCK": 32, "num_warps": 1}, dropped_model),
}  # fmt: skip

# Descriptors


@model
def described_model(pid):
    r, c = pid[0] * 32 + up_to(32)[:, None], up_to(64)[None, :] + 32
    return {"load x": [(r * 72 + c, (r < 80) & (c < 72))], "store out": [(r * 72 + c, (r < 80) & (c < 72))]}


if TensorDescriptor is not None:

    @case((3,), lambda: tuple(TensorDescriptor.from_tensor(t(80, 72), [32, 64]) for _ in range(2)), ROWS=32)
    @triton.jit
    def described(x, out, ROWS: tl.constexpr):
        row = tl.program_id(0) * ROWS
        out.store([row, 32], x.load([row, 32]))


@model
def described_inside_model(pid):
    return described_model(pid)


@case((3,), lambda: (t(80, 72), t(80, 72), 80, 72), ROWS=32, COLUMNS=64)
@triton.jit
def described_inside(x, out, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [m, n], [n, 1], [ROWS, COLUMNS])
    target = tl.make_tensor_descriptor(out, [m, n], [n, 1], [ROWS, COLUMNS])
    row = tl.program_id(0) * ROWS
    target.store([row, 32], source.load([row, 32]))


@model
def block_pointers_model(pid):
    r, c = pid[0] * 16 + up_to(16)[:, None], up_to(32)[None, :]
    return {"load x": [(r * 40 + c, r < 40)], "store out": [(r * 40 + c + 8, c + 8 < 40)]}


if not hasattr(tl, "make_block_ptr") or tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 9):
    _MODELS.pop("block_pointers")
else:

    @case((3,), lambda: (t(40, 40), t(48, 40), 40, 40), ROWS=16, COLUMNS=32)
    @triton.jit
    def block_pointers(x, out, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
        row = tl.program_id(0) * ROWS
        a = tl.make_block_ptr(x, (m, n), (n, 1), (row, 0), (ROWS, COLUMNS), (1, 0))
        b = tl.make_block_ptr(out, (m, n), (n, 1), (row, 0), (ROWS, COLUMNS), (1, 0))
        b = tl.advance(b, (0, 8))
        tl.store(b, tl.load(a, boundary_check=(0,)), boundary_check=(1,))


def launch_all() -> None:
    """Launch every kernel."""
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    for one in (*CASES.values(), *OF_DATA.values()):
        one.kernel[one.grid](*one.arguments(), **one.options)


if __name__ == "__main__":
    launch_all()
