"""The workers of a recording: they go on with the compiles that a script's process began, several at a time.

A worker (`irscope.record.programs.compile_worker`) is a child of the recording, not of the script: a compile that was
handed over is made whatever becomes of the script. It makes one after another, as a script's own process would; one
that ends in a compile is that compile's failure, and another takes its place.
"""

from __future__ import annotations

import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from irscope.errors import RecordingError
from irscope.record.process.child import Child, child_process
from irscope.record.process.events import (
    EVENTS,
    CompileBegun,
    CompileFailed,
    HandedOver,
    JobEnded,
    LoadFailed,
    RecordingEvent,
)
from irscope.record.process.gathering import Completion
from irscope.record.process.requests import CompileJob, RecordRequest, default_jobs
from irscope.record.process.warm import TRITON
from irscope.record.triton.native_calls import call_that_ended

__all__ = ["WORKER", "CompileWorkers"]

WORKER = "irscope.record.programs.compile_worker"
_MOST_WAITING = 8
"""Compiles that may wait for each worker before the script waits too."""
FAILED, ENDED = "failed", "ended"
"""In a recording's folder: the file with the key of a compile that failed, and the folder of those that ended."""


@dataclass(slots=True)
class _Worker:
    """A child that compiles."""

    child: Child[RecordingEvent]
    held: ExitStack
    job: CompileJob | None = None
    """What it compiles now."""
    began_s: float = 0.0
    printed: int = 0
    """Bytes of its output before that."""


class CompileWorkers:
    """Makes the compiles that are handed over, and feeds what comes of them to the completion of the script's process.

    A context manager that ends the workers.
    """

    def __init__(
        self,
        completion: Completion,
        feed: Callable[[RecordingEvent], None],
        request: RecordRequest,
        folder: Path,
        echo: Callable[[str], None] | None,
    ) -> None:
        """`feed`: takes the events of the script's process, those of the workers among them."""
        self._completion = completion
        self._feed = feed
        self._request = request
        self._folder = folder
        self._echo = echo
        self._most = request.jobs or default_jobs()
        self._waiting: deque[CompileJob] = deque()
        self._workers: list[_Worker] = []
        self._outputs: dict[int, bytes] = {}
        self.failed: set[int] = set()
        """The compiles after which the program would have ended."""

    def __enter__(self) -> CompileWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.held.close()

    @property
    def is_done(self) -> bool:
        """Whether nothing is to be compiled."""
        return not self._waiting and all(worker.job is None for worker in self._workers)

    @property
    def is_full(self) -> bool:
        """Whether so much waits that the script should wait too."""
        return len(self._waiting) >= _MOST_WAITING * self._most

    @property
    def output(self) -> bytes:
        """What the compiles printed, in their order."""
        return b"".join(text for _, text in sorted(self._outputs.items()))

    def descriptors(self) -> Iterator[int]:
        """Those that reports come through."""
        return (worker.child.fileno() for worker in self._workers if worker.job is not None)

    def take(self, event: HandedOver) -> None:
        """Have a compile made."""
        self._waiting.append(replace(event.job, request=self._request))
        self._begin()

    def read(self) -> None:
        """Take what was reported, note what ended, and begin what waits."""
        for worker in list(self._workers):
            if worker.job is not None:
                self._read(worker, worker.job)
        self._begin()

    def _read(self, worker: _Worker, job: CompileJob) -> None:
        for event in worker.child.read(0):
            if isinstance(event, JobEnded):
                self._ended(worker, job)
            elif not isinstance(event, CompileBegun):
                if isinstance(event, (CompileFailed, LoadFailed)) and event.error not in job.survived:
                    self._failed(job)
                self._feed(event)
        if worker.job is None:
            return
        limit_s = self._request.timeout_s
        is_late = time.monotonic() - worker.began_s > limit_s
        if not (worker.child.at_end or is_late):
            return
        output = worker.child.output()[worker.printed :]
        self._workers.remove(worker)
        with worker.held:
            outcome = worker.child.end()
            call = "" if is_late else call_that_ended(worker.child.log, worker.child.pid, outcome.code)
        if call:
            self._waiting.appendleft(replace(job, request=replace(self._request, ended_in=call)))
            return
        if is_late:
            message = f"the compile took longer than {limit_s:g} s and was ended."
            self._completion.fail(job.number, "timeout", message, output)
        else:
            self._failed(job)
            self._completion.fail(job.number, "abort", f"the compiler {outcome}.", output)
        self._note_end(job, output)

    def _failed(self, job: CompileJob) -> None:
        self.failed.add(job.number)
        if self._folder.is_dir():
            (self._folder / FAILED).write_text(job.key)

    def _ended(self, worker: _Worker, job: CompileJob) -> None:
        worker.job = None
        output = worker.child.output()
        self._note_end(job, output[worker.printed :])
        worker.printed = len(output)

    def _note_end(self, job: CompileJob, output: bytes) -> None:
        """Let the script know, which may wait for the kernel."""
        self._outputs[job.number] = output
        if self._echo is not None and output:
            self._echo(output.decode("utf-8", "replace"))
        folder = self._folder / ENDED
        if self._folder.is_dir():
            folder.mkdir(exist_ok=True)
            (folder / job.key).touch()

    def _begin(self) -> None:
        while self._waiting:
            worker = next((worker for worker in self._workers if worker.job is None), None)
            if worker is None and len(self._workers) >= self._most:
                return
            try:
                worker = worker or self._new()
            except (OSError, RecordingError):
                if not self._workers:
                    raise
                return
            job = worker.job = self._waiting.popleft()
            worker.began_s = time.monotonic()
            worker.child.send(replace(job, request=replace(job.request, log_path=str(worker.child.log))))

    def _new(self) -> _Worker:
        with ExitStack() as stack:
            folder = self._folder if self._folder.is_dir() else None
            temporary = tempfile.TemporaryDirectory(dir=folder, prefix="worker-", ignore_cleanup_errors=True)
            own = Path(stack.enter_context(temporary))
            child = child_process(WORKER, own, EVENTS, interpreter=self._request.interpreter, ahead=TRITON)
            self._workers.append(_Worker(stack.enter_context(child), stack.pop_all()))
        return self._workers[-1]
