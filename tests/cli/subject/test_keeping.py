"""Where captures cannot be kept, every command still gives what it was asked for, and says which variable mends it."""

from __future__ import annotations

import errno
import inspect
import lzma
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent

import pytest

from irscope.cli.subject import captures, keeping
from irscope.model.capture import Artifact, SourceFile
from irscope.store.file import load
from irscope.store.recent import CaptureStore
from tests.cli.product import ROOT
from tests.hostile.viewing import run_quietly

AXPY = (
    "tests/record/kernels/no_torch.py::axpy",
    "--signature",
    "*fp32:16, *fp32:16, i32:16, fp32",
    "--constexpr",
    "BLOCK=128",
)
SOFTMAX = ROOT / "tests/data/hostile/softmax-cuda-90.irscope"
LOG = ROOT / "tests/data/dumps/3.9.0.failing.xz"
BISECTED = ("--disable-pass", "combine", "--check", 'test -z "$IRSCOPE_PLAN"')
NOT_KEPT = "The recording is not kept: there is no home folder to keep captures in: IRSCOPE_HOME=FOLDER names one\n"


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def without_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """A command of a user who has no home: none in the environment, and none among the system's users."""

    def getpwuid(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr("pwd.getpwuid", getpwuid)
    # The same in each process that it starts.
    (tmp_path / "sitecustomize.py").write_text(
        f"import pwd\n{dedent(inspect.getsource(getpwuid))}pwd.getpwuid = getpwuid\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    for name in ("HOME", "IRSCOPE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(ROOT)
    # What a process remembers.
    for name in ("_recorded", "_told"):
        monkeypatch.setattr(keeping, name, set())
    captures._tell_foreign.cache_clear()
    return lambda *words: Done(*run_quietly(tuple(map(str, words))))


@pytest.mark.parametrize(
    "words",
    [
        ("show", SOFTMAX), ("show", SOFTMAX, "--stage", "sass"), ("passes", SOFTMAX), ("diff", SOFTMAX, SOFTMAX),
        ("layout", SOFTMAX), ("source", SOFTMAX), ("graph", SOFTMAX, "--json"),
    ],
    ids=lambda words: " ".join(map(str, words)).replace(str(SOFTMAX), "FILE"),
)  # fmt: skip
def test_a_file_is_looked_at_without_a_word(without_home: Callable[..., Done], words: tuple[str | Path, ...]) -> None:
    done = without_home(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_a_page_is_written(without_home: Callable[..., Done], tmp_path: Path) -> None:
    page = tmp_path / "x.html"
    assert without_home("report", SOFTMAX, "-o", page).returncode == 0
    assert page.read_bytes()


@pytest.mark.parametrize("words", [("show",), ("show", "last"), ("passes",), ("report",), ("layout", "last")])
def test_the_last_capture_is_none(without_home: Callable[..., Done], words: tuple[str, ...]) -> None:
    done = without_home(*words)
    assert done.returncode == 1
    assert done.stderr == (
        "irscope: 'last' is no file, and there is no home folder to keep captures in: IRSCOPE_HOME=FOLDER names one.\n"
    )


def test_the_list_is_empty(without_home: Callable[..., Done]) -> None:
    done = without_home("ls")
    assert (done.returncode, done.stdout[:22]) == (0, "No capture is stored. ")
    assert "IRSCOPE_HOME=FOLDER" in done.stderr


def test_what_is_imported_is_shown(without_home: Callable[..., Done], tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(lzma.decompress(LOG.read_bytes()))
    done = without_home("import", log)
    assert done.returncode == 0
    assert "broken" in done.stdout
    assert done.stderr.startswith(NOT_KEPT)


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize(
    "words",
    [
        ("dump", *AXPY, "--stage", "ttgir"),
        ("passes", *AXPY),
        ("diff", SOFTMAX, "--disable-pass", "combine"),
        ("ablate", SOFTMAX, "--pass", "combine", "--no-gpu"),
        ("ablate", *AXPY, "--pass", "combine"),
        ("bisect", SOFTMAX, *BISECTED),
    ],
    ids=["dump", "passes", "diff", "ablate", "ablate-recorded", "bisect"],
)
def test_what_is_recorded_is_shown(without_home: Callable[..., Done], words: tuple[str | Path, ...]) -> None:
    done = without_home(*words, *(() if SOFTMAX in words else ("--target", "cuda:90")))
    assert done.returncode == 0
    assert done.stdout
    assert done.stderr.count(NOT_KEPT) == 1
    assert ("is not among the captures that were recorded here" in done.stderr) == (SOFTMAX in words)


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
        ("ablate", "last", "--pass", "combine", "--no-gpu"),
        ("bisect", "last", *BISECTED),
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
        keeping.update_stored(foreign, more)
        assert path.read_bytes() == before
    # One of which more is known is.
    more = stored.with_(notes=(*stored.notes, "a note"))
    keeping.update_stored(stored, more)
    assert load(path).notes == more.notes
