"""Sees which processes a script starts and forks: a forked one must not report as its parent does.

Of another Python process its command is noted, so that a recording can say which of them it does not hold.
"""

from __future__ import annotations

import contextlib
import multiprocessing.forkserver
import multiprocessing.popen_forkserver
import multiprocessing.popen_spawn_posix
import os
import re
import shutil
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from irscope.record.process.events import EventSink, OtherProcesses
from irscope.record.triton.patches import Patches

__all__ = ["watched_children"]

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
def watched_children(watch: _EventSource, after_fork: Callable[[], None] | None = None) -> Iterator[None]:
    """Report at the end of the block which Python processes were started; a forked one that gets there is ended.

    `after_fork`: called in each forked process, which reports nothing otherwise.
    """
    parent = os.getpid()
    started: list[tuple[int, str]] = []
    fork, system, init = os.fork, os.system, subprocess.Popen.__init__

    def fork_noted() -> int:
        pid = fork()
        own = sys._getframe(1).f_globals.get("__name__", "").startswith("irscope.")
        if pid == 0 and not own:
            # The connection, and the threads that feed it, are the parent's.
            watch.sink = lambda event: None
            if after_fork is not None:
                after_fork()
        return pid

    def system_noted(command: Any) -> int:
        _note(command, 0, started)
        return system(command)

    def init_noted(popen: Any, args: Any, *more: Any, **options: Any) -> None:
        init(popen, args, *more, **options)
        _note(args, popen.pid, started)

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
            if started:
                watch.sink(OtherProcesses(tuple(started)))


def _launch_noted(launch: Any, started: list[tuple[int, str]]) -> Any:
    def launch_noted(popen: Any, process: Any) -> Any:
        result = launch(popen, process)
        # What is started is the server, which forks the rest.
        server = getattr(multiprocessing.forkserver, "_forkserver", None)
        pid = getattr(server, "_forkserver_pid", None) if popen.method == "forkserver" else popen.pid
        started.append((pid or 0, f"multiprocessing ({popen.method})"))
        return result

    return launch_noted


def _note(command: Any, pid: int, started: list[tuple[int, str]]) -> None:
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
        started.append((pid, text if len(text) <= 200 else text[:200] + "…"))


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
