"""A capture is compiled for its log once, and keeps it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.__main__ import run
from irscope.model.capture import Capture
from irscope.record.compile import second
from irscope.store.file import save
from irscope.store.recent import CaptureStore
from tests.record.reasons import KERNELS

pytestmark = [pytest.mark.triton, pytest.mark.newest]

DUMP = ["dump", f"{KERNELS}::narrow", "--signature", "*fp16:16, *fp16:16, i32:16, i32", "--constexpr", "BLOCK=1024"]


def test_it_is_made_once_and_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert run([*DUMP, "--target", "cuda:90"]) == 0
    before = CaptureStore().load("last")
    assert before.log is None
    capsys.readouterr()
    assert run(["passes", "last"]) == 0
    plain = capsys.readouterr().out
    assert run(["passes", "last", "--log", "--match", "coalesce"]) == 0
    logged = capsys.readouterr().out
    assert "limited by divisibility" in logged
    assert "axis info of pointer" in logged
    assert "llir:" not in logged
    after = CaptureStore().load("last")
    assert replace(after, log=None) == before
    assert after.log is not None
    assert after.log.differing == ()

    def not_again(capture: Capture, run: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(second, "find_log", not_again)
    assert run(["passes", "last", "--log", "--match", "coalesce"]) == 0
    assert capsys.readouterr().out == logged
    # Without the option nothing changes.
    assert run(["passes", "last"]) == 0
    assert capsys.readouterr().out == plain
    assert run(["passes", "last", "--json"]) == 0
    assert "log" not in json.loads(capsys.readouterr().out)[0]


def test_another_triton_is_not_asked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run([*DUMP, "--target", "cuda:90", "-o", str(tmp_path / "one.irscope")]) == 0
    one = CaptureStore().load("last")
    other = tmp_path / "other.irscope"
    save(replace(one, environment=replace(one.environment, triton_version="1.0.0")), other)
    capsys.readouterr()
    assert run(["passes", str(other), "--log"]) == 1
    assert "was compiled by Triton 1.0.0" in capsys.readouterr().err
