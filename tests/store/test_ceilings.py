"""What `doctor --gpu` measured, to the disk and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from irscope.model.evidence import Ceilings
from irscope.store.ceilings import load_ceilings, save_ceilings

MEASURED = (
    Ceilings("NVIDIA H200", "cuda:90", 4.1e12, (("float16", 7.5e14), ("float32", 3.9e14)), "2026-01-01"),
    Ceilings("AMD Instinct MI300X", "hip:gfx942", 4.2e12),
)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    assert load_ceilings(tmp_path / "none") == ()
    save_ceilings(MEASURED, tmp_path / "folder")
    assert load_ceilings(tmp_path / "folder") == MEASURED
    save_ceilings(MEASURED[:1], tmp_path / "folder")
    assert load_ceilings(tmp_path / "folder") == MEASURED[:1]


@pytest.mark.parametrize(
    "text", ["", "{", "[]x", '{"a": 1}', '[{"device": "x"}]', '[{"device": 1, "target": 2, "bytes_per_s": "x"}]', "[1]"]
)
def test_a_damaged_file_is_as_none(tmp_path: Path, text: str) -> None:
    (save_ceilings(MEASURED, tmp_path)).write_text(text)
    assert load_ceilings(tmp_path) == ()
