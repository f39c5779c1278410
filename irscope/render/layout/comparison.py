"""Two layouts beside each other: the same part of the tensor at the same scale, and what differs framed in both."""

from __future__ import annotations

from collections.abc import Callable

from irscope.layout.described import DescribedLayout
from irscope.layout.maps import Moves
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
from irscope.render.text.tables import percent


def make_pair(
    first: DescribedLayout,
    second: DescribedLayout,
    color_by: str | None = None,
    compiler_ways: int | None = None,
) -> tuple[Figure, Figure]:
    """The figures of two layouts of one shape; raises UsageError if they can't be compared.

    Args:
        first: a layout in registers or in shared memory.
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
