"""Scalars, atomic additions and exchanges."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from tests.memory.addresses.accesses.case import case, model, t, up_to


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
