"""Kernels whose threads meet in shared and tensor memory, launched once each."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def products(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr):
    rows, inner = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    accumulator = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in tl.range(0, K, BLOCK, num_stages=3):
        a = tl.load(a_ptr + rows[:, None] * K + k + inner[None, :])
        b = tl.load(b_ptr + (k + inner[:, None]) * BLOCK + rows[None, :])
        accumulator = tl.dot(a, b, accumulator)
    tl.store(c_ptr + rows[:, None] * BLOCK + rows[None, :], accumulator.to(tl.float16))


@triton.jit
def described_products(a_desc, b_desc, c_desc, K, BLOCK: tl.constexpr):
    accumulator = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in tl.range(0, K, BLOCK, num_stages=3):
        accumulator = tl.dot(a_desc.load([0, k]), b_desc.load([k, 0]), accumulator)
    c_desc.store([0, 0], accumulator.to(tl.float16))


@triton.jit
def specialised_products(a_desc, b_desc, c_desc, K, BLOCK: tl.constexpr):
    accumulator = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in tl.range(0, K, BLOCK, num_stages=3, warp_specialize=True):
        accumulator = tl.dot(a_desc.load([0, k]), b_desc.load([k, 0]).T, accumulator)
    c_desc.store([0, 0], accumulator.to(tl.float16))


@triton.jit
def rescaled(a_desc, b_desc, c_desc, K, BLOCK: tl.constexpr):
    accumulator = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in tl.range(0, K, BLOCK):
        accumulator = tl.dot(a_desc.load([0, k]), b_desc.load([k, 0]), accumulator * 0.5)
    c_desc.store([0, 0], accumulator.to(tl.float16))


@triton.jit
def normalised(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    x = x - tl.sum(x) / BLOCK
    tl.store(y_ptr + offsets, x / tl.sqrt(tl.sum(x * x)))


@triton.jit
def scanned(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.cumsum(tl.load(x_ptr + offsets)))


@triton.jit
def counted(x_ptr, y_ptr, BLOCK: tl.constexpr):
    tl.store(y_ptr + tl.arange(0, 64), tl.histogram(tl.load(x_ptr + tl.arange(0, BLOCK)), 64))


@triton.jit
def transposed(x_ptr, y_ptr, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    tl.store(y_ptr + rows * BLOCK + columns, tl.load(x_ptr + rows * BLOCK + columns).T)


@triton.jit
def barrier_of_half_a_warp(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.inline_asm_elementwise(
        "{ .reg .pred p; .reg .b32 t; mov.u32 t, %tid.x; setp.lt.u32 p, t, 16; @p bar.sync 1, 32; mov.b32 $0, $1; }",
        "=r,r", [tl.load(x_ptr + offsets)], tl.int32, is_pure=False, pack=1,
    )  # fmt: skip
    tl.store(y_ptr + offsets, x)


@triton.jit
def barrier_of_one_warp(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.inline_asm_elementwise(
        "{ .reg .pred p; .reg .b32 t; mov.u32 t, %tid.x; setp.lt.u32 p, t, 32; @p bar.sync 1, 32; mov.b32 $0, $1; }",
        "=r,r", [tl.load(x_ptr + offsets)], tl.int32, is_pure=False, pack=1,
    )  # fmt: skip
    tl.store(y_ptr + offsets, x)


@triton.jit
def barrier_of_a_branch(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    if tl.load(y_ptr) > 0:
        x -= tl.sum(x)
    tl.store(y_ptr + offsets, x)


@gluon.jit
def copied_through_shared(x_ptr, y_ptr, BLOCK: gl.constexpr):
    wide: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    tall: gl.constexpr = gl.BlockedLayout([4, 1], [8, 4], [1, 4], [0, 1])
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    rows, columns = gl.arange(0, BLOCK, gl.SliceLayout(1, wide)), gl.arange(0, BLOCK, gl.SliceLayout(0, wide))
    buffer = gl.allocate_shared_memory(gl.float32, [BLOCK, BLOCK], shared)
    buffer.store(gl.load(x_ptr + rows[:, None] * BLOCK + columns[None, :]))
    x = buffer.load(tall)
    rows, columns = gl.arange(0, BLOCK, gl.SliceLayout(1, tall)), gl.arange(0, BLOCK, gl.SliceLayout(0, tall))
    gl.store(y_ptr + rows[:, None] * BLOCK + columns[None, :], x)


@gluon.jit
def stages_of_two(x_ptr, y_ptr, STAGES: gl.constexpr, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    buffers = gl.allocate_shared_memory(gl.float32, [2, BLOCK], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    offsets = gl.arange(0, BLOCK, layout)
    for i in range(4):
        buffers.index(i % STAGES).store(gl.load(x_ptr + i * BLOCK + offsets))
        gl.store(y_ptr + i * BLOCK + offsets, buffers.index(i % STAGES).load(layout))


@gluon.jit
def wrong_stages_of_two(x_ptr, y_ptr, BLOCK: gl.constexpr):
    stages_of_two(x_ptr, y_ptr, 3, BLOCK)


def halves(*shape: int) -> torch.Tensor:
    return torch.randn(shape, device="cuda", dtype=torch.float16)


def floats(*shape: int) -> torch.Tensor:
    return torch.randn(shape, device="cuda")


def described(tensor: torch.Tensor) -> TensorDescriptor:
    return TensorDescriptor.from_tensor(tensor, [64, 64])


def main() -> None:
    size, depth = 64, 384
    products[(1,)](halves(size, depth), halves(depth, size), halves(size, size), depth, BLOCK=size)
    three = [described(one) for one in (halves(size, depth), halves(depth, size), halves(size, size))]
    described_products[(1,)](*three, depth, BLOCK=size)
    rescaled[(1,)](*three, depth, BLOCK=size)
    normalised[(2,)](floats(2048), floats(2048), BLOCK=1024)
    scanned[(1,)](floats(1024), floats(1024), BLOCK=1024)
    whole = torch.zeros(1024, dtype=torch.int32, device="cuda")
    counted[(1,)](whole, whole, BLOCK=1024)
    transposed[(1,)](floats(64, 64), floats(64, 64), BLOCK=64)
    barrier_of_a_branch[(1,)](floats(1024), floats(1024), BLOCK=1024)
    barrier_of_half_a_warp[(1,)](whole, whole, BLOCK=128)
    barrier_of_one_warp[(1,)](whole, whole, BLOCK=128)
    stages_of_two[(1,)](floats(2048), floats(2048), STAGES=2, BLOCK=512)
    wrong_stages_of_two[(1,)](floats(2048), floats(2048), BLOCK=512)
    copied_through_shared[(1,)](floats(64, 64), floats(64, 64), BLOCK=64)
    # Its compile fails on some targets.
    large = (halves(128, 512), halves(512, 128), halves(128, 128))
    specialised_products[(1,)](*(TensorDescriptor.from_tensor(one, [128, 128]) for one in large), 512, BLOCK=128)


if __name__ == "__main__":
    main()
