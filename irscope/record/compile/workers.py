"""Compiles of launches in forks of the script's process, several at once, while the script goes on.

A launch's compile begins in the process of the script: its front end runs the script's own Python, and what it refuses
is raised at the launch. At the first stage that makes code for the target the process is forked. The fork goes on with
the compile, reports it to a file, which irscope's own process reads, and ends; the script goes on with a kernel that is
waited for where it is read. Compiles whose result decides what the script does next are not handed over.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from irscope.model.capture import Target
from irscope.record.compile.handlers import a_caller_catches
from irscope.record.process.apart import ERROR, EVENTS_FILE, LOG
from irscope.record.process.child import Outcome
from irscope.record.process.codec import MessageWriter
from irscope.record.process.events import CompileDropped, Done, EventSink, HandedBack, HandedOver, RecordingEvent
from irscope.record.process.requests import RecordRequest
from irscope.record.triton import api as triton_api
from irscope.record.triton.autotuner import is_rehearsal
from irscope.record.triton.native_calls import NativeCalls

__all__ = ["Apart", "CompileWorkers", "Job", "LeftOut"]

Steps = Callable[[EventSink, Mapping[int, Target]], AbstractContextManager[EventSink]]
"""A sink that adds what is made beside a compile (listings, layouts); it is given the targets of what has begun."""


class _Watch(Protocol):
    """Of what `Watch` is."""

    request: RecordRequest
    sink: EventSink
    native: NativeCalls
    last_error: BaseException | None

    def report(self, event: RecordingEvent) -> None: ...


class _Compile(Protocol):
    """Of what `WatchedCompile` is."""

    number: int
    target: Target
    request: RecordRequest

    def report(self, event: RecordingEvent) -> None: ...

    def goes_on_with(self, request: RecordRequest) -> None: ...


@dataclass(slots=True)
class Job:
    """A compile in a fork of this process."""

    number: int
    key: str
    """Its key in Triton's cache."""
    folder: Path
    pid: int
    gate: int
    """A pipe that the fork holds open."""
    texts: Mapping[str, str]
    code: int | None = None
    """Its exit code; None while it runs."""

    def error(self) -> BaseException | None:
        """What the compile raised; None if it succeeded."""
        if self.code == 0 and not (self.folder / ERROR).exists():
            return None
        with contextlib.suppress(Exception):
            return pickle.loads((self.folder / ERROR).read_bytes())
        return RuntimeError(f"the compiler {Outcome(self.code or 1)}")


class Apart(BaseException):
    """Raised through Triton's `compile` once a fork goes on with it; no error."""

    def __init__(self, job: Job) -> None:
        super().__init__(job.key)
        self.job = job


class LeftOut(BaseException):
    """Raised through Triton's `compile` where a capture of it is stored; no error."""

    def __init__(self, key: str, texts: Mapping[str, str]) -> None:
        super().__init__(key)
        self.key, self.texts = key, texts


class CompileWorkers:
    """The compiles under way in forks of this process."""

    def __init__(self, watch: _Watch, jobs: int, folder: Path, close_in_fork: tuple[int, ...], steps: Steps) -> None:
        """`jobs`: how many at a time. `folder`: of the recording. `close_in_fork`: descriptors for this process."""
        self._watch = watch
        self._jobs = jobs
        self._folder = folder
        self._close_in_fork = close_in_fork
        self._steps = steps
        self._process = os.getpid()
        self._running: list[Job] = []
        self._by_key: dict[str, Job] = {}
        self._held: ExitStack | None = None
        """In a fork, what ends with its compile."""
        self._job: Job | None = None
        self.has_compiled = False
        """Whether a compile ended in this process: the first sets up LLVM for all forks."""

    def takes_launches(self) -> bool:
        """Whether the compile of a launch that is made now may end after the launch."""
        return (
            self.has_compiled
            and os.getpid() == self._process
            and threading.active_count() == 1
            and not is_rehearsal()
            and not triton_api.program_watches_compiles()
            and not a_caller_catches(sys._getframe(1))
        )

    def hand_over(self, current: _Compile, key: str, texts: Mapping[str, str]) -> None:
        """Go on with a compile in a fork: returns there, and raises Apart here."""
        self._collect()
        if (job := self._by_key.get(key)) is not None:
            # The same compile is under way already.
            current.report(CompileDropped(current.number))
            raise Apart(job)
        while len(self._running) >= self._jobs:
            self._wait(self._running)
        folder = self._folder / f"compile-{current.number}"
        folder.mkdir()
        ours, theirs = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            self._begin_in_fork(current, folder, ours)
            return
        os.close(theirs)
        job = self._by_key[key] = Job(current.number, key, folder, pid, ours, texts)
        self._running.append(job)
        current.report(HandedOver(current.number, key, str(folder)))
        raise Apart(job)

    def wait_for(self, job: Job) -> None:
        """Wait for the end of a compile; raises what it raised."""
        while job.code is None:
            self._wait([job])
        if (error := job.error()) is not None:
            self._watch.last_error = error
            raise error

    def finish(self) -> None:
        """Wait for all compiles; in a fork of the script's own, which has none, do nothing."""
        while self._running and os.getpid() == self._process:
            self._wait(self._running)

    def leave(self, error: BaseException | None) -> None:
        """End this process, if it is a fork that went on with a compile: `error` is what that raised."""
        if self._held is None or self._job is None:
            return
        code = 1
        try:
            if error is not None:
                (self._job.folder / ERROR).write_bytes(_pickled(error))
            self._held.close()
            sys.stdout.flush()
            sys.stderr.flush()
            code = 0
        finally:
            os._exit(code)

    def _wait(self, jobs: list[Job]) -> None:
        poll = select.poll()
        for job in jobs:
            poll.register(job.gate, select.POLLIN | select.POLLHUP)
        with contextlib.suppress(InterruptedError):
            poll.poll()
        self._collect()

    def _collect(self) -> None:
        """Take leave of the forks that ended."""
        for job in list(self._running):
            pid, status = os.waitpid(job.pid, os.WNOHANG)
            if pid:
                job.code = os.waitstatus_to_exitcode(status)
                self._running.remove(job)
                os.close(job.gate)
                self._show_output(job)
                self._watch.report(HandedBack(job.number, job.code, job.pid))

    def _show_output(self, job: Job) -> None:
        with contextlib.suppress(OSError):
            if output := (job.folder / LOG).read_bytes():
                sys.stderr.flush()
                os.write(2, output)

    def _begin_in_fork(self, current: _Compile, folder: Path, gate: int) -> None:
        """Leave what belongs to the other process, and report to a file of one's own."""
        os.close(gate)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        watch, request = self._watch, current.request
        if request.limit_s:
            # Nobody else watches the time of this process.
            signal.setitimer(signal.ITIMER_REAL, request.limit_s)
        for other in self._running:
            os.close(other.gate)
        self._running, self._by_key = [], {}
        for descriptor in self._close_in_fork:
            os.close(descriptor)
        log = folder / LOG
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        sink = MessageWriter(os.open(folder / EVENTS_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        self._job = Job(current.number, "", folder, os.getpid(), -1, {})
        self._held = ExitStack()
        self._held.callback(sink, Done())
        watch.native.note_beside(log)
        watch.sink = self._held.enter_context(self._steps(sink, {current.number: current.target}))
        watch.request = replace(request, log_path=str(log))
        current.goes_on_with(watch.request)


def _pickled(error: BaseException) -> bytes:
    """An error for another process: itself, or one that says the same."""
    with contextlib.suppress(Exception):
        data = pickle.dumps(error)
        pickle.loads(data)
        return data
    return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
