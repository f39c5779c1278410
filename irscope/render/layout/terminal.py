"""Draws a figure of a layout in a terminal: coloured cells, or labels between bars without colours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest

from irscope.render.canvas import Rgb, fills, ink_of
from irscope.render.layout.figure import Figure, Run
from irscope.render.text.tables import shorten, visible

_RESET = "\x1b[0m"
# \x1b[38;2;0;0;0;48;2;86;180;233m
_COLOR = re.compile(r"\x1b\[[\d;]*m")
_MAX_LINES = 128
"""Rows of elements that are printed."""


def render_terminal(figure: Figure, *, width: int = 100, color: bool = False, scale: int = 1) -> str:
    """The figure as lines of text.

    Args:
        figure: what to show.
        width: columns of the terminal.
        color: whether to use 24-bit colours; without them every label names what its colour stands for.
        scale: the least columns of the terminal for an element.
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
    """The columns that a line takes, without colours."""
    return len(_COLOR.sub("", line))


def _cell(figure: Figure, color: bool) -> int:
    """Columns of the terminal for an element, with room for every label."""
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
    step = 1
    while step * cell < 6 and step < columns:
        step *= 2
    axis = figure.row_axis.replace("dim ", "d") if figure.row_axis else ""
    marks = "".join(str(column).ljust(step * cell) for column in range(first, first + columns, step))
    return f"{axis:>4}  {marks}".rstrip()


def _painted(text: str, fill: Rgb) -> str:
    ink = ink_of(fill)
    return f"\x1b[38;2;{ink[0]};{ink[1]};{ink[2]};48;2;{fill[0]};{fill[1]};{fill[2]}m{text}{_RESET}"
