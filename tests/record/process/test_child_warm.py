"""A child that is a fork of a warm process is what a new process would be, or is a new process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from irscope.errors import RecordingError
from irscope.record.process.child import warm_children
from irscope.record.process.own_folder import FOLDER_VARIABLE
from irscope.record.process.requests import request_for
from irscope.record.process.session import Recording, record_request
from tests.record.cold import new_processes, no_block

pytestmark = pytest.mark.triton
NO_TORCH = Path(__file__).parents[1] / "kernels" / "no_torch.py"
SEEN = """
import os, signal, sys, tempfile
print([
    sorted(os.environ.items()), os.environb[b"NO_COLOR"], os.getcwd(), sys.argv, sys.path, sys.orig_argv[0], __name__,
    __file__,
    sys.stdin.read(), os.read(0, 1), tempfile.gettempdir(), os.getsid(0) == os.getpgrp() == os.getpid(),
    sys.stdout.line_buffering, sys.stdout.encoding, [signal.getsignal(one) for one in (2, 13, 15, 17)],
    sorted(name for name in ("torch", "numpy", "rich", "irscope.analysis") if name in sys.modules),
])
"""


@pytest.fixture
def parent(tmp_path: Path) -> Callable[..., int]:
    """Records a script that says whose child its process is."""
    (script := tmp_path / "parent.py").write_text("import os\nprint(os.getppid())\n")
    return lambda **options: int(record_request(request_for(script, targets="cuda:90", **options)).output)


def both(source: Path, **options: object) -> tuple[Recording, Recording]:
    """A recording of a fork, and one of a new process."""
    request = request_for(source, targets="cuda:90", **options)
    forked = record_request(request)
    with new_processes():
        return forked, record_request(request)


@pytest.mark.newest
def test_the_captures_are_the_same() -> None:
    forked, new = both(
        NO_TORCH,
        kernel="axpy",
        signature="*fp32:16, *fp32:16, i32, fp32",
        constexprs={"BLOCK": "256"},
        disassemble=False,
    )
    ((one,), (other,)) = (forked.captures, new.captures)
    assert one.status == "ok"
    assert len(one.layouts) > 0
    timeless = [
        replace(
            capture,
            compile_us=0,
            environment=replace(capture.environment, date=""),
            artifacts=tuple(replace(item, duration_us=0, processor_us=0) for item in capture.artifacts),
            snapshots=tuple(replace(item, duration_us=0) for item in capture.snapshots),
        )
        for capture in (one, other)
    ]
    assert timeless[0] == timeless[1]


@pytest.mark.newest
def test_a_script_sees_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (script := tmp_path / "seen.py").write_text(SEEN)
    (folder := tmp_path / "folder").mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NO_COLOR", "as it is now")
    monkeypatch.delenv("COLUMNS", raising=False)
    # Folders of their own: the recording's, and one for the choices of a library's tuner.
    folder_names = re.compile(r"[\w/.-]*/irscope-recording-\w+|choices-\w+")
    seen = [folder_names.sub("FOLDER", recording.output) for recording in both(script)]
    assert f"('{FOLDER_VARIABLE}', 'FOLDER')" in seen[0]
    assert seen[0] == seen[1]
    assert "as it is now" in seen[0]
    assert str(folder) in seen[0]


@pytest.mark.newest
@pytest.mark.parametrize("end", ["os.abort()", "os._exit(3)", "sys.exit('enough')"])
def test_its_end_is_the_same(end: str, tmp_path: Path) -> None:
    (script := tmp_path / "ends.py").write_text(f"import os, sys\nprint('begun', flush=True)\n{end}\n")
    ends: list[object] = []

    def record() -> None:
        try:
            recording = record_request(request_for(script, targets="cuda:90"))
            ends.append((recording.script_ends, recording.output))
        except RecordingError as error:
            ends.append(str(error))

    record()
    with new_processes():
        record()
    assert ends[0] == ends[1]
    assert "begun" in str(ends[0])


def test_it_is_a_fork_where_it_can_be(parent: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    server = parent()
    assert server != os.getpid()
    monkeypatch.setenv("IRSCOPE_STORE_LIMIT_MB", "100")
    assert parent() == server
    assert parent(interpreter=sys.executable) == server


@pytest.mark.newest
def test_another_environment_or_interpreter_has_a_process_of_its_own(
    parent: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (other := tmp_path / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    other.chmod(0o755)
    with no_block(), warm_children():
        servers = [parent(), parent(interpreter=str(other))]
        monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
        servers.append(parent())
    assert len({os.getpid(), *servers}) == 4


@pytest.mark.newest
def test_an_interpreter_that_is_a_script_sets_variables_of_its_own(tmp_path: Path) -> None:
    (other := tmp_path / "python").write_text(f'#!/bin/sh\nexport OF_THE_SCRIPT=1\nexec "{sys.executable}" "$@"\n')
    other.chmod(0o755)
    path = tmp_path / "script.py"
    path.write_text("import os\nprint(os.environ.get('OF_THE_SCRIPT'), os.environ['OF_THE_TEST'])\n")
    with no_block(), warm_children(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("OF_THE_TEST", "2")
        recording = record_request(request_for(path, targets="cuda:90", interpreter=str(other)))
    assert "1 2" in recording.output


@pytest.mark.newest
def test_without_its_server_it_is_a_new_process(parent: Callable[..., int]) -> None:
    with no_block(), warm_children():
        server = parent()
        assert server != os.getpid()
        os.kill(server, signal.SIGKILL)
        assert parent() == os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)


@pytest.mark.newest
def test_what_prevents_it_is_told_later(parent: Callable[..., int], monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, no_block():
        patch.setattr(sys, "executable", "/no/python")
        with warm_children(at_once=True), pytest.raises(RecordingError, match="cannot be started"):
            parent()


def test_it_takes_no_number_of_a_closed_stream() -> None:
    """Of a program without standard streams, which would write to its socket."""
    code = (
        "from irscope.record.process import child as w\n"
        "with w.warm_children(at_once=True): raise SystemExit(bool(w._warm.get()._servers))"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    for closed in ("<&-", ">&-", "2>&-"):
        command = ["sh", "-c", f'"$0" -c "$1" {closed}', sys.executable, code]
        assert subprocess.run(command, env=environment, check=False).returncode == 0
