"""A pool of warm workers that compile variants of a capture, several at once.

The workers are forks of one process that has imported Triton (`irscope.record.variants.fork_server`),
each serves one request and ends. What happens to one of them (an abort, a hang, an exception) is that variant's failed
capture, and no other's.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from irscope.errors import RecordingError
from irscope.interruption import reset_signals
from irscope.model.capture import Capture, SnapshotLevel
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.process.assembly import Assembly
from irscope.record.process.child import (
    LONGEST_WAIT_S,
    Child,
    MessageStream,
    Outcome,
    child_environment,
    child_process,
    end_group,
    forked_child,
)
from irscope.record.process.events import EVENTS, RecordingEvent, Refused
from irscope.record.process.own_folder import own_folder
from irscope.record.process.requests import RecordRequest, request_from_capture
from irscope.record.process.session import IMPORTED_AHEAD, Ending, check_end
from irscope.record.triton.native_calls import call_that_ended
from irscope.record.variants.messages import ANSWERS, Fork, Forked, Ready, Reap, Reaped

_IDLE_TIMEOUT_S = 60.0

_Answer = TypeVar("_Answer", bound="Ready | Refused | Forked | Reaped")


def _serve(folder: Path, descriptor: int) -> int:
    """Be the warm process in a fork of this one, with what a new process would have of its own."""
    os.setsid()
    reset_signals()
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    environment = child_environment(folder)
    os.environ.clear()
    os.environ.update(environment)
    from irscope.record.variants.fork_server import main

    main(descriptor)
    return 0


def default_jobs() -> int:
    """One for each core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def variant_request(capture: Capture, plan: PassPlan, *, snapshots: SnapshotLevel = "none") -> RecordRequest:
    """The request for a capture's own source under another plan, with nothing that a comparison can do without."""
    asked = RecordingOptions(plan=plan, snapshots=snapshots, disassemble=False, layouts=False)
    return request_from_capture(capture, asked)


@dataclass(slots=True)
class _Job:
    """One worker under way."""

    index: int
    request: RecordRequest
    assembly: Assembly
    pid: int
    stream: MessageStream[RecordingEvent]
    started: float
    ending: Ending = "end"


class VariantPool:
    """Compiles requests of mode `text` or `signature`, `jobs` at a time, as a context manager.

    `jobs`: by default one for each core. `timeout_s`: for one compile. `interpreter`: a Python with another Triton.
    `forks`: whether the warm process may be a fork of this one, which has most of irscope imported; it is not where
    this one has Triton or torch imported, which may have threads.
    """

    def __init__(
        self,
        *,
        jobs: int | None = None,
        timeout_s: float = RecordingOptions().timeout_s,
        interpreter: str | None = None,
        forks: bool = False,
    ) -> None:
        self.jobs = jobs or default_jobs()
        self._timeout_s = timeout_s
        self._interpreter = interpreter
        self._forks = forks and interpreter is None and not {"triton", "torch"} & sys.modules.keys()
        self._first: Ready | Refused | None = None

    def __enter__(self) -> VariantPool:
        with ExitStack() as stack:
            self.folder = stack.enter_context(own_folder())
            self._server = stack.enter_context(self._started())
            self._held = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _started(self) -> AbstractContextManager[Child[Ready | Refused | Forked | Reaped]]:
        if self._forks:
            return forked_child(partial(_serve, self.folder), self.folder, ANSWERS)
        module = "irscope.record.variants.fork_server"
        return child_process(module, self.folder, ANSWERS, interpreter=self._interpreter, ahead=IMPORTED_AHEAD)

    @property
    def compiler(self) -> tuple[str, str]:
        """(Triton's version, a text that changes with every rebuild of it and every variable it depends on).

        Waits until Triton is imported; raises what stood in the way.
        """
        ready = self._ready()
        return ready.triton_version, ready.compiler

    def _ready(self) -> Ready:
        if self._first is None:
            self._first = self._answer((Ready, Refused))
        if isinstance(self._first, Refused):
            raise self._first.as_error()
        return self._first

    def compile(self, requests: Iterable[RecordRequest]) -> Iterator[tuple[int, Capture]]:
        """(0-based place of the request, its capture), each as soon as it is there.

        Closing the iterator ends what is still under way. Raises what a worker refused with (a target that Triton does
        not take), and RecordingError if the pool's own process is gone.
        """
        self._ready()
        waiting = enumerate(requests)
        running: list[_Job] = []
        with selectors.DefaultSelector() as selector:
            try:
                while True:
                    while len(running) < self.jobs and (row := next(waiting, None)) is not None:
                        running.append(job := self._start(*row))
                        selector.register(job.stream, selectors.EVENT_READ, job)
                    if not running:
                        return
                    for key, _ in selector.select(LONGEST_WAIT_S):
                        for event in key.data.stream.read(0):
                            key.data.assembly.feed(event)
                    for job in [job for job in running if self._is_over(job)]:
                        selector.unregister(job.stream)
                        running.remove(job)
                        yield job.index, self._finish(job)
            finally:
                for job in running:
                    with contextlib.suppress(RecordingError):
                        self._end(job)

    def compile_one(self, request: RecordRequest) -> Capture:
        """The capture of one request."""
        ((_, capture),) = self.compile((request,))
        return capture

    def _start(self, index: int, request: RecordRequest) -> _Job:
        if request.mode == "script":
            raise RecordingError(f"a request of mode {request.mode!r} is not for the pool: it runs no script.")
        log = Path(tempfile.mkdtemp(dir=self.folder)) / "log"
        request = replace(request, log_path=str(log))
        read_end, write_end = os.pipe()
        stream = MessageStream(read_end, EVENTS)
        try:
            with open(log, "ab") as output:
                self._server.send(Fork(request), write_end, output.fileno())
                pid = self._answer((Forked,)).pid
        except BaseException:
            stream.close()
            raise
        finally:
            os.close(write_end)
        return _Job(index, request, Assembly(request), pid, stream, time.monotonic())

    def _is_over(self, job: _Job) -> bool:
        """Whether a worker is at its end, or out of time."""
        if job.stream.at_end:
            return True
        # A worker that has not begun, or is at its end, waits for nothing but the machine.
        limit_s = self._timeout_s if job.assembly.compiling else max(self._timeout_s, _IDLE_TIMEOUT_S)
        if time.monotonic() - job.started > limit_s:
            job.ending = "timeout"
        return job.ending == "timeout"

    def _finish(self, job: _Job) -> Capture:
        outcome = self._end(job)
        log = Path(job.request.log_path)
        if job.ending == "end" and (call := call_that_ended(log, job.pid, outcome.code)):
            return self.compile_one(replace(job.request, ended_in=call))
        output = log.read_bytes()
        check_end(job.assembly, job.ending, outcome, output, self._timeout_s)
        if not (captures := job.assembly.captures()):
            raise RecordingError(f"a worker began no compile.\n{output[-2000:].decode('utf-8', 'replace')}".rstrip())
        return captures[0]

    def _end(self, job: _Job) -> Outcome:
        """End a worker, unless it has closed its stream, and all that it started."""
        if not job.stream.at_end:
            end_group(job.pid)
        job.stream.close()
        self._server.send(Reap(job.pid))
        return Outcome(self._answer((Reaped,)).code)

    def _answer(self, kinds: tuple[type[_Answer], ...]) -> _Answer:
        """The next answer of the warm process, of these classes: each command waits for its own."""
        while not self._server.at_end:
            for answer in self._server.read():
                # That of a command which a signal interrupted comes late.
                if isinstance(answer, kinds):
                    return answer
        raise RecordingError(f"the process that compiles variants ended.\n{self._server.last_lines()}".rstrip())
