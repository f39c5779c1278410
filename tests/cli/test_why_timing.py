"""`why --time`: which fixes are run, and what it says of those that are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from irscope.analysis.findings.model import Finding, FixChange, Proof, Suggestion
from irscope.api import gpu as timing
from irscope.cli.launches import why_no_gpu
from irscope.device.measurement import Agreement, Ratio, Timing
from irscope.model.capture import Artifact, Capture, Environment, Kernel, Launch
from irscope.model.launch_record import Argument, LaunchRecord
from irscope.model.recording_options import RecordingOptions
from irscope.record.process.requests import RecordRequest
from irscope.render.text.findings import render_findings
from irscope.target import Target
from tests.cli.product import Run
from tests.conftest import DATA

RECORD = LaunchRecord((Argument("n", "scalar", value=7), Argument("m", "scalar", value=32)))
CAPTURE = Capture(launch=Launch(Kernel("k"), record=RECORD), target=Target.parse("cuda:90"))


class OnGpu:
    """Stands for the GPU: notes what runs on it."""

    baseline = CAPTURE

    def __init__(self) -> None:
        self.checked: list[str] = []

    def check(self, capture: Capture) -> Agreement:
        self.checked.append(capture.text("ptx"))
        return Agreement("identical")

    def time(self, captures: Sequence[Capture], *, rounds: int, cold: bool = True) -> list[tuple[Timing, Ratio]]:
        return [(Timing(1.0, 1.0, 1.0, rounds), Ratio(0.5, 0.49, 0.51)) for _ in captures]


def test_only_what_holds_in_the_launch_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = OnGpu()

    @contextmanager
    def launch(*_: object) -> Iterator[OnGpu]:
        yield gpu

    monkeypatch.setattr(timing, "launch_on_gpu", launch)
    changes = [
        FixChange("divisible", "n", 16),
        FixChange("divisible", "m", 16),
        FixChange("option", "num_warps", 8),
    ]
    changes += [FixChange("constant", "n", 1), FixChange("divisible", "gone", 16)]
    compiled = {(one,): replace(CAPTURE, artifacts=(Artifact("ptx", str(one)),)) for one in changes}
    helped = [Suggestion(str(one), (one,), Proof(True, ("16 → 128 bits",))) for one in changes]
    useless = Suggestion("num_stages=1", (FixChange("option", "num_stages", 1),), Proof(False))
    finding = Finding("IRS101", "tt.load", 7, (), (), (), "", "", 0, (), (*helped, useless))
    (told,) = timing.fixes_timed(RecordRequest(mode="script"), 1, CAPTURE, [finding], compiled)
    assert gpu.checked == ["m divisible by 16", "num_warps=8"]
    times = [one.proof.timing for one in told.suggestions if one.proof is not None]
    ran = "time 0.50x (0.49 to 0.51), result identical"
    assert times == [
        "not timed: n is 7 in this launch, which 16 does not divide",
        ran,
        ran,
        "not timed: n is 7 in this launch, not 1",
        "not timed: gone is unknown for this launch",
        "",
    ]
    assert render_findings([told], color=False).count(ran) == 2


def test_without_a_gpu_it_is_an_error(irscope: Run) -> None:
    assert "need a GPU" in why_no_gpu("k.py", RecordingOptions(), CAPTURE)
    assert "give the FILE" in why_no_gpu(
        "last", RecordingOptions(), replace(CAPTURE, environment=Environment(gpu="H200"))
    )
    file = DATA / "layouts" / "matmul-cuda-80.irscope"
    code, _, err = irscope("why", file, "--time")
    assert code == 1
    assert "Without --time nothing is run." in err
