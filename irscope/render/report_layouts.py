"""The layouts of a report's capture: the compiler's own maps where it was asked, and what each one costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.capture import Capture
from irscope.errors import IrscopeError
from irscope.layout.described import DescribedLayout, describe
from irscope.layout.rows import layout_rows
from irscope.render.layout_figure import memory_facts, thread_facts


def packed_layouts(capture: Capture, costs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """`rows`, one a layout, and `costs`, one an operation.

    A row is what `Capture.layouts` holds (with `bases` and `out_dims` where there is a map), with `name`, `parameters`
    and `facts` for people. A capture that was made without the compiler's answers has rows that say so in `reason`.
    """
    return {"rows": [_row(*pair) for pair in _described(capture)], "costs": costs}


def _described(capture: Capture) -> list[tuple[dict[str, Any], DescribedLayout]]:
    rows = list(capture.layouts)
    if not rows:
        text = next((item.data for item in capture.artifacts if item.stage == "ttgir"), "")
        rows = _rows_of_text(text) if isinstance(text, str) else []
    try:
        return list(zip(rows, describe(rows, capture.target), strict=True))
    except (IrscopeError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        # A file may hold anything in their place.
        return []


def _rows_of_text(text: str) -> list[dict[str, Any]]:
    reason = "the capture holds no answer of the compiler: record it again"
    return [row | {"reason": reason} for row in layout_rows(text)]


def _row(row: dict[str, Any], described: DescribedLayout) -> dict[str, Any]:
    facts = [*thread_facts(described), *memory_facts(described)]
    return {
        **row,
        "name": described.name,
        "title": described.encoding.title,
        "space": described.encoding.space,
        "shapeText": described.shape_text,
        "parameters": described.parameters,
        "elementBits": described.element_bits,
        "reason": described.reason,
        "facts": facts,
    }
