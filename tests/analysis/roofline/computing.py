"""Kernels, and beside each what its meaning says that a program computes. As a script it launches them all.

A model says for a program how many operations it makes on each unit: nothing in it knows of the IR.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

Model = Callable[[tuple[int, int, int]], dict[str, int]]


@dataclass
class Case:
    """A kernel, its launch, and the model of what it computes."""

    kernel: Any
    grid: tuple[int, ...]
    arguments: Callable[[], tuple[Any, ...]]
    options: dict[str, Any]
    model: Model


CASES: dict[str, Case] = {}


def case(grid: tuple[int, ...], arguments: Callable[[], tuple[Any, ...]], model: Model, **options: Any):
    """Register a kernel."""

    def register(kernel: Any) -> Any:
        CASES[kernel.fn.__name__] = Case(kernel, grid, arguments, options, model)
        return kernel

    return register


def t(*shape: int, dtype: Any = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="cuda")


@case((5,), lambda: (t(4500), t(4500), t(4500), 4500), lambda pid: {"vector f32": 1024}, BLOCK=1024)
@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + o, tl.load(x + o, mask=o < n) + tl.load(y + o, mask=o < n), mask=o < n)


@case(
    (7,),
    lambda: (t(7, 200), t(7, 200), 200),
    # The maximum, the difference, the sum, the quotient; and exp as 2 to the power of a product.
    lambda pid: {"vector f32": 255 + 256 + 255 + 256 + 256, "special f32": 256},
    BLOCK=256,
)
@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * n + o, mask=o < n, other=-float("inf"))
    top = tl.exp2((row - tl.max(row, 0)) * 1.44269504)
    tl.store(out + tl.program_id(0) * n + o, top / tl.sum(top, 0), mask=o < n)


@case(
    (3,),
    lambda: (t(3, 500), t(3, 500), 500, 1e-5),
    # Of each of two blocks: a sum; then difference, square, sum; then difference, product. Once: mean, variance, rstd.
    lambda pid: {"vector f32": 2 * (256 + 3 * 256 + 2 * 256) + 255 + 255 + 1 + 1 + 1 + 1, "special f32": 1},
    BLOCK=256,
)
@triton.jit
def layer_norm(x, out, n, eps, BLOCK: tl.constexpr):
    row = x + tl.program_id(0) * n
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(0, n, BLOCK):
        o = first + tl.arange(0, BLOCK)
        total += tl.load(row + o, mask=o < n, other=0.0)
    mean = tl.sum(total, 0) / n
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, n, BLOCK):
        o = first + tl.arange(0, BLOCK)
        d = tl.where(o < n, tl.load(row + o, mask=o < n, other=0.0) - mean, 0.0)
        squares += d * d
    rstd = 1 / tl.sqrt_rn(tl.sum(squares, 0) / n + eps)
    for first in range(0, n, BLOCK):
        o = first + tl.arange(0, BLOCK)
        tl.store(out + tl.program_id(0) * n + o, (tl.load(row + o, mask=o < n) - mean) * rstd, mask=o < n)


def of_matmul(turns: int, m: int, n: int, k: int, dtype: str) -> Model:
    return lambda pid: {f"matrix {dtype}": turns * 2 * m * n * k}


@triton.jit
def product(a, b, out, m, n, k, row, column, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ACC: tl.constexpr):
    r, c = row * M + tl.arange(0, M), column * N + tl.arange(0, N)
    total = tl.zeros([M, N], ACC)
    for first in range(0, k, K):
        i = first + tl.arange(0, K)
        left = tl.load(a + r[:, None] * k + i[None, :], mask=(r[:, None] < m) & (i[None, :] < k), other=0.0)
        right = tl.load(b + i[:, None] * n + c[None, :], mask=(i[:, None] < k) & (c[None, :] < n), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(out + r[:, None] * n + c[None, :], total, mask=(r[:, None] < m) & (c[None, :] < n))


def operands(m: int, n: int, k: int, dtype: Any, out: Any = torch.float32) -> Callable[[], tuple[Any, ...]]:
    return lambda: (t(m, k, dtype=dtype), t(k, n, dtype=dtype), t(m, n, dtype=out), m, n, k)


SIZES = {"M": 64, "N": 64, "K": 32, "ACC": tl.float32}


@case((3, 2), operands(150, 100, 200, torch.float16), of_matmul(7, 64, 64, 32, "f16"), **SIZES)
@triton.jit
def matmul(a, b, out, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ACC: tl.constexpr):
    product(a, b, out, m, n, k, tl.program_id(0), tl.program_id(1), M, N, K, ACC)


@case((1, 1), operands(64, 64, 64, torch.float32), of_matmul(2, 64, 64, 32, "tf32"), **SIZES)
@triton.jit
def matmul_tf32(a, b, out, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ACC: tl.constexpr):
    product(a, b, out, m, n, k, tl.program_id(0), tl.program_id(1), M, N, K, ACC)


@case(
    (1, 1), operands(64, 64, 64, torch.int8, torch.int32), of_matmul(2, 64, 64, 32, "i8"), **SIZES | {"ACC": tl.int32}
)
@triton.jit
def matmul_i8(a, b, out, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ACC: tl.constexpr):
    product(a, b, out, m, n, k, tl.program_id(0), tl.program_id(1), M, N, K, ACC)


@case((1, 1), operands(64, 64, 64, torch.float8_e5m2), of_matmul(2, 64, 64, 32, "f8"), **SIZES)
@triton.jit
def matmul_f8(a, b, out, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ACC: tl.constexpr):
    product(a, b, out, m, n, k, tl.program_id(0), tl.program_id(1), M, N, K, ACC)


@case((1, 1), operands(64, 64, 64, torch.bfloat16), of_matmul(2, 64, 64, 32, "bf16"), **SIZES)
@triton.jit
def matmul_bf16(a, b, out, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ACC: tl.constexpr):
    product(a, b, out, m, n, k, tl.program_id(0), tl.program_id(1), M, N, K, ACC)


@case((1,), lambda: (t(32, 32), t(32, 32), t(32, 32)), lambda pid: {"vector f32": 2 * 32**3})
@triton.jit
def matmul_ieee(a, b, out):
    o = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(out + o, tl.dot(tl.load(a + o), tl.load(b + o), input_precision="ieee"))


def _tiles(pid: tuple[int, int, int]) -> dict[str, int]:
    """Of a kernel of 5 programs over 3 by 4 tiles of 4 turns each."""
    return {"matrix f16": len(range(pid[0], 12, 5)) * 4 * 2 * 64 * 64 * 32}


@case((5,), operands(150, 200, 128, torch.float16), _tiles, PROGRAMS=5, **SIZES)
@triton.jit
def persistent(
    a, b, out, m, n, k, PROGRAMS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ACC: tl.constexpr
):
    across = tl.cdiv(n, N)
    for tile in range(tl.program_id(0), tl.cdiv(m, M) * across, PROGRAMS):
        product(a, b, out, m, n, k, tile // across, tile % across, M, N, K, ACC)


@case((5,), operands(150, 200, 128, torch.float16), _tiles, PROGRAMS=5, **SIZES)
@triton.jit
def persistent_while(
    a, b, out, m, n, k, PROGRAMS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ACC: tl.constexpr
):
    across = tl.cdiv(n, N)
    tile = tl.program_id(0)
    while tile < tl.cdiv(m, M) * across:
        product(a, b, out, m, n, k, tile // across, tile % across, M, N, K, ACC)
        tile += PROGRAMS


def _causal(pid: tuple[int, int, int]) -> dict[str, int]:
    """Of a query's block: scores of every key's block up to its own."""
    blocks = pid[0] * 2 + 2
    return {"matrix f16": blocks * 2 * (2 * 64 * 32 * 64), "special f32": blocks * 64 * 32}


@case((9, 3), lambda: (t(3, 576, 64, dtype=torch.float16), t(3, 576, 64, dtype=torch.float16)), _causal)
@triton.jit
def causal(x, out):
    i, d = tl.program_id(0) * 64 + tl.arange(0, 64), tl.arange(0, 64)
    base = x + tl.program_id(1) * 576 * 64
    q = tl.load(base + i[:, None] * 64 + d[None, :])
    total = tl.zeros([64, 64], tl.float32)
    for first in range(0, (tl.program_id(0) + 1) * 64, 32):
        j = first + tl.arange(0, 32)
        k = tl.load(base + j[:, None] * 64 + d[None, :])
        p = tl.exp2(tl.dot(q, tl.trans(k)))
        total = tl.dot(p.to(tl.float16), k, total)
    o = out + tl.program_id(1) * 576 * 64
    tl.store(o + i[:, None] * 64 + d[None, :], total.to(tl.float16))


def _branches(pid: tuple[int, int, int]) -> dict[str, int]:
    if pid[0] >= 6:
        return {}
    return {"vector f32": 128 * (1 if pid[0] % 2 == 0 else 3 if pid[0] > 2 else 2)}


@case((8,), lambda: (t(1024), t(1024), 6), _branches)
@triton.jit
def branches(x, out, n):
    pid = tl.program_id(0)
    if pid >= n:
        return
    o = pid * 128 + tl.arange(0, 128)
    v = tl.load(x + o)
    if pid % 2 == 0:
        v = v + 1.5
    else:
        v = v * v
        if pid > 2:  # noqa: SIM108 - two branches in the kernel too
            v = v * v + 2.5
        else:
            v = v - 2.5
    tl.store(out + o, v)


@case(
    (4, 3, 2),
    lambda: (t(4096), t(4096), 5),
    lambda pid: {"vector f64": 64 * sum(1 for i in range(pid[1] + 1) for _ in range(i, 5, pid[2] + 1))},
)
@triton.jit
def nested(x, out, n):
    o = tl.arange(0, 64)
    v = tl.load(x + o).to(tl.float64)
    for i in range(0, tl.program_id(1) + 1):
        for j in range(i, n, tl.program_id(2) + 1):
            v = v * (tl.load(x + o + i * 64 + j).to(tl.float64))
    tl.store(out + o + tl.program_id(0) * 64, v.to(tl.float32))


@case((3,), lambda: (t(3, 128), t(3, 128)), lambda pid: {"vector f32": 127 + 127 * 2})
@triton.jit
def scans(x, out):
    o = tl.program_id(0) * 128 + tl.arange(0, 128)
    v = tl.load(x + o)
    tl.store(out + o, tl.cumsum(v, 0))
    tl.store(out + o, tl.associative_scan(v, 0, _fused))


@triton.jit
def _fused(a, b):
    return a * 0.5 + b


@case((4,), lambda: (t(512), t(1)), lambda pid: {"vector f32": 127 + 128})
@triton.jit
def atomics(x, out):
    v = tl.load(x + tl.program_id(0) * 128 + tl.arange(0, 128))
    tl.atomic_add(out, tl.sum(v * v, 0))


def launch_totals(chosen: Case) -> Counter[str]:
    """What all programs of a launch compute together."""
    total: Counter[str] = Counter()
    x, y, z = (*chosen.grid, 1, 1)[:3]
    for number in range(x * y * z):
        total.update(chosen.model((number % x, number // x % y, number // (x * y))))
    return total


# Not known: the data decides.


@triton.jit
def of_data(x, counts, out):
    pid = tl.program_id(0)
    v = tl.load(x + pid * 128 + tl.arange(0, 128))
    for _ in range(tl.load(counts + pid)):
        v = v * v
    if tl.load(counts + pid) > 3:
        v = v + 1.5
    tl.store(out + pid * 128 + tl.arange(0, 128), v + 2.5)


def launch_all() -> None:
    """Launch every kernel."""
    for one in CASES.values():
        one.kernel[one.grid](*one.arguments(), **one.options)
    of_data[(4,)](t(512), t(4, dtype=torch.int32), t(512))


if __name__ == "__main__":
    launch_all()
