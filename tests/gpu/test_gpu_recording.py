"""Recording on a real GPU: launches really run, and are recorded all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

import irscope
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = [pytest.mark.gpu, pytest.mark.triton]


def test_a_script_really_runs() -> None:
    recording = record_request(request_for(EXAMPLES / "softmax.py"))
    (end,) = recording.script_ends
    assert end.code == 0, recording.output
    assert "relative error" in recording.output
    for capture in recording.captures:
        assert capture.status == "ok"
        assert capture.environment.gpu
        assert capture.launch.grid is not None


def test_the_winner_of_an_autotuned_kernel_is_known() -> None:
    captures = [c for c in irscope.record_all(EXAMPLES / "matmul.py") if c.name == "matmul_grouped_kernel"]
    tunings = [capture.launch.autotuning for capture in captures]
    assert all(tuning is not None for tuning in tunings)
    assert any(tuning is not None and tuning.winner for tuning in tunings)
    timed = [tuning.median_ms for tuning in tunings if tuning is not None and tuning.median_ms is not None]
    assert timed
    assert all(time > 0 for time in timed)


def test_virtual_and_real_recordings_agree() -> None:
    real = irscope.record_all(EXAMPLES / "vector_add.py")
    virtual = irscope.record_all(EXAMPLES / "vector_add.py", virtual=True)
    assert [c.name for c in real] == [c.name for c in virtual]
    for one, other in zip(real, virtual, strict=True):
        assert one.ttgir == other.ttgir
        assert one.cubin == other.cubin
        assert one.launch.grid == other.launch.grid
    assert not virtual[0].environment.gpu


def test_small_integers_are_stored_with_a_launch_and_time_follows_them() -> None:
    loops = Path(__file__).parents[1] / "timing" / "loops.py"
    real, virtual = (
        next(one for one in irscope.record_all(loops, virtual=on) if one.name == "ragged") for on in (False, True)
    )
    for path in ("starts", "pages"):
        arguments = [one.launch.record and one.launch.record.argument(path) for one in (real, virtual)]
        assert arguments[0] is not None
        assert arguments[0].data
        assert arguments[0] == arguments[1]
    assert irscope.time(real, part="h200").seconds == irscope.time(virtual, part="h200").seconds


def test_a_kernel_launched_before_is_recorded_in_this_process() -> None:
    import importlib.util

    import torch

    spec = importlib.util.spec_from_file_location("vector_add", EXAMPLES / "vector_add.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = torch.randn(1000, device="cuda")
    expected = module.vector_add(x, x)
    with irscope.capture() as recording:
        assert torch.equal(module.vector_add(x, x), expected)
    assert [capture.name for capture in recording] == ["add_kernel"]
    assert "ld.global" in recording[0].ptx
    with irscope.capture(plan="-coalesce") as other:
        assert torch.equal(module.vector_add(x, x), expected)
    assert [snapshot.outcome for snapshot in other[0].snapshots if snapshot.name == "coalesce"] == ["skipped"]
    assert torch.equal(module.vector_add(x, x), expected)
    with irscope.capture() as third:
        module.vector_add(x, x)
    assert third[0].cubin == recording[0].cubin
