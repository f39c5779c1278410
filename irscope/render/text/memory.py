"""A kernel's shared and tensor memory over time, as text: each buffer, its owner, where it is live, and the peak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from irscope.memory.allocation import Allocation, Buffer
from irscope.render.text.figures import short_name
from irscope.render.text.tables import table

_COLUMNS = 32
"""Characters of the axis of time."""


def memory_text(title: str, allocations: Sequence[Allocation], *, width: int | None = None, color: bool = False) -> str:
    """A table for each memory, its buffers in the order of their offsets at the peak first."""
    parts = [_one(title, allocation, width, color) for allocation in allocations]
    return "\n".join(parts)


def headline(allocation: Allocation) -> str:
    """`98304 of 232448 bytes of shared memory`, and by how much that is too many."""
    total, limit = allocation.total, allocation.limit
    text = f"{total}{f' of {limit}' if limit is not None else ''} {allocation.unit} of {allocation.space} memory"
    return f"{text}: {total - limit} too many" if limit is not None and total > limit else text


def peak_line(allocation: Allocation) -> str:
    """Where most is held, and what of the total nobody holds there."""
    step, held = allocation.peak_step, allocation.held_at_peak
    where = f" ({place_text(step.place)})" if step.place else ""
    gaps = f"; {allocation.total - held} in gaps" if held < allocation.total else ""
    if gaps and allocation.space == "tensor":
        # Source: "PTX ISA", tcgen05.alloc.
        gaps += " (columns are allocated by powers of two)"
    when = f"{step.operation}{where}, step {step.number} of {len(allocation.steps)}"
    return f"peak: {held} {allocation.unit} held at {when}{gaps}"


def owner_text(buffer: Buffer) -> str:
    """What a buffer is, in a few words: `%a 3×128×64×f16`, `scratch 128×128×f16`."""
    if buffer.kind in ("buffer", "barrier"):
        return f"{buffer.value} {buffer.what}" + (" (barriers)" if buffer.kind == "barrier" else "")
    return f"{buffer.kind} {buffer.what}".rstrip() if buffer.kind != "warps" else buffer.what


def place_text(place: str) -> str:
    """`matmul.py:42` of a place."""
    file, _, line = place.rpartition(":")
    return f"{short_name(file)}:{line}" if place else ""


def size_text(buffer: Buffer) -> str:
    """Its size, marked if it is only known to be at most that."""
    return f"{buffer.size}" if buffer.is_exact else f"≤ {buffer.size}"


def _one(title: str, allocation: Allocation, width: int | None, color: bool) -> str:
    lines = [f"{title}: {headline(allocation)}"]
    if not allocation.buffers:
        return f"{lines[0]}\n"
    lines.append(peak_line(allocation))
    peak = allocation.peak
    rows = [
        [
            one.offset,
            size_text(one),
            "●" if one.is_live(peak) else "",
            owner_text(one),
            one.owner,
            place_text(one.place),
            f"{one.start}–{one.end - 1}",
            _bar(one, len(allocation.steps), peak),
        ]
        for one in sorted(allocation.buffers, key=lambda one: (not one.is_live(peak), one.offset, one.start))
    ]
    head = ["offset", allocation.unit, "at peak", "buffer", "operation", "Python", "steps", "over time"]
    lines.append(table(head, rows, width=width, color=color).rstrip("\n"))
    padded = sum(one.padding for one in allocation.buffers if one.is_live(peak))
    if padded:
        lines.append(f"{padded} of the bytes held at the peak are padding inside the layouts.")
    if not all(one.is_exact for one in allocation.buffers):
        lines.append("≤: this Triton does not write the size of scratch: the most that fits there.")
    return "\n".join(lines) + "\n"


def _bar(buffer: Buffer, steps: int, peak: int) -> str:
    """The axis of time, with where the buffer is live; `▮` at the peak."""
    scale = _COLUMNS / max(steps, 1)
    first, last = int(buffer.start * scale), max(int((buffer.end - 1) * scale), int(buffer.start * scale))
    cells = ["█" if first <= at <= last else "·" for at in range(_COLUMNS)]
    if buffer.is_live(peak):
        cells[int(peak * scale)] = "▮"
    return "".join(cells)


def memory_json(allocations: Sequence[Allocation]) -> list[dict[str, Any]]:
    """Memories as plain values: their fields, and what follows from them."""
    return [
        asdict(one)
        | {
            "unit": one.unit,
            "peak": {
                "step": one.peak,
                "held": one.held_at_peak,
                "gaps": one.total - one.held_at_peak,
                "holders": [index for index, held in enumerate(one.buffers) if held.is_live(one.peak)],
            },
        }
        for one in allocations
    ]
