"""The values of a run: by operation, and where the first NaN and infinity arise."""

from __future__ import annotations

import numpy as np
import pytest

import irscope.api  # noqa: F401 (gives captures their method `run`)
from irscope.errors import UsageError
from irscope.machine.captured import captured_inputs
from irscope.machine.observed import observe_values
from tests.machine.recorded import small_examples

pytest.importorskip("torch", reason="the examples are recorded with tensors of torch")
pytestmark = pytest.mark.triton


def test_the_values_of_an_example_are_those_of_numpy():
    capture = small_examples("cuda:90")["triton add_kernel"]
    inputs = captured_inputs(capture).tensors
    total = inputs["x_ptr"] + inputs["y_ptr"]
    observed = observe_values(capture)
    (added,) = [one for one in observed.values if one.operation == "arith.addf"]
    assert (added.minimum, added.maximum) == (min(total.min(), 0.0), max(total.max(), 0.0))
    assert added.elements[:4] == tuple(float(one) for one in total[:4])
    assert added.place.rpartition("/")[2].startswith("vector_add.py:")
    assert set(observed.made_up) == {"x_ptr", "y_ptr", "out_ptr"}
    assert observed.nonfinite == ()


def test_the_first_nan_and_infinity_are_found_with_their_operands():
    capture = small_examples("cuda:90")["triton add_kernel"]
    x, y = np.ones(2500, np.float32), np.ones(2500, np.float32)
    x[1100], y[1100] = np.float32(3e38), np.float32(3e38)
    (found,) = observe_values(capture, {"x_ptr": x, "y_ptr": y}, stage="ttgir").nonfinite
    assert (found.kind, found.operation, found.program, found.element) == ("infinity", "arith.addf", (1, 0, 0), (76,))
    assert found.operands == (float(x[1100]), float(y[1100]))


def test_values_are_chosen_by_name_program_and_line():
    capture = small_examples("cuda:90")["triton softmax_kernel"]
    observed = observe_values(capture, at="coalesce", program=(2, 0, 0))
    named = observed.values[-1].name.removeprefix("%").partition("_")[0]
    assert observe_values(capture, at="coalesce", name=named).values
    line = int(observed.values[-1].place.rpartition(":")[2])
    assert all(one.place.endswith(f":{line}") for one in observe_values(capture, line=line).values)
    with pytest.raises(UsageError, match="has no program 99,0,0"):
        observe_values(capture, program=(99, 0, 0))
    with pytest.raises(UsageError, match="no value of this IR is called '%nothing'"):
        observe_values(capture, name="nothing")


def test_a_capture_runs():
    capture = small_examples("cuda:90")["triton copy_kernel"]
    x = np.arange(70 * 150, dtype=np.float32).reshape(70, 150)
    assert np.array_equal(capture.run({"x_ptr": x}, stage="ttgir")["out_ptr"], x)
