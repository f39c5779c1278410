import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: gl.constexpr, THREADS: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [THREADS], [4], [0])
    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    gl.store(out_ptr + offsets, gl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


x = torch.randn(1000, device="cuda")
out = torch.empty_like(x)
copy_kernel[(8,)](x, out, 1000, BLOCK=128, THREADS=torch.cuda.get_device_properties(0).warp_size, num_warps=4)
torch.testing.assert_close(out, x)
