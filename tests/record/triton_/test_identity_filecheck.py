"""FileCheck of Triton's wheel: what it accepts, what it rejects with a reason, and files that it cannot use."""

from __future__ import annotations

from pathlib import Path

import pytest

from irscope.errors import MissingTool, ParseError, UsageError
from irscope.record.triton import identity as filecheck
from irscope.record.triton.identity import run_filecheck


@pytest.mark.triton
def test_it_accepts_and_rejects(tmp_path: Path) -> None:
    patterns = tmp_path / "a.check"
    patterns.write_text("// CHECK: tt.load\n// CHECK-NOT: tt.dot\n// CHECK: tt.store\n")
    assert run_filecheck(str(patterns), "x\ntt.load\ntt.store\n") == ""
    said = run_filecheck(str(patterns), "tt.load\ntt.dot\ntt.store\n")
    assert "excluded string found" in said
    assert "tt.dot" in said
    assert "expected string not found" in run_filecheck(str(patterns), "")
    patterns.write_text("nothing\n")
    with pytest.raises(ParseError, match="no check strings"):
        run_filecheck(str(patterns), "x")
    with pytest.raises(UsageError, match="does not exist"):
        run_filecheck(str(tmp_path / "other"), "x")


def test_without_it_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(filecheck, "package_folder", lambda: tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingTool, match=r"Triton's package .* has none"):
        filecheck.filecheck_program()
    program = tmp_path / "FileCheck"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert filecheck.filecheck_program() == program
