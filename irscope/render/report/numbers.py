"""Numbers of names, told as steps: `%12` after `%11` as `%+1`, so that a line inserted above changes no other line.

The compilers number values, metadata and locations through; two texts that differ in one operation then differ in all
lines below it. Told as steps, most of these are equal again, and compress as such. The page reads them back:
`frontend/src/data/numbers.ts`.
"""

from __future__ import annotations

import re

__all__ = ["with_steps"]

_PREFIX = r"%[A-Za-z_]\w*_|%[a-z]{0,2}|!|#loc"
# "  %12", "%rd7", "%x_12", "!34", "#loc5"
_NUMBERED = re.compile(rf"(?m)(^ *)?({_PREFIX})(0|[1-9]\d{{0,8}})(?!\w)", re.ASCII)
# "%+1", "#loc-12"
_STEP = re.compile(rf"(?:{_PREFIX})[+-]\d+(?!\w)", re.ASCII)


def with_steps(text: str) -> str | None:
    """The text with steps; None if it has something that would be read as one.

    A step counts from the last number of its prefix: of what a line begins with; of metadata and locations the last one
    at all; of registers of PTX the highest. Names of MLIR with a number behind them (`%x_12`) share one count.
    """
    if _STEP.search(text):
        return None
    last: dict[str, int] = {}

    def step(match: re.Match[str]) -> str:
        start, prefix, digits = match.groups()
        kind = "_" if prefix[-1] == "_" else prefix
        number = int(digits)
        before = last.get(kind, 0)
        if start is not None or kind in ("!", "#loc") or (kind[-1].isalpha() and number > before):
            last[kind] = number
        return f"{start or ''}{prefix}{number - before:+d}"

    return _NUMBERED.sub(step, text)
