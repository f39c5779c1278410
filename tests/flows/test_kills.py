"""A recording that is killed at any moment, in any way, loses nothing that was complete and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from irscope.__main__ import run as run_irscope
from irscope.cli.keeping import Keeping, kept_captures
from irscope.model.capture import Failure
from irscope.record.process import own_folder
from irscope.record.variants.completing import reporting
from irscope.store import recent
from irscope.store.file import load
from irscope.store.recent import CaptureStore
from tests.record.kills import SCRIPT, WAYS, Kill, kills, processes_with, what_is_left
from tests.store.test_file import capture

KERNELS = Path(__file__).parents[1] / "record" / "kernels"
ROOT = Path(__file__).parents[2]


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize("kill", kills(len(WAYS), 14), ids=lambda kill: f"{kill.way}-{kill.launches}")
def test_killed_at_a_random_moment(kill: Kill, tmp_path: Path) -> None:
    assert what_is_left(kill, tmp_path).problems == ()


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize(("number", "code", "by"), [(signal.SIGTERM, 143, "SIGTERM"), (signal.SIGINT, 130, "Ctrl-C")])
def test_a_signal_makes_a_failure_of_the_compile_under_way(number: int, code: int, by: str, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(temporary), "IRSCOPE_HOME": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "irscope", "dump", KERNELS / "hostile.py", "--virtual", "--", "hang"],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("captures/fine-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)
    # As a group gets it, and again by whoever started it.
    process.send_signal(number)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == code
    assert errors == "Compiled so far, and kept: 1 (irscope ls).\nirscope: interrupted\n"
    (hostile,) = (load(path) for path in tmp_path.glob("captures/hostile-*"))
    assert hostile.failure is not None
    assert (hostile.failure.kind, hostile.failure.message) == ("interrupt", f"interrupted ({by}).")
    assert not processes_with(str(tmp_path))
    assert not list(temporary.iterdir())


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize(
    ("script", "argument", "options", "stored"),
    [(SCRIPT, "exit", (), 6), (KERNELS / "hostile.py", "abort", (), 2), (KERNELS / "hostile.py", "hang", (3,), 2)],
    ids=["os._exit", "abort", "time-out"],
)
def test_however_the_script_ends_nothing_is_left(
    script: Path, argument: str, options: tuple[int, ...], stored: int, tmp_path: Path
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(temporary), "IRSCOPE_HOME": str(tmp_path)}
    limit = [word for seconds in options for word in ("--timeout", str(seconds))]
    command = [
        sys.executable,
        "-m",
        "irscope",
        "dump",
        script,
        "--virtual",
        *limit,
        "--",
        tmp_path / "told",
        argument,
    ]
    if script != SCRIPT:
        command.remove(tmp_path / "told")
    subprocess.run(command, env=environment, capture_output=True, check=False)
    assert len(list(tmp_path.glob("captures/*.irscope"))) == stored
    assert not list(temporary.iterdir())
    gone = time.monotonic() + 2
    while processes_with(str(tmp_path)) and time.monotonic() < gone:
        time.sleep(0.05)
    assert not processes_with(str(tmp_path))


@pytest.mark.newest
@pytest.mark.triton
def test_a_file_is_written_twice_at_most_and_ends_as_the_recording_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A listing that is there at once comes before the grid, which is then written by itself.
    monkeypatch.delenv("TRITON_NVDISASM_PATH")
    written: Counter[str] = Counter()
    given: dict[str, object] = {}
    real, keep = recent.write_atomically, Keeping.__call__

    def counted(path: Path, *more: object) -> None:
        written[path.name] += 1
        real(path, *more)  # type: ignore[arg-type]

    def noted(self: Keeping, one: object) -> None:
        keep(self, one)  # type: ignore[arg-type]
        given[one.id] = one  # type: ignore[attr-defined]

    monkeypatch.setattr(recent, "write_atomically", counted)
    monkeypatch.setattr(Keeping, "__call__", noted)
    assert run_irscope(["dump", str(SCRIPT), "--virtual", "--", str(tmp_path / "told")]) == 0
    paths = CaptureStore().paths()
    assert written.pop("last.json") == 1
    assert len(paths) == len(written) == 6
    assert max(written.values()) <= 2
    for path in paths:
        stored = load(path)
        assert stored == given[stored.id]
        assert stored.launch.grid == (3, 1, 1)
        assert stored.layouts


def test_an_interrupted_compile_does_not_take_the_place_of_one_that_ended() -> None:
    from dataclasses import replace

    cut = replace(capture(), status="failed", failure=Failure("interrupt", "interrupted (SIGTERM)."))
    with kept_captures() as keep:
        keep(cut)
        assert CaptureStore().load(cut.id) == cut
        keep(capture())
    with kept_captures() as keep:
        keep(cut)
    assert CaptureStore().load("last") == capture()


def test_a_store_that_cannot_be_written_is_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("IRSCOPE_HOME", str(tmp_path / "file"))
    with reporting(lambda text: print(text, file=sys.stderr)), kept_captures() as keep:
        keep(capture())
        keep(capture("other"))
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "IRSCOPE_HOME" in told


def test_the_sweep_takes_what_nobody_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "irscope-recording-of-somebody").mkdir()
    (tmp_path / "irscope-other").mkdir()
    code = """
import os, sys
from irscope.record.process.own_folder import own_folder
with own_folder() as folder:
    (folder / "deep").mkdir()
    (folder / "deep" / "file").touch()
    print(folder.name, flush=True)
    sys.stdin.read()
"""
    environment = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    owner = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    name = owner.stdout.readline().strip()
    with own_folder.own_folder() as mine:
        names = {"irscope-recording-of-somebody", "irscope-other", name, mine.name}
        assert {path.name for path in tmp_path.iterdir()} == names
    owner.kill()
    owner.communicate()
    own_folder.sweep()
    assert {path.name for path in tmp_path.iterdir()} == {"irscope-recording-of-somebody", "irscope-other"}
    with contextlib.suppress(OSError):
        os.utime(tmp_path / "irscope-recording-of-somebody", (0, 0))
    own_folder.sweep()
    assert {path.name for path in tmp_path.iterdir()} == {"irscope-other"}
