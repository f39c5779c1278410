"""Figures of layouts, whatever draws them: the plane of elements, its cells, colours, labels; also two together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import Literal, get_args

from irscope.errors import UsageError, did_you_mean
from irscope.layout.described import DescribedLayout
from irscope.layout.maps import BANK_BYTES, MemoryMap, Moves, Preimage, ThreadMap
from irscope.memory.between import Conversion, Relocation, between
from irscope.memory.conflicts import first_request
from irscope.model.layout import LinearLayout
from irscope.render.text.tables import counted, percent

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
class _Plane:
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


def _plane_of(
    shape: Sequence[int], register_vectors: Sequence[Sequence[int]], others: Sequence[Sequence[int]]
) -> _Plane:
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
    return _Plane(units[0], units[1], sizes[0], sizes[1], True)


def _unit_worth_showing(plane: _Plane) -> _Plane:
    """The unit, or several side by side if one is small."""
    rows, columns = plane.rows, plane.columns
    while rows * columns < 256 and rows < plane.all_rows and rows * 2 <= 8:
        rows *= 2
    while rows * columns < 256 and columns < plane.all_columns and columns * 2 <= 64:
        columns *= 2
    if plane.all_rows * plane.all_columns <= 512:
        rows, columns = plane.all_rows, plane.all_columns
    return replace(plane, rows=rows, columns=columns)


def _make_runs(
    plane: _Plane,
    vertical: bool,
    joined: Callable[[int, int], bool],
    make: Callable[[int, int, int, int], Run],
    most: int = MAX_RUNS,
) -> tuple[_Plane, tuple[Run, ...]]:
    """The runs of a plane, cut to a window if there are too many.

    `joined`: whether an element (by row-major index) is in one run with the next one, to the right or below.
    `make`: the run at (row, column), of a first element and a length.
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


def _axes_of(shape: Sequence[int]) -> tuple[str, str, list[str]]:
    """The names of the axes, and a note on the dimensions that are not shown."""
    if len(shape) < 2:
        return "", "dim 0", []
    fixed = [f"dim {index} = 0 of {size}" for index, size in enumerate(shape[:-2])]
    note = [f"shown at {', '.join(fixed)}"] if fixed else []
    return f"dim {len(shape) - 2}", f"dim {len(shape) - 1}", note


def sizes_of(shape: Sequence[int]) -> tuple[int, int]:
    return (shape[-2], shape[-1]) if len(shape) > 1 else (1, shape[0] if shape else 1)


_MOST_LINES = 32
_WIDEST_ACCESS_BITS = 128


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
    widest = max(_WIDEST_ACCESS_BITS // memory.element_bits, 1)
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
    return _range("b", first, last // BANK_BYTES % memory.banks)


_ColorBy = Literal["warp", "lane", "register", "bank", "vector"]
COLOR_BY: tuple[str, ...] = get_args(_ColorBy)
_WIDEST_BITS = 128
"""What one lane reads from shared memory at once."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One layout, ready to be drawn."""

    title: str
    facts: tuple[str, ...]
    """Lines under the title: parameters, sizes, copies."""
    rows: int = 0
    columns: int = 0
    row_axis: str = ""
    column_axis: str = ""
    runs: tuple[Run, ...] = ()
    color_by: str = ""
    colors: int = 0
    legend: tuple[tuple[int, str], ...] = ()
    """(colour, meaning), for as many as fit."""
    cell_text: str = ""
    """What the text of a cell means."""
    detail_text: str = ""
    """What its second line means."""
    vertical: bool = False
    missing: str = ""
    """Why there is no picture; or an empty string."""
    mark_text: str = ""
    """What a mark on a run means; or an empty string if none is marked."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Which elements are framed, and what the frame means."""

    holds: Callable[[int], bool]
    text: str


@dataclass(frozen=True, slots=True)
class _Window:
    """The part of the plane that two figures show alike, and what they frame in it."""

    rows: int
    columns: int
    marks: Marks | None = None
    most_runs: int = MAX_RUNS // 3
    """Half of a page has room for fewer cells."""


def make_figure(
    described: DescribedLayout, color_by: str | None = None, window: _Window | None = None, facts: Sequence[str] = ()
) -> Figure:
    """The figure of a layout; raises UsageError if the colouring does not fit it.

    `color_by`: `warp`, `lane`, `register`, `bank` or `vector`; None for the one that shows most.
    `window`: what is shown and framed; None for the unit that repeats.
    """
    color_by = _checked_color(described, color_by)
    lines = [*([described.parameters] if described.parameters else []), *thread_facts(described)]
    lines += [*memory_facts(described), *facts]
    if described.threads is not None:
        return _of_registers(described, described.threads, lines, color_by, window)
    if described.memory is not None:
        return _of_shared_memory(described, described.memory, lines, window)
    if described.layout is not None and described.encoding.space == "tensor":
        return _of_tensor_memory(described.layout, described.title, lines)
    return Figure(described.title, tuple(lines), color_by=color_by, missing=described.row.reason or "no map")


def _unit_of(described: DescribedLayout) -> _Plane:
    """The plane of a layout in registers or shared memory, and the unit of it that repeats; UsageError for others."""
    if (threads := described.threads) is not None:
        layout = threads.layout
        others = [vector for name in ("lane", "warp", "block") for vector in layout.vectors(name)]
        return _plane_of(threads.shape, layout.vectors("register"), others)
    if (memory := described.memory) is None:
        raise UsageError(f"{described.name} has no map of registers or of shared memory.")
    vectors = memory.layout.vectors("offset")
    # Dimension bits that only offset bits of whole lines of banks decide.
    line_bits = max(memory.banks * BANK_BYTES * 8 // memory.element_bits, 1).bit_length() - 1
    beyond = () if memory.padding else vectors[line_bits:]
    inner = (*vectors[: len(vectors) - len(beyond)], *memory.layout.vectors("block"))
    return replace(_plane_of(memory.shape, beyond, inner), each="in the same banks of other lines")


def _checked_color(described: DescribedLayout, color_by: str | None) -> str:
    threads = described.threads
    if color_by is None:
        return "bank" if threads is None else ("warp" if threads.warps > 1 else "lane")
    if color_by not in COLOR_BY:
        raise UsageError(f"--color-by {color_by!r} is not a colouring.{did_you_mean(color_by, COLOR_BY)}")
    if (color_by == "bank") == (threads is not None) and described.layout is not None:
        fits = "bank" if threads is None else "warp, lane, register or vector"
        raise UsageError(
            f"--color-by {color_by}: {described.name} lies in {described.encoding.space}: colour it by {fits}."
        )
    return color_by


def thread_facts(described: DescribedLayout) -> list[str]:
    """Elements per thread, copies and what they waste, as lines."""
    threads = described.threads
    if threads is None:
        return []
    blocks = f" × {threads.blocks} CTAs" if threads.blocks > 1 else ""
    warps = counted(threads.warps, described.target.warp)
    sizes = f"{counted(threads.registers, 'element')} per thread × {threads.lanes} lanes × {warps}{blocks}"
    copies = threads.replication
    once = "every element once"
    if copies.total > 1:
        once = f"each element {copies.total} times ({copies}): {percent(copies.wasted)} of the registers hold copies"
    other = (
        f"; {described.target} has {described.target.warp_size}" if threads.lanes != described.target.warp_size else ""
    )
    note = described.row.map.note if described.row.map is not None else ""
    lanes = f"for {threads.lanes} threads per warp{other}"
    return [f"{sizes}; {once}", *([lanes] if other else []), *([note] if note else [])]


def memory_facts(described: DescribedLayout) -> list[str]:
    """Bytes, banks and buffers, as lines."""
    memory, answer = described.memory, described.row.map
    if memory is None or answer is None:
        return []
    buffers = f" per buffer, {described.row.buffers} buffers" if described.row.buffers > 1 else ""
    padding = f", {memory.padding_bytes} of them padding" if memory.padding else ""
    sizes = f"{memory.size_bytes} bytes{padding}{buffers}"
    text = f"{sizes}; {memory.element_bits}-bit elements; {memory.banks} banks of 4 bytes"
    return [text, *([answer.note] if answer.note else [])]


def _plane(described_unit: _Plane, window: _Window | None) -> _Plane:
    if window is None:
        return _unit_worth_showing(described_unit)
    whole = described_unit.rows <= window.rows and described_unit.columns <= window.columns
    return replace(described_unit, rows=window.rows, columns=window.columns, repeats=whole)


def _of_registers(
    described: DescribedLayout, threads: ThreadMap, facts: Sequence[str], color_by: str, window: _Window | None
) -> Figure:
    plane = _plane(_unit_of(described), window)
    marks = window.marks if window is not None else None
    places = threads.first_owners
    register_bits = threads.registers.bit_length() - 1
    copies = threads.replication.threads * threads.replication.registers
    vector = max((threads.contiguous(dimension) for dimension in range(len(threads.shape))), default=1)

    def joined(left: int, right: int) -> bool:
        a, b = places[left], places[right]
        if marks is not None and marks.holds(left) != marks.holds(right):
            return False
        if a < 0 or b < 0:
            return a == b
        if b != a + 1 or a >> register_bits != b >> register_bits:
            return False
        return color_by != "register" and (color_by != "vector" or a // vector == b // vector)

    def make(row: int, column: int, element: int, length: int) -> Run:
        if (place := places[element]) < 0:
            return Run(row, column, length, "–", "", 0)
        owner = threads.owner(place)
        block = f"C{owner.block} " if threads.blocks > 1 else ""
        warp = f"w{owner.warp} " if color_by != "warp" and threads.warps > 1 else ""
        colors = {
            "warp": owner.warp + owner.block * threads.warps,
            "lane": owner.lane,
            "register": owner.register,
            "vector": owner.register // vector,
        }
        label, detail = f"{block}{warp}t{owner.lane}", _range("r", owner.register, owner.register + length - 1)
        return Run(row, column, length, label, detail, colors[color_by], marks is not None and marks.holds(element))

    figure = Figure(
        described.title,
        tuple(facts),
        color_by=color_by,
        # Of registers and vectors only those of the unit that is shown have a colour.
        colors={"warp": threads.warps * threads.blocks, "lane": threads.lanes}.get(color_by, 0),
        cell_text="t: lane of the warp" + (f", the first of {copies} holders" if copies > 1 else ""),
        detail_text="r: registers of the thread",
        vertical=len(threads.shape) > 1 and threads.contiguous(len(threads.shape) - 2) > threads.contiguous(),
        mark_text=marks.text if marks is not None else "",
    )
    return _figure(figure, threads.shape, plane, joined, make, window)


def _of_shared_memory(
    described: DescribedLayout, memory: MemoryMap, facts: Sequence[str], window: _Window | None
) -> Figure:
    places = memory.places
    widest = max(_WIDEST_BITS // memory.element_bits, 1)
    plane = _plane(_unit_of(described), window)
    marks = window.marks if window is not None else None

    def joined(left: int, right: int) -> bool:
        if marks is not None and marks.holds(left) != marks.holds(right):
            return False
        a, b = places[left], places[right]
        if a < 0 or b < 0:
            return a == b
        # Padding parts what is beside each other without it.
        near = memory.padded(b % memory.offsets) == memory.padded(a % memory.offsets) + 1
        return b == a + 1 and b % widest != 0 and near

    def make(row: int, column: int, element: int, length: int) -> Run:
        place = places[element]
        if place < 0:
            return Run(row, column, length, "–", "", 0)
        byte, bank = memory.byte(place % memory.offsets), memory.bank(place % memory.offsets)
        last = (byte + length * memory.element_bits // 8 - 1) // BANK_BYTES % memory.banks
        return Run(
            row, column, length, f"{byte}", _range("b", bank, last), bank, marks is not None and marks.holds(element)
        )

    figure = Figure(
        described.title,
        tuple(facts),
        color_by="bank",
        colors=memory.banks,
        cell_text="byte in shared memory",
        detail_text="b: banks",
        vertical=plane.all_rows > 1 and places[plane.all_columns] == places[0] + 1,
        mark_text=marks.text if marks is not None else "",
    )
    return _figure(figure, memory.shape, plane, joined, make, window)


def _of_tensor_memory(layout: LinearLayout, title: str, facts: Sequence[str]) -> Figure:
    inputs = LinearLayout((("column", layout.vectors("column")), ("row", layout.vectors("row"))), layout.out_dims)
    places = Preimage(inputs)
    width = inputs.in_size("column")

    def joined(left: int, right: int) -> bool:
        return places[right] == places[left] + 1 and places[right] % width != 0

    def make(row: int, column: int, element: int, length: int) -> Run:
        lane, first = divmod(places[element], width)
        return Run(row, column, length, f"lane {lane}", _range("c", first, first + length - 1), lane // 32)

    figure = Figure(
        title,
        (*facts, f"{inputs.in_size('row')} lanes × {width} columns of tensor memory, columns in elements"),
        color_by="warp",
        colors=4,
        legend=tuple((index, f"lanes {32 * index}–{32 * index + 31}") for index in range(4)),
        cell_text="lane of tensor memory",
        detail_text="c: columns",
    )
    return _figure(figure, layout.shape, _Plane(*sizes_of(layout.shape), *sizes_of(layout.shape), True), joined, make)


def _figure(
    figure: Figure,
    shape: Sequence[int],
    plane: _Plane,
    joined: Callable[[int, int], bool],
    make: Callable[[int, int, int, int], Run],
    window: _Window | None = None,
) -> Figure:
    most = window.most_runs if window is not None else MAX_RUNS
    plane, runs = _make_runs(plane, figure.vertical, joined, make, most)
    row_axis, column_axis, fixed = _axes_of(shape)
    colors = figure.colors or max((run.color for run in runs), default=0) + 1
    # Of a scale of colours, eight steps are named.
    shown = range(colors) if colors <= 16 else sorted({round(step * (colors - 1) / 7) for step in range(8)})
    return replace(
        figure,
        facts=(*figure.facts, *fixed, *([plane.note] if plane.note else [])),
        rows=plane.rows,
        columns=plane.columns,
        row_axis=row_axis,
        column_axis=column_axis,
        runs=runs,
        colors=colors,
        legend=figure.legend or tuple((index, f"{figure.color_by} {index}") for index in shown),
    )


def _range(sign: str, first: int, last: int) -> str:
    return f"{sign}{first}" if first == last else f"{sign}{first}–{last}"


def make_pair(
    first: DescribedLayout, second: DescribedLayout, color_by: str | None = None, compiler_ways: int | None = None
) -> tuple[Figure, Figure]:
    """The figures of two layouts of one shape, coloured as far as that fits; raises UsageError."""
    facts = between_facts(first, second, compiler_ways), between_facts(second, first, compiler_ways)
    marks = _marks_of(first, second), _marks_of(second, first)
    units = _unit_of(first), _unit_of(second)
    rows, columns = max(unit.rows for unit in units), max(unit.columns for unit in units)
    shown = _unit_worth_showing(replace(units[0], rows=rows, columns=columns, repeats=True))
    rows, columns = shown.rows, shown.columns
    while True:
        figures = tuple(
            make_figure(item, _fitting(item, color_by), _Window(rows, columns, mark), fact)
            for item, mark, fact in zip((first, second), marks, facts, strict=True)
        )
        if all((figure.rows, figure.columns) == (rows, columns) for figure in figures):
            return figures[0], figures[1]
        # One was cut because it has too many cells: the other shows the same part.
        rows, columns = min(figure.rows for figure in figures), min(figure.columns for figure in figures)


def between_facts(first: DescribedLayout, second: DescribedLayout, compiler_ways: int | None = None) -> list[str]:
    """What a conversion to the other layout moves, or what an access to it costs, as lines."""
    found = between(first, second, compiler_ways)
    if not isinstance(found, Conversion):
        return [f"with {second.name}: {found}"]
    assert first.threads is not None
    assert second.threads is not None
    share = Moves(first.threads, second.threads).share
    elements = {0.0: "none", 1.0: "all"}.get(share) or percent(share)
    return [f"to {second.name}: {found}", f"{elements} of the elements have another thread in {second.name}"]


def _marks_of(item: DescribedLayout, other: DescribedLayout) -> Marks | None:
    """What is framed in the picture of a layout that stands beside another; None if that would be all or nothing."""
    if item.threads is not None and other.threads is not None:
        moves = Moves(item.threads, other.threads)
        return _fewer(moves.share, moves.__getitem__, "{} thread holds it", other)
    if item.memory is not None and other.memory is not None:
        ours, theirs = item.memory, other.memory
        relocation = between(item, other)
        assert isinstance(relocation, Relocation)
        return _fewer(
            relocation.moved_share,
            lambda element: ours.place(element) != theirs.place(element),
            "it lies at {} byte",
            other,
        )
    threads, memory = (item.threads or other.threads), (item.memory or other.memory)
    if threads is None or memory is None:
        return None
    request = first_request(threads, memory, store=item.threads is not None, target=item.target)
    return Marks(request.__contains__, "framed: what the first lanes of warp 0 access together")


def _fewer(share: float, moves: Callable[[int], bool], text: str, other: DescribedLayout) -> Marks | None:
    """The elements that moved, or the others, whichever are fewer: frames around nearly everything show nothing."""
    if not 0 < share < 1:
        return None
    moved = share <= 0.5
    where = text.format("another" if moved else "the same")
    return Marks(lambda element: moves(element) is moved, f"framed: {where} in {other.name}")


def _fitting(item: DescribedLayout, color_by: str | None) -> str | None:
    """The colouring if it is for the memory that the layout is in; an unknown one is refused later."""
    if color_by not in COLOR_BY:
        return color_by
    return color_by if (color_by == "bank") == (item.memory is not None) else None
