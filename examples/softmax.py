"""Take the softmax of each row of a matrix, a row at a time in registers.

Bytes moved: 2 * m * n * element size (a read and a write). Flops: about 4 * m * n, and m * n exponentials.
docs/examples.md#softmax says what the compiler makes of it.
"""

import sys

import torch
import triton
import triton.language as tl

MAX_COLUMNS = 32768
"""The longest row that still fits the registers of one program."""


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n, stride_xm, stride_xn, stride_om, stride_on, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    out = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * stride_om + cols * stride_on, out, mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Return the softmax of each row of the matrix `x`, computed in float32."""
    if x.ndim != 2 or x.shape[1] > MAX_COLUMNS:
        raise ValueError(f"a matrix of at most {MAX_COLUMNS} columns is needed, not a tensor of shape {[*x.shape]}")
    m, n = x.shape
    out = torch.empty((m, n), device=x.device, dtype=x.dtype)
    block = triton.next_power_of_2(n)
    num_warps = min(max(block // 1024, 4), 16)
    softmax_kernel[(m,)](x, out, n, *x.stride(), *out.stride(), BLOCK=block, num_warps=num_warps)
    return out


def check(name: str, out: torch.Tensor, reference: torch.Tensor, tolerance: float) -> bool:
    """Print the errors of `out`; whether their norm, relative to the reference's, is in tolerance (a NaN is not)."""
    error = out.double() - reference
    relative = (error.norm() / reference.norm()).item()
    print(f"{name}: relative error {relative:.2e}, largest {error.abs().max().item():.2e}")
    return relative <= tolerance


def benchmark(m: int, n: int) -> None:
    """Print the median time of one softmax over an m x n float32 matrix, beside torch's."""
    x = torch.randn(m, n, device="cuda")
    ours_ms = triton.testing.do_bench(lambda: softmax(x), return_mode="median")
    torch_ms = triton.testing.do_bench(lambda: torch.softmax(x, dim=1), return_mode="median")
    gigabytes = 2 * x.nbytes * 1e-9
    print(f"{m}x{n}: {ours_ms:.4f} ms ({gigabytes / ours_ms * 1e3:.0f} GB/s), torch {torch_ms:.4f} ms")


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    matrices = {
        "aligned": torch.randn(512, 1024, device=device),
        "odd sizes": torch.randn(301, 781, device=device),
        "transposed": torch.randn(300, 516, device=device).T,
        "large values": 100 * torch.randn(64, 1000, device=device),
    }
    torch.use_deterministic_algorithms(True)  # fills what torch.empty returns with NaN: an element not written shows
    outs = {name: softmax(x) for name, x in matrices.items()}
    torch.use_deterministic_algorithms(False)
    good = [check(name, out, matrices[name].double().softmax(dim=1), 1e-5) for name, out in outs.items()]
    if not all(good):
        sys.exit("softmax: the result is not torch's")
    if device == "cuda":
        benchmark(1024, 1024)
        if "--bench" in sys.argv[1:]:
            benchmark(8192, 8192)


if __name__ == "__main__":
    main()
