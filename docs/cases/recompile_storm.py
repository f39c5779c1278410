"""A recompile storm: a softmax that is compiled again for each length of its rows.

docs/cases/recompile-storm.md explains it.
"""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_before(x_ptr, out_ptr, n: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    start = tl.program_id(0) * n
    x = tl.load(x_ptr + start + columns, mask=columns < n, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + start + columns, numerator / tl.sum(numerator, axis=0), mask=columns < n)


@triton.jit
def softmax_after(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    start = tl.program_id(0) * n
    x = tl.load(x_ptr + start + columns, mask=columns < n, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + start + columns, numerator / tl.sum(numerator, axis=0), mask=columns < n)


def softmax(kernel, matrices: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Return the softmax of the rows of each matrix, all as one vector."""
    outs = [torch.empty_like(x) for x in matrices]
    for x, out in zip(matrices, outs, strict=True):
        m, n = x.shape
        kernel[(m,)](x, out, n, BLOCK=triton.next_power_of_2(n))
    return torch.cat([out.flatten() for out in outs])


def before(*matrices: torch.Tensor) -> torch.Tensor:
    return softmax(softmax_before, matrices)


def after(*matrices: torch.Tensor) -> torch.Tensor:
    return softmax(softmax_after, matrices)


def reference(*matrices: torch.Tensor) -> torch.Tensor:
    return torch.cat([x.double().softmax(dim=1).flatten() for x in matrices])


def arguments(large: bool = False) -> tuple[torch.Tensor, ...]:
    """Return matrices of growing rows, as a language model gives them: a few to check, many to time."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    lengths = range(641, 769) if large else range(525, 529)
    return tuple(torch.randn((16, n), device=device) for n in lengths)


def main() -> None:
    torch.manual_seed(0)
    given = arguments()
    expected = reference(*given)
    for function in (before, after):
        error = (function(*given).double() - expected).norm() / expected.norm()
        print(f"{function.__name__}: relative error {error.item():.2e}")
        if not error.item() <= 1e-2:
            sys.exit("recompile_storm: the result is not torch's")


if __name__ == "__main__":
    main()
