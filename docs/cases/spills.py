"""Spills: a layer norm of long rows, with too few warps to hold a row in registers.

docs/cases/spills.md explains it. Bytes moved: 2 * m * n * element size.
"""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    x = tl.load(x_ptr + row * n + columns, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + columns, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + columns, mask=mask).to(tl.float32)
    mean = tl.sum(x, axis=0) / n
    centred = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=0) / n + eps)
    tl.store(out_ptr + row * n + columns, centred * rstd * weight + bias, mask=mask)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, num_warps: int) -> torch.Tensor:
    """Return each row of `x` [m, n] normalised, times `weight` [n], plus `bias` [n]."""
    (m, n), out = x.shape, torch.empty_like(x)
    block = triton.next_power_of_2(n)
    layer_norm_kernel[(m,)](x, weight, bias, out, n, 1e-5, BLOCK=block, num_warps=num_warps)
    return out


def before(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return layer_norm(x, weight, bias, num_warps=4)


def after(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return layer_norm(x, weight, bias, num_warps=16)


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x.double(), weight.shape, weight.double(), bias.double(), 1e-5)


def arguments(large: bool = False) -> tuple[torch.Tensor, ...]:
    """Return a matrix, and a weight and a bias for each column, in the size to check or the one to time."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    m, n = 8192 if large else 64, 16384
    return tuple(torch.randn(shape, device=device, dtype=torch.bfloat16) for shape in ((m, n), (n,), (n,)))


def main() -> None:
    torch.manual_seed(0)
    given = arguments()
    expected = reference(*given)
    for function in (before, after):
        error = (function(*given).double() - expected).norm() / expected.norm()
        print(f"{function.__name__}: relative error {error.item():.2e}")
        if not error.item() <= 1e-2:
            sys.exit("spills: the result is not torch's")


if __name__ == "__main__":
    main()
