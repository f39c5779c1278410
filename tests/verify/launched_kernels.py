"""Launches that read what others before them wrote to memory of torch.empty."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def writes_a_part(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, 1.0, mask=offsets < n)


@triton.jit
def writes_the_rest(x_ptr, n, BLOCK: tl.constexpr):
    offsets = n + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, 1.0, mask=offsets < 512)


@triton.jit
def copies_that_part(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


@triton.jit
def copies_all_too_early(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def copies_all_of_it(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def copies_by_descriptor(x_desc, y_ptr, BLOCK: tl.constexpr):
    x = x_desc.load([tl.program_id(0) * BLOCK])
    tl.store(y_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), x)


@triton.jit
def gathers(index_ptr, x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + tl.load(index_ptr + offsets)))


if __name__ == "__main__":
    x, y = torch.empty(512, device="cuda"), torch.zeros(512, device="cuda")
    described = torch.empty(512, device="cuda")
    copies_by_descriptor[(4,)](TensorDescriptor.from_tensor(described, [128]), y, BLOCK=128)
    writes_a_part[(4,)](x, 300, BLOCK=128)
    gathers[(1,)](torch.arange(64, device="cuda"), y, y[256:], BLOCK=64)
    gathers[(1,)](torch.arange(64, device="cuda") * 9, y, y[256:], BLOCK=64)
    copies_that_part[(4,)](x, y, 300, BLOCK=128)
    copies_all_too_early[(4,)](x, y, BLOCK=128)
    # A view of the same memory.
    writes_the_rest[(1,)](x[:], 300, BLOCK=256)
    copies_all_of_it[(4,)](x, y, BLOCK=128)
    # Of `.data` torch counts writes by themselves.
    filled = torch.empty(512, device="cuda")
    filled.data.fill_(1.0)
    copies_that_part[(4,)](filled, y, 512, BLOCK=128)
