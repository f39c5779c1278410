"""Two layouts beside each other: the same part of the tensor at the same scale, and what differs framed in both."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.layout.described import DescribedLayout
from irscope.layout.maps import MemoryMap, Moves
from irscope.memory.between import Conversion, Relocation, between
from irscope.memory.conflicts import first_request
from irscope.render.layout.figure import (
    COLOR_BY,
    Figure,
    Marks,
    Plane,
    Window,
    make_figure,
    unit_of,
    unit_worth_showing,
)
from irscope.render.text.figures import percent


def make_pair(
    first: DescribedLayout,
    second: DescribedLayout,
    color_by: str | None = None,
    compiler_ways: int | None = None,
) -> tuple[Figure, Figure]:
    """The figures of two layouts of one shape; raises UsageError if they can't be compared.

    Args:
        first: a layout in registers or in shared memory.
        second: another one of the same shape.
        color_by: the colouring of those it fits; None for the one that shows most.
        compiler_ways: the compiler's count of bank conflicts, plus one, if it is known.
    """
    facts = between_facts(first, second, compiler_ways), between_facts(second, first, compiler_ways)
    marks = _marks_of(first, second), _marks_of(second, first)
    units = unit_of(first), unit_of(second)
    common = Plane(
        max(unit.rows for unit in units),
        max(unit.columns for unit in units),
        units[0].all_rows,
        units[0].all_columns,
        True,
    )
    shown = unit_worth_showing(common)
    rows, columns = shown.rows, shown.columns
    while True:
        figures = tuple(
            make_figure(item, _fitting(item, color_by), Window(rows, columns, mark), fact)
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
        if not 0 < moves.share < 1:
            return None
        # The fewer are marked: frames around nearly everything would show nothing.
        moved = moves.share <= 0.5
        return _Moved(moves, moved, f"framed: {'another' if moved else 'the same'} thread holds it in {other.name}")
    if item.memory is not None and other.memory is not None:
        found = between(item, other)
        assert isinstance(found, Relocation)
        moved = found.moved_share <= 0.5
        where = f"at {'another' if moved else 'the same'} byte in {other.name}"
        return (
            _OtherByte(item.memory, other.memory, moved, f"framed: it lies {where}")
            if 0 < found.moved_share < 1
            else None
        )
    threads, memory = (item.threads or other.threads), (item.memory or other.memory)
    if threads is None or memory is None:
        return None
    request = first_request(threads, memory, store=item.threads is not None, target=item.target)
    return _Request(request, "framed: what the first lanes of warp 0 access together")


@dataclass(frozen=True, slots=True)
class _Moved:
    moves: Moves
    moved: bool
    """Whether the elements that moved are framed, or the others."""
    text: str

    def __getitem__(self, element: int) -> bool:
        return self.moves[element] is self.moved


@dataclass(frozen=True, slots=True)
class _OtherByte:
    ours: MemoryMap
    theirs: MemoryMap
    moved: bool
    text: str

    def __getitem__(self, element: int) -> bool:
        return (self.ours.place(element) != self.theirs.place(element)) is self.moved


@dataclass(frozen=True, slots=True)
class _Request:
    elements: frozenset[int]
    text: str

    def __getitem__(self, element: int) -> bool:
        return element in self.elements


def _fitting(item: DescribedLayout, color_by: str | None) -> str | None:
    """The colouring if it is for the memory that the layout is in; an unknown one is refused later."""
    if color_by not in COLOR_BY:
        return color_by
    return color_by if (color_by == "bank") == (item.memory is not None) else None
