"""Copy a matrix of any strides into a contiguous one.

Bytes moved: 2 * m * n * element size (a read and a write). Flops: none.
docs/examples.md#matrix_copy says what the compiler makes of it.
"""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(
    x_ptr, out_ptr, m, n, stride_xm, stride_xn, stride_om, stride_on, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    tiles_n = tl.cdiv(n, BLOCK_N)
    first_row = (tl.program_id(0) // tiles_n) * BLOCK_M
    first_col = (tl.program_id(0) % tiles_n) * BLOCK_N
    # One 64-bit address a tile; inside the tile 32 bits do.
    x_ptr += first_row.to(tl.int64) * stride_xm + first_col.to(tl.int64) * stride_xn
    out_ptr += first_row.to(tl.int64) * stride_om + first_col.to(tl.int64) * stride_on
    rows = tl.arange(0, BLOCK_M)[:, None]
    cols = tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < m - first_row) & (cols < n - first_col)
    tile = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=mask)
    tl.store(out_ptr + rows * stride_om + cols * stride_on, tile, mask=mask)


def matrix_copy(x: torch.Tensor) -> torch.Tensor:
    """Return a contiguous copy of the matrix `x`."""
    if x.ndim != 2:
        raise ValueError(f"a matrix is needed, not a tensor of shape {[*x.shape]}")
    m, n = x.shape
    out = torch.empty((m, n), device=x.device, dtype=x.dtype)
    block_m, block_n = 32, 128
    grid = (triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)
    copy_kernel[grid](x, out, m, n, *x.stride(), *out.stride(), BLOCK_M=block_m, BLOCK_N=block_n, num_warps=4)
    return out


def check(name: str, out: torch.Tensor, reference: torch.Tensor, tolerance: float) -> bool:
    """Print the errors of `out`; whether their norm, relative to the reference's, is in tolerance (a NaN is not)."""
    error = out.double() - reference
    relative = (error.norm() / reference.norm()).item()
    print(f"{name}: relative error {relative:.2e}, largest {error.abs().max().item():.2e}")
    return relative <= tolerance


def benchmark(m: int, n: int) -> None:
    """Print the median time of one copy of an m x n float32 matrix, beside torch's."""
    x = torch.randn(m, n, device="cuda")
    ours_ms = triton.testing.do_bench(lambda: matrix_copy(x), return_mode="median")
    torch_ms = triton.testing.do_bench(lambda: x.clone(), return_mode="median")
    gigabytes = 2 * x.nbytes * 1e-9
    print(f"{m}x{n}: {ours_ms:.4f} ms ({gigabytes / ours_ms * 1e3:.0f} GB/s), torch {torch_ms:.4f} ms")


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    matrices = {
        "aligned": torch.randn(512, 1024, device=device),
        "odd sizes": torch.randn(301, 517, device=device),
        "transposed": torch.randn(300, 516, device=device).T,
        "every second column, float16": torch.randn(256, 1024, device=device).half()[:, ::2],
    }
    torch.use_deterministic_algorithms(True)  # fills what torch.empty returns with NaN: an element not written shows
    outs = {name: matrix_copy(x) for name, x in matrices.items()}
    torch.use_deterministic_algorithms(False)
    good = [check(name, out, matrices[name].double(), 0.0) for name, out in outs.items()]
    if not all(good):
        sys.exit("matrix_copy: the result is not torch's")
    if device == "cuda":
        benchmark(1024, 1024)
        if "--bench" in sys.argv[1:]:
            benchmark(16384, 16384)


if __name__ == "__main__":
    main()
