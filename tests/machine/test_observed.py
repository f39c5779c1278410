"""The values of a run: by operation, and where the first NaN and infinity arise."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from threading import get_ident

import numpy as np
import pytest

import irscope.api  # noqa: F401 (gives captures their method `run`)
from irscope.analysis.findings.find import findings_of
from irscope.errors import NotRun, UsageError
from irscope.machine import launch
from irscope.machine.captured import captured_inputs, run_capture
from irscope.machine.launch import RunLimits
from irscope.machine.observed import observe_values
from irscope.model.launch_record import LaunchRecord
from irscope.record.gpu.on_machine import MachineRun, MachineSession
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.render.report.results import values_results
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


def test_why_finds_what_makes_the_nan_that_a_launch_stores():
    script = Path(__file__).with_name("nonfinite_kernels.py")
    request = request_for(
        script, targets=("cuda:90",), disassemble=False, layouts=False, snapshots="none", computes=True
    )
    planted, clean = record_request(request).captures
    (found,) = [one for one in findings_of(planted) if one.code == "IRS702"]
    here = next(at for at, line in enumerate(script.read_text().splitlines(), 1) if "# here: IRS702" in line)
    assert [line for _, line in found.place] == [here]
    assert (found.operation, found.cost) == ("arith.divf", "100 elements of y are NaN after the launch")
    assert "in program (17, 0, 0), element [0]" in found.causes[0].text
    assert not [one for one in findings_of(clean) if one.code == "IRS702"]
    # The report shows the values of so small a launch, and where the NaN arose.
    results = values_results([planted, clean])
    assert results is not None
    first, second = results.sections
    assert (len(first.lines), len(second.lines)) == (1, 0)
    assert "The first NaN arises in arith.divf" in first.lines[0]
    assert first.table is not None
    assert [row[7].text for row in first.table.rows if row[2].text == "arith.divf"][-1] == "128"
    assert values_results([small_examples("cuda:90")["triton add_kernel"]]) is None
    # What the launch left is recorded, and compared with another run, as with what a GPU leaves.
    assert MachineSession(planted, MachineRun()).check_recorded().verdict == "nan"
    assert MachineSession(clean, MachineRun()).check_recorded().verdict == "identical"
    rows = tuple(replace(one, result="") for one in clean.launch.record.arguments)
    unchanged = replace(clean, launch=replace(clean.launch, record=LaunchRecord(rows)))
    assert MachineSession(unchanged, MachineRun()).check_recorded().verdict == "different"
    # A NaN that the input holds arises in no operation.
    x = np.ones((24, 100), np.float32)
    x[3, 5] = np.nan
    first, *_ = observe_values(clean, {"x": x}).nonfinite
    assert (first.operation, first.is_loaded, first.program, first.element) == ("tt.load", True, (3, 0, 0), (5,))


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (RunLimits(memory_bytes=1000), "its tensors have 0.0 GiB, and the CPU runs launches with at most"),
        (RunLimits(seconds=-1.0), "its programs did not end within -1 s"),
        (RunLimits(elements=1000), "more work than the limit"),
    ],
)
def test_a_limit_ends_a_run(limits, told):
    with pytest.raises(NotRun, match=told):
        run_capture(small_examples("cuda:90")["triton add_kernel"], limits=limits)


@pytest.mark.parametrize(
    "kernel", ["triton softmax_kernel", "triton layer_norm_backward_kernel", "triton matmul_grouped_kernel"]
)
def test_threads_leave_what_one_thread_leaves(kernel, monkeypatch):
    monkeypatch.setattr("irscope.machine.launch._ELEMENTS_AT_ONCE", 1)
    threads = set()
    part = launch.Machine.run

    def run(machine, arguments):
        threads.add(get_ident())
        time.sleep(0.01)
        part(machine, arguments)

    monkeypatch.setattr(launch.Machine, "run", run)
    capture = small_examples("cuda:90")[kernel]
    one = run_capture(capture)
    assert len(threads) == 1
    two = run_capture(capture, limits=RunLimits(jobs=2))
    assert len(threads) > 1
    for name, values in one.items():
        assert values.tobytes() == two[name].tobytes()
