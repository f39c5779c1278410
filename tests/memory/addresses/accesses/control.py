"""Loops, branches, calls, programs that return early or take several tiles."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from tests.memory.addresses.accesses.case import both, case, model, t, up_to


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
