"""Where captures cannot be kept, every command still gives what it was asked for, and says which variable mends it."""

from __future__ import annotations

import errno
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.model.capture import Artifact, SourceFile
from irscope.record.variants import completing
from irscope.record.variants.completing import update_stored
from irscope.store.file import load
from irscope.store.recent import CaptureStore
from tests.cli.product import ROOT
from tests.hostile.viewing import run_quietly
from tests.record.telling_child import telling_child

SOFTMAX = ROOT / "tests/data/hostile/softmax-cuda-90.irscope"
BISECTED = ("--disable-pass", "combine", "--check", 'test -z "$IRSCOPE_PLAN"')


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a capture whose SASS is still to be made, in a store that takes nothing more."""
    whole = load(SOFTMAX)
    capture = replace(whole, artifacts=tuple(item for item in whole.artifacts if item.stage != "sass"))
    CaptureStore().add(capture)

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("irscope.store.recent.write_atomically", refused)
    monkeypatch.setattr("irscope.store.recent.os.utime", refused)
    return capture.id


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize(
    "words",
    [
        ("show", "ID", "--stage", "sass"),
        ("show", "last", "--stage", "sass"),
        ("diff", "last", "--vs", "num_warps=8"),
        ("ablate", "last", "--pass", "combine", "--virtual"),
        ("ablate", "last", *BISECTED),
    ],
    ids=" ".join,
)
def test_a_store_that_is_read_only(read_only: str, words: tuple[str, ...]) -> None:
    code, out, told = run_quietly(tuple(read_only if word == "ID" else word for word in words))
    assert code == 0
    assert out
    assert told.count("Read-only file system. IRSCOPE_HOME=FOLDER names another place for captures") == 1


def test_a_store_that_is_read_only_is_read(read_only: str) -> None:
    assert read_only[:8] in run_quietly(("ls",))[1]
    assert run_quietly(("passes", "last"))[0] == 0


def test_a_file_with_the_id_of_a_stored_capture_and_other_artifacts_is_not_stored_in_its_place() -> None:
    stored = load(SOFTMAX)
    path = CaptureStore().add(stored)
    other = stored.with_(
        artifacts=tuple(replace(one, data="other") if one.stage == "ttgir" else one for one in stored.artifacts)
    )
    assert other.id == stored.id
    before = path.read_bytes()
    invented = stored.with_(artifacts=(*stored.artifacts, Artifact("amdgcn", "invented")))
    elsewhere = stored.with_(sources=(SourceFile("other.py", "other"),))
    for foreign in (other, invented, elsewhere):
        more = foreign.with_(notes=(*foreign.notes, "a note"))
        update_stored(foreign, more)
        assert path.read_bytes() == before
    # One of which more is known is.
    more = stored.with_(notes=(*stored.notes, "a note"))
    update_stored(stored, more)
    assert load(path).notes == more.notes


@pytest.mark.parametrize(
    ("number", "home", "command", "code"),
    [
        (errno.ENOSPC, "", "dump", 1),
        (errno.EACCES, "", "dump", 0),
        (errno.EACCES, "", "record", 1),
        (errno.EACCES, "IRSCOPE_HOME", "dump", 1),
    ],
)
def test_a_store_that_cannot_be_written_is_no_success(
    number: int, home: str, command: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the user asked to keep is not there: on a full disk, in a place that was named, or after `record`."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number), "store")

    monkeypatch.setattr(CaptureStore, "add", refuse)
    # What a process remembers.
    monkeypatch.setattr(completing, "_told", set())
    monkeypatch.setattr(sys, "executable", telling_child(tmp_path, 1))
    if not home:
        monkeypatch.delenv("IRSCOPE_HOME")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ended, _, said = run_quietly((command, str(tmp_path / "script.py")))
    assert (ended, os.strerror(number) in said) == (code, True)
