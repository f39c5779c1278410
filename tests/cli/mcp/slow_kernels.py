"""Ten kernels, each slow for a known reason: `python tests/cli/mcp/slow_kernels.py NAME [KNOB=VALUE…] [--bench]`.

Each is launched as its knobs say, which by default make it slow. With --bench, on a GPU, its result is checked against
torch, and its time printed in microseconds.
"""

from __future__ import annotations

import sys

import torch
import triton
import triton.language as tl

ROWS, COLUMNS, DEPTH = 16384, 4096, 4096


@triton.jit
def row(x, y, stride, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * stride + columns)
    tl.store(y + tl.program_id(0) * BLOCK + columns, values)


@triton.jit
def row_out(x, y, stride, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + tl.program_id(0) * BLOCK + columns)
    tl.store(y + tl.program_id(0) * stride + columns, values)


@triton.jit
def view(x, y, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + places, tl.load(x + places))


@triton.jit
def stepped(x, y, step, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + places, tl.load(x + places * step))


@triton.jit
def counted(x, y, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + places, tl.load(x + places, mask=places < n), mask=places < n)


@triton.jit
def product(a, b, c, size, stride, TILE: tl.constexpr):
    rows, columns = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, size, TILE):
        left = tl.load(a + rows[:, None] * stride + (start + columns)[None, :])
        right = tl.load(b + (start + columns)[:, None] * TILE + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def exact(a, b, c, size, input_precision: tl.constexpr, TILE: tl.constexpr):
    rows, columns = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, size, TILE):
        left = tl.load(a + rows[:, None] * size + (start + columns)[None, :])
        right = tl.load(b + (start + columns)[:, None] * TILE + columns[None, :])
        total = tl.dot(left, right, total, input_precision=input_precision)
    tl.store(c + rows[:, None] * TILE + columns[None, :], total)


@triton.jit
def held(x, y, size, TILE: tl.constexpr):
    rows, columns = tl.arange(0, TILE)[:, None], tl.arange(0, TILE)[None, :]
    places = tl.program_id(0) * TILE * TILE + rows * TILE + columns
    first = tl.load(x + places)
    total = first
    for _ in range(size):
        total = total * first + tl.sin(total)
    tl.store(y + places, total)


@triton.jit
def crowded(x, y, size, TILE: tl.constexpr):
    rows, columns = tl.arange(0, TILE)[:, None], tl.arange(0, TILE)[None, :]
    places = rows * TILE + columns
    first = tl.program_id(0) * size * TILE * TILE
    total = tl.zeros((TILE, TILE), tl.float32)
    for turn in range(size):
        total += tl.load(x + first + turn * TILE * TILE + places)
    tl.store(y + tl.program_id(0) * TILE * TILE + places, total)


class Launched:
    """What a launch was given, and what torch makes of it."""

    def __init__(self, kernel, grid, given, result, expected, tolerance=0.0, **constants):
        self.kernel, self.grid, self.given, self.constants = kernel, grid, given, constants
        self.result, self.expected, self.tolerance = result, expected, tolerance

    def launch(self, knobs):
        chosen = {name: knobs[name] for name in ("num_warps", "num_stages") if name in knobs}
        self.kernel[(self.grid,)](*self.given, **self.constants, **chosen)

    def check(self):
        wanted = self.expected()
        torch.testing.assert_close(self.result, wanted, atol=self.tolerance, rtol=self.tolerance)


def halves(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.float16)


def floats(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.float32)


def padded(rows, columns, stride):
    """A matrix whose rows begin `stride` elements apart."""
    return halves(rows * stride).as_strided((rows, columns), (stride, 1))


def of_rows(knobs):
    x, y = padded(ROWS, COLUMNS, knobs["stride"]), halves(ROWS, COLUMNS)
    return Launched(row, ROWS, (x, y, x.stride(0)), y, lambda: x, BLOCK=COLUMNS)


def of_rows_out(knobs):
    x, y = halves(ROWS, COLUMNS), padded(ROWS, COLUMNS, knobs["stride"])
    return Launched(row_out, ROWS, (x, y, y.stride(0)), y, lambda: x, BLOCK=COLUMNS)


def of_view(knobs):
    begin = knobs["x_begin"]
    x, y = halves(ROWS * COLUMNS + begin)[begin:], halves(ROWS * COLUMNS)
    return Launched(view, ROWS, (x, y), y, lambda: x, BLOCK=COLUMNS)


def of_steps(knobs):
    x, y = halves(ROWS * COLUMNS * knobs["step"])[:: knobs["step"]], halves(ROWS * COLUMNS)
    return Launched(stepped, ROWS, (x, y, x.stride(0)), y, lambda: x, BLOCK=COLUMNS)


def of_count(knobs):
    n = knobs["n"]
    x, y = halves(n), halves(n)
    return Launched(counted, triton.cdiv(n, COLUMNS), (x, y, n), y, lambda: x, BLOCK=COLUMNS)


def of_product(knobs):
    a, b, c = padded(ROWS, DEPTH, knobs["stride"]), halves(DEPTH, 64), floats(ROWS, 64)
    given = (a, b, c, DEPTH, a.stride(0))
    return Launched(product, ROWS // 64, given, c, lambda: a.float() @ b.float(), 0.05, TILE=64)


def of_exact(knobs):
    a, b, c = floats(ROWS, DEPTH), floats(DEPTH, 64), floats(ROWS, 64)
    # TF32 keeps ten bits.
    return Launched(
        exact, ROWS // 64, (a, b, c, DEPTH), c, lambda: a @ b, 0.5, input_precision=knobs["input_precision"], TILE=64
    )


def of_held(knobs):
    x, y = floats(132 * 8, 128, 128) / 8, floats(132 * 8, 128, 128)

    def expected():
        total = x
        for _ in range(16):
            total = total * x + torch.sin(total)
        return total

    return Launched(held, 132 * 8, (x, y, 16), y, expected, 1e-3, TILE=128)


def of_crowded(knobs):
    x, y = floats(132 * 4, 8, 128, 128), floats(132 * 4, 128, 128)
    return Launched(crowded, 132 * 4, (x, y, 8), y, lambda: x.sum(1), 1e-3, TILE=128)


KERNELS = {
    "row": (of_rows, {"stride": 4099}),
    "row_out": (of_rows_out, {"stride": 4099}),
    "view": (of_view, {"x_begin": 1}),
    "stepped": (of_steps, {"step": 2}),
    "counted": (of_count, {"n": ROWS * COLUMNS - 5}),
    "product": (of_product, {"stride": DEPTH + 1}),
    "one_stage": (of_product, {"stride": DEPTH, "num_stages": 1}),
    "exact": (of_exact, {"input_precision": "ieee"}),
    "held": (of_held, {"num_warps": 4}),
    "crowded": (of_crowded, {"num_warps": 4}),
}


def main(name, *words):
    """Launch one."""
    make, slow = KERNELS[name]
    given = dict(word.split("=") for word in words if "=" in word)
    knobs = slow | {knob: int(value) if value.isdecimal() else value for knob, value in given.items()}
    made = make(knobs)
    made.launch(knobs)
    if "--bench" in words:
        made.check()
        print(1000 * triton.testing.do_bench(lambda: made.launch(knobs), return_mode="median"))


if __name__ == "__main__":
    main(*sys.argv[1:])
