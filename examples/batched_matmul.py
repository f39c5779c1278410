"""Multiply many small float16 matrices at once: several of the batch a program, in one three-dimensional `tl.dot`.

Flops: 2 * batch * m * n * k. Bytes moved at least: 2 * batch * (m * k + k * n + m * n).
docs/examples.md#batched_matmul says what the compiler makes of it.
"""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def batched_matmul_kernel(
    a_ptr, b_ptr, c_ptr, batch, m, n, k,
    stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn, stride_cb, stride_cm, stride_cn,
    BLOCK_B: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    tiles_n = tl.cdiv(n, BLOCK_N)
    first_row = (tl.program_id(1) // tiles_n) * BLOCK_M
    first_col = (tl.program_id(1) % tiles_n) * BLOCK_N
    first_batch = tl.program_id(0) * BLOCK_B
    # One 64-bit address a tile; inside the tile 32 bits do.
    a_ptr += first_batch.to(tl.int64) * stride_ab + first_row.to(tl.int64) * stride_am
    b_ptr += first_batch.to(tl.int64) * stride_bb + first_col.to(tl.int64) * stride_bn
    c_ptr += first_batch.to(tl.int64) * stride_cb + first_row.to(tl.int64) * stride_cm
    c_ptr += first_col.to(tl.int64) * stride_cn

    batches = tl.arange(0, BLOCK_B)[:, None, None]
    rows = tl.arange(0, BLOCK_M)[None, :, None]
    cols = tl.arange(0, BLOCK_N)[None, None, :]
    a_ks = tl.arange(0, BLOCK_K)[None, None, :]
    b_ks = tl.arange(0, BLOCK_K)[None, :, None]
    batch_mask = batches < batch - first_batch
    row_mask = batch_mask & (rows < m - first_row)
    col_mask = batch_mask & (cols < n - first_col)

    a_ptrs = a_ptr + batches * stride_ab + rows * stride_am + a_ks * stride_ak
    b_ptrs = b_ptr + batches * stride_bb + b_ks * stride_bk + cols * stride_bn
    acc = tl.zeros((BLOCK_B, BLOCK_M, BLOCK_N), dtype=tl.float32)
    for first_k in range(0, k, BLOCK_K):
        a = tl.load(a_ptrs, mask=row_mask & (a_ks < k - first_k), other=0.0)
        b = tl.load(b_ptrs, mask=col_mask & (b_ks < k - first_k), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + batches * stride_cb + rows * stride_cm + cols * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=row_mask & col_mask)


def batched_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return `a @ b` for a batch x m x k and a batch x k x n tensor, summed in float32."""
    if a.ndim != 3 or b.ndim != 3 or a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1] or a.dtype != b.dtype:
        raise ValueError(f"batch x m x k and batch x k x n of one type are needed, not {[*a.shape]} and {[*b.shape]}")
    (batch, m, k), n = a.shape, b.shape[2]
    c = torch.empty((batch, m, n), device=a.device, dtype=a.dtype)
    block_b, block_m, block_n, block_k = 4, 32, 32, 32
    grid = (triton.cdiv(batch, block_b), triton.cdiv(m, block_m) * triton.cdiv(n, block_n))
    batched_matmul_kernel[grid](
        a, b, c, batch, m, n, k, *a.stride(), *b.stride(), *c.stride(),
        BLOCK_B=block_b, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, num_warps=4,
    )  # fmt: skip
    return c


def check(name: str, out: torch.Tensor, reference: torch.Tensor, tolerance: float) -> bool:
    """Print the errors of `out`; whether their norm, relative to the reference's, is in tolerance (a NaN is not)."""
    error = out.double() - reference
    relative = (error.norm() / reference.norm()).item()
    print(f"{name}: relative error {relative:.2e}, largest {error.abs().max().item():.2e}")
    return relative <= tolerance


def benchmark(batch: int, size: int) -> None:
    """Print the median time of `batch` products of square float16 matrices, beside torch's."""
    a, b = torch.randn(2, batch, size, size, device="cuda", dtype=torch.float16).unbind()
    ours_ms = triton.testing.do_bench(lambda: batched_matmul(a, b), return_mode="median")
    torch_ms = triton.testing.do_bench(lambda: torch.bmm(a, b), return_mode="median")
    gigabytes = 3 * a.nbytes * 1e-9
    print(f"{batch} of {size}x{size}: {ours_ms:.4f} ms ({gigabytes / ours_ms * 1e3:.0f} GB/s), torch {torch_ms:.4f} ms")


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)

    def half(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device=device, dtype=torch.float16)

    factors = {
        "aligned": (half(64, 64, 64), half(64, 64, 64)),
        "odd sizes": (half(13, 45, 37), half(13, 37, 51)),
        "transposed": (half(10, 64, 48).mT, half(10, 32, 64).mT),
        "one right factor for all": (half(18, 32, 64), half(64, 32).expand(18, 64, 32)),
    }
    torch.use_deterministic_algorithms(True)  # fills what torch.empty returns with NaN: an element not written shows
    outs = {name: batched_matmul(a, b) for name, (a, b) in factors.items()}
    torch.use_deterministic_algorithms(False)
    references = {name: a.double() @ b.double() for name, (a, b) in factors.items()}
    good = [check(name, out, references[name], 1e-3) for name, out in outs.items()]
    if not all(good):
        sys.exit("batched_matmul: the result is not torch's")
    if device == "cuda":
        benchmark(1024, 32)
        if "--bench" in sys.argv[1:]:
            benchmark(131072, 32)
            benchmark(32768, 64)


if __name__ == "__main__":
    main()
