"""Add two vectors of any stride.

Bytes moved: 3 * n * element size (two reads and a write). Flops: n.
docs/examples.md#vector_add says what the compiler makes of it.
"""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, stride_x, stride_y, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets * stride_x, mask=mask)
    y = tl.load(y_ptr + offsets * stride_y, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return `x + y` for two vectors of one length and type."""
    if x.ndim != 1 or x.shape != y.shape or x.dtype != y.dtype:
        raise ValueError(
            f"two vectors of one length and type are needed, not {x.dtype}{[*x.shape]}, {y.dtype}{[*y.shape]}"
        )
    out = torch.empty(x.shape, device=x.device, dtype=x.dtype)
    n = x.numel()
    block = 1024
    add_kernel[(triton.cdiv(n, block),)](x, y, out, n, x.stride(0), y.stride(0), BLOCK=block, num_warps=4)
    return out


def check(name: str, out: torch.Tensor, reference: torch.Tensor, tolerance: float) -> bool:
    """Print the errors of `out`; whether their norm, relative to the reference's, is in tolerance (a NaN is not)."""
    error = out.double() - reference
    relative = (error.norm() / reference.norm()).item()
    print(f"{name}: relative error {relative:.2e}, largest {error.abs().max().item():.2e}")
    return relative <= tolerance


def benchmark(n: int) -> None:
    """Print the median time of one addition of `n` float32 numbers, beside torch's."""
    x, y = torch.randn(2, n, device="cuda").unbind()
    ours_ms = triton.testing.do_bench(lambda: vector_add(x, y), return_mode="median")
    torch_ms = triton.testing.do_bench(lambda: x + y, return_mode="median")
    gigabytes = 3 * x.nbytes * 1e-9
    print(f"n={n}: {ours_ms:.4f} ms ({gigabytes / ours_ms * 1e3:.0f} GB/s), torch {torch_ms:.4f} ms")


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    pairs = {
        "aligned": torch.randn(2, 1 << 18, device=device).unbind(),
        "odd length": torch.randn(2, 98_435, device=device).unbind(),
        "every third": torch.randn(2, 30_000, device=device)[:, ::3].unbind(),
    }
    torch.use_deterministic_algorithms(True)  # fills what torch.empty returns with NaN: an element not written shows
    outs = {name: vector_add(x, y) for name, (x, y) in pairs.items()}
    torch.use_deterministic_algorithms(False)
    good = [check(name, out, pairs[name][0].double() + pairs[name][1].double(), 1e-6) for name, out in outs.items()]
    if not all(good):
        sys.exit("vector_add: the result is not torch's")
    if device == "cuda":
        benchmark(1 << 20)
        if "--bench" in sys.argv[1:]:
            benchmark(1 << 28)


if __name__ == "__main__":
    main()
