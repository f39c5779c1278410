"""Kernels whose lanes read the same addresses or the two halves of a sector: which of them are counted once?

A lane reads `width` consecutive float16. The lane of row `r` of the tile reads row `r // every % of` of memory, with
bit 0 and bit `swapped` of that number changed for each other, bit 0 inverted if it is `flipped`, and `added` to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch  # noqa: TID251
from triton.experimental import gluon  # noqa: TID251
from triton.experimental.gluon import language as gl  # noqa: TID251
from triton.experimental.gluon.language.nvidia.ampere import async_copy  # noqa: TID251

_ROWS = 128
_PATTERNS = {
    16: (
        *((1 << n, 128 >> n, 0, 0, 0) for n in range(6)), *((1, 1 << n, 0, 0, 0) for n in range(5)), (2, 4, 0, 0, 0),
        *((1, 128, n, 0, 0) for n in (1, 2, 3, 4, 5)), (1, 128, 0, 0, 1), (1, 128, 0, 0, 3), (1, 128, 0, 0, 2),
        (2, 64, 1, 0, 0), (4, 32, 2, 0, 0), (1, 128, 0, 1, 0), (1, 2, 0, 1, 0), (1, 16, 0, 1, 0),
    ),
    8: ((1, 128, 0, 0, 0), (2, 64, 0, 0, 0), (8, 16, 0, 0, 0), (1, 8, 0, 0, 0), (1, 128, 4, 0, 0), (1, 128, 0, 0, 1)),
    4: ((1, 128, 0, 0, 0), (4, 32, 0, 0, 0), (1, 4, 0, 0, 0), (1, 128, 4, 0, 0), (1, 128, 0, 0, 1)),
}  # fmt: skip
"""Bytes of a lane → (every, of, swapped, flipped, added)."""


@gluon.jit
def row_read(
    rows, EVERY: gl.constexpr, OF: gl.constexpr, SWAPPED: gl.constexpr, FLIPPED: gl.constexpr, ADDED: gl.constexpr
):
    row = rows // EVERY % OF
    if SWAPPED:
        low, high = row & 1, (row >> SWAPPED) & 1
        row += (high - low) + ((low - high) << SWAPPED)
    return ((row ^ FLIPPED) + ADDED) % 128


@gluon.jit
def loads_again(
    x, y, WIDTH: gl.constexpr, EVERY: gl.constexpr, OF: gl.constexpr, SWAPPED: gl.constexpr, FLIPPED: gl.constexpr,
    ADDED: gl.constexpr, layout: gl.constexpr,
):  # fmt: skip
    rows = gl.arange(0, 128, layout=gl.SliceLayout(1, layout))[:, None]
    columns = gl.arange(0, WIDTH, layout=gl.SliceLayout(0, layout))[None, :]
    gl.store(
        y + rows * WIDTH + columns, gl.load(x + row_read(rows, EVERY, OF, SWAPPED, FLIPPED, ADDED) * WIDTH + columns)
    )


@gluon.jit
def copies_again(
    x, y, WIDTH: gl.constexpr, EVERY: gl.constexpr, OF: gl.constexpr, SWAPPED: gl.constexpr, FLIPPED: gl.constexpr,
    ADDED: gl.constexpr, layout: gl.constexpr, shared: gl.constexpr,
):  # fmt: skip
    rows = gl.arange(0, 128, layout=gl.SliceLayout(1, layout))[:, None]
    columns = gl.arange(0, WIDTH, layout=gl.SliceLayout(0, layout))[None, :]
    memory = gl.allocate_shared_memory(gl.float16, [128, WIDTH], shared)
    async_copy.async_copy_global_to_shared(
        memory, x + row_read(rows, EVERY, OF, SWAPPED, FLIPPED, ADDED) * WIDTH + columns
    )
    async_copy.commit_group()
    async_copy.wait_group(0)
    gl.store(y + rows * WIDTH + columns, memory.load(layout))


def launches() -> Iterator[tuple[str, Callable[[], object]]]:
    """Each width and pattern as a launch, which raises AssertionError if it read other rows."""
    for size, patterns in _PATTERNS.items():
        width = size // 2
        layout = gl.BlockedLayout([1, width], [32, 1], [4, 1], [1, 0])
        shared = gl.SwizzledSharedLayout(vec=width, per_phase=1, max_phase=1, order=[1, 0])
        for pattern in patterns:
            name = f"{size} bytes, {pattern}"
            yield f"load {name}", lambda key=(width, pattern, layout): _launch(loads_again, *key)
            yield f"copy {name}", lambda key=(width, pattern, layout, shared): _launch(copies_again, *key)


def _launch(kernel: Any, width: int, pattern: tuple[int, int, int, int, int], *layouts: object) -> None:
    x = torch.arange(_ROWS * width, device="cuda", dtype=torch.int32).to(torch.float16)
    y = torch.zeros_like(x)
    kernel[(1,)](x, y, width, *pattern, *layouts, num_warps=4)
    rows = torch.arange(_ROWS, device="cuda")
    every, of, swapped, flipped, added = pattern
    rows = rows // every % of
    low, high = rows & 1, (rows >> swapped) & 1
    rows = ((rows + (high - low) + ((low - high) << swapped) ^ flipped) + added) % _ROWS
    assert torch.equal(y.view(_ROWS, width), x.view(_ROWS, width)[rows])
