"""The memory of a report's capture: its accesses, and shared and tensor memory over time as the command line draws it.

The dataclasses are the page's data: `frontend/src/data/memory.ts` has the same as types, and a test compares the two.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from irscope.memory.access import Cost
from irscope.memory.allocation import Allocation, Buffer, allocations_of
from irscope.model.capture import Capture
from irscope.render.layout.timeline import timeline_svg
from irscope.render.text.memory import headline, owner_text, peak_line

__all__ = ["Holder", "Memory", "MemoryOverTime", "Node", "packed_memory"]

Node = tuple[str, dict[str, str], list[Any]]
"""An element of a picture: name, attributes, and what is in it, elements and texts."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A buffer, and what the page says of it."""

    title: str
    """`%a 3×128×64×f16`."""
    at_peak: bool
    buffer: Buffer


@dataclass(frozen=True, slots=True)
class MemoryOverTime:
    """One memory over time."""

    space: str
    unit: str
    total: int
    limit: int | None
    held_at_peak: int
    headline: str
    peak: str
    """Where most is held, in words."""
    holders: tuple[Holder, ...]
    """In the order of the program, as the boxes of the picture are numbered."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What the page's tab of memory shows."""

    costs: tuple[Cost, ...]
    """The rows of global and shared memory of `irscope layout --costs`."""
    assembly: str
    """`ptx` or `amdgcn`, whose instructions the rows may count; an empty string if the capture has neither."""
    reasons: tuple[str, ...]
    """Why it could not be found out which operation each instruction is from, if that was tried."""
    memories: tuple[MemoryOverTime, ...]
    picture: Node | None
    """All of them over time; None if the capture does not hold the IR after the allocation."""


def packed_memory(capture: Capture, costs: Iterable[Cost]) -> dict[str, Any]:
    """The memory of a capture as JSON holds it; `costs` are those of the capture."""
    try:
        allocations = allocations_of(capture)
    except (ValueError, KeyError, IndexError):
        # The IR comes from the capture's file, which may say anything.
        allocations = ()
    svg = timeline_svg(f"{capture.name} {capture.target}", allocations, styled=False) if allocations else ""
    memory = Memory(
        tuple(cost for cost in costs if cost.kind != "conversion"),
        next((stage for stage in ("ptx", "amdgcn") if stage in capture.stages), ""),
        tuple(dict.fromkeys(row.reason for row in capture.operations if row.reason)),
        tuple(map(_over_time, allocations)),
        _node(ElementTree.fromstring(svg)) if svg else None,
    )
    return asdict(memory)


def _over_time(memory: Allocation) -> MemoryOverTime:
    holders = (Holder(owner_text(one), one.is_live(memory.peak), one) for one in memory.buffers)
    return MemoryOverTime(
        memory.space,
        memory.unit,
        memory.total,
        memory.limit,
        memory.held_at_peak,
        headline(memory),
        peak_line(memory) if memory.buffers else "",
        tuple(holders),
    )


def _node(element: ElementTree.Element) -> Node:
    """An element of SVG without its namespace: the page makes elements of it, and never reads markup."""
    inner: list[Any] = [element.text] if element.text else []
    for child in element:
        inner.append(_node(child))
    attributes = {name: value for name, value in element.attrib.items() if not name.startswith("{")}
    return element.tag.rpartition("}")[2], attributes, inner
