"""The parent of a recording keeps one capture in memory, however many there are, and loses none."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from irscope import api
from irscope.__main__ import run as run_irscope
from irscope.cli.keeping import kept_captures
from irscope.errors import CaptureNotFound
from irscope.model.capture import Capture
from irscope.record.process.requests import RecordRequest
from irscope.record.process.session import Recording, record_request
from irscope.store import file as store
from irscope.store import recent, shelf
from irscope.store.recent import CaptureStore
from tests.record.telling_child import telling_child

MEGABYTE = 1 << 20


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def _recorded(child: str, *, stores: bool = True) -> Recording:
    request = RecordRequest(mode="script", path="script.py", targets=("cuda:90",), interpreter=child)
    with kept_captures() as keep:
        return record_request(request, keep=keep if stores else None)


def _peak(work: Callable[[], object]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _live() -> int:
    gc.collect()
    return sum(type(one) is Capture for one in gc.get_objects())


@pytest.mark.parametrize(
    "place",
    [
        "store",
        *(
            pytest.param(place, marks=pytest.mark.exhaustive)
            for place in ("temporary folder", "store that cannot be written")
        ),
    ],
)
def test_memory_is_flat(place: str, tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if place.endswith("written"):
        (tmp_path / "file").touch()
        monkeypatch.setenv("IRSCOPE_HOME", str(tmp_path / "file"))

    def record_and_read(child: str, count: int) -> None:
        before = _live()
        captures = _recorded(child, stores=place != "temporary folder").captures
        assert _live() - before == 1
        names = [one.name for one in captures if len(one.text_after(one.snapshots[0]) or "") > MEGABYTE // 2]
        assert names == [f"kernel{n}" for n in range(count)]
        assert [one.launch.grid for one in captures] == [(n + 1, 1, 1) for n in range(count)]
        assert _live() - before == 1

    peaks: dict[int, int] = {}
    # The first makes what is made once.
    assert _recorded(telling_child(tmp_path, 1), stores=place != "temporary folder").captures[0].name == "kernel0"
    for count in (2, 5):
        child = telling_child(tmp_path, count, MEGABYTE)
        peaks[count] = _peak(lambda: record_and_read(child, count))  # noqa: B023
        # With the captures their files go.
        assert not list(temporary.iterdir())
    assert peaks[5] < peaks[2] + MEGABYTE


@pytest.mark.parametrize("command", [["dump"], ["passes"], ["dump", "-o", "made"]], ids=" ".join)
def test_memory_of_a_command_is_flat(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    peaks: dict[int, int] = {}

    def run() -> None:
        assert run_irscope([*command, str(tmp_path / "script.py")]) == 0

    # The first imports what is imported once, which would take three times as long with its memory traced.
    monkeypatch.setattr(sys, "executable", telling_child(tmp_path, 1))
    run()
    for count in (2, 5):
        monkeypatch.setattr(sys, "executable", telling_child(tmp_path, count, MEGABYTE // 8))
        peaks[count] = _peak(run)
    assert peaks[5] < peaks[2] + MEGABYTE // 4


@pytest.mark.parametrize("options", [{}, {"disassemble": True}], ids=["grid last", "sass last"])
def test_a_capture_is_written_once_and_never_read(
    options: dict[str, bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, read = Counter[str](), Counter[str]()

    def counted_write(path: Path, *more: Any) -> None:
        written[path.name.partition("-")[0]] += 1
        write(path, *more)

    def counted_read(data: bytes, name: str) -> Capture:
        read[Path(name).name.partition("-")[0]] += 1
        return from_bytes(data, name)

    write, from_bytes = recent.write_atomically, shelf.from_bytes
    monkeypatch.setattr(recent, "write_atomically", counted_write)
    monkeypatch.setattr(store, "write_atomically", counted_write)
    monkeypatch.setattr(shelf, "from_bytes", counted_read)
    recording = _recorded(telling_child(tmp_path, 1, **options))
    assert (recording.captures[0].name, recording.captures[-1].launch.grid) == ("kernel0", (1, 1, 1))
    assert (written, read) == ({"kernel0": 1, "last.json": 1}, {})
    api.record_all(tmp_path / "script.py", interpreter=telling_child(tmp_path, 1))
    assert (written, read) == ({"kernel0": 1, "last.json": 1}, {})


def test_a_capture_that_is_not_complete_is_kept_meanwhile(tmp_path: Path) -> None:
    """Its listing takes long: were the parent killed now, the rest is not lost."""
    home, told = os.environ["IRSCOPE_HOME"], tmp_path / "told"
    look = (
        f"import glob, time; time.sleep(0.6); open({str(told)!r}, 'w').write(str(glob.glob({home!r} + '/*/kernel0-*')))"
    )
    captures = _recorded(telling_child(tmp_path, 1, disassemble=True, before_sass=look)).captures
    assert "kernel0-" in told.read_text()
    assert captures[0].launch.grid == (1, 1, 1)


def test_a_note_at_the_end_reaches_every_file(tmp_path: Path) -> None:
    note = 'tell(Note("of all"))'
    for stores in (True, False):
        captures = _recorded(telling_child(tmp_path, 3, late=note), stores=stores).captures
        assert [one.notes for one in captures] == [("of all",)] * 3
    assert [store.load(path).notes for path in CaptureStore().paths()] == [("of all",)] * 3
    assert [store.load(path).launch.grid for path in CaptureStore().paths()] == [(3, 1, 1), (2, 1, 1), (1, 1, 1)]


@pytest.mark.parametrize("harm", ["shutil.rmtree(os.environ['IRSCOPE_HOME'])", "[0 for _ in range(4)]"])
def test_a_store_that_is_deleted_or_full_costs_no_capture(
    harm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IRSCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IRSCOPE_STORE_LIMIT_MB", "0")
    wait = "import time; time.sleep(0.2)"
    captures = _recorded(telling_child(tmp_path, 4, between=f"{wait}; {harm}; {wait}")).captures
    shutil.rmtree(tmp_path / "home", ignore_errors=True)
    assert [one.name for one in captures] == [f"kernel{n}" for n in range(4)]


def test_a_script_that_removes_all_temporary_files_costs_no_capture(tmp_path: Path, temporary: Path) -> None:
    place = str(temporary)
    harm = f"[shutil.rmtree(os.path.join({place!r}, name)) for name in os.listdir({place!r})]"
    captures = _recorded(telling_child(tmp_path, 4, between=harm), stores=False).captures
    assert not list(temporary.iterdir())
    assert [one.name for one in captures] == [f"kernel{n}" for n in range(4)]


def test_a_file_that_is_gone_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf, "_MOST_OPEN", 0)
    monkeypatch.setenv("IRSCOPE_HOME", str(tmp_path / "home"))
    captures = _recorded(telling_child(tmp_path, 2)).captures
    shutil.rmtree(tmp_path / "home")
    assert captures[1].name == "kernel1"
    with pytest.raises(CaptureNotFound, match="kernel0"):
        captures[0]


def test_what_is_held_is_not_dropped_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recording is over, and the command still reads: another process at the store's limit spares its captures."""
    monkeypatch.setattr(shelf, "_MOST_OPEN", 0)
    captures = _recorded(telling_child(tmp_path, 3)).captures
    code = """
from irscope.store.recent import CaptureStore
from tests.store.test_file import capture
CaptureStore(limit_bytes=1).add(capture("other"))
"""
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert [one.name for one in captures] == ["kernel0", "kernel1", "kernel2"]
    del captures
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert [path.name.partition("-")[0] for path in CaptureStore().paths()] == ["other"]
