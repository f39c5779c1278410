"""The store of recent captures under several processes, at its limit, and where it cannot be written."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.errors import CaptureNotFound
from irscope.model.capture import Artifact, Capture, Kernel, Launch
from irscope.store.recent import CaptureStore
from irscope.target import Target

WRITERS, READERS, EACH = 8, 4, 15


def capture(writer: int, number: int) -> Capture:
    text = f"module {{}} // {writer} {number} {os.urandom(2000).hex()}"
    return Capture(
        Launch(Kernel(f"kernel_{writer}_{number}")), Target.parse("cuda:90"), artifacts=(Artifact("ttir", text),)
    )


def write(folder: str, writer: int) -> None:
    """Store captures as one recording does; leave with 1 where one of them is gone before its end."""
    store = CaptureStore(Path(folder), limit_bytes=20_000)
    with store.recording():
        paths = [store.add(capture(writer, number)) for number in range(EACH)]
        sys.exit(int(not all(path.is_file() for path in paths)))


def read(folder: str, _: int) -> None:
    store = CaptureStore(Path(folder), limit_bytes=20_000)
    for _ in range(2 * EACH):
        store.rows()
        try:
            store.load("last")
        except CaptureNotFound:
            continue
    sys.exit(0)


def test_several_processes_at_its_limit_lose_nothing_and_raise_nothing(tmp_path: Path) -> None:
    fork = multiprocessing.get_context("fork")
    jobs = [fork.Process(target=write, args=(str(tmp_path), n)) for n in range(WRITERS)]
    jobs += [fork.Process(target=read, args=(str(tmp_path), n)) for n in range(READERS)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join(120)
    assert [job.exitcode for job in jobs] == [0] * len(jobs)
    # The recordings are over: the next that is stored drops what is past the limit.
    store = CaptureStore(tmp_path, limit_bytes=20_000)
    store.add(capture(99, 0))
    assert sum(path.stat().st_size for path in store.paths()) <= 20_000
    assert not list(tmp_path.glob(".*"))


def test_a_recording_that_was_killed_spares_nothing(tmp_path: Path) -> None:
    script = (
        "import sys, os; from pathlib import Path; from irscope.store.recent import CaptureStore\n"
        "with CaptureStore(Path(sys.argv[1])).recording(): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    (lease,) = tmp_path.glob(".recording-*")
    os.utime(lease, (1, 1))
    store = CaptureStore(tmp_path, limit_bytes=1)
    store.add(capture(0, 0))
    store.add(capture(0, 1))
    assert len(store.paths()) == 1
    assert not lease.exists()


def test_a_clock_that_is_set_back_moves_no_capture_before_an_older_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = CaptureStore(tmp_path)
    first = store.add(capture(0, 0))
    monkeypatch.setattr("irscope.store.recent.time.time_ns", lambda: 1)
    second = store.add(capture(0, 1))
    assert store.paths() == [second, first]


def test_a_long_name_in_any_script_fits_a_file_name(tmp_path: Path) -> None:
    store = CaptureStore(tmp_path)
    named = replace(capture(0, 0), launch=Launch(Kernel("核" * 200)))
    assert store.load(named.id) == named if store.add(named).is_file() else False


def test_a_folder_that_cannot_be_written_names_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "captures").write_text("no folder")
    with pytest.raises(OSError, match="IRSCOPE_HOME=FOLDER"):
        CaptureStore(tmp_path / "captures").add(capture(0, 0))
