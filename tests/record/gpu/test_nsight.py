"""Launches under Nsight Compute as the parent sees them: what it starts, and what it makes of every way that ends."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.errors import IrscopeError, MissingTool, NoDevice, RecordingError
from irscope.ir.logs.source_page import read_source_page
from irscope.model.capture import Artifact, Capture
from irscope.record.gpu import nsight
from irscope.record.gpu.nsight import find_nsight, profile_launch
from irscope.record.process.requests import RecordRequest
from tests.analysis.counters.pages import page_of, small_capture

REQUEST = RecordRequest(mode="script", path="kernels.py")
FAKE = Path(__file__).parents[1] / "device" / "fake_ncu.py"


@pytest.fixture
def capture() -> Capture:
    return small_capture()


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capture: Capture) -> Path:
    """An `ncu` on the PATH that profiles two launches of the capture; the file of the arguments that it got."""
    program = tmp_path / "bin" / "ncu"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" "$@"\n')
    program.chmod(0o755)
    pages = tmp_path / "pages.csv"
    one, other = (page_of(capture, lambda _, n=n: {"Instructions Executed": n}) for n in (64, 128))
    pages.write_text(one + other, "utf-8")
    said = tmp_path / "said"
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    monkeypatch.setenv("FAKE_PAGES", str(pages))
    monkeypatch.setenv("FAKE_SAID", str(said))
    monkeypatch.setenv("FAKE_SOURCE", capture.text("source"))
    return said


def test_each_variant_is_profiled_once_by_its_own_binary(fake: Path, capture: Capture) -> None:
    variant = replace(capture, artifacts=(*capture.artifacts[:-1], Artifact("cubin", b"another")))
    found = find_nsight()
    assert found.name == "Nsight Compute 2025.3.1.0"
    profiles = profile_launch(found, REQUEST, 1, [capture, variant])
    executed = [read_source_page(one.page)[0].instructions[0].counters.executed for one in profiles]
    assert executed == [64, 128]
    assert all(one.own_binary and one.tool == found.name for one in profiles)
    said = fake.read_text("utf-8").splitlines()
    # The clocks are left alone, and nothing that the script launches by itself is profiled.
    for words in (["--clock-control", "none"], ["--profile-from-start", "off"], ["--kernel-name", "regex:^kernel$"]):
        assert said[said.index(words[0]) + 1] == words[1]
    assert {said[at + 1] for at, word in enumerate(said) if word == "--section"} == {
        "SourceCounters", "InstructionStats",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ("denied", RecordingError, "ERR_NVGPUCTRPERM.*NVreg_RestrictProfilingToAdminUsers=0"),
        ("no-gpu", NoDevice, "no GPU"),
        ("no-report", RecordingError, "made no report"),
    ],
)
def test_what_goes_wrong_is_told_with_its_remedy(
    fake: Path, capture: Capture, monkeypatch: pytest.MonkeyPatch, how: str, error: type[IrscopeError], words: str
) -> None:
    monkeypatch.setenv("FAKE_NCU", how)
    with pytest.raises(error, match=words):
        profile_launch(find_nsight(), REQUEST, 1, [capture])


def test_another_launch_than_the_recorded_one_is_refused(
    fake: Path, capture: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_SOURCE", capture.text("source").replace("@kernel", "@other"))
    with pytest.raises(RecordingError, match="its launches must not change"):
        profile_launch(find_nsight(), REQUEST, 1, [capture, capture])


def test_fewer_launches_than_variants_are_refused(fake: Path, capture: Capture) -> None:
    with pytest.raises(RecordingError, match="profiled 2 of 3 launches"):
        profile_launch(find_nsight(), REQUEST, 1, [capture] * 3)


def test_a_machine_without_it_is_told_where_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(nsight, "_PLACES", ())
    with pytest.raises(MissingTool, match=r"CUDA toolkit.*--counters REPORT\.csv"):
        find_nsight()
