"""Gathers the captures of a recording as they are complete: those of its first process, of all others, and of workers.

The other processes of the program connect to a socket in the recording's folder, in which the request lies too;
`irscope.record.programs.joining` is the other side. A worker makes one compile after another; one that ends in a
compile is that compile's failure, and another takes its place.
"""

from __future__ import annotations

import math
import socket
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from irscope.errors import CaptureFormatError, CaptureNotFound, RecordingError
from irscope.model.capture import Capture, FailureKind
from irscope.record.process import events
from irscope.record.process.annotations import Annotations, LayoutServer
from irscope.record.process.assembly import Assembly
from irscope.record.process.child import TRITON, Child, MessageStream, child_process
from irscope.record.process.events import EventSink, RecordingEvent
from irscope.record.process.messages import MessageError, MessageReader, frame_of
from irscope.record.process.own_folder import address_in
from irscope.record.process.requests import CompileJob, RecordRequest, default_jobs
from irscope.store.shelf import CaptureFile, Shelf, StoredCaptures

Keep = Callable[[Capture], Path | None]
"""Stores a capture that is complete, and again when more is known of it; returns its file, None if there is none."""


_LONGEST_PATIENCE_S = 0.25
"""How long after its end a compile is held back for what is told of it right after: longer, and a process that is
killed would take more with it."""


class Completion:
    """The captures of one process: each is handed on once its compile ended, its launch and its annotations are known.

    From then on its texts are in its file, that of `keep` or a temporary one. Facts that come later still (the times of
    an autotuning, a note on the whole recording) are added by `finish`.
    """

    def __init__(self, request: RecordRequest, keep: Keep | None, server: LayoutServer, process: str = "") -> None:
        self.assembly = Assembly(request, process=process)
        self.annotations = Annotations(self._take, request, server)
        self._keep = keep
        self._waits: dict[int, float] = {}
        """The compiles that ended and are not handed on, each with when it is to be kept as it is."""
        self._files: dict[int, CaptureFile] = {}
        self._stored_facts: dict[int, tuple[object, ...]] = {}
        """Those that the file of each compile holds."""
        self._shelf = Shelf(spills=True, lease=keep)

    def __call__(self, event: RecordingEvent) -> None:
        self.annotations(event)

    def _take(self, event: RecordingEvent) -> None:
        if isinstance(event, events.CompileBegun):
            # Its thread has launched the kernel before, or never does.
            self._hand_on(of_launches=False)
        self.assembly.feed(event)
        if isinstance(event, (events.CompileEnded, events.CompileFailed)):
            self._waits[event.n] = time.monotonic() + _LONGEST_PATIENCE_S
        if isinstance(event, events.Launched) or (isinstance(event, events.CompileEvent) and event.n in self._waits):
            self._hand_on()

    def settle(self) -> None:
        """Add what was made beside the compiles; hand on, or at least keep, what ended a while ago."""
        self.annotations.collect()
        now = time.monotonic()
        for number, until in list(self._waits.items()):
            if until > now:
                continue
            if not self.annotations.is_under_way(number):
                self._put(number)
            elif self._keep is not None:
                self._waits[number] = math.inf
                self._keep(self.assembly.capture(number))

    def _hand_on(self, *, of_launches: bool = True) -> None:
        for number in list(self._waits):
            awaits_launch = of_launches and self.assembly.awaits_launch(number)
            if not (awaits_launch or self.annotations.is_under_way(number)):
                self._put(number)

    def fail(self, number: int, kind: FailureKind, message: str, output: bytes) -> None:
        self.assembly.fail(number, kind, message, output)
        self._put(number)

    def finish(self) -> StoredCaptures:
        """All captures, each of which was handed on as it is now; takes no more events."""
        self.annotations.close()
        for number in self.assembly.numbers:
            file = self._files.get(number)
            if file is None:
                self._put(number)
            elif self._stored_facts[number] != self.assembly.late_facts(number):
                # A file that is gone stays so.
                with suppress(CaptureNotFound, CaptureFormatError):
                    self.replace(file, self.assembly.with_late_facts(number, file.load()))
        return StoredCaptures(self._files[number] for number in self.assembly.numbers)

    def replace(self, file: CaptureFile, capture: Capture) -> None:
        file.put(capture, None if self._keep is None else self._keep(capture))

    def _put(self, number: int) -> None:
        self._waits.pop(number, None)
        capture = self.assembly.capture(number)
        self._files[number] = CaptureFile(self._shelf, capture, None if self._keep is None else self._keep(capture))
        self._stored_facts[number] = self.assembly.late_facts(number)
        self.assembly.release(number)


_REQUEST = "request"
_MOST_CONNECTING = 256


@dataclass(slots=True)
class _Member:
    stream: MessageStream
    completion: Completion | None = None
    feed: EventSink | None = None


class Gathering:
    """The processes of a program other than its first, and what each has compiled: they report to a socket."""

    def __init__(
        self, listener: socket.socket, first: int, feed_first: EventSink, completion: Callable[[str], Completion]
    ) -> None:
        """`first`: the number of the first process, whose events `feed_first` takes; `completion` takes another's."""
        self._listener = listener
        self._first = first
        self._feeds: dict[int, EventSink] = {first: feed_first}
        """By the number of the process."""
        self._new_completion = completion
        self._members: list[_Member] = []
        self.completions: list[Completion] = []
        self.are_killed = False
        """Whether the processes are ended by the recording, which says of their compiles why."""

    def descriptors(self) -> Iterator[int]:
        yield self._listener.fileno()
        yield from (member.stream.fileno() for member in self._members)

    def read(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._members.append(_Member(MessageStream(connection.detach())))
        for member in list(self._members):
            try:
                while member.stream.has_data():
                    for event in member.stream.read(0):
                        self._feed(member, event)
            except MessageError as error:
                if member.completion is not None:
                    member.completion.assembly.notes.append(
                        f"The recording of a process of the program stopped: {error}"
                    )
                member.stream.at_end = True
            if member.stream.at_end:
                member.stream.close()
                self._members.remove(member)
                if member.completion is not None and not self.are_killed:
                    member.completion.assembly.fail_open("abort", "its process ended during the compile.")

    def close(self) -> None:
        self.read()
        for member in self._members:
            member.stream.close()
        self._members.clear()
        self._feeds.clear()

    def _feed(self, member: _Member, event: RecordingEvent) -> None:
        if isinstance(event, events.Resumed):
            member.feed = self._feeds.get(event.pid)
        elif isinstance(event, events.Joined):
            name = "" if event.pid == self._first else f"{event.command} ({event.pid})"
            member.completion = member.feed = self._feeds[event.pid] = self._new_completion(name)
            self.completions.append(member.completion)
        elif member.feed is not None:
            member.feed(event)
            if isinstance(event, events.Launched) and member.completion is not None:
                # It may have been compiled before the fork.
                for other in self.completions:
                    if other is not member.completion:
                        other.assembly.feed(event)


@contextmanager
def gathering(
    folder: Path, request: RecordRequest, first: int, feed_first: EventSink, completion: Callable[[str], Completion]
) -> Iterator[Gathering]:
    """Let the processes of a program report to a socket in `folder`, until the end of the block; as `Gathering`."""
    (folder / _REQUEST).write_bytes(frame_of(request))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener, address_in(folder) as address:
        listener.bind(address)
        listener.listen(_MOST_CONNECTING)
        listener.setblocking(False)
        made = Gathering(listener, first, feed_first, completion)
        try:
            yield made
        finally:
            made.close()


def read_request(folder: Path) -> RecordRequest:
    return next(MessageReader().feed((folder / _REQUEST).read_bytes()))


RECORDING = "irscope.record"
"""The module of the processes that record and compile."""
_MOST_WAITING = 8
"""Compiles that may wait for each worker before the script waits too."""
FAILED, ENDED = "failed", "ended"
"""In a recording's folder: the file with the key of a compile that failed, and the folder of those that ended."""


@dataclass(slots=True)
class _Worker:
    child: Child
    resources: ExitStack
    job: CompileJob | None = None
    began_s: float = 0.0
    printed: int = 0
    """Bytes of its output before that."""


@dataclass(slots=True)
class CompileWorkers:
    """Makes the compiles that are handed over, and feeds their events to the completion of the script's process."""

    _completion: Completion
    _request: RecordRequest
    _folder: Path
    _echo: Callable[[str], None] | None
    _waiting: deque[CompileJob] = field(default_factory=deque[CompileJob])
    _workers: list[_Worker] = field(default_factory=list[_Worker])
    _outputs: dict[int, bytes] = field(default_factory=dict[int, bytes])
    failed: set[int] = field(default_factory=set[int])
    """The compiles after which the program would have ended."""

    def __enter__(self) -> CompileWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.resources.close()

    @property
    def is_done(self) -> bool:
        return not self._waiting and all(worker.job is None for worker in self._workers)

    @property
    def _most(self) -> int:
        return self._request.jobs or default_jobs()

    @property
    def is_full(self) -> bool:
        return len(self._waiting) >= _MOST_WAITING * self._most

    @property
    def output(self) -> bytes:
        return b"".join(text for _, text in sorted(self._outputs.items()))

    def descriptors(self) -> Iterator[int]:
        return (worker.child.fileno() for worker in self._workers if worker.job is not None)

    def take(self, event: events.HandedOver) -> None:
        self._waiting.append(replace(event.job, request=self._request))
        self._begin()

    def read(self) -> None:
        for worker in list(self._workers):
            if worker.job is not None:
                self._read(worker, worker.job)
        self._begin()

    def _read(self, worker: _Worker, job: CompileJob) -> None:
        for event in worker.child.read(0):
            if isinstance(event, events.JobEnded):
                self._ended(worker, job)
            elif not isinstance(event, events.CompileBegun):
                if isinstance(event, (events.CompileFailed, events.LoadFailed)) and event.error not in job.survived:
                    self._failed(job)
                self._completion(event)
        if worker.job is None:
            return
        limit_s = self._request.timeout_s
        is_late = time.monotonic() - worker.began_s > limit_s
        if not (worker.child.at_end or is_late):
            return
        output = worker.child.output()[worker.printed :]
        self._workers.remove(worker)
        with worker.resources:
            outcome = worker.child.end()
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
            child = child_process(RECORDING, own, interpreter=self._request.interpreter, ahead=TRITON)
            self._workers.append(_Worker(stack.enter_context(child), stack.pop_all()))
        return self._workers[-1]
