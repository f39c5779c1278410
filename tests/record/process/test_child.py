"""Another interpreter takes irscope from here, and everything else from where it always does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from irscope import errors
from irscope.record.process.child import ask_child
from tests.record.fake_distribution import fake


@pytest.mark.triton
def test_what_lies_beside_irscope_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a site-packages with irscope and another Triton."""
    shutil.copytree(Path(errors.__file__).parent, tmp_path / "irscope", ignore=shutil.ignore_patterns("__pycache__"))
    fake(tmp_path, "triton", "3.6.99")
    (tmp_path / "triton.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "irscope" / "errors.py"))
    answer = ask_child("irscope.record.triton.identity", timeout_s=60)
    assert answer["error"] == ""
    assert answer["triton"] not in ("", "3.6.99")
