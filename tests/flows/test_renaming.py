"""Names of values say nothing: whatever regions side by side call theirs, every table reads the same."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import pytest

from irscope.store.file import load
from tests.ir.mlir.test_reader import LOOP, SCOPES
from tests.ir.renaming import WAYS, Way, changed_capture, changed_tables, compilers_text, renamed, texts_of
from tests.machine.recorded import recorded

ROOT = Path(__file__).parents[2]
CAPTURES = sorted((ROOT / "tests" / "data" / "layouts").glob("*.irscope"))
SPECIALIZED = ROOT / "tests" / "analysis" / "kernels" / "specialized.py"


def test_the_renaming_uses_one_name_for_several_values() -> None:
    unique, reused = (renamed(LOOP, way) for way in WAYS)
    assert unique != LOOP != reused
    for text in (unique, reused):
        assert renamed(text, "unique") == unique
        assert renamed(text, "reused") == reused
    assert renamed(SCOPES, "reused").count("%5 = ") > 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_tables_of_captures(path: Path, way: Way) -> None:
    assert changed_capture(load(path), way) == []
    for name, text in texts_of(path):
        assert changed_tables(text, renamed(text, way)) == [], name


@pytest.mark.exhaustive
@pytest.mark.triton
@pytest.mark.newest
@pytest.mark.slow
def test_tables_of_specialised_warps() -> None:
    captures = recorded(SPECIALIZED, "cuda:100")
    assert len(captures) == 3
    printed = compilers_text()
    assert printed is not None
    for capture, way in zip(captures, cycle(WAYS)):
        assert "ttg.warp_specialize" in capture.text("ttgir")
        assert changed_capture(capture, way) == []
        text = capture.text("ttgir")
        # The compiler itself says that a renamed module is the module.
        assert printed(renamed(text, way)) == printed(text)
        assert changed_tables(text, renamed(text, way)) == []
