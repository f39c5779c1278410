import torch
import triton
import triton.language as tl


@triton.jit
def touch_kernel(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr) * 2)


# 100 GB of weights, and a second tensor of the kind: neither takes memory, and they do not overlap.
large = torch.empty(100 * 2**30, dtype=torch.int8, device="cuda")
other = torch.randn(2**20, 2**14, dtype=torch.float16, device="cuda")
assert large.untyped_storage().size() == 100 * 2**30
assert large.data_ptr() % 256 == 0
assert other.data_ptr() % 256 == 0
assert other.data_ptr() >= large.data_ptr() + large.numel()
copy = large.cpu()
assert copy.device.type == "cpu"
assert copy.shape == large.shape

x = torch.randn(1024, device="cuda")
assert x.data_ptr() == x.data_ptr()
assert x[1:].data_ptr() == x.data_ptr() + 4
assert x.view(32, 32).t().data_ptr() == x.data_ptr()
assert x.view(32, 32)[1, 4:].data_ptr() == x.data_ptr() + 36 * 4
assert x.untyped_storage().data_ptr() == x.data_ptr()
assert x.clone().data_ptr() != x.data_ptr()
assert x.detach().data_ptr() == x.data_ptr()
assert torch.empty(0, device="cuda").data_ptr() == 0
touch_kernel[(1,)](x)
touch_kernel[(2,)](x[1:])
touch_kernel[(3,)](x[4:])
touch_kernel[(4,)](large)
