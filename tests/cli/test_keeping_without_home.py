"""A user who has no home: every command still gives what it was asked for, and says which variable mends it."""

from __future__ import annotations

import inspect
import lzma
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from irscope.record.process.child import warm_children
from irscope.record.variants import completing
from tests.cli.product import ROOT
from tests.cli.test_keeping import BISECTED, SOFTMAX
from tests.hostile.viewing import run_quietly

AXPY = (
    "tests/record/kernels/no_torch.py::axpy",
    "--signature",
    "*fp32:16, *fp32:16, i32:16, fp32",
    "--constexpr",
    "BLOCK=128",
)
LOG = ROOT / "tests/data/dumps/3.9.0.failing.xz"
NOT_KEPT = "The recording was not stored: there is no home folder to keep captures in: IRSCOPE_HOME=FOLDER names one\n"


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def getpwuid(number: int) -> None:
    """No user of the system's has a home."""
    raise KeyError(number)


def leave_home(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Take the home out of the environment; `folder` makes processes that are started find none among the users."""
    patch.setenv("PYTHONPATH", f"{folder}:{ROOT}")
    for name in ("HOME", "IRSCOPE_HOME", "XDG_CACHE_HOME"):
        patch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def homeless(clean_session: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """That folder. Recordings there are forks too, of a process that was started so."""
    folder = tmp_path_factory.mktemp("homeless")
    (folder / "sitecustomize.py").write_text(
        f"import pwd\n{dedent(inspect.getsource(getpwuid))}pwd.getpwuid = getpwuid\n"
    )
    with ExitStack() as held:
        with pytest.MonkeyPatch.context() as patch:
            leave_home(patch, folder)
            held.enter_context(warm_children())
        yield folder


@pytest.fixture
def without_home(homeless: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """A command of a user who has no home: none in the environment, and none among the system's users."""
    monkeypatch.setattr("pwd.getpwuid", getpwuid)
    leave_home(monkeypatch, homeless)
    monkeypatch.chdir(ROOT)
    # What a process remembers.
    monkeypatch.setattr(completing, "_told", set())
    completing._tell_foreign.cache_clear()
    return lambda *words: Done(*run_quietly(tuple(map(str, words))))


@pytest.mark.parametrize(
    "words",
    [
        ("show", SOFTMAX), ("show", SOFTMAX, "--stage", "sass"), ("passes", SOFTMAX), ("diff", SOFTMAX, SOFTMAX),
        ("layout", SOFTMAX), ("source", SOFTMAX), ("draw", "dataflow", SOFTMAX, "--json"),
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
        "irscope: 'last' is not a file, and there is no home folder to keep captures in: IRSCOPE_HOME=FOLDER names "
        "one.\n"
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
        ("ablate", SOFTMAX, "--pass", "combine", "--virtual"),
        ("ablate", *AXPY, "--pass", "combine"),
        ("ablate", SOFTMAX, *BISECTED),
    ],
    ids=["dump", "passes", "diff", "ablate", "ablate-recorded", "ablate"],
)
def test_what_is_recorded_is_shown(without_home: Callable[..., Done], words: tuple[str | Path, ...]) -> None:
    done = without_home(*words, *(() if SOFTMAX in words else ("--target", "cuda:90")))
    assert done.returncode == 0
    assert done.stdout
    assert done.stderr.count(NOT_KEPT) == 1
    assert ("was not recorded here, nor derived from one that was" in done.stderr) == (SOFTMAX in words)
