"""What data decides: models take the indices that were loaded."""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from tests.memory.addresses.accesses.case import Case, t, up_to


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
