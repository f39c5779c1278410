"""Elements of one to eight bytes, side by side and strided."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from tests.memory.addresses.accesses.case import case, model, t, up_to


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
