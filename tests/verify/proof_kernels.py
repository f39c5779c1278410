"""Kernels that are right for all arguments, each with a twin for which some arguments are a counterexample."""

import torch
import triton
import triton.language as tl


@triton.jit
def masked(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


@triton.jit
def masked_by_one_too_many(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets <= n), mask=offsets < n)


@triton.jit
def unmasked(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    # Right for the recorded n, a multiple of BLOCK.
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets))


@triton.jit
def rows(x_ptr, y_ptr, x_row_stride, y_row_stride, n_cols, BLOCK: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row_stride + columns, mask=columns < n_cols, other=0.0)
    tl.store(y_ptr + row * y_row_stride + columns, x / tl.sum(x), mask=columns < n_cols)


@triton.jit
def rows_by_the_other_stride(x_ptr, y_ptr, x_row_stride, y_row_stride, n_cols, BLOCK: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row_stride + columns, mask=columns < n_cols, other=0.0)
    tl.store(y_ptr + row * x_row_stride + columns, x / tl.sum(x), mask=columns < n_cols)


@triton.jit
def long_rows(x_ptr, y_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0)):
        for start in range(0, n_cols, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * n_cols + columns, mask=columns < n_cols)
            tl.store(y_ptr + row * n_cols + columns, x + 1, mask=columns < n_cols)


@triton.jit
def long_rows_masked_by_blocks(x_ptr, y_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0)):
        for start in range(0, n_cols, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * n_cols + columns, mask=start < n_cols)
            tl.store(y_ptr + row * n_cols + columns, x + 1, mask=columns < n_cols)


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, TAIL: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    across = tl.cdiv(N, BLOCK_N)
    rows = pid // across * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = pid % across * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (rows % M)[:, None] * stride_am + k[None, :]
    b_ptrs = b_ptr + k[:, None] * stride_bk + (columns % N)[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for i in range(tl.cdiv(K, BLOCK_K)):
        left = K - i * BLOCK_K if TAIL else BLOCK_K
        a = tl.load(a_ptrs, mask=k[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=k[:, None] < left, other=0.0)
        total = tl.dot(a, b, total)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * stride_cm + columns[None, :], total, mask=inside)


@triton.jit
def described(x_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    target.store([tl.program_id(0) * BLOCK, 0], source.load([tl.program_id(0) * BLOCK, 0]))


@triton.jit
def described_too_long(x_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, [M + BLOCK, N], [N, 1], [BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    target.store([tl.program_id(0) * BLOCK, 0], source.load([tl.program_id(0) * BLOCK + BLOCK, 0]))


@triton.jit
def shuffled(x_ptr, index_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + offsets, mask=offsets < n, other=0)
    tl.store(y_ptr + offsets, tl.load(x_ptr + index), mask=offsets < n)


@triton.jit
def rows_beside_strided_ones(x_ptr, mask_ptr, rows_ptr, stride_mask, n_cols, BLOCK: tl.constexpr):
    # The rows of a contiguous tensor, where the mask's have a stride of the same number.
    row, columns = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + columns, mask=columns < n_cols)
    keep = tl.load(mask_ptr + row * stride_mask + columns, mask=columns < n_cols)
    tl.store(rows_ptr + row * n_cols + columns, x * keep, mask=columns < n_cols)


@triton.jit
def heads(x_ptr, scale_ptr, n_heads, n_cols, BLOCK: tl.constexpr):
    # The grid is of a number of samples that no argument has.
    sample, columns = tl.program_id(1) // n_heads, tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(1) * n_cols + columns, mask=columns < n_cols)
    tl.store(x_ptr + tl.program_id(1) * n_cols + columns, x * tl.load(scale_ptr + sample), mask=columns < n_cols)


def vector(n=4096, dtype=torch.float32):
    return torch.zeros(n, device="cuda", dtype=dtype)


def matrix(m, n, dtype=torch.float32):
    return torch.zeros(m, n, device="cuda", dtype=dtype)


def main():
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    for kernel in (masked, masked_by_one_too_many, unmasked):
        kernel[(8,)](vector(2048), vector(2048), 2048, BLOCK=256)
    shuffled[(8,)](vector(2048), vector(2048, torch.int64), vector(2048), 2048, BLOCK=256)
    for kernel in (rows, rows_by_the_other_stride):
        x, y = matrix(40, 512)[:, :200], matrix(40, 256)[:, :200]
        kernel[(40,)](x, y, 512, 256, 200, BLOCK=256)
    for kernel in (long_rows, long_rows_masked_by_blocks):
        kernel[(6,)](matrix(48, 320), matrix(48, 320), 48, 320, BLOCK=64)
    a, b, c = matrix(144, 96, torch.float16), matrix(96, 192, torch.float16), matrix(144, 192, torch.float16)
    for tail in (True, False):
        sizes = 144, 192, 96, a.stride(0), b.stride(0), c.stride(0)
        matmul[(9,)](a, b, c, *sizes, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, TAIL=tail)
    rows_beside_strided_ones[(40,)](matrix(40, 200), matrix(40, 200), matrix(40, 200), 200, 200, BLOCK=256)
    heads[(1, 3 * 4)](torch.zeros(3, 4, 200, device="cuda"), vector(3), 4, 200, BLOCK=256)
    for kernel in (described, described_too_long):
        kernel[(4,)](matrix(64, 32), matrix(64, 32), 64, 32, BLOCK=16)


main()
