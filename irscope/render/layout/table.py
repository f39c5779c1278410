"""Tables of layouts and of their costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from irscope.ir.mlir.short_types import short_type
from irscope.layout.described import DescribedLayout
from irscope.memory.costs import Cost
from irscope.render.text.figures import percent, short_name
from irscope.render.text.tables import table, table_rows

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
        " ".join(_short(name) for name in item.row.elements),
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


def _short(element: str) -> str:
    return short_type(element)


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
        return "no operation of this kernel's TTGIR moves anything through a layout that has a map\n"
    head = ["above least", "loops", "Python", "TTGIR", "operation", "layouts", "cost"]
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
        "above least: sectors or lines (global) or wavefronts (shared, conversions) of one warp, each time it runs.",
        "ideal: if each instruction's distinct bytes were packed; least: if those of a warp were. Sums of the launch.",
        "TTGIR: the lines of irscope show ID --stage ttgir --loc.",
        *(["Counts are of the PTX: ptxas may make equal accesses once, or leave some out."] if _of_ptx(rows) else []),
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
