"""No text makes a regular expression of the viewing half take more than linear time.

A match is one call of C, so only time shows it: `make exhaustive` measures it, on a machine that does nothing else.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest

from tests.hostile.patterns import Pattern, attacks, patterns

pytestmark = pytest.mark.exhaustive
_LENGTH = 4000
# A linear match of so long a text takes a tenth of it, on any machine.
_SUSPECT_S = 0.004
# Four times the text takes four times as long; sixteen times where it is quadratic.
_MOST = 9.0


def _time(run: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    run(text)
    return time.process_time() - began


def faults(pattern: Pattern, length: int = _LENGTH) -> Iterator[str]:
    """The texts, by how they begin, for which time grows faster than length."""
    runs: list[Callable[[str], object]] = [pattern.expression.match]
    if pattern.is_searched:
        runs.append(lambda text: pattern.expression.sub("", text))
    for text, short in zip(attacks(pattern.expression, length), attacks(pattern.expression, length // 4), strict=True):
        for run in runs:
            if _time(run, text) < _SUSPECT_S:
                continue
            long_s = short_s = 0.0
            # What else runs on the machine slows single matches down: a suspicion is tried again.
            for rounds in (3, 30, 200):
                long_s, short_s = (min(_time(run, one) for _ in range(rounds)) for one in (text, short))
                if long_s <= max(_SUSPECT_S, _MOST * short_s):
                    break
            else:
                yield f"{pattern.place}: {text[:60]!r}: {short_s:.4f} s, 4 times as long {long_s:.4f} s"


def test_every_pattern_is_linear() -> None:
    every = list(patterns())
    assert len(every) > 250
    assert [fault for pattern in every for fault in faults(pattern)] == []


@pytest.mark.parametrize("expression", [r"\s+; x", r"[{}]?\s*$", r'"(?:[^"\\]|\\.)*"', r"^a.*?\s*$"])
def test_the_search_finds_what_is_not(expression: str) -> None:
    assert next(faults(Pattern("here", re.compile(expression), True)))
