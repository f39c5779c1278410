"""The identity of the installed Triton, without importing it."""

from __future__ import annotations

from pathlib import Path

import pytest

from irscope.record.triton.identity import installed_identity

pytestmark = [pytest.mark.triton, pytest.mark.newest]


def test_it_changes_with_variables_and_the_files_that_they_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = {installed_identity()}
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    assert {installed_identity()} == found
    monkeypatch.setenv("DISABLE_LLVM_OPT", "1")
    found.add(installed_identity())
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(file := tmp_path / "ptxas"))
    file.write_text("a")
    found.add(installed_identity())
    file.write_text("ab")
    found.add(installed_identity())
    assert len(found) == 4
    # What is in a folder may change unseen.
    monkeypatch.setenv("TRITON_PLUGIN_PATHS", str(tmp_path))
    assert installed_identity() == ""
