"""Words of sentences."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["joined"]


def joined(words: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = [*words] or [""]
    return f"{', '.join(first)} and {last}" if first else last
