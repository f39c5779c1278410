"""The plane of elements that a picture shows: the unit that repeats, and its cells joined to runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

MAX_RUNS = 2304
"""Runs that one picture shows; a plane with more is cut to a window, which a note names."""


_MOST_ELEMENTS = 1 << 17
"""Elements that one picture shows, even if they form few runs."""


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring elements of one row (or column) in one thread, or in contiguous memory."""

    row: int
    column: int
    length: int
    """Elements, to the right or, in a vertical figure, down."""
    label: str
    detail: str
    color: int
    """Index into the colours of the figure."""
    marked: bool = False
    empty: bool = False
    """Whether it is memory that holds no element: padding."""


@dataclass(frozen=True, slots=True)
class Plane:
    """The last two dimensions, at index 0 of the others: the elements that are shown, and all elements."""

    rows: int
    columns: int
    all_rows: int
    all_columns: int
    repeats: bool
    each: str = "each time in other registers of the same threads"

    @property
    def note(self) -> str:
        """The part of the tensor that is shown, and how it repeats; or an empty string if all of it is shown."""
        if (self.rows, self.columns) == (self.all_rows, self.all_columns):
            return ""
        down, across = self.all_rows // self.rows, self.all_columns // self.columns
        if self.repeats:
            often = [
                (f"{n} times" if n > 2 else "twice", way) for n, way in ((down, "down"), (across, "across")) if n > 1
            ]
            times = " and ".join(f"{n} {way}" for n, way in often)
            return f"the {self.rows}×{self.columns} unit repeats {times}, {self.each}"
        return f"elements [0:{self.rows}, 0:{self.columns}] of {self.all_rows}×{self.all_columns}"


def plane_of(shape: Sequence[int], register_vectors: Sequence[Sequence[int]], others: Sequence[Sequence[int]]) -> Plane:
    """The unit that repeats along high bits of a dimension which one register bit alone decides."""
    sizes = list(shape[-2:]) if len(shape) > 1 else [1, *(shape or (1,))]
    units = list(sizes)
    for which in (0, 1):
        dimension = len(shape) - 2 + which
        if dimension < 0:
            continue
        while units[which] > 1:
            bit = units[which] // 2
            alone = [v for v in register_vectors if v[dimension] == bit and sum(1 for part in v if part) == 1]
            touching = [v for v in (*register_vectors, *others) if v[dimension] & bit]
            if len(alone) != 1 or len(touching) != 1:
                break
            units[which] = bit
    return Plane(units[0], units[1], sizes[0], sizes[1], True)


def unit_worth_showing(plane: Plane) -> Plane:
    """The unit, or several side by side if one is small."""
    rows, columns = plane.rows, plane.columns
    while rows * columns < 256 and rows < plane.all_rows and rows * 2 <= 8:
        rows *= 2
    while rows * columns < 256 and columns < plane.all_columns and columns * 2 <= 64:
        columns *= 2
    if plane.all_rows * plane.all_columns <= 512:
        rows, columns = plane.all_rows, plane.all_columns
    return replace(plane, rows=rows, columns=columns)


def make_runs(
    plane: Plane,
    vertical: bool,
    joined: Callable[[int, int], bool],
    make: Callable[[int, int, int, int], Run],
    most: int = MAX_RUNS,
) -> tuple[Plane, tuple[Run, ...]]:
    """The runs of a plane, cut to a window if there are too many.

    Args:
        plane: what is shown.
        vertical: whether runs go down.
        joined: whether an element (by row-major index) is in one run with the next one, to the right or below.
        make: the run at (row, column), of a first element and a length.
        most: the most runs that are shown.
    """
    rows, columns = plane.rows, plane.columns
    while rows * columns > _MOST_ELEMENTS:
        rows, columns = (rows // 2, columns) if rows >= columns else (rows, columns // 2)
    step = plane.all_columns if vertical else 1
    while True:
        runs: list[Run] = []
        outer, inner = (columns, rows) if vertical else (rows, columns)
        for line in range(outer):
            base = line if vertical else line * plane.all_columns
            start = 0
            for at in range(1, inner + 1):
                if at < inner and joined(base + (at - 1) * step, base + at * step):
                    continue
                row, column = (start, line) if vertical else (line, start)
                runs.append(make(row, column, base + start * step, at - start))
                start = at
            if len(runs) > most:
                break
        if len(runs) <= most:
            cut = (rows, columns) != (plane.rows, plane.columns)
            return replace(plane, rows=rows, columns=columns, repeats=plane.repeats and not cut), tuple(runs)
        rows, columns = (rows // 2, columns) if rows >= columns else (rows, columns // 2)


def axes_of(shape: Sequence[int]) -> tuple[str, str, list[str]]:
    """The names of the axes, and a note on the dimensions that are not shown."""
    if len(shape) < 2:
        return "", "dim 0", []
    fixed = [f"dim {index} = 0 of {size}" for index, size in enumerate(shape[:-2])]
    note = [f"shown at {', '.join(fixed)}"] if fixed else []
    return f"dim {len(shape) - 2}", f"dim {len(shape) - 1}", note


def sizes_of(shape: Sequence[int]) -> tuple[int, int]:
    """Rows and columns of the last two dimensions."""
    return (shape[-2], shape[-1]) if len(shape) > 1 else (1, shape[0] if shape else 1)
