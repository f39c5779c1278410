"""`irscope verify` as a user types it, of a stored capture: no Triton and no GPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from irscope.store.file import save
from tests.analysis.roofline.launched import attention
from tests.cli.product import Run


def test_a_launch_that_is_right_is_safe(irscope: Run, tmp_path: Path) -> None:
    path = tmp_path / "attention.irscope"
    save(attention(), path)
    code, out, _ = irscope("verify", path)
    assert code == 0
    assert "safe: accesses to global memory of all 16 programs" in out


def test_a_number_that_is_too_large_is_an_access_out_of_bounds(irscope: Run, tmp_path: Path) -> None:
    path = tmp_path / "attention.irscope"
    save(attention(stretched=2), path)
    code, out, _ = irscope("verify", path)
    assert code == 1
    assert "IRS901 access out of bounds" in out
    assert "made by: the kernel" in out


def test_what_is_missing_is_named(irscope: Run, tmp_path: Path) -> None:
    path = tmp_path / "attention.irscope"
    save(attention(without="nk"), path)
    code, out, _ = irscope("verify", path)
    assert code == 0
    assert "not decided: the accesses of all programs: the kernel has 20 parameters, and 19 arguments were given" in out


def test_a_capture_without_a_launch_is_not_decided(irscope: Run, tmp_path: Path) -> None:

    capture = attention()
    path = tmp_path / "bare.irscope"
    save(replace(capture, launch=replace(capture.launch, record=None, grid=None)), path)
    code, out, _ = irscope("verify", path)
    assert code == 0
    assert "not decided: it was compiled without a launch" in out
