"""Differentiate z = relu(x[None, :] * y[:, None]) by x: dx[j] = sum over i of dz[i, j] * y[i] where x[j] * y[i] > 0.

Bytes moved: m * n * element size (dz is read once; the vectors are small beside it). Flops: 3 * m * n.
docs/examples.md#mul_relu_backward says what the compiler makes of it.
"""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def mul_relu_backward_kernel(
    x_ptr, y_ptr, dz_ptr, partial_ptr, m, n,
    stride_x, stride_y, stride_zm, stride_zn,
    ROWS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    strip = tl.program_id(1).to(tl.int64)
    first_row = strip * ROWS
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    col_mask = cols < n
    x = tl.load(x_ptr + cols * stride_x, mask=col_mask, other=0.0)
    y_ptr += first_row * stride_y
    dz_ptr += first_row * stride_zm
    # A sum for each element of the tile: threads meet once, after the loop, not in every turn of it.
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, ROWS, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        row_mask = rows < m - first_row
        y = tl.load(y_ptr + rows * stride_y, mask=row_mask, other=0.0)[:, None]
        dz = tl.load(
            dz_ptr + rows[:, None] * stride_zm + cols[None, :] * stride_zn,
            mask=row_mask[:, None] & col_mask[None, :],
            other=0.0,
        )
        acc += tl.where(x[None, :] * y > 0, dz * y, 0.0)
    tl.store(partial_ptr + strip * n + cols, tl.sum(acc, axis=0), mask=col_mask)


def mul_relu_backward(x: torch.Tensor, y: torch.Tensor, dz: torch.Tensor) -> torch.Tensor:
    """Return the gradient by `x` [n] of relu(x[None, :] * y[:, None]), given `y` [m] and `dz` [m, n]."""
    if dz.ndim != 2 or y.shape != dz.shape[:1] or x.shape != dz.shape[1:]:
        raise ValueError(f"x [n], y [m] and dz [m, n] are needed, not {[*x.shape]}, {[*y.shape]} and {[*dz.shape]}")
    m, n = dz.shape
    rows, block_m, block_n = 256, 32, 128
    strips = triton.cdiv(m, rows)
    partial = torch.empty((strips, n), device=dz.device, dtype=torch.float32)
    mul_relu_backward_kernel[(triton.cdiv(n, block_n), strips)](
        x, y, dz, partial, m, n, x.stride(0), y.stride(0), *dz.stride(),
        ROWS=rows, BLOCK_M=block_m, BLOCK_N=block_n, num_warps=4,
    )  # fmt: skip
    # The strips are added in a fixed order, so that two runs give the same bits; atomics would not.
    return partial.sum(dim=0).to(x.dtype)


def torch_backward(x: torch.Tensor, y: torch.Tensor, dz: torch.Tensor) -> torch.Tensor:
    """Return the same gradient by torch's own operations."""
    return torch.where(x[None, :] * y[:, None] > 0, dz * y[:, None], 0.0).sum(dim=0)


def check(name: str, out: torch.Tensor, reference: torch.Tensor, tolerance: float) -> bool:
    """Print the errors of `out`; whether their norm, relative to the reference's, is in tolerance (a NaN is not)."""
    error = out.double() - reference
    relative = (error.norm() / reference.norm()).item()
    print(f"{name}: relative error {relative:.2e}, largest {error.abs().max().item():.2e}")
    return relative <= tolerance


def benchmark(m: int, n: int) -> None:
    """Print the median time of one backward of an m x n product in float32, beside torch's."""
    x, y, dz = (torch.randn(shape, device="cuda") for shape in (n, m, (m, n)))
    ours_ms = triton.testing.do_bench(lambda: mul_relu_backward(x, y, dz), return_mode="median")
    torch_ms = triton.testing.do_bench(lambda: torch_backward(x, y, dz), return_mode="median")
    gigabytes = dz.nbytes * 1e-9
    print(f"{m}x{n}: {ours_ms:.4f} ms ({gigabytes / ours_ms * 1e3:.0f} GB/s), torch {torch_ms:.4f} ms")


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device=device)

    cases = {
        "aligned": (random(512), random(1024), random(1024, 512)),
        "odd sizes": (random(301), random(517), random(517, 301)),
        "dz transposed": (random(256), random(384), random(256, 384).T),
        "every second": (random(400)[::2], random(700)[::2], random(350, 400)[:, ::2]),
    }
    torch.use_deterministic_algorithms(True)  # fills what torch.empty returns with NaN: an element not written shows
    outs = {name: mul_relu_backward(*case) for name, case in cases.items()}
    torch.use_deterministic_algorithms(False)
    references = {name: torch_backward(*(t.double() for t in case)) for name, case in cases.items()}
    good = [check(name, out, references[name], 1e-5) for name, out in outs.items()]
    if not all(good):
        sys.exit("mul_relu_backward: the result is not torch's")
    if device == "cuda":
        benchmark(1024, 1024)
        if "--bench" in sys.argv[1:]:
            benchmark(16384, 16384)


if __name__ == "__main__":
    main()
