"""The samples of each line that a report shows beside the code."""

from __future__ import annotations

from dataclasses import replace

from irscope.model.capture import Capture
from irscope.model.evidence import Profile
from irscope.render.report.facts import heat_of
from tests.analysis.counters.pages import page_of, small_capture


def heated() -> Capture:
    capture = small_capture()
    waits = {"FADD": 30, "STG": 6, "ULDC": 4}
    page = page_of(capture, lambda one: {"stall_long_sb": waits.get(one.opcode.partition(".")[0], 0)})
    return replace(capture, profile=Profile(page))


def test_each_line_has_its_samples_in_every_language() -> None:
    capture = heated()
    found = heat_of(capture)
    assert found is not None
    assert found["stalled"] == 40
    lines = {stage: {line: stalled for line, stalled, _ in rows} for stage, rows in found["lines"].items()}
    assert lines["ttgir"] == {4: 0, 5: 30, 6: 6, 7: 0}
    assert lines["kernels.py"] == {11: 0, 12: 30, 13: 6}
    # Also that of no operation.
    sass = capture.text("sass").splitlines()
    assert {sass[line - 1].split()[2]: stalled for line, stalled in lines["sass"].items() if stalled} == {
        "ULDC.64": 4, "FADD": 30, "STG.E.128": 6,
    }  # fmt: skip
    (tip,) = [tip for line, _, tip in found["lines"]["ttgir"] if line == 5]
    assert tip == "30 samples of stalled warps for global memory 100 %; executed 1 times by warps"


def test_a_capture_without_a_profile_of_its_own_code_has_none() -> None:
    capture = heated()
    assert heat_of(small_capture()) is None
    other = capture.text("sass").replace("FADD", "FMUL")
    artifacts = tuple(replace(one, data=other) if one.stage == "sass" else one for one in capture.artifacts)
    assert heat_of(replace(capture, artifacts=artifacts)) is None
    assert heat_of(replace(capture, profile=Profile("what is no CSV"))) is None
