import re

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.errors import OutOfResources


@triton.jit
def copy_kernel(x_ptr, factor, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * factor)


@triton.jit
def first_of_two_kernel(pointers, out_ptr):
    tl.store(out_ptr, tl.load(pointers[1]))


@triton.jit
def matmul_kernel(x_ptr, y_ptr, out_ptr, K, BLOCK: tl.constexpr, STEP: tl.constexpr):
    rows, steps = tl.arange(0, BLOCK), tl.arange(0, STEP)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, STEP):
        x = tl.load(x_ptr + rows[:, None] * K + k + steps[None, :])
        y = tl.load(y_ptr + (k + steps)[:, None] * BLOCK + rows[None, :])
        total = tl.dot(x, y, total)
    tl.store(out_ptr + rows[:, None] * BLOCK + rows[None, :], total)


def launch(x, out, **options):
    copy_kernel[(1,)](x, 2.0, out, BLOCK=64, **options)


WARP = torch.cuda.get_device_properties().warp_size
host, device = torch.ones(64), torch.ones(64, device="cuda")
cpu_tensor = re.compile(r"Pointer argument (\(at \d+\) )?cannot be accessed from Triton \(cpu tensor\?\)")
for x, out in ((host, device), (device, host), (device.cpu(), device), (host.pin_memory().clone(), device)):
    with pytest.raises(ValueError, match=cpu_tensor):
        launch(x, out)
with pytest.raises(ValueError, match=cpu_tensor):
    first_of_two_kernel[(1,)]((device, host), device)
with pytest.raises(ValueError, match=cpu_tensor):
    launch(triton.reinterpret(host, tl.float32), device)

# What a GPU can reach: pinned memory and views of it, memory that nobody needs, addresses.
pinned = torch.ones(128, pin_memory=True)
assert pinned.is_pinned()
assert pinned[64:].is_pinned()
assert pinned.pin_memory() is pinned
assert device.cpu().pin_memory().device.type == "cpu"
launch(host.pin_memory(), device)
launch(pinned[64:], device)
launch(device.cpu().pin_memory(), device)
launch(torch.ones(0), device)
first_of_two_kernel[(1,)]((host.pin_memory(), device), device)

# What no block can hold.
x = torch.ones(64, 1024, device="cuda")
with pytest.raises(OutOfResources, match="out of resource: shared memory"):
    matmul_kernel[(1,)](x, x, x, 1024, BLOCK=64, STEP=64, num_stages=10)
with pytest.raises(OutOfResources, match="out of resource: threads"):
    launch(device, device, num_warps=1024 // WARP * 2)
if torch.version.hip is None:
    with pytest.raises(RuntimeError, match=r"Triton Error \[CUDA\]: invalid argument"):
        copy_kernel[(1, 65536)](device, 2.0, device, BLOCK=64)
    copy_kernel[(65536, 65535)](device, 2.0, device, BLOCK=64)
print("refused")
