"""`irscope verify` as a user types it, of a stored capture: no Triton and no GPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from irscope.model.capture import Capture, PassSnapshot
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
    save(replace(capture, launch=replace(capture.launch, grid=None)), path)
    code, out, _ = irscope("verify", path, path)
    assert code == 0
    assert "its grid is unknown; a tl.constexpr of --vs is only compiled: set it in a copy of the script" in out


def with_ttgir(capture: Capture, text: str) -> Capture:
    artifacts = tuple(replace(one, data=text) if one.stage == "ttgir" else one for one in capture.artifacts)
    return replace(capture, artifacts=artifacts)


def test_two_captures_mean_the_same_or_not(irscope: Run, tmp_path: Path) -> None:
    capture = attention()
    left, right = tmp_path / "left.irscope", tmp_path / "right.irscope"
    save(capture, left)
    # Another text of the same meaning, and one that adds where the first multiplies.
    same = capture.text("ttgir").replace("%", "%of_another_version_")
    for text, answer in ((same, "same"), (capture.text("ttgir").replace("arith.mulf", "arith.addf"), "changed")):
        save(with_ttgir(capture, text), right)
        code, out, _ = irscope("verify", left, right)
        assert (code, out.partition(":")[0]) == (int(answer == "changed"), answer)
    assert " before, " in out


def test_passes_that_are_not_decided_for_one_reason_are_one_line(irscope: Run, tmp_path: Path) -> None:
    capture = attention()
    unknown = capture.text("ttgir").replace("arith.mulf", "arith.unheard_of")
    texts = [f"{unknown}{newlines}" for newlines in ("", "\n", "\n\n")]
    snapshots = tuple(PassSnapshot(at, "ttgir", "cse", at + 1, text=own) for at, own in enumerate(texts))
    save(replace(capture, snapshots=snapshots), tmp_path / "three.irscope")
    code, out, _ = irscope("verify", tmp_path / "three.irscope", "--passes")
    assert code == 0
    assert out.count("unheard_of") == 1
    assert "3 passes, ttgir:cse#1 to ttgir:cse#3: " in out
