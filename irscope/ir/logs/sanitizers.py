"""What sanitizers print on standard error: failed assertions of the device, and reports of compute-sanitizer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["ReportedAccess", "reported"]

_KINDS = ("Invalid", "Misaligned", "Uninitialized", "Race", "Barrier")
"""With which a report of compute-sanitizer begins."""


@dataclass(frozen=True, slots=True)
class ReportedAccess:
    """What one thread did, in the sanitizer's own words."""

    what: str
    file: str
    """As it was printed; empty without a line."""
    line: int
    block: tuple[int, ...]
    thread: tuple[int, ...]


def reported(text: str) -> Iterator[ReportedAccess]:
    """Each report in a text, one for each thread."""
    what, place = "", ""
    for line in text.splitlines():
        if line.startswith("========="):
            # ========= Invalid __global__ read of size 4 bytes
            # =========     at copy_past_n+0x1f0 in kernel.py:17
            # =========     by thread (3,0,0) in block (3,0,0)
            words = line.removeprefix("=========").strip()
            if words.startswith(_KINDS):
                what, place = words, ""
            elif words.startswith("at ") and what:
                place = words.partition(" in ")[2]
            elif words.startswith("by thread (") and what:
                thread, _, block = words.removeprefix("by thread (").partition(") in block (")
                yield _report(what, place, block.partition(")")[0], thread)
                what = ""
            continue
        # /home/me/kernel.py:12: unknown: block: [3,0,0], thread: [32,0,0] Assertion `Read after write race` failed.
        head, _, rest = line.partition(": block: [")
        block, _, rest = rest.partition("], thread: [")
        thread, _, rest = rest.partition("] Assertion `")
        if rest:
            yield _report(rest.rpartition("`")[0], head.rpartition(": ")[0], block, thread)


def _report(what: str, place: str, block: str, thread: str) -> ReportedAccess:
    file, _, line = place.rpartition(":")
    numbers = [tuple(int(part) for part in text.split(",") if part.isdecimal()) for text in (block, thread)]
    is_known = line.isdecimal() and len(line) < 10
    return ReportedAccess(what.strip(), file if is_known else "", int(line) if is_known else 0, *numbers)
