"""Compiles of launches in forks of the script's process, several at once, while the script goes on.

A launch's compile begins in the process of the script: its front end runs the script's own Python, and what it refuses
is raised at the launch. At the first stage that makes code for the target the compile is left, and the script goes on
with a kernel that is waited for where it is read. A fork of the process, which has the module as it was left, goes on
with the compile, and reports it to a file, which irscope's own process reads. While all forks have work the script runs
ahead: a fork takes several compiles, since it costs a fifth of a small one. Compiles whose result decides what the
script does next are not handed over.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn, Protocol

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
from irscope.record.triton.patches import Settings, replaced

__all__ = ["Apart", "CompileWorkers", "Job", "LeftOut"]

Steps = Callable[[EventSink, Mapping[int, Target]], AbstractContextManager[EventSink]]
"""A sink that adds what is made beside a compile (listings, layouts); it is given the targets of what has begun."""

_MOST_AHEAD = 8
"""Compiles that may wait for each fork before the script waits too."""


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

    def go_on(self) -> None: ...


@dataclass(slots=True)
class Job:
    """A compile that a fork of this process makes."""

    number: int
    key: str
    """Its key in Triton's cache."""
    folder: Path
    texts: Mapping[str, str]
    compile: _Compile | None
    """As it was left, with its module; None once it ended."""
    settings: Settings = field(default_factory=Settings.present)
    """Those of the launch: the script may change them before there is a fork."""
    code: int | None = None
    """The exit code of its fork; None until it ended."""

    def error(self) -> BaseException | None:
        """What the compile raised; None if it succeeded."""
        if self.code == 0 and not (self.folder / ERROR).exists():
            return None
        with contextlib.suppress(Exception):
            return pickle.loads((self.folder / ERROR).read_bytes())
        return RuntimeError(f"the compiler {Outcome(self.code or 1)}")


class Apart(BaseException):
    """Raised through Triton's `compile` once it is left to a fork; no error."""

    def __init__(self, job: Job) -> None:
        super().__init__(job.key)
        self.job = job


class LeftOut(BaseException):
    """Raised through Triton's `compile` where a capture of it is stored; no error."""

    def __init__(self, key: str, texts: Mapping[str, str]) -> None:
        super().__init__(key)
        self.key, self.texts = key, texts


@dataclass(slots=True)
class _Fork:
    """A fork of this process, and the compiles that it has not made yet, in order."""

    pid: int
    gate: int
    """A pipe: the fork writes a byte after each compile, and holds it open."""
    jobs: list[Job]


class CompileWorkers:
    """The compiles that are left to forks of this process."""

    def __init__(
        self,
        watch: _Watch,
        jobs: int,
        folder: Path,
        close_in_fork: tuple[int, ...],
        steps: Callable[[], AbstractContextManager[Steps]],
    ) -> None:
        """`jobs`: how many at a time. `folder`: of the recording. `close_in_fork`: descriptors for this process.

        `steps`: entered once in each fork.
        """
        self._watch = watch
        self._jobs = jobs
        self._folder = folder
        self._close_in_fork = close_in_fork
        self._steps = steps
        self._process = os.getpid()
        self._waiting: list[Job] = []
        self._forks: list[_Fork] = []
        self._by_key: dict[str, Job] = {}
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

    def hand_over(self, current: _Compile, key: str, texts: Mapping[str, str]) -> NoReturn:
        """Leave a compile, as far as it is made, to a fork: raises Apart."""
        self._collect()
        if (job := self._by_key.get(key)) is not None:
            # The same compile is under way already.
            current.report(CompileDropped(current.number))
            raise Apart(job)
        folder = self._folder / f"compile-{current.number}"
        folder.mkdir()
        job = self._by_key[key] = Job(current.number, key, folder, texts, current)
        current.report(HandedOver(current.number, key, str(folder)))
        self._waiting.append(job)
        self._start()
        while len(self._waiting) >= _MOST_AHEAD * self._jobs:
            self._wait()
        raise Apart(job)

    def wait_for(self, job: Job) -> None:
        """Wait for the end of a compile; raises what it raised."""
        while job.code is None and os.getpid() == self._process:
            self._wait()
        if job.code is not None and (error := job.error()) is not None:
            self._watch.last_error = error
            raise error

    @contextmanager
    def finished(self) -> Iterator[None]:
        """Wait for all compiles at the end of the block, and before a program in it ends at once (`os._exit`)."""
        leave = os._exit

        def leave_when_finished(status: int) -> NoReturn:
            self._finish()
            leave(status)

        with replaced(os, "_exit", leave_when_finished):
            try:
                yield
            finally:
                self._finish()

    def _finish(self) -> None:
        # A fork of the script's own has none to wait for.
        while self._forks and os.getpid() == self._process:
            self._wait()

    def _wait(self) -> None:
        poll = select.poll()
        for fork in self._forks:
            poll.register(fork.gate, select.POLLIN | select.POLLHUP)
        with contextlib.suppress(InterruptedError):
            poll.poll()
        self._collect()

    def _collect(self) -> None:
        """Note which compiles ended, and which forks; begin others."""
        for fork in list(self._forks):
            # Before what it wrote is read: then that is all.
            pid, status = os.waitpid(fork.pid, os.WNOHANG)
            while fork.jobs and select.select([fork.gate], [], [], 0)[0] and os.read(fork.gate, 1):
                self._ended(fork.jobs.pop(0), 0, fork.pid)
            if pid:
                self._forks.remove(fork)
                os.close(fork.gate)
                if fork.jobs:
                    self._ended(fork.jobs.pop(0), os.waitstatus_to_exitcode(status), fork.pid)
                # They were not begun.
                self._waiting[:0] = fork.jobs
        self._start()

    def _ended(self, job: Job, code: int, pid: int) -> None:
        job.code, job.compile = code, None
        with contextlib.suppress(OSError):
            if output := (job.folder / LOG).read_bytes():
                sys.stderr.flush()
                os.write(2, output)
        self._watch.report(HandedBack(job.number, code, pid))

    def _start(self) -> None:
        while self._waiting and len(self._forks) < self._jobs:
            # Half of each fork's share: towards the end there is less for each, and they end together.
            count = -(-len(self._waiting) // (2 * self._jobs))
            jobs, self._waiting = self._waiting[:count], self._waiting[count:]
            ours, theirs = os.pipe()
            sys.stdout.flush()
            sys.stderr.flush()
            pid = os.fork()
            if pid == 0:
                os.close(ours)
                self._be_a_fork(jobs, theirs)
            os.close(theirs)
            self._forks.append(_Fork(pid, ours, jobs))

    def _be_a_fork(self, jobs: list[Job], gate: int) -> NoReturn:
        """Leave what belongs to the other process, make the compiles, and end."""
        code = 1
        try:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
                signal.signal(number, signal.SIG_DFL)
            for other in self._forks:
                os.close(other.gate)
            for descriptor in self._close_in_fork:
                os.close(descriptor)
            self._forks, self._waiting, self._by_key = [], [], {}
            with self._steps() as steps:
                for job in jobs:
                    self._go_on(job, steps)
                    os.write(gate, b".")
            code = 0
        finally:
            os._exit(code)

    def _go_on(self, job: Job, steps: Steps) -> None:
        """Make a compile in a fork, which reports it to a file of its own."""
        watch, compile = self._watch, job.compile
        assert compile is not None
        log = job.folder / LOG
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        events = os.open(job.folder / EVENTS_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        sink = MessageWriter(events)
        if compile.request.limit_s:
            # Nobody else watches the time of this process.
            signal.setitimer(signal.ITIMER_REAL, compile.request.limit_s)
        job.settings.restore()
        with ExitStack() as held:
            held.callback(os.close, events)
            held.callback(sink, Done())
            watch.native.note_beside(log)
            watch.sink = held.enter_context(steps(sink, {compile.number: compile.target}))
            watch.request = replace(compile.request, log_path=str(log))
            compile.goes_on_with(watch.request)
            try:
                compile.go_on()
            except BaseException as error:
                (job.folder / ERROR).write_bytes(_pickled(error))
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.stdout.flush()
        sys.stderr.flush()


def _pickled(error: BaseException) -> bytes:
    """An error for another process: itself, or one that says the same."""
    with contextlib.suppress(Exception):
        data = pickle.dumps(error)
        pickle.loads(data)
        return data
    return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
