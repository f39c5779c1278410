"""Kernels whose launch is at fault, or what they compute with."""

# pyright: reportAssignmentType=false, reportArgumentType=false, reportOperatorIssue=false

from __future__ import annotations

from pathlib import Path

import triton
import triton.language as tl

from tests.analysis.findings.cases import Case, Variant

HERE = Path(__file__)


@triton.jit
def soft(x, y, n, BLOCK: tl.constexpr):
    """A row for each program."""
    c = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + c)
    v = tl.exp(v - tl.max(v, 0))
    tl.store(y + tl.program_id(0) * n + c, v / tl.sum(v, 0))


@triton.jit
def summed(x, y, n, INSIDE: tl.constexpr, BLOCK: tl.constexpr):
    """A reduction in each iteration, or one after the loop."""
    parts = tl.zeros((BLOCK,), tl.float32)
    total = 0.0
    for i in range(0, n, BLOCK):
        v = tl.load(x + tl.program_id(0) * n + i + tl.arange(0, BLOCK))
        if INSIDE:
            total += tl.sum(v, 0)  # here: IRS205
        else:
            parts += v
    tl.store(y + tl.program_id(0), total + tl.sum(parts, 0))


@triton.jit
def merged(x, y, n, rows, ONE: tl.constexpr, BLOCK: tl.constexpr):
    """Some rows become one, in their order: element by element, or tile by tile."""
    c = 0 if ONE else tl.arange(0, BLOCK)
    for i in range(0, n, 1 if ONE else BLOCK):
        total = 0.0 if ONE else tl.zeros((BLOCK,), tl.float32)
        for row in range(rows):
            v = tl.load(x + (tl.program_id(0) * rows + row) * n + i + c)  # here: IRS206
            total = total * 0.5 + tl.exp(v)
        tl.store(y + tl.program_id(0) * n + i + c, total)


@triton.jit
def chosen(which, a, b, y, BOTH: tl.constexpr, BLOCK: tl.constexpr):
    """One tensor or the other, for 4,096 elements at a time: both are loaded, or the one that is needed."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first = tl.load(which + at // 4096) > 0
    if BOTH:
        value = tl.where(first, tl.load(a + at), tl.load(b + at))  # here: IRS106
    else:
        value = tl.load(a + at, first, 0.0) + tl.load(b + at, ~first, 0.0)
    tl.store(y + at, value)


@triton.jit
def alternating(a, b, y, BOTH: tl.constexpr, BLOCK: tl.constexpr):
    """Even elements of one tensor, odd ones of the other: each sector of both is needed."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.where(at % 2 == 0, tl.load(a + at), tl.load(b + at)))


@triton.jit
def switched(x, y, way, BLOCK: tl.constexpr):
    """One of six ways, to which an indirect branch goes: the fourth is in float64."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at)
    if way == 0:
        v = tl.exp(v)
    elif way == 1:
        v = tl.sqrt(v) + 1
    elif way == 2:
        v = tl.log(v)
    elif way == 3:
        wide = v.to(tl.float64)  # here: IRS604
        for _ in range(64):
            wide = wide * wide + 0.5
        v = wide.to(tl.float32)
    elif way == 4:
        v = v * v + 3
    elif way == 5:
        v = tl.abs(v) - 1
    tl.store(y + at, v)


@triton.jit
def added(x, y, ATOMIC: tl.constexpr, BLOCK: tl.constexpr):
    """All programs add to the same addresses, or each stores its own."""
    c = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * BLOCK + c)
    if ATOMIC:
        tl.atomic_add(y + c, v)  # here: IRS605
    else:
        tl.store(y + tl.program_id(0) * BLOCK + c, v)


@triton.jit
def squared(x, y, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """In float64, or in float32."""
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + c)
    if WIDE:
        v = v.to(tl.float64)  # here: IRS604
    for _ in range(64):
        v = v * v + 0.5
    tl.store(y + c, v.to(tl.float32))


@triton.jit
def product(a, b, c, n, WIDE: tl.constexpr, M: tl.constexpr, TILE: tl.constexpr):
    """Operands as they are, or widened before the dot."""
    rows, columns, k = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, TILE), tl.arange(0, TILE)
    columns += tl.program_id(1) * TILE
    total = tl.zeros((M, TILE), tl.float32)
    for i in range(0, n, TILE):
        left = tl.load(a + rows[:, None] * n + (i + k)[None, :])
        right = tl.load(b + (i + k)[:, None] * n + columns[None, :])
        if WIDE:
            left = left.to(tl.float32)
            right = right.to(tl.float32)
        total = tl.dot(left, right, total)  # here: IRS304, IRS305
    tl.store(c + rows[:, None] * n + columns[None, :], total)


@triton.jit
def weighted(a, b, c, n, WIDE: tl.constexpr, M: tl.constexpr, TILE: tl.constexpr):
    """One operand is computed in float32: the other is widened to it, or it is rounded to the other's type."""
    rows, columns, k = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((M, TILE), tl.float32)
    for i in range(0, n, TILE):
        weights = tl.exp(tl.load(a + rows[:, None] * n + (i + k)[None, :]).to(tl.float32))
        right = tl.load(b + (i + k)[:, None] * TILE + columns[None, :])
        if WIDE:
            right = right.to(tl.float32)
        total += tl.dot(weights.to(right.dtype), right)  # here: IRS305
    tl.store(c + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def normed(x, y, n, AGAIN: tl.constexpr, BLOCK: tl.constexpr):
    """Rows that are read twice, or once."""
    row = tl.program_id(0) * n
    c = tl.arange(0, BLOCK)
    if AGAIN:
        most = tl.full((BLOCK,), -1e30, tl.float32)
        for i in range(0, n, BLOCK):
            most = tl.maximum(most, tl.load(x + row + i + c))  # here: IRS104
        top = tl.max(most, 0)
        for i in range(0, n, BLOCK):
            tl.store(y + row + i + c, tl.load(x + row + i + c) - top)
    else:
        for i in range(0, n, BLOCK):
            tl.store(y + row + i + c, tl.load(x + row + i + c) - 1.0)


@triton.jit
def causal(q, k, o, n, ALL: tl.constexpr, TILE: tl.constexpr):
    """All keys, those that the mask drops too, or the others."""
    rows, columns, d = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.arange(0, TILE), tl.arange(0, 64)
    queries = tl.load(q + rows[:, None] * 64 + d[None, :])
    total = tl.zeros((TILE,), tl.float32)
    end = n if ALL else (tl.program_id(0) + 1) * TILE
    for j in range(0, end, TILE):
        keys = tl.load(k + (j + columns)[None, :] * 64 + d[:, None])
        scores = tl.dot(queries, keys)
        scores = tl.where(rows[:, None] >= (j + columns)[None, :], scores, 0.0)  # here: IRS204
        total += tl.sum(scores, 1)
    tl.store(o + rows, total)


@triton.jit
def summed_products(a, b, c, n, DOT: tl.constexpr, TILE: tl.constexpr):
    """Products of two tiles, each by itself or as a dot."""
    rows, columns = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.program_id(1) * TILE + tl.arange(0, TILE)
    k = tl.arange(0, 32)
    total = tl.zeros((TILE, TILE), tl.float32)
    for i in range(0, n, 32):
        left = tl.load(a + rows[:, None] * n + (i + k)[None, :])
        right = tl.load(b + columns[:, None] * n + (i + k)[None, :])
        if DOT:
            total = tl.dot(left, tl.trans(right), total)
        else:
            total += tl.sum(left[:, None, :] * right[None, :, :], 2)  # here: IRS306
    tl.store(c + rows[:, None] * n + columns[None, :], total)


@triton.jit
def ordered(a, b, c, n, GROUP: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    """Tiles row by row, or in groups of rows."""
    down, across = tl.cdiv(n, M), tl.cdiv(n, N)
    at = tl.program_id(0)
    row, column = at // across, at % across
    if GROUP > 1:
        row, column = tl.swizzle2d(row, column, down, across, GROUP)
    rows, columns, k = row * M + tl.arange(0, M), column * N + tl.arange(0, N), tl.arange(0, 64)
    total = tl.zeros((M, N), tl.float32)
    for i in range(0, n, 64):
        left = tl.load(a + rows[:, None] * n + (i + k)[None, :])
        right = tl.load(b + (i + k)[:, None] * n + columns[None, :])
        total = tl.dot(left, right, total)  # here: IRS510
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.float16))


@triton.jit
def bounded(x, y, n, FORM: tl.constexpr, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    """A mask in one form or another, and a constant in the offset."""
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = o < n
    if FORM == 1:
        ok = o <= n - 1
    if FORM == 2:
        ok = (o < n) & (o % 7 != 8)
    v = tl.load(x + o + SHIFT, mask=ok, other=0.0)  # here: IRS101
    tl.store(y + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), v)


@triton.jit
def divided(x, y, n, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """Indices divided in 64 bits, or in 32."""
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = c
    if WIDE:
        at = c.to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in tl.static_range(8):
        total += ((at // (n + k)) % 7 + at % (n + k)).to(tl.float32)  # here: IRS606
    tl.store(y + c, tl.load(x + c) * total)


@triton.jit
def padded(x, y, n, BLOCK: tl.constexpr):
    """A row that fills its tile, or half of it."""
    c = tl.arange(0, BLOCK)
    v = tl.load(x + tl.program_id(0) * n + c, c < n, 0.0)
    for _ in range(256):
        v = tl.exp(v) * 0.5
    tl.store(y + tl.program_id(0) * n + c, v, c < n)  # here: IRS105


@triton.jit
def scalar(x, y, n, ONE: tl.constexpr, BLOCK: tl.constexpr):
    """A sum over single elements, or over tiles."""
    total, parts = 0.0, tl.zeros((BLOCK,), tl.float32)
    for i in range(0, n, 1 if ONE else BLOCK):
        if ONE:
            total += tl.load(x + tl.program_id(0) * n + i)  # here: IRS206
        else:
            parts += tl.load(x + tl.program_id(0) * n + i + tl.arange(0, BLOCK))
    tl.store(y + tl.program_id(0), total + tl.sum(parts, 0))


@triton.jit
def scaled(q, k, o, n, SCALE: tl.constexpr, TILE: tl.constexpr):
    """Products whose sum is scaled in each iteration, or is not."""
    c = tl.arange(0, TILE)
    at = c[:, None] * TILE + c[None, :]
    left = tl.load(q + at)
    total = tl.zeros((TILE, TILE), tl.float32)
    for i in range(0, n, TILE):
        if SCALE:
            total = total * 0.5  # here: IRS309
        total = tl.dot(left, tl.load(k + i * TILE + at), total)
    tl.store(o + at, total)


@triton.jit
def turned(x, y, n, TILE: tl.constexpr):
    """Four columns of a matrix for each program, or a tile."""
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    j = tl.program_id(1) * TILE + tl.arange(0, TILE)
    tile = tl.load(x + i[:, None] * n + j[None, :])  # here: IRS103
    tl.store(y + j[None, :] * n + i[:, None], tile)


@triton.jit
def mirrored(x, y, n, TILE: tl.constexpr):
    """A square matrix and its transpose, whose tiles are the same on the diagonal of the grid alone."""
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    j = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.load(x + i[:, None] * n + j[None, :]) + tl.load(x + j[None, :] * n + i[:, None])
    tl.store(y + i[:, None] * n + j[None, :], total)


def _of(
    kernel: str,
    signature: str,
    grid: tuple[int, int, int],
    sizes: tuple[tuple[str, int], ...] = (),
    warps: int = 4,
    **constants: object,
) -> Variant:
    return Variant(kernel, signature, tuple(constants.items()), (("num_warps", warps),), grid, sizes, HERE)


_WORDS = "*fp32:16, *fp32:16"
_ROWS = f"{_WORDS}, i32:16"
_DOT = "*fp16:16, *fp16:16, *fp32:16, i32:16"
_N = (("n", 4096),)


def _long(kernel: str, grid: int, warps: int = 4, n: int = 8192, **constants: object) -> Variant:
    return _of(kernel, _ROWS, (grid, 1, 1), (("n", n),), warps, **constants)


def _flat(kernel: str, **constants: object) -> Variant:
    return _of(kernel, _WORDS, (16384, 1, 1), (), 4, BLOCK=1024, **constants)


def _dots(grid: tuple[int, int, int], warps: int = 4, **constants: object) -> Variant:
    return _of("product", _DOT, grid, _N, warps, **constants)


def _chosen(kernel: str, **constants: object) -> Variant:
    signature = f"*i32:16, *fp32:16, {_WORDS}" if kernel == "chosen" else f"*fp32:16, {_WORDS}"
    return _of(kernel, signature, (16384, 1, 1), (), 4, BLOCK=1024, **constants)


def _switched(way: int) -> Variant:
    return _of("switched", f"{_WORDS}, i32", (16384, 1, 1), (("way", way),), 4, BLOCK=1024)


def _merged(**constants: object) -> Variant:
    return _of("merged", f"{_ROWS}, i32", (512, 1, 1), (("n", 4096), ("rows", 9)), 4, **constants)


def _bounded(form: int, shift: int = 0) -> Variant:
    halves = "*fp16:16, *fp16:16, i32:16"
    return _of("bounded", halves, (16384, 1, 1), (("n", 1 << 24),), 4, FORM=form, SHIFT=shift, BLOCK=1024)


def _products(**constants: object) -> Variant:
    return _of("summed_products", _DOT, (128, 128, 1), (("n", 2048),), 4, **constants)


def _ordered(group: int) -> Variant:
    return _of("ordered", "*fp16:16, *fp16:16, *fp16:16, i32:16", (8192, 1, 1), (("n", 16384),), 8, GROUP=group, M=128,
               N=256)  # fmt: skip


def _turned(tile: int) -> Variant:
    return _of("turned", _ROWS, (64, 4096 // tile, 1), _N, 4, TILE=tile)


def _causal(every: bool) -> Variant:
    return _of("causal", "*fp16:16, *fp16:16, *fp32:16, i32:16", (512, 1, 1), (("n", 32768),), 4, ALL=every, TILE=64)


def _scaled(scales: bool) -> Variant:
    return _of("scaled", "*fp16:16, *fp16:16, *fp32:16, i32:16", (1, 1, 1), (("n", 4096),), 4, SCALE=scales, TILE=128)


_FLOATS = _of("product", "*fp32:16, *fp32:16, *fp32:16, i32:16", (32, 64, 1), _N, 4, WIDE=False, M=128, TILE=64)
_HOPPER = ("cuda:90",)
STRUCTURAL = (
    Case("IRS304", _dots((128, 64, 1), WIDE=False, M=32, TILE=64), _dots((64, 64, 1), WIDE=False, M=64, TILE=64),
         "its tile has 32 rows", _HOPPER),
    Case("IRS304", _dots((64, 64, 1), 2, WIDE=False, M=64, TILE=64), _dots((64, 64, 1), WIDE=False, M=64, TILE=64),
         "num_warps is 2", _HOPPER, helps="num_warps=4"),
    Case("IRS305", _dots((64, 64, 1), WIDE=True, M=64, TILE=64), _dots((64, 64, 1), WIDE=False, M=64, TILE=64),
         "widened from f16", ("cuda:80", "cuda:90")),
    Case("IRS305", _of("weighted", _DOT, (132, 1, 1), _N, 4, WIDE=True, M=128, TILE=64),
         _of("weighted", _DOT, (132, 1, 1), _N, 4, WIDE=False, M=128, TILE=64), "is computed in f32",
         ("cuda:80", "cuda:90")),
    Case("IRS309", _scaled(True), _scaled(False), "are loaded, and changed in registers", ("cuda:100",)),
    Case("IRS604", _flat("squared", WIDE=True), _flat("squared", WIDE=False), "float64", ("cuda:80", "cuda:90")),
    Case("IRS101", _bounded(1), _bounded(0), "compares by <=", ("cuda:80", "cuda:90"), helps="< in place of <="),
    Case("IRS101", _bounded(2), _bounded(0), "computes with the index", ("cuda:80", "cuda:90")),
    Case("IRS101", _bounded(0, 1), _bounded(0, 8), "is added to", ("cuda:80", "cuda:90"), helps="SHIFT = 8"),
)  # fmt: skip
COSTS = (
    Case("IRS205", _long("summed", 4096, 16, INSIDE=True, BLOCK=512),
         _long("summed", 4096, 16, INSIDE=False, BLOCK=512), "num_warps is 16"),
    Case("IRS305", _dots((32, 64, 1), 4, WIDE=True, M=128, TILE=64), _dots((32, 64, 1), 4, WIDE=False, M=128, TILE=64),
         "widened from f16"),
    Case("IRS203", _long("summed", 132, INSIDE=False, BLOCK=512), _long("summed", 4096, INSIDE=False, BLOCK=4096),
         "Triton pipelines no loop by itself"),
    Case("IRS507", _long("summed", 136, INSIDE=True, BLOCK=1024, n=65536),
         _long("summed", 132, INSIDE=True, BLOCK=1024, n=65536), "136 CTAs"),
    Case("IRS508", _long("soft", 132, BLOCK=512, n=512), _long("soft", 65536, BLOCK=512, n=512), "are launch overhead"),
    Case("IRS509", _long("soft", 524288, n=64, BLOCK=64), _long("soft", 65536, BLOCK=4096, n=4096), "busy"),
    Case("IRS104", _long("normed", 4096, AGAIN=True, BLOCK=2048), _long("normed", 4096, AGAIN=False, BLOCK=2048),
         "are distinct"),
    Case("IRS104", _long("normed", 4096, AGAIN=True, BLOCK=2048),
         _of("mirrored", _ROWS, (128, 128, 1), (("n", 8192),), 4, TILE=64), "are distinct"),
    Case("IRS204", _causal(True), _causal(False), "the mask is off everywhere"),
    Case("IRS306", _products(DOT=False, TILE=16), _products(DOT=True, TILE=16), "broadcast to"),
    Case("IRS307", _FLOATS, _dots((32, 64, 1), WIDE=False, M=128, TILE=64), "its buffer is contiguous"),
    Case("IRS308", _dots((128, 128, 1), 1, WIDE=False, M=32, TILE=32),
         _dots((32, 32, 1), 8, WIDE=False, M=128, TILE=128), "32×32"),
    Case("IRS510", _ordered(1), _ordered(8), "different tiles"),
    Case("IRS505", _long("summed", 64, INSIDE=False, BLOCK=1024, n=65536),
         _long("summed", 4096, INSIDE=False, BLOCK=1024), "64 CTAs"),
    Case("IRS506", _long("soft", 65536, 16, 512, BLOCK=512),
         _long("soft", 65536, 4, 512, BLOCK=512), "num_warps is 16"),
    Case("IRS606", _of("divided", _ROWS, (32768, 1, 1), (("n", 1000),), 4, WIDE=True, BLOCK=1024),
         _of("divided", _ROWS, (32768, 1, 1), (("n", 1000),), 4, WIDE=False, BLOCK=1024), "divsi of i64"),
    Case("IRS105", _long("padded", 8192, BLOCK=2048, n=1040), _long("padded", 8192, BLOCK=2048, n=2048),
         "51% of the 2,048 elements"),
    Case("IRS206", _long("scalar", 16384, ONE=True, BLOCK=1024), _long("scalar", 16384, ONE=False, BLOCK=1024),
         "its loads are of scalars"),
    Case("IRS106", _chosen("chosen", BOTH=True), _chosen("chosen", BOTH=False), "is the same for 128 neighbouring"),
    Case("IRS106", _chosen("chosen", BOTH=True), _chosen("alternating", BOTH=True), "is the same for"),
    Case("IRS604", _switched(3), _switched(2), "float64"),
    Case("IRS206", _merged(ONE=True, BLOCK=1024), _merged(ONE=False, BLOCK=1024), "its loads are of scalars"),
    Case("IRS103", _turned(4), _turned(64), "16 contiguous bytes per row"),
    Case("IRS605", _flat("added", ATOMIC=True), _flat("added", ATOMIC=False), "an atomic of its own"),
)  # fmt: skip
"""Those that the model of a launch shows."""
