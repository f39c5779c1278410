"""Layouts in a terminal: figures as coloured cells or labels, and tables of layouts and of their costs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

from irscope.ir.mlir.types import short_type
from irscope.layout.described import DescribedLayout
from irscope.memory.costs import Cost
from irscope.render.canvas import Rgb, fills, ink_of
from irscope.render.layout.figure import Figure, Run
from irscope.render.layout.svg import step_of
from irscope.render.text.tables import percent, short_name, shorten, table, table_rows, visible

_RESET = "\x1b[0m"
# \x1b[38;2;0;0;0;48;2;86;180;233m
_COLOR = re.compile(r"\x1b\[[\d;]*m")
_MAX_LINES = 128


def render_terminal(figure: Figure, *, width: int = 100, color: bool = False, scale: int = 1) -> str:
    """The figure as lines of text; without 24-bit colours every label names what its colour stands for.

    `scale`: the least columns of the terminal for an element.
    """
    lines = [visible(figure.title), *(f"  {visible(fact)}" for fact in figure.facts)]
    if figure.missing:
        return "\n".join([*lines, f"  no picture: {visible(figure.missing)}"]) + "\n"
    palette = fills(max(figure.colors, 1))
    if color:
        legend = [f"{_painted(f' {text} ', palette[index % len(palette)])}" for index, text in figure.legend]
        lines.append("  " + " ".join(legend))
    notes = [text for text in (figure.cell_text, figure.detail_text) if text]
    if figure.mark_text:
        notes.append(figure.mark_text.replace("framed", "*"))
    lines += [f"  {'; '.join(notes)}", ""]
    names = {run: _name(figure, run, color) for run in figure.runs}
    cell = max(_cell(figure, color), scale)
    shortest = min((1 if figure.vertical else run.length for run in figure.runs), default=1)
    room = max(width - 6, cell * shortest)
    columns = figure.columns
    while columns * cell > room and columns > shortest and columns % 2 == 0:
        columns //= 2
    for first in range(0, figure.columns, columns):
        lines += _panel(figure, names, palette, first, columns, cell, color)
    return "\n".join(lines) + "\n"


def render_beside(figures: Sequence[Figure], *, width: int = 100, color: bool = False) -> str:
    """Two figures of one size: beside each other if their lines fit, or else below one another, at the same scale."""
    scale = max((_cell(figure, color) for figure in figures), default=1)
    half = [render_terminal(figure, width=width // 2 - 1, color=color, scale=scale).splitlines() for figure in figures]
    if any(_length(line) > width // 2 - 1 for lines in half for line in lines):
        return "\n".join(render_terminal(figure, width=width, color=color, scale=scale) for figure in figures)
    # The grids begin in one line.
    heads = [lines.index("") for lines in half]
    half = [lines[:at] + [""] * (max(heads) - at) + lines[at:] for lines, at in zip(half, heads, strict=True)]
    rows = zip_longest(*half, fillvalue="")
    return "".join(f"{left}{' ' * (width // 2 - _length(left))}{right}".rstrip() + "\n" for left, right in rows)


def _length(line: str) -> int:
    return len(_COLOR.sub("", line))


def _cell(figure: Figure, color: bool) -> int:
    longest = max((len(_name(figure, run, color)) for run in figure.runs), default=1)
    shortest = min((1 if figure.vertical else run.length for run in figure.runs), default=1)
    return max(-(-(longest + 1) // shortest), 1)


def _name(figure: Figure, run: Run, color: bool) -> str:
    # Without colours the label names what the colour stands for.
    own = (
        f"{figure.color_by[0]}{run.color} "
        if not color and figure.color_by in ("warp", "vector") and "w" not in run.label
        else ""
    )
    detail = f" {run.detail}" if run.detail else ""
    return f"{own}{run.label}{detail}{'*' if run.marked else ''}"


def _panel(
    figure: Figure, names: dict[Run, str], palette: list[Rgb], first: int, columns: int, cell: int, color: bool
) -> list[str]:
    grid: dict[int, list[tuple[int, Run, bool]]] = {}
    for run in figure.runs:
        if first <= run.column < first + columns:
            for row in range(run.row, run.row + (run.length if figure.vertical else 1)):
                grid.setdefault(row, []).append((run.column, run, row == run.row))
    lines = [_ruler(figure, first, columns, cell)]
    for row in sorted(grid)[:_MAX_LINES]:
        parts: list[str] = []
        for _, run, begins in sorted(grid[row], key=lambda item: item[0]):
            room = cell * (1 if figure.vertical else run.length)
            text = shorten(names[run], room - 1) if begins else ('"' if not color else "")
            padded = text.center(room - 1) if room > 2 else text[:room]
            parts.append(
                _painted(f"{padded} "[:room], palette[run.color % len(palette)]) if color else f"{padded}|"[:room]
            )
        lines.append(f"{row:>4} {'' if color else '|'}{''.join(parts)}")
    if len(grid) > _MAX_LINES:
        lines.append(f"     … {len(grid) - _MAX_LINES} more rows; --format svg draws them all")
    return [*lines, ""]


def _ruler(figure: Figure, first: int, columns: int, cell: int) -> str:
    step = step_of(columns, cell, 6)
    axis = figure.row_axis.replace("dim ", "d") if figure.row_axis else ""
    marks = "".join(str(column).ljust(step * cell) for column in range(first, first + columns, step))
    return f"{axis:>4}  {marks}".rstrip()


def _painted(text: str, fill: Rgb) -> str:
    ink = ink_of(fill)
    return f"\x1b[38;2;{ink[0]};{ink[1]};{ink[2]};48;2;{fill[0]};{fill[1]};{fill[2]}m{text}{_RESET}"


_COLUMNS = ("#", "layout", "kind", "shape", "types", "per thread", "copies", "wasted", "operations", "lines")


def layout_table(
    layouts: Sequence[DescribedLayout], *, width: int | None = None, color: bool = False, callers: bool = False
) -> str:
    """One row per layout: name, kind, shape, element types, elements per thread, copies, operations, Python lines.

    A line without a file is of the file that occurs most. `callers` adds to each line those that called it.
    """
    files = Counter(place.rpartition(":")[0] for item in layouts for place in item.python_lines)
    usual = files.most_common(1)[0][0] if files else ""
    rows = [[number, *_row(item), _lines(item, usual, callers)] for number, item in enumerate(layouts, 1)]
    text = table(_COLUMNS, rows, width=width, color=color)
    reasons = [f"{item.name} {item.shape_text}: {item.row.reason}" for item in layouts if item.layout is None]
    return text + "".join(f"no map: {reason}\n" for reason in reasons)


def _row(item: DescribedLayout) -> list[Any]:
    threads, memory = item.threads, item.memory
    copies = wasted = ""
    held = "–"
    if threads is not None:
        held = str(threads.registers)
        replication = threads.replication
        copies = "–" if replication.total == 1 else str(replication)
        wasted = "–" if replication.total == 1 else percent(replication.wasted)
    elif memory is not None:
        padding = f", {memory.padding_bytes} B padding" if memory.padding else ""
        held = f"{memory.size_bytes} B shared{padding}"
    elif item.encoding.space == "tensor":
        held = "tensor memory"
    return [
        item.name,
        item.encoding.title if item.encoding.title != item.name else "",
        item.shape_text,
        " ".join(map(short_type, item.row.elements)),
        held,
        copies,
        wasted,
        " ".join(_counted(use.name, len(use.lines)) for use in item.row.operations),
    ]


def _lines(item: DescribedLayout, usual: str, callers: bool) -> str:
    chains = item.chains if callers and item.chains else [(place,) for place in item.python_lines]
    places = [[_place(frame, usual) for frame in chain] for chain in chains]
    places.sort(key=lambda chain: [(len(frame), frame) for frame in chain])
    return (", " if callers else " ").join(" < ".join(chain) for chain in places)


def _place(frame: str, usual: str) -> str:
    """`92`, or `helpers.py:12` where the file is not the usual one."""
    file, _, line = frame.rpartition(":")
    return line if file == usual else f"{short_name(file)}:{line}"


def _counted(name: str, count: int) -> str:
    dialect, _, own = name.partition(".")
    short = own if dialect in ("tt", "ttg", "arith") else name
    return f"{short}×{count}" if count > 1 else short


def cost_table(costs: Iterable[Cost], *, width: int | None = None, color: bool = False, callers: bool = False) -> str:
    """One line per cost, the worst first, and under it where the assembly differs, or why a conversion is there.

    `callers` adds the calls that lead to its line of Python.
    """
    lines: list[str] = []
    rows = list(costs)
    if not rows:
        return "no operation of this kernel's TTGIR moves data through a layout that has a map\n"
    head = ["above minimum", "loops", "Python", "TTGIR", "operation", "layouts", "cost"]
    cells = [
        [
            cost.excess or "–",
            cost.loops or "–",
            cost.place.rpartition("/")[2],
            cost.line,
            cost.operation,
            " → ".join(cost.layouts),
            cost.summary,
        ]
        for cost in rows
    ]
    header, *texts = table_rows(head, cells, width=width, color=color)
    lines.append(header.rstrip("\n"))
    for text, cost in zip(texts, rows, strict=True):
        lines.append(text.rstrip("\n"))
        if cost.hint:
            lines.append(f"{'':13}{cost.hint}")
        if callers and len(cost.chain) > 1:
            lines.append(f"{'':13}{' < '.join(_place(frame, '') for frame in cost.chain)}")
    lines += [
        "",
        "above minimum: sectors or lines (global) or wavefronts (shared, conversions) of one warp, per execution.",
        "ideal: each instruction's distinct bytes packed; minimum: those of a warp packed. Sums of the launch.",
        "TTGIR: the lines of irscope show ID --stage ttgir --loc.",
        *(["Counts are of the PTX: ptxas may merge equal accesses, or remove some."] if _of_ptx(rows) else []),
        *_assumptions(rows),
    ]
    if not all(cost.by_operation for cost in rows):
        lines.append("Instructions are those of an operation's line of Python: operations on one line have the same.")
    return "\n".join(lines) + "\n"


def _of_ptx(costs: Iterable[Cost]) -> bool:
    return any(cost.access is not None and cost.access.unit_bytes < cost.access.line_bytes for cost in costs)


def _assumptions(costs: Iterable[Cost]) -> list[str]:
    """What the figures of global memory assume, with the lines of the TTGIR that do."""
    lines: dict[str, list[int]] = {}
    for cost in costs:
        for text in cost.access.assumed if cost.access is not None else ():
            lines.setdefault(text, []).append(cost.line)
    return [f"assumed, line {', '.join(map(str, sorted(where)))}: {text}." for text, where in lines.items()]
