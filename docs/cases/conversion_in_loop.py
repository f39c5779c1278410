"""A conversion in a loop: the symmetric part of a batch of matrices, a tile at a time.

docs/cases/conversion-in-loop.md explains it. Bytes moved: 2 * batch * n * n * element size.
"""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def symmetric_before(x_ptr, out_ptr, batch, n, TILE: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    x_ptrs = x_ptr + rows[:, None] * n + columns[None, :]
    mirrored_ptrs = x_ptr + columns[:, None] * n + rows[None, :]
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for _ in range(batch):
        total += tl.load(x_ptrs) + tl.load(mirrored_ptrs).T
        x_ptrs += n * n
        mirrored_ptrs += n * n
    tl.store(out_ptr + rows[:, None] * n + columns[None, :], total / 2)


@triton.jit
def symmetric_after(x_ptr, out_ptr, batch, n, TILE: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    x_ptrs = x_ptr + rows[:, None] * n + columns[None, :]
    mirrored_ptrs = x_ptr + columns[:, None] * n + rows[None, :]
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    mirrored = tl.zeros((TILE, TILE), dtype=tl.float32)
    for _ in range(batch):
        total += tl.load(x_ptrs)
        mirrored += tl.load(mirrored_ptrs)
        x_ptrs += n * n
        mirrored_ptrs += n * n
    tl.store(out_ptr + rows[:, None] * n + columns[None, :], (total + mirrored.T) / 2)


def symmetric(kernel, x: torch.Tensor) -> torch.Tensor:
    """Return the symmetric part of the sum of the matrices `x` [batch, n, n]; n is a multiple of 64."""
    batch, n, _ = x.shape
    out = torch.empty((n, n), device=x.device, dtype=x.dtype)
    kernel[(n // 64, n // 64)](x, out, batch, n, TILE=64)
    return out


def before(x: torch.Tensor) -> torch.Tensor:
    return symmetric(symmetric_before, x)


def after(x: torch.Tensor) -> torch.Tensor:
    return symmetric(symmetric_after, x)


def reference(x: torch.Tensor) -> torch.Tensor:
    total = x.double().sum(dim=0)
    return (total + total.T) / 2


def arguments(large: bool = False) -> tuple[torch.Tensor, ...]:
    """Return a batch of matrices, in the size to check or the one to time."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batch, n = (32, 4096) if large else (8, 256)
    return (torch.randn((batch, n, n), device=device),)


def main() -> None:
    torch.manual_seed(0)
    given = arguments()
    expected = reference(*given)
    for function in (before, after):
        error = (function(*given).double() - expected).norm() / expected.norm()
        print(f"{function.__name__}: relative error {error.item():.2e}")
        if not error.item() <= 1e-2:
            sys.exit("conversion_in_loop: the result is not torch's")


if __name__ == "__main__":
    main()
