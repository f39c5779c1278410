"""Whether the work of a call grows with its input and no faster, without a look at the clock.

What is counted are the lines of Python that run: the same number each time, whatever else the machine does. Work that
one call of C does (a search, a copy of the rest of a text) is one line of any length, so it takes time to find: that
measure is for `make exhaustive`, on a machine that does nothing else.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest


def lines_run(call: Callable[[], object]) -> int:
    """How many lines of Python a call runs, functions and generators that it enters counted too."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event in ("line", "call")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def _seconds(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


@dataclass(frozen=True)
class Measure:
    """A measure of work, for a length and for one four times as long."""

    of: Callable[[Callable[[], object]], float]
    length: int
    least: float
    """What is as good as nothing."""
    tries: int = 1
    most: float = 8.0
    """Four times the input takes four times the work; sixteen times where it is quadratic."""

    def is_linear(self, run: Callable[[int], object], unit: int = 1) -> bool:
        """Whether `run(length)` takes work that grows as its length, which is given in units of so many characters."""
        short, long = self.length // unit, 4 * (self.length // unit)
        # What is made or imported once; of another text, since the answer for one may be kept.
        run(short + 1)
        return any(
            self.of(lambda: run(long)) < self.most * max(self.of(lambda: run(short)), self.least)
            for _ in range(self.tries)
        )


LINES = Measure(lines_run, 2_000, 500)
MEASURES = [
    pytest.param(LINES, id="lines"),
    pytest.param(Measure(_seconds, 50_000, 0.02, tries=3), id="seconds", marks=pytest.mark.exhaustive),
]
"""Of a parameter `work`."""
