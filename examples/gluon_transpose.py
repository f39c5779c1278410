"""Transpose a matrix in Gluon: who holds which element, and where it lies in shared memory, is written out.

Bytes moved: 2 * m * n * element size (a read and a write). Flops: none.
docs/examples.md#gluon_transpose says what the compiler makes of it.
"""

import sys

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def transpose_kernel(
    x_ptr, out_ptr, m, n, stride_xm, stride_xn, stride_on, stride_om,
    BLOCK: gl.constexpr, WARP_SIZE: gl.constexpr, NUM_WARPS: gl.constexpr,
):  # fmt: skip
    # A warp holds a row, a lane an element: one read or write of a warp is one piece of memory without gaps.
    tile_layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, WARP_SIZE], [NUM_WARPS, 1], [1, 0])
    # Element (r, c) lies in column c ^ r, so that a column, like a row, is spread over all banks.
    swizzled: gl.constexpr = gl.SwizzledSharedLayout(vec=1, per_phase=1, max_phase=BLOCK, order=[1, 0])

    tiles_n = gl.cdiv(n, BLOCK)
    first_row = (gl.program_id(0) // tiles_n) * BLOCK
    first_col = (gl.program_id(0) % tiles_n) * BLOCK
    # One 64-bit address a tile; inside the tile 32 bits do.
    x_ptr += first_row.to(gl.int64) * stride_xm + first_col.to(gl.int64) * stride_xn
    out_ptr += first_row.to(gl.int64) * stride_om + first_col.to(gl.int64) * stride_on
    slow = gl.arange(0, BLOCK, layout=gl.SliceLayout(1, tile_layout))[:, None]
    fast = gl.arange(0, BLOCK, layout=gl.SliceLayout(0, tile_layout))[None, :]

    mask = (slow < m - first_row) & (fast < n - first_col)
    tile = gl.load(x_ptr + slow * stride_xm + fast * stride_xn, mask=mask)
    shared = gl.allocate_shared_memory(tile.dtype, [BLOCK, BLOCK], swizzled, tile)
    transposed = shared.permute((1, 0)).load(tile_layout)
    mask = (slow < n - first_col) & (fast < m - first_row)
    gl.store(out_ptr + slow * stride_on + fast * stride_om, transposed, mask=mask)


def matrix_transpose(x: torch.Tensor) -> torch.Tensor:
    """Return the transpose of the matrix `x`, contiguous."""
    if x.ndim != 2:
        raise ValueError(f"a matrix is needed, not a tensor of shape {[*x.shape]}")
    m, n = x.shape
    out = torch.empty((n, m), device=x.device, dtype=x.dtype)
    block, num_warps = 64, 4
    warp_size = triton.runtime.driver.active.get_current_target().warp_size
    grid = (triton.cdiv(m, block) * triton.cdiv(n, block),)
    transpose_kernel[grid](
        x, out, m, n, *x.stride(), *out.stride(),
        BLOCK=block, WARP_SIZE=warp_size, NUM_WARPS=num_warps, num_warps=num_warps,
    )  # fmt: skip
    return out


def check(name: str, out: torch.Tensor, reference: torch.Tensor, tolerance: float) -> bool:
    """Print the errors of `out`; whether their norm, relative to the reference's, is in tolerance (a NaN is not)."""
    error = out.double() - reference
    relative = (error.norm() / reference.norm()).item()
    print(f"{name}: relative error {relative:.2e}, largest {error.abs().max().item():.2e}")
    return relative <= tolerance


def benchmark(m: int, n: int) -> None:
    """Print the median time of one transposition of an m x n float32 matrix, beside torch's."""
    x = torch.randn(m, n, device="cuda")
    ours_ms = triton.testing.do_bench(lambda: matrix_transpose(x), return_mode="median")
    torch_ms = triton.testing.do_bench(lambda: x.T.contiguous(), return_mode="median")
    gigabytes = 2 * x.nbytes * 1e-9
    print(f"{m}x{n}: {ours_ms:.4f} ms ({gigabytes / ours_ms * 1e3:.0f} GB/s), torch {torch_ms:.4f} ms")


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit("gluon_transpose: a GPU is needed, for Triton's interpreter does not run Gluon")
    torch.manual_seed(0)
    matrices = {
        "aligned": torch.randn(512, 1024, device="cuda"),
        "odd sizes": torch.randn(301, 517, device="cuda"),
        "transposed": torch.randn(300, 516, device="cuda").T,
        "every second column, float16": torch.randn(256, 1024, device="cuda").half()[:, ::2],
    }
    torch.use_deterministic_algorithms(True)  # fills what torch.empty returns with NaN: an element not written shows
    outs = {name: matrix_transpose(x) for name, x in matrices.items()}
    torch.use_deterministic_algorithms(False)
    good = [check(name, out, matrices[name].T.double(), 0.0) for name, out in outs.items()]
    if not all(good):
        sys.exit("gluon_transpose: the result is not torch's")
    benchmark(1024, 1024)
    if "--bench" in sys.argv[1:]:
        benchmark(16384, 16384)


if __name__ == "__main__":
    main()
