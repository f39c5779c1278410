"""Multiply two float16 matrices of any strides, tile by tile in plain order or grouped for the L2 cache.

Flops: 2 * m * n * k. Bytes moved at least: 2 * (m * k + k * n + m * n).
docs/examples.md#matmul says what the compiler makes of it.
"""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_tile(
    a_ptr, b_ptr, c_ptr, m, n, k,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    tile_m, tile_n,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, EVEN_K: tl.constexpr,
):  # fmt: skip
    """Compute the tile of c at row `tile_m`, column `tile_n` (counted in tiles)."""
    first_row = tile_m * BLOCK_M
    first_col = tile_n * BLOCK_N
    # Where c ends inside the tile, rows and columns wrap around: the loads then need no mask, and the store drops them.
    rows = tl.arange(0, BLOCK_M) % (m - first_row)
    cols = tl.arange(0, BLOCK_N) % (n - first_col)
    ks = tl.arange(0, BLOCK_K)
    # One 64-bit address a tile; inside the tile 32 bits do.
    a_ptrs = a_ptr + first_row.to(tl.int64) * stride_am + (rows[:, None] * stride_am + ks[None, :] * stride_ak)
    b_ptrs = b_ptr + first_col.to(tl.int64) * stride_bn + (ks[:, None] * stride_bk + cols[None, :] * stride_bn)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for first_k in range(0, k, BLOCK_K):
        if EVEN_K:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, mask=ks[None, :] < k - first_k, other=0.0)
            b = tl.load(b_ptrs, mask=ks[:, None] < k - first_k, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    rows = tl.arange(0, BLOCK_M)[:, None]
    cols = tl.arange(0, BLOCK_N)[None, :]
    c_ptr += first_row.to(tl.int64) * stride_cm + first_col.to(tl.int64) * stride_cn
    mask = (rows < m - first_row) & (cols < n - first_col)
    tl.store(c_ptr + rows * stride_cm + cols * stride_cn, acc.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def matmul_naive_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    tiles_n = tl.cdiv(n, BLOCK_N)
    tile_m = tl.program_id(0) // tiles_n
    tile_n = tl.program_id(0) % tiles_n
    matmul_tile(
        a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
        tile_m, tile_n, BLOCK_M, BLOCK_N, BLOCK_K, EVEN_K=False,
    )  # fmt: skip


def tile_config(block_m: int, block_n: int, block_k: int, num_warps: int, num_stages: int) -> triton.Config:
    """Return the autotuner's form of one tile shape."""
    blocks = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "GROUP_M": 8}
    return triton.Config(blocks, num_warps=num_warps, num_stages=num_stages)


# A shape that needs more shared memory than a device has is dropped by the autotuner.
@triton.autotune(
    configs=[
        tile_config(128, 256, 64, num_warps=8, num_stages=3),
        tile_config(128, 256, 64, num_warps=8, num_stages=4),
        tile_config(128, 128, 64, num_warps=8, num_stages=3),
        tile_config(128, 128, 64, num_warps=4, num_stages=3),
        tile_config(128, 128, 64, num_warps=8, num_stages=2),
        tile_config(64, 64, 64, num_warps=4, num_stages=4),
    ],
    key=["m", "n", "k"],
)
@triton.heuristics({"EVEN_K": lambda args: args["k"] % args["BLOCK_K"] == 0})
@triton.jit
def matmul_grouped_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, EVEN_K: tl.constexpr,
):  # fmt: skip
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    # Programs that run together take GROUP_M rows of tiles down each column, so that they share tiles of a and of b.
    tile_m, tile_n = tl.swizzle2d(tl.program_id(0) // tiles_n, tl.program_id(0) % tiles_n, tiles_m, tiles_n, GROUP_M)
    matmul_tile(
        a_ptr, b_ptr, c_ptr, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
        tile_m, tile_n, BLOCK_M, BLOCK_N, BLOCK_K, EVEN_K,
    )  # fmt: skip


def empty_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return an uninitialised matrix for the product of `a` and `b`."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or a.dtype != b.dtype:
        raise ValueError(f"an m x k and a k x n matrix of one type are needed, not {[*a.shape]} and {[*b.shape]}")
    return torch.empty((a.shape[0], b.shape[1]), device=a.device, dtype=a.dtype)


def matmul_naive(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return `a @ b`, summed in float32, one tile a program in row-major order."""
    c = empty_product(a, b)
    (m, k), n = a.shape, b.shape[1]
    block_m, block_n, block_k = 128, 128, 32
    grid = (triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)
    matmul_naive_kernel[grid](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(),
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, num_warps=8,
    )  # fmt: skip
    return c


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return `a @ b`, summed in float32, grouped for the L2 cache with a tuned tile shape."""
    c = empty_product(a, b)
    (m, k), n = a.shape, b.shape[1]
    matmul_grouped_kernel[lambda meta: (triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),)](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride()
    )
    return c


def check(name: str, out: torch.Tensor, reference: torch.Tensor, tolerance: float) -> bool:
    """Print the errors of `out`; whether their norm, relative to the reference's, is in tolerance (a NaN is not)."""
    error = out.double() - reference
    relative = (error.norm() / reference.norm()).item()
    print(f"{name}: relative error {relative:.2e}, largest {error.abs().max().item():.2e}")
    return relative <= tolerance


def benchmark(size: int) -> None:
    """Print the median time of one product of two square float16 matrices, beside torch's."""
    a, b = torch.randn(2, size, size, device="cuda", dtype=torch.float16).unbind()
    teraflops = 2 * size**3 * 1e-12
    for name, multiply in (("naive", matmul_naive), ("grouped", matmul), ("torch", torch.matmul)):
        ms = triton.testing.do_bench(lambda multiply=multiply: multiply(a, b), return_mode="median")
        print(f"{size}: {name} {ms:.4f} ms ({teraflops / ms * 1e3:.0f} TFLOP/s)")


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)

    def half(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device=device, dtype=torch.float16)

    factors = {
        "aligned": (half(512, 512), half(512, 512)),
        "odd sizes": (half(301, 213), half(213, 517)),
        "transposed": (half(320, 256).T, half(384, 320).T),
        "every second column": (half(256, 512)[:, ::2], half(256, 512)[:, ::2]),
    }
    torch.use_deterministic_algorithms(True)  # fills what torch.empty returns with NaN: an element not written shows
    outs = {
        (kind, name): multiply(a, b)
        for kind, multiply in (("naive", matmul_naive), ("grouped", matmul))
        for name, (a, b) in factors.items()
    }
    torch.use_deterministic_algorithms(False)
    references = {name: a.double() @ b.double() for name, (a, b) in factors.items()}
    good = [check(f"{kind}, {name}", out, references[name], 1e-3) for (kind, name), out in outs.items()]
    if not all(good):
        sys.exit("matmul: the result is not torch's")
    if device == "cuda":
        benchmark(1024)
        if "--bench" in sys.argv[1:]:
            benchmark(4096)
            benchmark(8192)


if __name__ == "__main__":
    main()
