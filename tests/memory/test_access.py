"""Traffic: sums and multiples of ranges."""

from __future__ import annotations

from irscope.memory.access import MOST, Traffic


def test_sums_keep_the_least_and_the_most_apart() -> None:
    total = Traffic.sum([Traffic(units=(1, 4), lines=(2, 2)), Traffic(units=(10, 10))])
    assert (total.units, total.lines) == ((11, 14), (2, 2))
    assert not total.is_known
    assert Traffic.sum([]) == Traffic()


def test_executions_that_may_not_be_add_nothing_to_the_least() -> None:
    assert Traffic(units=(4, 8)).often((0, 3)).units == (0, 24)


def test_what_has_no_bound_stays_so() -> None:
    endless = Traffic(units=(1, 2)).often((1, 1 << 100))
    assert endless.units == (1, MOST)
    assert Traffic.sum([endless, endless]).units == (2, MOST)


def test_a_sample_is_scaled() -> None:
    assert Traffic(bytes=(10, 20)).scaled(2.5).bytes == (25, 50)
