"""A copy through descriptors that the host makes, of views into larger tensors, named by a tuple beside them."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def descriptor_copy_kernel(source, target, extra, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    tile = source.load([row, column])
    scale = tl.load(extra[0])
    target.store([row, column], (tile * scale).to(tl.float16))
    tl.atomic_add(extra[1], 1)


torch.manual_seed(0)
whole = torch.randn(512, 1024, device="cuda", dtype=torch.float16)
out = torch.empty(512, 1024, device="cuda", dtype=torch.float16)
x, y = whole[:, 512:], out[:, :512]
scale, count = torch.full((1,), 2.0, device="cuda"), torch.zeros(1, dtype=torch.int32, device="cuda")
source, target = (TensorDescriptor.from_tensor(tensor, [64, 64]) for tensor in (x, y))
descriptor_copy_kernel[(8, 8)](source, target, (scale, count), ROWS=64, COLUMNS=64)
assert torch.equal(y, x * 2)
assert int(count) == 64, f"{int(count)} programs counted"
