"""Ends the interpreter while a virtual GPU is there."""

import os
import sys

import triton
import triton.language as tl

from irscope.model.capture import Target
from irscope.record.virtual.gpu import virtual_gpu

os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")


class Buffer:
    dtype = "fp32"

    def data_ptr(self):
        return 4096


@triton.jit
def fill_kernel(x_ptr):
    tl.store(x_ptr, 1.0)


context = virtual_gpu(Target.parse("cuda:90"))
context.__enter__()
kept = fill_kernel[(1,)](Buffer())
if sys.argv[1] == "exit":
    sys.exit(3)
if sys.argv[1] == "raise":
    raise RuntimeError("the program failed")
