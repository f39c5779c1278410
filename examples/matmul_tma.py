"""Multiply two float16 matrices through tensor descriptors, with programs that stay on and take tile after tile.

Flops: 2 * m * n * k. Bytes moved at least: 2 * (m * k + k * n + m * n).
docs/examples.md#matmul_tma says what the compiler makes of it.
"""

import sys

import torch
import triton
import triton.language as tl


def tile_config(block_m: int, block_n: int, block_k: int, num_warps: int, num_stages: int, split: int) -> triton.Config:
    """Return the autotuner's form of one tile shape, whose result is written in `split` pieces."""
    blocks = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k, "GROUP_M": 8, "SPLIT_STORE": split}
    return triton.Config(blocks, num_warps=num_warps, num_stages=num_stages)


# A shape that needs more shared memory than a device has is dropped by the autotuner.
@triton.autotune(
    configs=[
        tile_config(128, 256, 64, num_warps=8, num_stages=3, split=1),
        tile_config(128, 256, 64, num_warps=8, num_stages=4, split=2),
        tile_config(128, 128, 64, num_warps=8, num_stages=4, split=1),
        tile_config(128, 64, 64, num_warps=4, num_stages=3, split=1),
    ],
    key=["m", "n", "k", "A_TRANSPOSED", "B_TRANSPOSED"],
)
@triton.jit
def matmul_tma_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, stride_a, stride_b, stride_c,
    A_TRANSPOSED: tl.constexpr, B_TRANSPOSED: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    SPLIT_STORE: tl.constexpr, FLATTEN: tl.constexpr = True, WARP_SPECIALIZE: tl.constexpr = False,
):  # fmt: skip
    # A descriptor holds the sizes and strides: what lies outside the matrix reads as zero and is not written.
    if A_TRANSPOSED:
        a_desc = tl.make_tensor_descriptor(a_ptr, [k, m], [stride_a, 1], [BLOCK_K, BLOCK_M])
    else:
        a_desc = tl.make_tensor_descriptor(a_ptr, [m, k], [stride_a, 1], [BLOCK_M, BLOCK_K])
    if B_TRANSPOSED:
        b_desc = tl.make_tensor_descriptor(b_ptr, [n, k], [stride_b, 1], [BLOCK_N, BLOCK_K])
    else:
        b_desc = tl.make_tensor_descriptor(b_ptr, [k, n], [stride_b, 1], [BLOCK_K, BLOCK_N])
    c_desc = tl.make_tensor_descriptor(c_ptr, [m, n], [stride_c, 1], [BLOCK_M, BLOCK_N // SPLIT_STORE])

    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    # Flattened, both loops are one pipeline: the loads of the next tile start while this one is written.
    for tile in tl.range(
        tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=FLATTEN, warp_specialize=WARP_SPECIALIZE
    ):
        tile_m, tile_n = tl.swizzle2d(tile // tiles_n, tile % tiles_n, tiles_m, tiles_n, GROUP_M)
        first_row = tile_m * BLOCK_M
        first_col = tile_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for first_k in range(0, k, BLOCK_K):
            a = a_desc.load([first_k, first_row]).T if A_TRANSPOSED else a_desc.load([first_row, first_k])
            b = b_desc.load([first_col, first_k]).T if B_TRANSPOSED else b_desc.load([first_k, first_col])
            acc = tl.dot(a, b, acc)
        if SPLIT_STORE == 2:
            # Half the shared memory for the result leaves room for one more stage of the loop.
            halves = acc.reshape(BLOCK_M, 2, BLOCK_N // 2).permute(0, 2, 1)
            left, right = tl.split(halves)
            c_desc.store([first_row, first_col], left.to(c_ptr.dtype.element_ty))
            c_desc.store([first_row, first_col + BLOCK_N // 2], right.to(c_ptr.dtype.element_ty))
        else:
            c_desc.store([first_row, first_col], acc.to(c_ptr.dtype.element_ty))


def describable(x: torch.Tensor) -> bool:
    """Whether a descriptor can hold the matrix: unit stride in a row, and rows that start on 16 bytes."""
    return x.stride(1) == 1 and x.stride(0) * x.element_size() % 16 == 0 and x.data_ptr() % 16 == 0


def oriented(x: torch.Tensor) -> tuple[torch.Tensor, bool]:
    """Return the matrix, or its transpose, as a descriptor can hold it, and whether it was transposed."""
    if describable(x):
        return x, False
    if describable(x.T):
        return x.T, True
    raise ValueError(
        f"a descriptor needs one unit stride, the other a multiple of 16 bytes, and a start on 16 bytes; "
        f"a {x.dtype} matrix of shape {[*x.shape]} and strides {[*x.stride()]} has not: copy it, or use matmul.py"
    )


def processors(device: torch.device) -> int:
    """Return how many programs the device runs at a time, at one a multiprocessor."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return `a @ b`, summed in float32; each matrix row-major or column-major, with rows on 16 bytes."""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or a.dtype != b.dtype:
        raise ValueError(f"an m x k and a k x n matrix of one type are needed, not {[*a.shape]} and {[*b.shape]}")
    (m, k), n = a.shape, b.shape[1]
    a, a_transposed = oriented(a)
    b, b_transposed = oriented(b)
    # The rows of the result, too, start on 16 bytes: they are padded to it, and the padding is cut off in the view.
    columns = triton.cdiv(n, 8) * 8
    c = torch.empty((m, columns), device=a.device, dtype=a.dtype)[:, :n]

    # Descriptors made on the device live in memory that Triton asks for at launch.
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device=a.device, dtype=torch.int8))
    matmul_tma_kernel[
        lambda meta: (min(processors(a.device), triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"])),)
    ](
        a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0), A_TRANSPOSED=a_transposed, B_TRANSPOSED=b_transposed
    )  # fmt: skip
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
    for name, left, right in (("a @ b", a, b), ("a @ b.T", a, b.T)):
        ours_ms = triton.testing.do_bench(lambda left=left, right=right: matmul(left, right), return_mode="median")
        torch_ms = triton.testing.do_bench(lambda left=left, right=right: left @ right, return_mode="median")
        print(
            f"{size}, {name}: {ours_ms:.4f} ms ({teraflops / ours_ms * 1e3:.0f} TFLOP/s), "
            f"torch {torch_ms:.4f} ms ({teraflops / torch_ms * 1e3:.0f})"
        )


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)

    def half(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device=device, dtype=torch.float16)

    factors = {
        "aligned": (half(512, 512), half(512, 512)),
        "odd sizes, rows padded": (half(301, 216)[:, :213], half(213, 520)[:, :517]),
        "right one transposed": (half(320, 256), half(384, 256).T),
        "both transposed": (half(320, 256).T, half(384, 320).T),
    }
    torch.use_deterministic_algorithms(True)  # fills what torch.empty returns with NaN: an element not written shows
    outs = {name: matmul(a, b) for name, (a, b) in factors.items()}
    torch.use_deterministic_algorithms(False)
    references = {name: a.double() @ b.double() for name, (a, b) in factors.items()}
    good = [check(name, out, references[name], 1e-3) for name, out in outs.items()]
    if not all(good):
        sys.exit("matmul_tma: the result is not torch's")
    if device == "cuda":
        benchmark(1024)
        if "--bench" in sys.argv[1:]:
            benchmark(4096)
            benchmark(8192)


if __name__ == "__main__":
    main()
