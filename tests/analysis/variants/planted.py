"""Kernels that are compiled more than once, each for one reason, and how often; `merged` applies what would mend it."""

import sys

import triton
import triton.language as tl

MERGED = "merged" in sys.argv


class Buffer:
    """What Triton takes for a tensor."""

    def __init__(self, dtype="fp32", address=4096):
        self.dtype, self.address = dtype, address

    def data_ptr(self):
        return self.address


def jit(**mended):
    return triton.jit(**(mended if MERGED else {}))


@jit(do_not_specialize_on_alignment=["n"])
def divisible(x, n):
    i = tl.program_id(0) * n + tl.arange(0, 128)
    tl.store(x + i, 1.0)


@jit(do_not_specialize=["s"])
def stride_one(x, s):
    tl.store(x + tl.arange(0, 128) * s, 1.0)


@jit(do_not_specialize=["n"])
def one_and_divisible(x, n):
    i = tl.program_id(0) * n + tl.arange(0, 128)
    tl.store(x + i, 1.0)


@jit()
def wide(x, n):
    tl.store(x + tl.arange(0, 128), n.to(tl.float32))


@jit()
def element_type(x):
    tl.store(x + tl.arange(0, 128), 1.0)


@jit(do_not_specialize_on_alignment=["x"])
def unaligned(x):
    tl.store(x + tl.arange(0, 512), 1.0)


@jit()
def block(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1.0)


# As NT_BUCKET of sglang #31568: computed by the caller, never read.
@jit()
def bucket(x, n, BUCKET: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 1.0, mask=i < n)


# As N of sglang #31568: the grid is (N,).
@jit()
def guarded(x, N: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= N:
        return
    tl.store(x + pid * BLOCK + tl.arange(0, BLOCK), 1.0)


@jit()
def really_guarded(x, N: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= N:
        return
    tl.store(x + pid * BLOCK + tl.arange(0, BLOCK), 1.0)


# As the cache keys of flash-attention's Triton kernels (#911): for the autotuner alone, and specialised all the same.
@jit(do_not_specialize=["CACHE_KEY_SEQLEN_Q", "CACHE_KEY_SEQLEN_K"])
def cache_keys(x, n, CACHE_KEY_SEQLEN_Q, CACHE_KEY_SEQLEN_K, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 1.0, mask=i < n)


@jit(do_not_specialize=["scratch"])
def unused_pointer(x, scratch):
    tl.store(x + tl.arange(0, 128), 1.0)


@jit()
def optional(x, bias):
    if bias is None:
        tl.store(x + tl.arange(0, 128), 1.0)
    else:
        tl.store(x + tl.arange(0, 128), tl.load(bias))


@jit()
def warps(x):
    tl.store(x + tl.arange(0, 1024), 1.0)


@jit()
def stages(x):
    tl.store(x + tl.arange(0, 128), 1.0)


@jit(do_not_specialize=["n"])
def not_reached(x, n, MASKED: tl.constexpr):
    i = tl.arange(0, 128)
    if MASKED:
        tl.store(x + i, 1.0, mask=i < n)
    else:
        tl.store(x + i, 1.0)


@jit(do_not_specialize=["n", "s"])
def two_at_once(x, n, s):
    tl.store(x + tl.program_id(0) * n + tl.arange(0, 128) * s, 1.0)


@jit(do_not_specialize_on_alignment=["stride_x", "stride_y"])
def equal_strides(x, y, stride_x, stride_y):
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    tl.store(y + i * stride_y + j, tl.load(x + i * stride_x + j))


@jit()
def no_difference(x, K: tl.constexpr):
    tl.store(x + tl.arange(0, 128), 1.0 if K > 0 else 2.0)


# K is read where DEBUG is set, and nowhere else.
@jit()
def dead_branch(x, DEBUG: tl.constexpr, K: tl.constexpr):
    if DEBUG:
        tl.store(x + 128, K)
    tl.store(x + tl.arange(0, 128), 1.0)


@jit()
def plain_argument(x, N: tl.constexpr):
    i = tl.arange(0, 128)
    tl.store(x + i, 1.0, mask=i < N)


@jit()
def scalars(x, a, flag):
    tl.store(x + tl.arange(0, 128), a, mask=flag)


@triton.jit(do_not_specialize=["n"])
def mended(x, n):
    tl.store(x + tl.arange(0, 128) * n, 1.0)


@jit()
def called(x, n):
    tl.store(x + tl.arange(0, 128), inner(n))


@triton.jit
def inner(value):
    return value.to(tl.float32) * 2.0


if __name__ == "__main__":
    x = Buffer()
    for n in (32, 33):
        divisible[(1,)](x, n)
        called[(1,)](x, n)
    for s in (1, 2):
        stride_one[(1,)](x, s)
    for n in (1, 3, 32):
        one_and_divisible[(1,)](x, n)
    for n in (7, 1 << 40 | 1):
        wide[(1,)](x, n)
    for dtype in ("fp32", "fp16"):
        element_type[(1,)](Buffer(dtype))
    for address in (4096, 4100):
        unaligned[(1,)](Buffer(address=address))
        unused_pointer[(1,)](x, Buffer(address=address))
    for size in (64, 128):
        block[(1,)](x, BLOCK=size)
    for number in (2, 3, 4):
        bucket[(1,)](x, 100, BUCKET=number, BLOCK=128)
        guarded[(number,)](x, N=number, BLOCK=128)
        really_guarded[(4,)](x, N=number, BLOCK=128)
    for key in (1, 2, 16):
        cache_keys[(1,)](x, 100, key, 32 if key == 1 else 33, BLOCK=128)
    for bias in (None, x):
        optional[(1,)](x, bias)
    for number in (2, 4):
        warps[(1,)](x, num_warps=number)
        stages[(1,)](x, num_stages=number)
    for n in (32, 33):
        not_reached[(1,)](x, n, MASKED=False)
        for s in (1, 2):
            two_at_once[(1,)](x, n, s)
    for stride in (64, 65):
        equal_strides[(1,)](x, x, stride, stride)
    for k in (1, 2):
        no_difference[(1,)](x, K=k)
        plain_argument[(1,)](x, N=99 + k)
        for debug in (False, True):
            dead_branch[(1,)](x, DEBUG=debug, K=k)
    for number in (0.5, 2.0):
        scalars[(1,)](x, number, number > 1.0)
    for n in (1, 32, 33):
        mended[(1,)](x, n)
