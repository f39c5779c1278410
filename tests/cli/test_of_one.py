"""`irscope layout` and others that need one capture, given a folder of several."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from irscope.cli import captures
from tests.cli.product import Run
from tests.conftest import DATA


@pytest.mark.parametrize(
    "words",
    [("layout", "--costs"), ("layout",), ("reproduce",), ("profile",), ("ablate",)],
    ids=" ".join,
)
def test_several_captures_are_refused_before_anything_is_done(
    irscope: Run, tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("softmax-cuda-90", "matmul-hip-gfx942"):
        shutil.copy(DATA / "hostile" / f"{name}.irscope", tmp_path)

    def refused(*_: object) -> None:
        raise AssertionError("nothing is disassembled before the choice")

    monkeypatch.setattr(captures, "with_sass", refused)
    code, _, err = irscope(words[0], tmp_path, *words[1:])
    assert code == 2
    assert "names 2 captures, and one is needed" in err
