"""The layouts of a report's capture: the compiler's own maps, and what each one costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from irscope.layout.described import DescribedLayout
from irscope.layout.rows import layout_rows
from irscope.memory.cost import Cost
from irscope.memory.costs import as_json
from irscope.model.capture import Capture
from irscope.model.layout import LayoutRefusal
from irscope.model.layout_json import layout_to_json
from irscope.render.layout.figure import memory_facts, thread_facts

_NOT_RECORDED = LayoutRefusal("unasked", "the capture holds no answer of the compiler: record it again")


def packed_layouts(capture: Capture, costs: Iterable[Cost]) -> dict[str, Any]:
    """`rows`, one per layout, and `conversions`, the costs of each one.

    A row is that of the capture file, with `name`, `parameters` and `facts` for people. The rows of a capture that was
    made without the compiler's answers say so in `reason`.
    """
    rows = capture.layouts
    if not rows:
        text = next((item.data for item in capture.artifacts if item.stage == "ttgir"), "")
        rows = [replace(row, answer=_NOT_RECORDED) for row in layout_rows(text)] if isinstance(text, str) else []
    conversions = as_json(cost for cost in costs if cost.kind == "conversion")
    return {"rows": [_packed(DescribedLayout(row, capture.target)) for row in rows], "conversions": conversions}


def _packed(described: DescribedLayout) -> dict[str, Any]:
    return {
        **layout_to_json(described.row),
        "name": described.name,
        "title": described.encoding.title,
        "space": described.encoding.space,
        "shapeText": described.shape_text,
        "parameters": described.parameters,
        "elementBits": described.element_bits,
        "reason": described.row.reason,
        "facts": [*thread_facts(described), *memory_facts(described)],
    }
