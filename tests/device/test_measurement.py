"""Measurements: their statistics, checked on noise whose truth is known, and their text and JSON."""

from __future__ import annotations

import json
import math
import random

import pytest

from irscope.device.measurement import (
    FEWEST_ROUNDS,
    VERDICTS,
    Agreement,
    Ratio,
    quantile,
    ratio_of,
    timing_of,
)
from irscope.errors import UsageError
from irscope.model.plain import built


@pytest.mark.parametrize("rounds", [6, 9, 20, 100])
@pytest.mark.parametrize("truth", [1.0, 1.02])
def test_the_interval_holds_the_true_ratio_in_19_of_20_experiments(rounds: int, truth: float) -> None:
    """Skewed noise, drift that hits both alike: 95 % of the intervals, at least, hold the true ratio of the medians."""
    random_ = random.Random(rounds)
    held = 0
    experiments = 1500
    for _ in range(experiments):
        drift = [100 * math.exp(0.3 * random_.random()) for _ in range(rounds)]
        # The logarithms' noise is symmetric, so that the median of the ratio is the ratio of the medians.
        base = [clock * math.exp(random_.gauss(0, 0.02)) for clock in drift]
        variant = [truth * clock * math.exp(random_.gauss(0, 0.02)) for clock in drift]
        ratio = ratio_of(variant, base)
        held += ratio.low <= truth <= ratio.high
    # Four standard deviations of the count below what is promised.
    assert held / experiments > 0.95 - 4 * math.sqrt(0.95 * 0.05 / experiments)


def test_the_interval_is_no_wider_than_it_must_be() -> None:
    """Against the closed form for many rounds: half its width is 1.96 standard errors of a median, within a third."""
    random_ = random.Random(1)
    widths: list[float] = []
    for _ in range(200):
        base = [math.exp(random_.gauss(0, 0.01)) for _ in range(400)]
        ratio = ratio_of(base, [1.0] * 400)
        widths.append((ratio.high - ratio.low) / 2)
    standard_error = 0.01 * math.sqrt(math.pi / 2) / math.sqrt(400)
    assert sum(widths) / len(widths) == pytest.approx(1.96 * standard_error, rel=0.33)


def test_drift_that_hits_both_alike_does_not_matter() -> None:
    drift = [100.0 + 50 * number for number in range(50)]
    ratio = ratio_of([1.1 * time for time in drift], drift)
    assert ratio.value == pytest.approx(1.1)
    assert ratio.different
    assert ratio.high - ratio.low < 1e-9


def test_of_the_same_times_nothing_is_different() -> None:
    times = [3.0, 1.0, 2.0, 5.0, 4.0, 6.0, 2.5]
    ratio = ratio_of(times, times)
    assert (ratio.value, ratio.low, ratio.high) == (1.0, 1.0, 1.0)
    assert ratio.text == "1.00x, no difference"


def test_what_the_baseline_differs_from_itself_widens_the_interval() -> None:
    base = [100.0 + number % 7 for number in range(50)]
    variant, again = [1.01 * time for time in base], [1.02 * time for time in base]
    assert ratio_of(variant, base).different
    widened = ratio_of(variant, base, again)
    assert not widened.different
    assert widened.value == pytest.approx(1.01)
    assert (widened.low, widened.high) == pytest.approx((1.01 / 1.02, 1.01 * 1.02))
    assert ratio_of(variant, base, [time / 1.02 for time in base]).high == pytest.approx(1.01 * 1.02)
    assert ratio_of([2 * time for time in base], base, again).different


def test_too_few_rounds_give_no_interval() -> None:
    with pytest.raises(UsageError, match="at least 6"):
        ratio_of([1.0] * (FEWEST_ROUNDS - 1), [1.0] * (FEWEST_ROUNDS - 1))
    with pytest.raises(ValueError, match="longer"):
        ratio_of([1.0] * 7, [1.0] * 8)


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (Ratio(1.31, 1.29, 1.33), "1.31x (1.29 to 1.33)"),
        (Ratio(1.003, 1.001, 1.004), "1.003x (1.001 to 1.004)"),
        (Ratio(0.9971, 0.9962, 0.9976), "0.997x (0.996 to 0.998)"),
        (Ratio(1.01, 0.99, 1.03), "1.01x, no difference"),
        (Ratio(0.5, 0.49, 0.51), "0.50x (0.49 to 0.51)"),
    ],
)
def test_the_text_never_seems_to_hold_the_1_that_it_excludes(ratio: Ratio, text: str) -> None:
    assert ratio.text == text


def test_timing_is_the_median_and_the_quartiles() -> None:
    statistics = pytest.importorskip("statistics")
    times = [float(number * number % 37) for number in range(41)]
    timing = timing_of(times, cold=False)
    low, median, high = statistics.quantiles(times, n=4, method="inclusive")
    assert (timing.low_us, timing.median_us, timing.high_us) == pytest.approx((low, median, high))
    assert (timing.count, timing.cold) == (41, False)
    assert quantile([7.0], 0.25) == 7.0


def test_json_both_ways() -> None:
    values = [
        Agreement("close", 1e-7, 2e-6, "out_ptr", 12, "in 1 of 4 runs"),
        Agreement("fault", detail="illegal access"),
    ]
    for value in values:
        data = json.loads(json.dumps(value.as_json()))
        assert built(Agreement, {**data, "of a newer version": 1}) == value


def test_only_identical_and_close_pass() -> None:
    assert [verdict for verdict in VERDICTS if Agreement(verdict).passes] == ["identical", "close"]
