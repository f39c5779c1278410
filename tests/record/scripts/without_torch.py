import sys

import triton
import triton.language as tl


class NoTorch:
    """Whether torch is installed or not, this program has none."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")


sys.meta_path.insert(0, NoTorch)


class Buffer:
    """What Triton needs of a tensor."""

    dtype = "fp32"

    def __init__(self, address):
        self.address = address

    def data_ptr(self):
        return self.address


@triton.jit
def fill_kernel(x_ptr, value):
    tl.store(x_ptr + tl.arange(0, 128), value)


fill_kernel[(3, 2)](Buffer(4096), 1.0)
fill_kernel[(5,)](Buffer(4100), 1.0)
triton.testing.do_bench(lambda: fill_kernel[(6,)](Buffer(4096), 2.0))
