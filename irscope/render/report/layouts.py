"""The layouts of a report's capture: the compiler's own maps, and what each one costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any

from irscope.layout.described import DescribedLayout
from irscope.layout.rows import layout_rows
from irscope.memory.access import Cost
from irscope.memory.conflicts import first_request
from irscope.memory.costs import as_json
from irscope.model.capture import Capture, Kernel, Launch
from irscope.model.layout import LayoutRefusal
from irscope.model.layout_json import layout_to_json
from irscope.render.layout.comparison import between_facts
from irscope.render.layout.figure import memory_facts, thread_facts

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
