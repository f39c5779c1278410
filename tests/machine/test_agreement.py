"""Two runs of a launch, compared: what is rounding, and what is not."""

from __future__ import annotations

import numpy as np
import pytest

from irscope.machine.agreement import agreement_of, moved_by_one_ulp
from irscope.machine.values import narrow_float

_X = np.linspace(-3, 3, 64).astype(np.float32)


def judged(baseline, found, moved=(), before=None):
    before = np.zeros_like(baseline) if before is None else before
    return agreement_of({"x": before}, {"x": baseline}, [{"x": one} for one in moved], {"x": found}, "runs")


def test_equal_bits_are_identical():
    assert judged(_X, _X.copy()).verdict == "identical"


def test_a_few_units_of_float32_are_rounding_and_a_thousandth_is_not():
    assert judged(_X, _X * np.float32(1 + 2**-22)).verdict == "close"
    found = judged(_X, _X * np.float32(1.001))
    assert (found.verdict, found.argument, found.passes) == ("different", "x", False)


def test_what_moved_inputs_do_is_noise():
    assert judged(_X, _X * np.float32(1.001), moved=[_X * np.float32(1.0005)]).verdict == "close"


def test_integers_are_compared_bit_for_bit():
    whole = np.arange(9)
    assert judged(whole, whole + (whole == 4)).beyond_noise == 1


def test_a_nan_never_passes_and_one_that_was_there_before_is_no_result():
    found = _X.copy()
    found[3] = np.nan
    assert judged(_X, found).verdict == "nan"
    assert judged(found, found.copy()).verdict == "nan"
    assert judged(found, found.copy(), before=found.copy()).verdict == "identical"


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_an_infinity_that_only_one_has_is_different(value):
    found = _X.copy()
    found[3] = value
    assert judged(_X, found).verdict == "different"
    assert judged(found, found.copy()).verdict == "identical"


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "bfloat16"])
def test_values_move_by_one_unit_in_the_last_place(name):
    dtype = narrow_float(name) if name == "bfloat16" else np.dtype(name)
    values = np.array([0.0, 1.5, -2.25, np.inf, np.nan, 3e-4]).astype(dtype)
    moved = moved_by_one_ulp(values, np.random.default_rng(0))
    kind = f"i{dtype.itemsize}"
    distances = np.abs(moved.view(kind).astype(np.int64) - values.view(kind).astype(np.int64))
    assert distances.tolist() == [0, 1, 1, 0, 0, 1]
    assert moved_by_one_ulp(np.asarray(values[1]), np.random.default_rng(0)) != values[1], "a warning is an error"
