"""Kernels of specialised warps: regions side by side, in which MLIR uses one name for several values."""

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@triton.jit
def specialized_matmul(
    a_ptr, b_ptr, c_ptr, m, n, k, stride_a, stride_b, stride_c,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    a_desc = tl.make_tensor_descriptor(a_ptr, [m, k], [stride_a, 1], [BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [n, k], [stride_b, 1], [BLOCK_N, BLOCK_K])
    c_desc = tl.make_tensor_descriptor(c_ptr, [m, n], [stride_c, 1], [BLOCK_M, BLOCK_N])
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True, warp_specialize=True):
        row, col = (tile // tiles_n) * BLOCK_M, (tile % tiles_n) * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for at in range(0, k, BLOCK_K):
            acc = tl.dot(a_desc.load([row, at]), b_desc.load([col, at]).T, acc)
        c_desc.store([row, col], acc.to(tl.float16))


@triton.jit
def specialized_attention(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    q_desc = tl.make_tensor_descriptor(q_ptr, [n, D], [D, 1], [BLOCK_M, D])
    k_desc = tl.make_tensor_descriptor(k_ptr, [n, D], [D, 1], [BLOCK_N, D])
    v_desc = tl.make_tensor_descriptor(v_ptr, [n, D], [D, 1], [BLOCK_N, D])
    out_desc = tl.make_tensor_descriptor(out_ptr, [n, D], [D, 1], [BLOCK_M, D])
    row = tl.program_id(0) * BLOCK_M
    q = q_desc.load([row, 0])
    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for at in tl.range(0, n, BLOCK_N, warp_specialize=True):
        score = tl.dot(q, k_desc.load([at, 0]).T) * scale
        new_top = tl.maximum(top, tl.max(score, 1))
        weight = tl.math.exp2(score - new_top[:, None])
        shrink = tl.math.exp2(top - new_top)
        total = total * shrink + tl.sum(weight, 1)
        acc = tl.dot(weight.to(tl.float16), v_desc.load([at, 0]), acc * shrink[:, None])
        top = new_top
    out_desc.store([row, 0], (acc / total[:, None]).to(tl.float16))


@gluon.jit
def keep(x_ptr, out_ptr, n, BLOCK: gl.constexpr, layout: gl.constexpr):
    for at in range(0, n, BLOCK):
        offsets = at + gl.arange(0, BLOCK, layout)
        value = gl.load(x_ptr + offsets, mask=offsets < n)
        gl.store(out_ptr + offsets, value * 2, mask=offsets < n)


@gluon.jit
def keep_transposed(x_ptr, out_ptr, n, BLOCK: gl.constexpr, layout: gl.constexpr, other: gl.constexpr):
    for at in range(0, n, BLOCK):
        offsets = at + gl.arange(0, BLOCK, layout)
        value = gl.load(x_ptr + offsets, mask=offsets < n)
        value = gl.convert_layout(value, other)
        places = at + gl.arange(0, BLOCK, other)
        gl.store(out_ptr + places, value + 1, mask=places < n)


@gluon.jit
def specialized_copy(x_ptr, out_ptr, n, BLOCK: gl.constexpr):
    wide: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    narrow: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    gl.warp_specialize(
        [
            (keep, (x_ptr, out_ptr, n, BLOCK, wide)),
            (keep_transposed, (x_ptr, out_ptr + n, n, BLOCK, wide, narrow)),
            (keep_transposed, (x_ptr, out_ptr + 2 * n, n, BLOCK, narrow, wide)),
        ],
        [4, 4],
        [72, 72],
    )


def main() -> None:
    def half(*shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=torch.float16, device="cuda")

    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    m, n, k = 1024, 1024, 512
    specialized_matmul[(128,)](
        half(m, k), half(n, k), half(m, n), m, n, k, k, k, n, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, num_stages=3
    )
    specialized_attention[(n // 128,)](
        half(n, 64), half(n, 64), half(n, 64), half(n, 64), n, 0.125, BLOCK_M=128, BLOCK_N=64, D=64
    )
    specialized_copy[(1,)](half(n), half(3 * n), n, BLOCK=512, num_warps=4)


if __name__ == "__main__":
    main()
