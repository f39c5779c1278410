"""A pipeline that did not form: a matmul whose loop is a `while`.

docs/cases/missing-pipeline.md explains it. Flops: 2 * m * n * k.
"""

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_before(a_ptr, b_ptr, c_ptr, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * k + ks[None, :]
    b_ptrs = b_ptr + ks[:, None] * n + columns[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    left = k
    while left > 0:
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * n
        left -= BLOCK_K
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], acc.to(tl.float16))


@triton.jit
def matmul_after(a_ptr, b_ptr, c_ptr, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * k + ks[None, :]
    b_ptrs = b_ptr + ks[:, None] * n + columns[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, k, BLOCK_K):
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * n
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], acc.to(tl.float16))


def matmul(kernel, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return `a` [m, k] @ `b` [k, n]; m and n are multiples of 128, k of 64."""
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    kernel[(m // 128, n // 128)](a, b, c, n, k, BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, num_warps=8, num_stages=3)
    return c


def before(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return matmul(matmul_before, a, b)


def after(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return matmul(matmul_after, a, b)


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.double() @ b.double()


def arguments(large: bool = False) -> tuple[torch.Tensor, ...]:
    """Return two square matrices, in the size to check or the one to time."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    size = 4096 if large else 512
    return torch.randn((2, size, size), device=device, dtype=torch.float16).unbind()


def main() -> None:
    torch.manual_seed(0)
    given = arguments()
    expected = reference(*given)
    for function in (before, after):
        error = (function(*given).double() - expected).norm() / expected.norm()
        print(f"{function.__name__}: relative error {error.item():.2e}")
        if not error.item() <= 1e-2:
            sys.exit("missing_pipeline: the result is not torch's")


if __name__ == "__main__":
    main()
