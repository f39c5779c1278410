"""Sees which processes a script starts, so that a recording can say what it does not hold: their launches.

A forked process has the virtual GPU and compiles as its parent does, but its events must not mix with the parent's: it
reports only that it launched something. Of another Python process, only its command is known.
"""

from __future__ import annotations

import contextlib
import multiprocessing.popen_forkserver
import multiprocessing.popen_spawn_posix
import os
import re
import shutil
import struct
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from irscope.record.process.events import CompileBegun, EventSink, Launched, OtherProcesses, RecordingEvent
from irscope.record.triton.patches import Patches

__all__ = ["watched_children"]

_PID = struct.Struct("<i")
# `/usr/bin/env python3.12`, `cd x && python -m y`
_PYTHON = re.compile(r"(?:^|[\s/;&|(])(?:python|pypy)[\d.]*(?=\s|$)")
_RUNNERS = frozenset(
    {"env", "sh", "bash", "dash", "zsh", "nice", "nohup", "setsid", "timeout", "taskset", "numactl", "time"}
)
_OWN = "irscope.record"


class _EventSource(Protocol):
    """What reports launches and compiles to a sink that can be replaced."""

    sink: EventSink


@contextmanager
def watched_children(watch: _EventSource) -> Iterator[None]:
    """Report, at the end of the block, the processes that were started within; ends a forked one that gets there."""
    parent = os.getpid()
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    started: list[str] = []
    fork, system, init = os.fork, os.system, subprocess.Popen.__init__

    def fork_noted() -> int:
        pid = fork()
        own = sys._getframe(1).f_globals.get("__name__", "").startswith("irscope.")
        if pid == 0 and not own:
            # Nothing else: the socket of events, and the threads that feed it, are the parent's.
            watch.sink = _report_launches(write_end)
        return pid

    def system_noted(command: Any) -> int:
        _note(command, started)
        return system(command)

    def init_noted(popen: Any, args: Any, *more: Any, **options: Any) -> None:
        init(popen, args, *more, **options)
        _note(args, started)

    with Patches() as patches:
        patches.set(os, "fork", fork_noted)
        patches.set(os, "system", system_noted)
        patches.set(subprocess.Popen, "__init__", init_noted)
        kinds: tuple[Any, ...] = (multiprocessing.popen_spawn_posix.Popen, multiprocessing.popen_forkserver.Popen)
        for kind in kinds:
            patches.set(kind, "_launch", _launch_noted(kind._launch, started))
        try:
            yield
        except BaseException as error:
            if os.getpid() != parent:
                _end(error)
            raise
        finally:
            if os.getpid() != parent:
                _end(None)
            launched = _read_all(read_end)
            os.close(read_end)
            os.close(write_end)
            if launched or started:
                watch.sink(OtherProcesses(launched, tuple(started)))


def _report_launches(write_end: int) -> EventSink:
    known: set[int] = set()

    def sink(event: RecordingEvent) -> None:
        pid = os.getpid()
        if isinstance(event, (Launched, CompileBegun)) and pid not in known:
            known.add(pid)
            with contextlib.suppress(OSError):
                os.write(write_end, _PID.pack(pid))

    return sink


def _launch_noted(launch: Any, started: list[str]) -> Any:
    def launch_noted(popen: Any, process: Any) -> Any:
        started.append(f"multiprocessing ({popen.method})")
        return launch(popen, process)

    return launch_noted


def _note(command: Any, started: list[str]) -> None:
    """Remember a command that runs Python, other than irscope's own."""
    words = [command] if isinstance(command, str | bytes | os.PathLike) else list(command)
    text = " ".join(os.fsdecode(word) for word in words)
    if not words or _OWN in text or _is_called_by_triton():
        return
    # Of a list only the program counts, and of what runs another program all of it: a compiler's library may lie in
    # .../lib/python3.12.
    program = os.fsdecode(words[0])
    runs_another = len(words) == 1 or os.path.basename(program) in _RUNNERS
    if _PYTHON.search(text if runs_another else program) or _is_python_script(program):
        started.append(text if len(text) <= 200 else text[:200] + "…")


def _is_called_by_triton() -> bool:
    """Whether Triton itself starts it: it builds its launchers with the C compiler, and asks tools their version."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] == "triton":
            return True
        frame = frame.f_back
    return False


def _is_python_script(program: str) -> bool:
    """Whether a program is this interpreter, or a script that begins with `#!` and a Python."""
    path = shutil.which(program.split()[0]) if program.split() else None
    if path is None:
        return False
    if os.path.realpath(path) == os.path.realpath(sys.executable):
        return True
    with contextlib.suppress(OSError), open(path, "rb") as file:
        line = file.readline(200)
        return line.startswith(b"#!") and b"python" in line
    return False


def _read_all(read_end: int) -> int:
    """How many processes wrote their numbers."""
    data = b""
    with contextlib.suppress(BlockingIOError):
        while chunk := os.read(read_end, 1 << 16):
            data += chunk
    return len({pid for (pid,) in _PID.iter_unpack(data)})


def _end(error: BaseException | None) -> None:
    """End a forked process as Python would, without what its parent will do: remove folders, report its end."""
    code = 0
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else (0 if error.code is None else 1)
    elif error is not None:
        traceback.print_exception(error)
        code = 1
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
