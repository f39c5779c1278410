"""What a picture of a layout shows, before it is drawn: cells joined to runs, colours, labels and a legend."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from irscope.errors import UsageError, did_you_mean
from irscope.layout.conversions import Moves
from irscope.layout.described import DescribedLayout
from irscope.layout.linear import LinearLayout, Preimage
from irscope.layout.memory_map import MemoryMap
from irscope.layout.thread_map import Owner, ThreadMap
from irscope.render.figures import percent
from irscope.render.layout_plane import Plane, Run, axes_of, make_runs, plane_of, sizes_of, unit_worth_showing

ColorBy = Literal["warp", "lane", "register", "bank", "vector"]
COLOR_BY: tuple[str, ...] = get_args(ColorBy)


@dataclass(frozen=True, slots=True)
class Figure:
    """One layout, ready to be drawn."""

    title: str
    facts: tuple[str, ...]
    """Lines under the title: parameters, sizes, what repeats."""
    rows: int
    """Of the plane that is shown, in elements."""
    columns: int
    row_axis: str
    column_axis: str
    runs: tuple[Run, ...]
    color_by: str
    colors: int
    """How many values the colour stands for."""
    legend: tuple[tuple[int, str], ...]
    """(colour, what it means), for as many as fit."""
    cell_text: str
    """How a cell's text is read."""
    detail_text: str = ""
    """How its second line is read."""
    vertical: bool = False
    """Whether runs go down."""
    missing: str = ""
    """Why there is no picture."""
    mark_text: str = ""
    """What a mark on a run means; empty where none is marked."""


def make_figure(
    described: DescribedLayout, color_by: str | None = None, other: DescribedLayout | None = None, title: str = ""
) -> Figure:
    """The figure of a layout.

    Args:
        described: the layout.
        color_by: `warp`, `lane`, `register`, `bank` or `vector`; None for what tells most (warp, lane or bank).
        other: a layout of the same shape: elements that another thread holds there are marked as moved.
        title: in place of the layout's name.

    Raises UsageError where the colour does not go with the layout, or the shapes differ.
    """
    color_by = check_color(described, color_by)
    names = dict.fromkeys((described.name, described.encoding.title))
    heading = title or " · ".join([*names, f"{described.shape_text} {' '.join(described.elements[:3])}"])
    facts = [described.parameters] if described.parameters else []
    if described.threads is not None and described.layout is not None:
        facts += thread_facts(described)
        if other is None:
            return _registers(described.threads, heading, facts, color_by, None)
        moved = moved_elements(described, other)
        facts.append(f"{_share(moved.share)} of the elements have another thread in {other.name}")
        # The fewer are marked: frames around nearly everything say nothing.
        whose = "the same" if moved.share > 0.5 else "another"
        marks = _Marks(moved, moved.share <= 0.5, f"framed: {whose} thread holds it in {other.name}")
        return _registers(described.threads, heading, facts, color_by, marks if 0 < moved.share < 1 else None)
    if described.memory is not None:
        return _memory(described.memory, heading, [*facts, *memory_facts(described)], described)
    if described.layout is not None and described.encoding.space == "tensor":
        return _tensor_memory(described.layout, heading, facts)
    return Figure(heading, tuple(facts), 0, 0, "", "", (), color_by, 0, (), "", missing=described.reason or "no map")


@dataclass(frozen=True, slots=True)
class _Marks:
    """Which elements are framed, and what the frame means."""

    moves: Moves
    moved: bool
    """Whether the elements that moved are framed, or the others."""
    text: str

    def __getitem__(self, element: int) -> bool:
        return self.moves[element] is self.moved


def _share(share: float) -> str:
    if share in (0, 1):
        return "all" if share else "none"
    return percent(share)


def check_color(described: DescribedLayout, color_by: str | None) -> str:
    """The colouring that is asked for, or the one that tells most; raises UsageError where it does not fit."""
    threads = described.threads
    if color_by is None:
        return "bank" if threads is None else ("warp" if threads.warps > 1 else "lane")
    if color_by not in COLOR_BY:
        raise UsageError(f"--color-by {color_by!r} is no colouring.{did_you_mean(color_by, COLOR_BY)}")
    if (color_by == "bank") == (threads is not None) and described.layout is not None:
        fits = "bank" if threads is None else "warp, lane, register or vector"
        raise UsageError(
            f"--color-by {color_by}: {described.name} lies in {described.encoding.space}: colour it by {fits}."
        )
    return color_by


def thread_facts(described: DescribedLayout) -> list[str]:
    """Elements a thread, copies and what they waste, as lines."""
    threads = described.threads
    if threads is None:
        return []
    blocks = f" × {threads.blocks} CTAs" if threads.blocks > 1 else ""
    unit = "wave" if described.target.backend == "hip" else "warp"
    warps = counted(threads.warps, unit)
    sizes = f"{counted(threads.registers, 'element')} a thread × {threads.lanes} lanes × {warps}{blocks}"
    copies = threads.replication
    if copies.total == 1:
        return [f"{sizes}; every element once"]
    return [
        f"{sizes}; each element {copies.total} times ({copies}): {percent(copies.wasted)} of the registers hold copies"
    ]


def counted(number: int, noun: str) -> str:
    """`1 element`, `4 elements`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def memory_facts(described: DescribedLayout) -> list[str]:
    """Bytes, banks and buffers, as lines."""
    memory = described.memory
    if memory is None:
        return []
    buffers = f" a buffer, {described.buffers} buffers" if described.buffers > 1 else ""
    text = f"{memory.size_bytes} bytes{buffers}; {memory.element_bits}-bit elements; {memory.banks} banks of 4 bytes"
    return [text, *([described.note] if described.note else [])]


def moved_elements(first: DescribedLayout, second: DescribedLayout) -> Moves:
    """For each element whether no thread that holds it in the first layout does so in the second; raises UsageError."""
    a, b = first.threads, second.threads
    if a is None or b is None or first.shape != second.shape:
        raise UsageError(
            f"{first.name} ({first.shape_text}) and {second.name} ({second.shape_text}) can't be compared: "
            "choose two layouts in registers of one shape."
        )
    return Moves(a, b)


def _registers(threads: ThreadMap, title: str, facts: list[str], color_by: str, marks: _Marks | None) -> Figure:
    layout = threads.layout
    others = [vector for name in ("lane", "warp", "block") for vector in layout.vectors(name)]
    plane = unit_worth_showing(plane_of(threads.shape, layout.vectors("register"), others))
    if marks is not None:
        plane = Plane(plane.all_rows, plane.all_columns, plane.all_rows, plane.all_columns, False)
    places = threads.first_owners
    register_bits = threads.registers.bit_length() - 1
    copies = threads.replication.threads * threads.replication.registers
    vector = max((threads.contiguous(dimension) for dimension in range(len(threads.shape))), default=1)

    def joined(left: int, right: int) -> bool:
        a, b = places[left], places[right]
        if marks is not None and marks[left] != marks[right]:
            return False
        if b != a + 1 or a >> register_bits != b >> register_bits:
            return False
        return color_by != "register" and (color_by != "vector" or a // vector == b // vector)

    def make(row: int, column: int, element: int, length: int) -> Run:
        owner = threads.owner(places[element])
        block = f"C{owner.block} " if threads.blocks > 1 else ""
        warp = f"w{owner.warp} " if color_by != "warp" and threads.warps > 1 else ""
        last = owner.register + length - 1
        registers = f"r{owner.register}" if length == 1 else f"r{owner.register}–{last}"
        mark = marks is not None and marks[element]
        return Run(
            row, column, length, f"{block}{warp}t{owner.lane}", registers, color_of(owner, places[element]), mark
        )

    def color_of(owner: Owner, place: int) -> int:
        if color_by == "warp":
            return owner.warp + owner.block * threads.warps
        if color_by == "lane":
            return owner.lane
        return owner.register if color_by == "register" else (place & (threads.registers - 1)) // vector

    vertical = len(threads.shape) > 1 and threads.contiguous(len(threads.shape) - 2) > threads.contiguous()
    plane, runs = make_runs(plane, vertical, joined, make)
    # Only what the unit shows gets a colour: the repeats have registers of their own.
    counts = {"warp": threads.warps * threads.blocks, "lane": threads.lanes}
    count = counts.get(color_by) or max((run.color for run in runs), default=0) + 1
    row_axis, column_axis, fixed = axes_of(threads.shape)
    return Figure(
        title,
        (*facts, *fixed, *([plane.note] if plane.note else [])),
        plane.rows,
        plane.columns,
        row_axis,
        column_axis,
        runs,
        color_by,
        count,
        _legend(color_by, count),
        "t: lane of the warp" + (f", the first of {copies} holders" if copies > 1 else ""),
        "r: registers of the thread",
        vertical,
        mark_text=marks.text if marks is not None else "",
    )


def _memory(memory: MemoryMap, title: str, facts: list[str], described: DescribedLayout) -> Figure:
    places = memory.places
    # A bank's word is the least that is joined, 16 bytes the most: that is what one lane reads at once.
    most = max(16 * 8 // memory.element_bits, 1)
    plane = _memory_plane(memory)

    def joined(left: int, right: int) -> bool:
        return places[right] == places[left] + 1 and places[right] % most != 0

    def make(row: int, column: int, element: int, length: int) -> Run:
        place = places[element]
        if place < 0:
            return Run(row, column, length, "–", "", 0)
        offset = place % memory.offsets
        byte = memory.byte(offset)
        last = (byte + length * memory.element_bits // 8 - 1) // 4 % memory.banks
        bank = memory.bank(offset)
        return Run(row, column, length, f"{byte}", f"b{bank}" if last == bank else f"b{bank}–{last}", bank)

    vertical = plane.all_rows > 1 and places[plane.all_columns] == places[0] + 1
    plane, runs = make_runs(plane, vertical, joined, make)
    row_axis, column_axis, fixed = axes_of(memory.shape)
    return Figure(
        title,
        (*facts, *fixed, *([plane.note] if plane.note else [])),
        plane.rows,
        plane.columns,
        row_axis,
        column_axis,
        runs,
        "bank",
        memory.banks,
        _legend("bank", memory.banks),
        "byte in shared memory",
        "b: banks",
        vertical,
    )


def _memory_plane(memory: MemoryMap) -> Plane:
    """The unit that repeats with the banks: dimension bits that offset bits of whole lines of banks decide alone."""
    vectors = memory.layout.vectors("offset")
    line_bits = max(memory.banks * 4 * 8 // memory.element_bits, 1).bit_length() - 1
    beyond = () if memory.padding else vectors[line_bits:]
    others = (*vectors[: len(vectors) - len(beyond)], *memory.layout.vectors("block"))
    plane = plane_of(memory.shape, beyond, others)
    return replace(unit_worth_showing(plane), each="in the same banks of other lines")


def _tensor_memory(layout: LinearLayout, title: str, facts: list[str]) -> Figure:
    inputs = LinearLayout((("column", layout.vectors("column")), ("row", layout.vectors("row"))), layout.out_dims)
    places = Preimage(inputs)
    width = inputs.in_size("column")

    def joined(left: int, right: int) -> bool:
        return places[right] == places[left] + 1 and places[right] % width != 0

    def make(row: int, column: int, element: int, length: int) -> Run:
        first = places[element]
        lane, at = first // width, first % width
        detail = f"c{at}" if length == 1 else f"c{at}–{at + length - 1}"
        return Run(row, column, length, f"lane {lane}", detail, lane // 32)

    plane, runs = make_runs(Plane(*sizes_of(layout.shape), *sizes_of(layout.shape), True), False, joined, make)
    row_axis, column_axis, fixed = axes_of(layout.shape)
    facts = [*facts, f"{inputs.in_size('row')} lanes × {width} columns of tensor memory, columns in elements", *fixed]
    return Figure(
        title, (*facts, *([plane.note] if plane.note else [])), plane.rows, plane.columns, row_axis, column_axis, runs,
        "warp", 4, tuple((index, f"lanes {32 * index}–{32 * index + 31}") for index in range(4)),
        "lane of tensor memory", "c: columns",
    )  # fmt: skip


def _legend(color_by: str, count: int) -> tuple[tuple[int, str], ...]:
    if count <= 16:
        return tuple((index, f"{color_by} {index}") for index in range(count))
    # A scale: eight steps of it tell the rest.
    steps = sorted({round(step * (count - 1) / 7) for step in range(8)})
    return tuple((index, f"{color_by} {index}") for index in steps)
