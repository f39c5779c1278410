"""The measure of work tells linear from quadratic."""

from __future__ import annotations

import sys

from tests.work import LINES, lines_run


def _pairs(length: int) -> int:
    return sum(left < right for left in range(length // 40) for right in range(length // 40))


def test_linear_and_quadratic_work_are_told_apart() -> None:
    assert LINES.is_linear(lambda length: sum(number for number in range(length)))
    assert LINES.is_linear(lambda length: None)
    assert not LINES.is_linear(_pairs)


def test_lines_are_counted_the_same_each_time_and_nothing_stays() -> None:
    before = sys.gettrace()
    assert lines_run(lambda: _pairs(400)) == lines_run(lambda: _pairs(400)) > 100
    assert sys.gettrace() is before
