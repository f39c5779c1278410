"""Lets each Python process of a program take part in its recording: those that are started, and those that are forked.

A process that is started finds the recording by an environment variable (`hook/sitecustomize.py`), says that it is
there, and records from its first import of Triton or torch on. A forked one has all of that, and needs a connection of
its own. Each compiles with a cache of its own: what another has compiled would be found without its passes. Of another
Python process its command is noted, so that a recording can say which of them it does not hold.
"""

from __future__ import annotations

import atexit
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
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from irscope.errors import IrscopeError
from irscope.record.compile.watch import Watch
from irscope.record.process import events
from irscope.record.process.events import EventSink, RecordingEvent
from irscope.record.process.gathering import read_request
from irscope.record.process.messages import Channel
from irscope.record.process.own_folder import PROGRAM_VARIABLE, connected, is_gathering
from irscope.record.programs.recording import SourceFiles, recorded_launches, recording
from irscope.record.triton import api as triton_api
from irscope.record.triton.patches import Patches, replaced_item

_HOOK = Path(__file__).parent / "hook"
_LONGEST_COMMAND = 120


def program_environment(folder: Path) -> dict[str, str]:
    """The variables that lead the Python processes of a program to the recording of a folder."""
    path = os.environ.get("PYTHONPATH")
    return {PROGRAM_VARIABLE: str(folder), "PYTHONPATH": os.pathsep.join([str(_HOOK), *([path] if path else [])])}


@contextmanager
def recorded_processes(watch: Watch, begun: events.Begun, folder: Path) -> Iterator[None]:
    """Let the processes that this one starts and forks take part until the end of the block."""
    with ExitStack() as stack:
        after_fork = None
        if is_gathering(folder):
            for name, value in program_environment(folder).items():
                stack.enter_context(replaced_item(os.environ, name, value))
            after_fork = _Fork(watch, begun, folder).join
        stack.enter_context(_watched_children(watch, after_fork))
        yield


def join(folder: Path) -> None:
    """Record this process until its end."""
    try:
        connection = connected(folder)
    except OSError:
        return
    # Not closed with the object: the end of the process closes it.
    sink = Channel(connection.detach(), str(folder))
    sink(events.Joined(os.getpid(), _command()))
    stack = ExitStack()
    try:
        own = folder / f"process-{os.getpid()}"
        own.mkdir(exist_ok=True)
        watch, begun, target = stack.enter_context(recording(read_request(folder), sink, own, joined=True))
        stack.enter_context(recorded_launches(watch, target, begun.real))
        stack.enter_context(recorded_processes(watch, begun, folder))
    except IrscopeError as error:
        sink(events.Refused(type(error).__name__, str(error)))
        stack.close()
        return
    except Exception as error:
        sink(events.Note(f"A process was not recorded: {_command()}: {type(error).__name__}: {error}"))
        stack.close()
        return
    _at_end(lambda: (stack.close(), sink(events.Done())))


class _Fork:
    def __init__(self, watch: Watch, begun: events.Begun, folder: Path) -> None:
        self._watch = watch
        self._begun = begun
        self._folder = folder
        self._until_the_end = ExitStack()

    def join(self) -> None:
        """Send the events of this process, from the first compile or launch on, through a connection of its own."""
        waiting: list[EventSink] = []

        def sink(event: RecordingEvent) -> None:
            if not waiting:
                if not isinstance(event, (events.CompileBegun, events.Launched)):
                    return
                waiting.append(self._opened())
            waiting[0](event)

        self._watch.sink = sink
        self._until_the_end.enter_context(triton_api.private_cache(self._folder / f"process-{os.getpid()}" / "triton"))

    def _opened(self) -> EventSink:
        try:
            sink = Channel(connected(self._folder).detach(), str(self._folder))
        except OSError:
            return lambda event: None
        sink(events.Joined(os.getpid(), f"a fork of {_command()}"))
        sink(self._begun)
        _at_end(lambda: sink(events.Done()))
        return SourceFiles(sink, self._watch.request)


def _at_end(close: Callable[[], object]) -> None:
    """Call `close` when this very process ends by itself, by `os._exit` too, as forked ones do."""
    pid = os.getpid()
    leave = os._exit
    closed = False

    def close_once() -> None:
        nonlocal closed
        if os.getpid() == pid and not closed:
            closed = True
            with contextlib.suppress(Exception):
                close()

    def exit_now(status: int) -> Any:
        close_once()
        leave(status)

    os._exit = exit_now  # type: ignore[assignment]
    atexit.register(close_once)


def _command() -> str:
    words = sys.orig_argv
    if "--multiprocessing-fork" in words:
        return "multiprocessing (spawn)"
    if any("multiprocessing.forkserver" in word for word in words):
        return "multiprocessing (forkserver)"
    if any("irscope.record" in word for word in words):
        return "the script"
    text = " ".join([os.path.basename(words[0]), *words[1:]]) if words else "python"
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_COMMAND else text[:_LONGEST_COMMAND] + "…"


# `/usr/bin/env python3.12`, `cd x && python -m y`
_PYTHON = re.compile(r"(?:^|[\s/;&|(])(?:python|pypy)[\d.]*(?=\s|$)")
_RUNNERS = frozenset(
    {"env", "sh", "bash", "dash", "zsh", "nice", "nohup", "setsid", "timeout", "taskset", "numactl", "time"}
)
_OWN = "irscope.record"


@contextmanager
def _watched_children(watch: Watch, after_fork: Callable[[], None] | None = None) -> Iterator[None]:
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
                watch.sink(events.OtherProcesses(tuple(started)))


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
