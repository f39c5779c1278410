"""The layouts of a report's capture, its accesses to memory, and its memory over time."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

from irscope.layout.described import DescribedLayout
from irscope.layout.rows import layout_rows
from irscope.memory.access import Cost
from irscope.memory.allocation import Allocation, Buffer, allocations_of
from irscope.memory.conflicts import first_request
from irscope.memory.costs import as_json
from irscope.model.capture import Capture, Kernel, Launch
from irscope.model.layout import LayoutRefusal, layout_to_json
from irscope.render.layout.comparison import between_facts
from irscope.render.layout.figure import memory_facts, thread_facts
from irscope.render.layout.timeline import headline, owner_text, peak_line, timeline_svg

__all__ = ["Holder", "Memory", "MemoryOverTime", "Node", "packed_memory"]

_TENSOR_MEMORY_BANKS = 32
_NOT_RECORDED = LayoutRefusal("unasked", "the capture holds no answer of the compiler: record it again")


@dataclass(frozen=True, slots=True)
class Between:
    """What the page says of two layouts beside each other."""

    facts: tuple[str, ...]
    request: tuple[int, ...]
    """The row-major elements that the first lanes of warp 0 access together, of an access of shared memory."""


_NONE: Mapping[tuple[int, int], Between] = MappingProxyType({})


def packed_layouts(
    capture: Capture, costs: Iterable[Cost], between: Mapping[tuple[int, int], Between] = _NONE
) -> dict[str, Any]:
    """`rows`, one per layout, `conversions`, the costs of each one, and `between`, what is known of some pairs.

    A row is that of the capture file, with `name`, `parameters` and `facts` for people. The rows of a capture that was
    made without the compiler's answers say so in `reason`.
    """
    rows = capture.layouts
    if not rows:
        text = next((item.data for item in capture.artifacts if item.stage == "ttgir"), "")
        rows = [replace(row, answer=_NOT_RECORDED) for row in layout_rows(text)] if isinstance(text, str) else []
    conversions = as_json(cost for cost in costs if cost.kind == "conversion")
    return {
        "rows": [_packed(DescribedLayout(row, capture.target)) for row in rows],
        "conversions": conversions,
        "between": {f"{one} {other}": asdict(found) for (one, other), found in between.items()},
    }


def between_layouts(
    first: DescribedLayout, second: DescribedLayout, compiler_ways: int | None = None
) -> tuple[Between, Between]:
    """What moves from one layout to another, or how one accesses the other: from each side.

    `compiler_ways` is the compiler's count of bank conflicts between the two, plus one, if it is known.
    """
    threads, memory = first.threads or second.threads, first.memory or second.memory
    store = first.threads is not None
    request = first_request(threads, memory, store=store, target=first.target) if threads and memory else ()
    framed = tuple(sorted(request))
    return (
        Between(tuple(between_facts(first, second, compiler_ways)), framed),
        Between(tuple(between_facts(second, first, compiler_ways)), framed),
    )


def capture_of_layouts(layouts: Sequence[DescribedLayout]) -> Capture:
    """A capture of layouts alone, such as those that were given as text: it has no stage and no pass."""
    names = ", ".join(dict.fromkeys(item.name for item in layouts))
    return Capture(
        launch=Launch(Kernel(names)),
        target=layouts[0].target,
        layouts=tuple(item.row for item in layouts),
        notes=("This page holds layouts alone, without the compile that they are of.",),
    )


def _packed(described: DescribedLayout) -> dict[str, Any]:
    threads, memory = described.threads, described.memory
    return {
        **layout_to_json(described.row),
        "name": described.name,
        "title": described.encoding.title,
        "space": described.encoding.space,
        "shapeText": described.shape_text,
        "parameters": described.parameters,
        "elementBits": described.element_bits,
        "vector": max((threads.contiguous(at) for at in range(len(threads.shape))), default=1) if threads else 1,
        "banks": memory.banks if memory else _TENSOR_MEMORY_BANKS,
        "reason": described.row.reason,
        "facts": [*thread_facts(described), *memory_facts(described)],
    }


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
