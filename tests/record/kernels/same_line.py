"""Kernels with several operations on one line and column of Python, which only their own instructions tell apart."""

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@triton.jit
def two_stores(x_ptr, wide_ptr, narrow_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    into = (wide_ptr, narrow_ptr)
    for number in tl.static_range(2):
        tl.store(into[number] + offsets, x)


@triton.jit
def two_conversions(x_ptr, wide_ptr, narrow_ptr, BLOCK: tl.constexpr):
    row, column = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + row * BLOCK + column)
    tiles = (x, x.to(tl.float16))
    into = (wide_ptr, narrow_ptr)
    for number in tl.static_range(2):
        tl.store(into[number] + row * BLOCK + column, tl.trans(tiles[number]))


@gluon.jit
def zeros_and_matrix(x_ptr, out_ptr):
    blocked: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    product: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16])
    shared: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
    row = gl.arange(0, 64, layout=gl.SliceLayout(1, blocked))[:, None]
    column = gl.arange(0, 64, layout=gl.SliceLayout(0, blocked))[None, :]
    x = gl.convert_layout(gl.load(x_ptr + row * 64 + column), product)
    memory = gl.allocate_shared_memory(gl.float16, [2, 64, 64], shared)
    tiles = (gl.zeros([64, 64], gl.float16, blocked), x)
    for number in gl.static_range(2):
        memory.index(number).store(tiles[number])
    for number in gl.static_range(2):
        gl.store(out_ptr + number * 4096 + row * 64 + column, memory.index(number).load(blocked))
