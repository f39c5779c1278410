"""A product whose loop is not pipelined, as its launch says: a script that an editor saves."""

import torch
import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, 64):
        at = k + tl.arange(0, 64)
        a = tl.load(a_ptr + rows[:, None] * K + at[None, :])
        b = tl.load(b_ptr + at[:, None] * K + columns[None, :])
        acc += tl.dot(a, b)
    tl.store(c_ptr + rows[:, None] * K + columns[None, :], acc)


a = torch.empty(2048, 2048, dtype=torch.float16, device="cuda")
c = torch.empty(2048, 2048, device="cuda")
product[(16, 16)](a, a, c, 2048, BLOCK=128, num_stages=1)
