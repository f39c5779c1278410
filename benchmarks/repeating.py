"""Kernels whose lanes read the same addresses, by loads and by asynchronous copies: which of them are counted once?

A lane reads `width` consecutive float16; row `r` of the tile, one lane's, is row `r // every % of` of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch  # noqa: TID251
from triton.experimental import gluon  # noqa: TID251
from triton.experimental.gluon import language as gl  # noqa: TID251
from triton.experimental.gluon.language.nvidia.ampere import async_copy  # noqa: TID251

_ROWS = 128
_WIDTHS = (8, 4, 2)
_PATTERNS = ((1, 128), (2, 64), (4, 32), (8, 16), (16, 8), (32, 4), (1, 1), (1, 2), (1, 4), (1, 8), (1, 16), (2, 4))


@gluon.jit
def loads_again(x, y, WIDTH: gl.constexpr, EVERY: gl.constexpr, OF: gl.constexpr, layout: gl.constexpr):
    rows = gl.arange(0, 128, layout=gl.SliceLayout(1, layout))[:, None]
    columns = gl.arange(0, WIDTH, layout=gl.SliceLayout(0, layout))[None, :]
    gl.store(y + rows * WIDTH + columns, gl.load(x + rows // EVERY % OF * WIDTH + columns))


@gluon.jit
def copies_again(
    x, y, WIDTH: gl.constexpr, EVERY: gl.constexpr, OF: gl.constexpr, layout: gl.constexpr, shared: gl.constexpr
):
    rows = gl.arange(0, 128, layout=gl.SliceLayout(1, layout))[:, None]
    columns = gl.arange(0, WIDTH, layout=gl.SliceLayout(0, layout))[None, :]
    memory = gl.allocate_shared_memory(gl.float16, [128, WIDTH], shared)
    async_copy.async_copy_global_to_shared(memory, x + rows // EVERY % OF * WIDTH + columns)
    async_copy.commit_group()
    async_copy.wait_group(0)
    gl.store(y + rows * WIDTH + columns, memory.load(layout))


def launches() -> Iterator[tuple[str, Callable[[], object]]]:
    """Each width and pattern as a launch, which raises AssertionError if it read other rows."""
    for width in _WIDTHS:
        layout = gl.BlockedLayout([1, width], [32, 1], [4, 1], [1, 0])
        shared = gl.SwizzledSharedLayout(vec=width, per_phase=1, max_phase=1, order=[1, 0])
        for every, of in _PATTERNS:
            name = f"{16 * width} bits, rows // {every} % {of}"
            yield f"load {name}", lambda key=(width, every, of, layout): _launch(loads_again, *key)
            yield f"copy {name}", lambda key=(width, every, of, layout, shared): _launch(copies_again, *key)


def _launch(kernel: object, width: int, every: int, of: int, *layouts: object) -> None:
    x = torch.arange(_ROWS * width, device="cuda", dtype=torch.int32).to(torch.float16)
    y = torch.zeros_like(x)
    kernel[(1,)](x, y, width, every, of, *layouts, num_warps=4)
    rows = torch.arange(_ROWS, device="cuda") // every % of
    assert torch.equal(y.view(_ROWS, width), x.view(_ROWS, width)[rows])
