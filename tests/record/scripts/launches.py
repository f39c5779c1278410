"""Launches one kernel without torch: `launches.py HOW`, where HOW is what happens between and after."""

import sys

import triton
import triton.language as tl


class Buffer:
    """What Triton needs of a tensor."""

    dtype = "fp32"
    shape = (1000, 2)

    def __init__(self, address):
        self.address = address

    def data_ptr(self):
        return self.address

    def stride(self):
        return (2, 1)

    def ptr_range(self):
        return 8000


@triton.jit
def fill_kernel(x_ptr, pair, n, value, ARCH: tl.constexpr, BAD: tl.constexpr):
    tl.static_assert(ARCH != BAD)
    offsets = tl.arange(0, 128)
    tl.store(x_ptr + offsets, value, mask=offsets < n)
    tl.store(pair[0] + offsets, pair[1], mask=offsets < n)


how = sys.argv[1]
arch = triton.runtime.driver.active.get_current_target().arch
bad = 80 if how == "fails-on-80" else None
x = Buffer(4096)
if how == "refuses-80" and arch == 80:
    raise NotImplementedError("not for this GPU")
try:
    fill_kernel[(3, 2)](x, (Buffer(4100), 32), 1000, 1.0, arch, bad, num_warps=8)
except Exception:
    if how != "fails-on-80":
        raise
if how == "again":
    fill_kernel[(3,)](x, (Buffer(4100), 32), 1000, 1.0, arch, bad, num_warps=8, num_stages=3)
fill_kernel[(5,)](Buffer(4100), (x, 2), 1000, 1.0, arch, None)
if how == "raises":
    raise ValueError("after the launches")
