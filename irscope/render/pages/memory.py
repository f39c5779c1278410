"""A page of a kernel's memory over time: the picture, and the table below it, without scripts or requests."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from irscope.memory.allocation import Allocation
from irscope.render.layout.timeline import timeline_svg
from irscope.render.pages.page import render_page
from irscope.render.text.memory import memory_text


def memory_html(title: str, allocations: Sequence[Allocation], notes: str = "") -> str:
    """The page; a box tells of its buffer under the pointer. `notes`: what else was found, as text."""
    text = "\n".join(filter(None, [memory_text(title, allocations), notes]))
    body = f"{timeline_svg(title, allocations, styled=False)}<pre>{escape(text)}</pre>"
    return render_page(f"irscope memory: {title}", body, styles=("memory.css",))
