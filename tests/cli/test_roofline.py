"""`irscope time --roofline` as a user types it, of a stored capture: no Triton and no GPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from irscope.model.evidence import Ceilings
from irscope.store.baseline import save_ceilings
from irscope.store.file import save
from tests.analysis.roofline.launched import attention
from tests.cli.product import Run


@pytest.fixture
def launched(tmp_path: Path) -> Path:
    path = tmp_path / "attention.irscope"
    save(attention(), path)
    return path


def test_the_first_part_of_the_target_is_assumed_and_said(irscope: Run, launched: Path) -> None:
    code, out, _ = irscope("time", "--roofline", launched)
    assert code == 0
    assert "peaks of NVIDIA H100 SXM5; --part h100-pcie or h200 for another" in out


def test_another_part_has_another_bound(irscope: Run, launched: Path) -> None:
    code, out, _ = irscope("time", "--roofline", launched, "--part", "H200")
    assert code == 0
    assert "4.8 TB/s" in out


def test_the_gpu_that_was_measured_is_taken(irscope: Run, launched: Path) -> None:
    save_ceilings([Ceilings("NVIDIA H200", "cuda:90", 4.1e12), Ceilings("NVIDIA T4", "cuda:75", 2.8e11)])
    _, out, _ = irscope("time", "--roofline", launched)
    assert "peaks of NVIDIA H200 SXM" in out
    assert "At the rates measured on NVIDIA H200" in out
    # It says nothing of another part.
    _, out, _ = irscope("time", "--roofline", launched, "--part", "h100")
    assert "measured" not in out


@pytest.mark.parametrize(
    ("part", "said"), [("h20", "no peaks of it are known"), ("mi300x", "--target hip:gfx942 compiles it for that")]
)
def test_a_part_that_does_not_fit_is_refused(irscope: Run, launched: Path, part: str, said: str) -> None:
    code, _, err = irscope("time", "--roofline", launched, "--part", part)
    assert code == 2
    assert said in err


def test_the_chart_is_written(irscope: Run, launched: Path, tmp_path: Path) -> None:
    assert irscope("draw", "roofline", launched, "-o", tmp_path / "roofline.svg")[0] == 0
    root = ElementTree.fromstring((tmp_path / "roofline.svg").read_text())
    assert root.tag.endswith("svg")
    assert irscope("draw", "roofline", launched, "--json") == irscope("time", "--roofline", launched, "--json")


def test_without_a_launch_it_says_what_is_missing(irscope: Run, tmp_path: Path) -> None:
    capture = attention()
    save(replace(capture, launch=replace(capture.launch, record=None)), tmp_path / "x.irscope")
    code, _, err = irscope("time", "--roofline", tmp_path / "x.irscope")
    assert code == 2
    assert "holds no launch" in err


def test_a_failed_compile_is_told_and_not_counted(irscope: Run, tmp_path: Path) -> None:
    from irscope.model.capture import Failure

    capture = attention()
    save(replace(capture, status="failed", failure=Failure("fit", "too much", "cubin")), tmp_path / "x.irscope")
    code, out, _ = irscope("time", "--roofline", tmp_path / "x.irscope", "--json")
    assert code == 1
    assert out.strip() == "[]"
