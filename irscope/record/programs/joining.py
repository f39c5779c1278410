"""Lets each Python process of a program take part in its recording: those that are started, and those that are forked.

A process that is started finds the recording by an environment variable (`hook/sitecustomize.py`), says that it is
there, and records from its first import of Triton or torch on. A forked one has all of that, and needs a connection of
its own. Each compiles with a cache of its own: what another has compiled would be found without its passes.
"""

from __future__ import annotations

import atexit
import contextlib
import os
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
from irscope.record.triton.patches import replaced, replaced_item

_HOOK = Path(__file__).parent / "hook"
_LONGEST_COMMAND = 120


def program_environment(folder: Path) -> dict[str, str]:
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
        stack.enter_context(_forks_joined(watch, after_fork))
        yield


def join(folder: Path) -> None:
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


@contextmanager
def _forks_joined(watch: Watch, after_fork: Callable[[], None] | None) -> Iterator[None]:
    """Call `after_fork` in each forked process, which reports nothing else; one that gets to the end ends there."""
    parent = os.getpid()
    fork = os.fork

    def fork_joined() -> int:
        pid = fork()
        own = sys._getframe(1).f_globals.get("__name__", "").startswith("irscope.")
        if pid == 0 and not own:
            # The connection, and the threads that feed it, are the parent's.
            watch.sink = lambda event: None
            if after_fork is not None:
                after_fork()
        return pid

    with replaced(os, "fork", fork_joined):
        try:
            yield
        except BaseException as error:
            if os.getpid() != parent:
                _end(error)
            raise
        if os.getpid() != parent:
            _end(None)


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
