"""Kernels with layouts that do not fit each other, and Gluon kernels whose own layouts are narrow or conflict."""

# pyright: reportAssignmentType=false, reportArgumentType=false
# Gluon types what is a constexpr in a kernel as what it holds.

import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@triton.jit
def turned_tile(x, y, TURN: tl.constexpr, TILE: tl.constexpr):
    """A tile that is transposed, or not, before it is written."""
    rows, columns = tl.arange(0, TILE)[:, None], tl.arange(0, TILE)[None, :]
    values = tl.load(x + rows * TILE + columns)
    tl.store(y + rows * TILE + columns, tl.trans(values) if TURN else values)  # here: IRS401


@triton.jit
def summed_turned(x, y, steps, TURN: tl.constexpr, TILE: tl.constexpr):
    """A sum of tiles that are transposed one by one."""
    rows, columns = tl.arange(0, TILE)[:, None], tl.arange(0, TILE)[None, :]
    total = tl.load(y + rows * TILE + columns)  # here: IRS401
    for step in range(steps):
        values = tl.load(x + step * TILE * TILE + rows * TILE + columns)
        total += tl.trans(values) if TURN else values  # here: IRS401
        tl.store(y + step * TILE * TILE + rows * TILE + columns, total)  # here: IRS401


@triton.jit
def heads_apart(x, y, APART: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A matrix goes to memory with its columns as rows, in f32."""
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    values = tl.load(x + rows * COLUMNS + columns)
    at = columns * ROWS + rows if APART else rows * COLUMNS + columns
    tl.store(y + at, values * 2.0)  # here: IRS401


@triton.jit
def added_turned(x, z, y, TURN: tl.constexpr, TILE: tl.constexpr):
    """A matrix and the transpose of another."""
    rows, columns = tl.arange(0, TILE)[:, None], tl.arange(0, TILE)[None, :]
    one = tl.load(x + rows * TILE + columns)  # here: IRS401
    two = tl.load(z + (columns * TILE + rows if TURN else rows * TILE + columns))  # here: IRS401
    tl.store(y + rows * TILE + columns, one + two)  # here: IRS401


@gluon.jit
def one_at_a_time(x, y, WIDTH: gl.constexpr, BLOCK: gl.constexpr):
    """Each thread takes so many elements in a row."""
    layout: gl.constexpr = gl.BlockedLayout([WIDTH], [32], [4], [0])
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    values = gl.load(x + at)  # here: IRS101
    gl.store(y + at, values)  # here: IRS102


@gluon.jit
def down_the_columns(x, y, DOWN: gl.constexpr, TILE: gl.constexpr):
    """The lanes of a warp go down the columns, or along the rows."""
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [32, 1] if DOWN else [1, 32], [1, 4], [0, 1] if DOWN else [1, 0])
    rows = gl.arange(0, TILE, layout=gl.SliceLayout(1, layout))[:, None]
    columns = gl.arange(0, TILE, layout=gl.SliceLayout(0, layout))[None, :]
    values = gl.load(x + rows * TILE + columns)  # here: IRS103
    gl.store(y + rows * TILE + columns, values)  # here: IRS103


@gluon.jit
def written_down(x, y, PHASES: gl.constexpr, TILE: gl.constexpr):
    """The columns of shared memory are written, and its rows read."""
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(vec=1, per_phase=1, max_phase=PHASES, order=[1, 0])
    rows = gl.arange(0, TILE, layout=gl.SliceLayout(1, layout))[:, None]
    columns = gl.arange(0, TILE, layout=gl.SliceLayout(0, layout))[None, :]
    held = gl.allocate_shared_memory(gl.float32, [TILE, TILE], shared)
    values = gl.load(x + rows * TILE + columns)
    held.permute((1, 0)).store(values)  # here: IRS402
    gl.store(y + rows * TILE + columns, held.load(layout))


@gluon.jit
def read_of_halves(x, y, PHASES: gl.constexpr, TILE: gl.constexpr):
    """Columns of 16-bit values."""
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    shared: gl.constexpr = gl.SwizzledSharedLayout(vec=2, per_phase=1, max_phase=PHASES, order=[1, 0])
    rows = gl.arange(0, TILE, layout=gl.SliceLayout(1, layout))[:, None]
    columns = gl.arange(0, TILE, layout=gl.SliceLayout(0, layout))[None, :]
    held = gl.allocate_shared_memory(gl.float16, [TILE, TILE], shared, gl.load(x + rows * TILE + columns))
    turned = held.permute((1, 0)).load(layout)  # here: IRS402
    gl.store(y + rows * TILE + columns, turned)


@gluon.jit
def converted(x, y, TURN: gl.constexpr, TILE: gl.constexpr):
    """The kernel itself converts from one layout to the other."""
    along: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    down: gl.constexpr = gl.BlockedLayout([4, 1], [8, 4], [1, 4], [0, 1]) if TURN else along
    rows = gl.arange(0, TILE, layout=gl.SliceLayout(1, along))[:, None]
    columns = gl.arange(0, TILE, layout=gl.SliceLayout(0, along))[None, :]
    values = gl.convert_layout(gl.load(x + rows * TILE + columns), down)  # here: IRS401
    out_rows = gl.arange(0, TILE, layout=gl.SliceLayout(1, down))[:, None]
    out_columns = gl.arange(0, TILE, layout=gl.SliceLayout(0, down))[None, :]
    at = out_columns * TILE + out_rows if TURN else out_rows * TILE + out_columns
    gl.store(y + at, values)
