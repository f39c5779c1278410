"""Normalises rows, one of which is zero: without an epsilon, which makes a NaN, and with one."""

import torch
import triton
import triton.language as tl


@triton.jit
def normalised(x, y, n, EPSILON: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * n + columns, mask=columns < n, other=0.0)
    root = tl.sqrt(tl.sum(row * row) / n + EPSILON)
    scaled = row / root  # here: IRS702
    tl.store(y + tl.program_id(0) * n + columns, scaled, mask=columns < n)


rows = torch.arange(2400, device="cuda", dtype=torch.float32).reshape(24, 100) + 1
rows[17] = 0
for epsilon in (0.0, 1e-6):
    normalised[(24,)](rows, torch.zeros_like(rows), 100, epsilon, 128)
