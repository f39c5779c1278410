"""Kernels that move one tile from registers to shared memory and back, in many pairs of layouts.

`CASES` has, for each name, the element type, the shape, the layout it is stored by, the one in shared memory and the
one it is loaded by. Most have bank conflicts, of 2 to 32 ways: what a shared layout is chosen to avoid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch  # noqa: TID251
from triton.experimental import gluon  # noqa: TID251
from triton.experimental.gluon import language as gl  # noqa: TID251

_GRID = 4


class SharedCase(NamedTuple):
    """A tile's element type and shape, and its three layouts."""

    dtype: torch.dtype
    shape: tuple[int, int]
    stored: Any
    shared: Any
    loaded: Any


@gluon.jit
def through_shared(
    x, y, M: gl.constexpr, N: gl.constexpr, stored: gl.constexpr, layout: gl.constexpr, loaded: gl.constexpr
):
    start = gl.program_id(0) * M * N
    rows = gl.arange(0, M, layout=gl.SliceLayout(1, stored))[:, None]
    columns = gl.arange(0, N, layout=gl.SliceLayout(0, stored))[None, :]
    tile = gl.load(x + start + rows * N + columns)
    memory = gl.allocate_shared_memory(tile.dtype, [M, N], layout)
    memory.store(tile)
    moved = memory.load(loaded)
    rows = gl.arange(0, M, layout=gl.SliceLayout(1, loaded))[:, None]
    columns = gl.arange(0, N, layout=gl.SliceLayout(0, loaded))[None, :]
    gl.store(y + start + rows * N + columns, moved)


def _blocked(size: tuple[int, int], lanes: tuple[int, int], warps: tuple[int, int], order: tuple[int, int]) -> Any:
    return gl.BlockedLayout([*size], [*lanes], [*warps], [*order])


def _swizzled(vec: int, per_phase: int, max_phase: int, order: tuple[int, int] = (1, 0)) -> Any:
    return gl.SwizzledSharedLayout(vec=vec, per_phase=per_phase, max_phase=max_phase, order=[*order])


def _mma(parent_size: int) -> Any:
    """The first operand of an mma.sync of 16×8, two elements of `parent_size` to 32 bits and more."""
    parent = gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[2, 2], instr_shape=[16, 8])
    return gl.DotOperandLayout(operand_index=0, parent=parent, k_width=parent_size)


def _repeated(width: int, same: tuple[int, ...]) -> Any:
    """A layout of 32×64: a lane holds `width` neighbours, lanes that differ in a bit of `same` the same ones."""
    bases = iter([[0, 1 << n] for n in range(6)] + [[1 << n, 0] for n in range(5)])
    first = [next(bases) for _ in range(width.bit_length() - 1)]
    lanes = [[0, 0] if bit in same else next(bases) for bit in range(5)]
    warps = [next(bases), next(bases)]
    return gl.DistributedLinearLayout([*first, *bases], lanes, warps, [], [32, 64])


_ROWS = _blocked((1, 1), (1, 32), (4, 1), (1, 0))
_COLUMNS = _blocked((1, 1), (32, 1), (1, 4), (0, 1))
_WIDE = _blocked((1, 4), (4, 8), (4, 1), (1, 0))
_WIDEST = _blocked((1, 8), (4, 8), (4, 1), (1, 0))
_TALL = _blocked((4, 1), (8, 4), (1, 4), (0, 1))
_SQUARE = _blocked((2, 2), (8, 4), (2, 2), (1, 0))
_PLAIN = _swizzled(1, 1, 1)
_HALF, _SINGLE, _DOUBLE, _BYTE = torch.float16, torch.float32, torch.float64, torch.int8

CASES = {
    "columns, plain": SharedCase(_SINGLE, (64, 64), _ROWS, _PLAIN, _COLUMNS),
    "columns, swizzled": SharedCase(_SINGLE, (64, 64), _ROWS, _swizzled(1, 1, 32), _COLUMNS),
    "columns, 2 phases": SharedCase(_SINGLE, (64, 64), _ROWS, _swizzled(1, 1, 2), _COLUMNS),
    "columns, 8 phases": SharedCase(_SINGLE, (64, 64), _ROWS, _swizzled(1, 1, 8), _COLUMNS),
    "columns, vec 4": SharedCase(_SINGLE, (64, 64), _ROWS, _swizzled(4, 1, 8), _COLUMNS),
    "columns, 4 per phase": SharedCase(_SINGLE, (64, 64), _ROWS, _swizzled(1, 4, 8), _COLUMNS),
    "columns of 32": SharedCase(_SINGLE, (128, 32), _ROWS, _PLAIN, _COLUMNS),
    "column order": SharedCase(_SINGLE, (64, 64), _ROWS, _swizzled(1, 1, 1, (0, 1)), _COLUMNS),
    "wide to tall, plain": SharedCase(_SINGLE, (64, 64), _WIDE, _PLAIN, _TALL),
    "wide to tall, swizzled": SharedCase(_SINGLE, (64, 64), _WIDE, _swizzled(4, 1, 8), _TALL),
    "square to wide": SharedCase(_SINGLE, (64, 64), _SQUARE, _PLAIN, _WIDE),
    "square to wide, vec 2": SharedCase(_SINGLE, (64, 64), _SQUARE, _swizzled(2, 1, 4), _WIDE),
    "half columns, plain": SharedCase(_HALF, (64, 64), _WIDEST, _PLAIN, _COLUMNS),
    "half columns, vec 8": SharedCase(_HALF, (64, 64), _WIDEST, _swizzled(8, 1, 8), _COLUMNS),
    "half columns, vec 2": SharedCase(_HALF, (64, 64), _WIDEST, _swizzled(2, 1, 16), _COLUMNS),
    "half square, vec 4": SharedCase(_HALF, (64, 64), _SQUARE, _swizzled(4, 2, 8), _WIDEST),
    "half operand, plain": SharedCase(_HALF, (64, 64), _WIDEST, _PLAIN, _mma(2)),
    "half operand, vec 8": SharedCase(_HALF, (64, 64), _WIDEST, _swizzled(8, 1, 8), _mma(2)),
    "half operand, 2 per phase": SharedCase(_HALF, (64, 64), _WIDEST, _swizzled(8, 2, 4), _mma(2)),
    "bytes, plain": SharedCase(_BYTE, (64, 128), _WIDEST, _PLAIN, _COLUMNS),
    "bytes, vec 4": SharedCase(_BYTE, (64, 128), _WIDEST, _swizzled(4, 1, 32), _COLUMNS),
    "bytes, square": SharedCase(_BYTE, (64, 128), _SQUARE, _swizzled(8, 2, 8), _TALL),
    "double columns, plain": SharedCase(_DOUBLE, (64, 32), _ROWS, _PLAIN, _COLUMNS),
    "double columns, vec 1": SharedCase(_DOUBLE, (64, 32), _ROWS, _swizzled(1, 1, 16), _COLUMNS),
    "double, wide to tall": SharedCase(_DOUBLE, (64, 32), _WIDE, _swizzled(2, 1, 4), _TALL),
    "nvmma, columns": SharedCase(_HALF, (64, 64), _WIDEST, gl.NVMMASharedLayout(128, 16, 2), _COLUMNS),
    "nvmma, 32 bytes": SharedCase(_HALF, (64, 64), _WIDEST, gl.NVMMASharedLayout(32, 16, 2), _SQUARE),
}  # fmt: skip
_SAME = ((0,), (1,), (2,), (3,), (4,), (0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4), (0, 1, 2), (0, 1, 2, 3, 4))
CASES |= {
    f"{32 * width} bits, lanes {same} alike": SharedCase(_SINGLE, (32, 64), _ROWS, _PLAIN, _repeated(width, same))
    for width in (1, 2, 4)
    for same in _SAME
}


def launches() -> Iterator[tuple[str, Callable[[], object]]]:
    """Each case as a launch, which raises AssertionError if the tile came back changed."""
    for name, case in CASES.items():
        yield f"shared: {name}", lambda case=case: _launch(case)


def _launch(case: SharedCase) -> None:
    m, n = case.shape
    x = torch.arange(_GRID * m * n, device="cuda", dtype=torch.int32).to(case.dtype)
    y = torch.zeros_like(x)
    through_shared[(_GRID,)](x, y, m, n, case.stored, case.shared, case.loaded, num_warps=4)
    assert torch.equal(x, y)
