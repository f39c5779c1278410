"""Tensor descriptors and block pointers."""

from __future__ import annotations

import triton
import triton.language as tl

from tests.memory.addresses.accesses.case import MODELS, case, model, t, up_to

try:
    from triton.tools.tensor_descriptor import TensorDescriptor
except ImportError:  # pragma: no cover
    TensorDescriptor = None


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
    MODELS.pop("block_pointers")
else:

    @case((3,), lambda: (t(40, 40), t(48, 40), 40, 40), ROWS=16, COLUMNS=32)
    @triton.jit
    def block_pointers(x, out, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
        row = tl.program_id(0) * ROWS
        a = tl.make_block_ptr(x, (m, n), (n, 1), (row, 0), (ROWS, COLUMNS), (1, 0))
        b = tl.make_block_ptr(out, (m, n), (n, 1), (row, 0), (ROWS, COLUMNS), (1, 0))
        b = tl.advance(b, (0, 8))
        tl.store(b, tl.load(a, boundary_check=(0,)), boundary_check=(1,))
