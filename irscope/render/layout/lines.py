"""A layout with padding as memory has it: a line of all banks a row, and the bytes that hold nothing hatched."""

from __future__ import annotations

from collections.abc import Iterator
from math import lcm

from irscope.layout.described import DescribedLayout
from irscope.layout.memory_map import BANK_BYTES, MemoryMap
from irscope.render.layout.figure import Figure, memory_facts
from irscope.render.layout.plane import Run

_MOST_LINES = 32
_WIDEST_BITS = 128


def make_lines_figure(described: DescribedLayout) -> Figure | None:
    """The lines of shared memory of a layout with padding, of one CTA; None for any other layout."""
    memory = described.memory
    if memory is None or not memory.padding or memory.element_bits % 8:
        return None
    width = memory.banks * BANK_BYTES * 8 // memory.element_bits
    all_lines = -(-(memory.padded(memory.offsets - 1) + 1) // width)
    period = lcm(*(interval + memory.padded(interval) - interval for interval, _ in memory.padding), width) // width
    lines = min(all_lines, period if period <= _MOST_LINES else _MOST_LINES)
    runs = tuple(
        Run(
            start // width,
            start % width,
            length,
            ",".join(map(str, memory.layout.unflatten(element))) if element >= 0 else "pad",
            _banks(memory, start, length) if element >= 0 else f"{length * memory.element_bits // 8} B",
            0 if element < 0 else start * memory.element_bits // 8 // BANK_BYTES % memory.banks,
            empty=element < 0,
        )
        for start, length, element in _pieces(memory, width, lines * width)
    )
    again = "; they repeat" if lines == period else ""
    shown = f"lines 0–{lines - 1} of {all_lines}" if lines < all_lines else f"all {all_lines} lines"
    pads = " and ".join(
        f"{pad * memory.element_bits // 8} bytes after every {interval * memory.element_bits // 8}"
        for interval, pad in memory.padding
    )
    steps = sorted({round(step * (memory.banks - 1) / 7) for step in range(8)})
    return Figure(
        f"{described.title}, as it lies in memory",
        (*memory_facts(described), f"padding: {pads}; {shown} of {memory.banks * BANK_BYTES} bytes{again}"),
        rows=lines,
        columns=width,
        row_axis="line",
        column_axis="element of the line",
        runs=runs,
        color_by="bank",
        colors=memory.banks,
        legend=tuple((index, f"bank {index}") for index in steps),
        cell_text="first element",
        detail_text="b: banks, or bytes of padding (hatched)",
    )


def _pieces(memory: MemoryMap, width: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(place in memory, elements, first element or -1 for padding), in order: none crosses a line."""
    widest = max(_WIDEST_BITS // memory.element_bits, 1)
    at, offset = 0, 0
    while at < end:
        padded = memory.padded(offset) if offset < memory.offsets else end
        if at < padded:
            length = min(padded, end, (at // width + 1) * width) - at
            yield at, length, -1
            at += length
            continue
        first, length = memory.elements[offset], 1
        while (
            length < widest
            and (at + length) % width
            and offset + length < memory.offsets
            and memory.padded(offset + length) == at + length
            and memory.elements[offset + length] == first + length
        ):
            length += 1
        yield at, length, first
        at, offset = at + length, offset + length


def _banks(memory: MemoryMap, start: int, length: int) -> str:
    first = start * memory.element_bits // 8 // BANK_BYTES % memory.banks
    last = (start + length) * memory.element_bits // 8 - 1
    last = last // BANK_BYTES % memory.banks
    return f"b{first}" if first == last else f"b{first}–{last}"
