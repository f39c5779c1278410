"""Narrow loads: an RMS norm whose row stride the compiler was told not to specialise on.

docs/cases/narrow-loads.md explains it. Bytes moved: 2 * m * n * element size.
"""

import sys

import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["stride"])
def rms_norm_before(x_ptr, weight_ptr, out_ptr, stride, eps, COLUMNS: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * stride
    columns = tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + start + columns).to(tl.float32)
    weight = tl.load(weight_ptr + columns).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / COLUMNS + eps)
    tl.store(out_ptr + start + columns, x * scale * weight)


@triton.jit(do_not_specialize=["stride"])
def rms_norm_after(x_ptr, weight_ptr, out_ptr, stride, eps, COLUMNS: tl.constexpr):
    start = tl.multiple_of(tl.program_id(0).to(tl.int64) * stride, 16)
    columns = tl.arange(0, COLUMNS)
    x = tl.load(x_ptr + start + columns).to(tl.float32)
    weight = tl.load(weight_ptr + columns).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / COLUMNS + eps)
    tl.store(out_ptr + start + columns, x * scale * weight)


def rms_norm(kernel, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return the RMS norm of each row of `x` [m, n] times `weight` [n]; n is a power of two."""
    out = torch.empty_like(x)
    kernel[(x.shape[0],)](x, weight, out, x.stride(0), 1e-6, COLUMNS=x.shape[1])
    return out


def before(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return rms_norm(rms_norm_before, x, weight)


def after(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return rms_norm(rms_norm_after, x, weight)


def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x.double() * torch.rsqrt(x.double().square().mean(dim=1, keepdim=True) + 1e-6) * weight.double()


def arguments(large: bool = False) -> tuple[torch.Tensor, ...]:
    """Return a matrix and the weights of its columns, in the size to check or the one to time."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    m, n = 16384 if large else 64, 4096
    return tuple(torch.randn(shape, device=device, dtype=torch.bfloat16) for shape in ((m, n), (n,)))


def main() -> None:
    torch.manual_seed(0)
    given = arguments()
    expected = reference(*given)
    for function in (before, after):
        error = (function(*given).double() - expected).norm() / expected.norm()
        print(f"{function.__name__}: relative error {error.item():.2e}")
        if not error.item() <= 1e-2:
            sys.exit("narrow_loads: the result is not torch's")


if __name__ == "__main__":
    main()
