"""A product whose loop is not pipelined, as its launch says: a script that an editor saves."""

import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, 64):
        at = k + tl.arange(0, 64)
        a = tl.load(a_ptr + rows[:, None] * K + at[None, :])
        b = tl.load(b_ptr + at[:, None] * K + columns[None, :])
        acc += tl.dot(a, b)
    tl.store(c_ptr + rows[:, None] * K + columns[None, :], acc)


class Tensor:
    """What Triton needs of one; importing torch takes longer than the compile."""

    def __init__(self, dtype):
        self.dtype = dtype

    def data_ptr(self):
        return 4096


a = Tensor("fp16")
c = Tensor("fp32")
product[(32, 32)](a, a, c, 2048, BLOCK=64, num_stages=1)
