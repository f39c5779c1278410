import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def host_kernel(x_desc, out_desc, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    out_desc.store([row, 0], x_desc.load([row, 0]) * 2)


@triton.jit
def device_kernel(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [rows, columns], [columns, 1], [BLOCK, BLOCK])
    out_desc = tl.make_tensor_descriptor(out_ptr, [rows, columns], [columns, 1], [BLOCK, BLOCK])
    out_desc.store([tl.program_id(0) * BLOCK, 0], x_desc.load([tl.program_id(0) * BLOCK, 0]))


asked = []


def allocate(size, alignment, stream):
    asked.append(size)
    return torch.empty(size, device="cuda", dtype=torch.int8)


x = torch.randn(256, 64, device="cuda", dtype=torch.float16)
out = torch.empty_like(x)
host_kernel[(4,)](
    TensorDescriptor.from_tensor(x, [64, 64]), TensorDescriptor.from_tensor(out, [64, 64]), BLOCK=64, num_warps=4
)
if torch.cuda.get_device_capability()[0] >= 9 and torch.version.hip is None:
    # The kernel keeps its descriptors in memory that it asks for: without an allocator the launch fails, as on the
    # part.
    with pytest.raises(RuntimeError, match="allocator"):
        device_kernel[(4,)](x, out, 256, 64, BLOCK=64)
    triton.set_allocator(allocate)
    device_kernel[(4,)](x, out, 256, 64, BLOCK=64)
    assert asked
    assert asked[0] >= 4 * 256
else:
    device_kernel[(4,)](x, out, 256, 64, BLOCK=64)
