"""Tiles: edges, transposes, broadcasts, reshapes, and indices that were reduced."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tests.memory.addresses.accesses.case import both, case, model, t, up_to


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
