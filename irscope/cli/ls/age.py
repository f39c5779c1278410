"""How long ago a capture was made."""

from __future__ import annotations

import datetime
import time


def age(date: str) -> str:
    """`5 min` since a UTC date in ISO 8601; empty for a text that is none."""
    try:
        seconds = time.time() - datetime.datetime.fromisoformat(date).timestamp()
    except ValueError:
        return ""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
