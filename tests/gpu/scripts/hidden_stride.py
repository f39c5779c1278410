"""A launch with a stride that 16 divides, but that Triton was told not to specialise on: its loads are narrow."""

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["stride"])
def rows(x, y, stride, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * stride + columns)
    tl.store(y + tl.program_id(0) * BLOCK + columns, values)


if __name__ == "__main__":
    x = torch.randn(4096, 1024, device="cuda", dtype=torch.float16)
    y = torch.empty_like(x)
    rows[(4096,)](x, y, x.stride(0), BLOCK=1024)
    assert torch.equal(x, y)
