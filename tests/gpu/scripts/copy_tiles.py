"""A copy of tiles of bytes: where it is not coalesced, each lane moves one byte an instruction, slowly anywhere."""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    offsets = rows[:, None] * columns + cols[None, :]
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


x = torch.randint(-128, 128, (16384, 8192), device="cuda", dtype=torch.int8)
out = torch.empty_like(x)
copy_kernel[(16384 // 32, 8192 // 128)](x, out, 8192, ROWS=32, COLUMNS=128)
assert torch.equal(x, out)
