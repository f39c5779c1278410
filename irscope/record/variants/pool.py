"""A pool of warm workers that compile variants of a capture, several at once.

The workers are forks of one process that has imported Triton (`irscope.record.process.child`); each does one request
(`irscope.record`) and ends. What happens to one of them (an abort, a hang, an exception) is that variant's failed
capture, and no other's.
"""

from __future__ import annotations

import selectors
import tempfile
import time
from collections.abc import Generator, Iterable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from irscope.errors import IrscopeError, RecordingError
from irscope.model.capture import Capture, SnapshotLevel
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.process.annotations import Annotations, LayoutServer
from irscope.record.process.assembly import Assembly
from irscope.record.process.child import (
    LONGEST_WAIT_S,
    TRITON,
    Child,
    ForkServer,
    child_process,
    warm_children,
    warm_server,
)
from irscope.record.process.events import EVENTS, RecordingEvent
from irscope.record.process.gathering import RECORDING
from irscope.record.process.own_folder import own_folder
from irscope.record.process.requests import RecordRequest, default_jobs, request_from_capture
from irscope.record.process.session import Ending, check_end
from irscope.tools import LimitWatch, ToolLimits

_FUNCTIONS = "irscope.record.programs.worker"
"""The module of what the process that workers are forked from does for them."""
_IDLE_TIMEOUT_S = 60.0
_ASLEEP_S = 2.0
"""How long a worker that is out of time by the clock may do nothing at all."""


def variant_request(
    capture: Capture, plan: PassPlan, *, snapshots: SnapshotLevel = "none", lists_llvm: bool = False
) -> RecordRequest:
    """The request for a capture's own source under another plan, with nothing that a comparison can do without."""
    asked = RecordingOptions(plan=plan, snapshots=snapshots, disassemble=False, layouts=False)
    return replace(request_from_capture(capture, asked), lists_llvm=lists_llvm)


@dataclass(slots=True)
class _Job:
    """One worker under way."""

    index: int
    request: RecordRequest
    assembly: Assembly
    annotations: Annotations
    child: Child[RecordingEvent]
    resources: ExitStack
    started: float
    ending: Ending = "end"
    watch: LimitWatch | None = None
    """What it has used, once it is out of time by the clock."""

    def feed(self) -> None:
        """Take the events that came."""
        for event in self.child.read(0):
            self.annotations(event)
        self.annotations.collect()


@dataclass(slots=True)
class _Server:
    """The process that the workers of one Python are forked from, and what is asked for layouts."""

    server: ForkServer
    layouts: LayoutServer
    importing: int
    """The number of the command to import the compiler."""
    compiler: tuple[str, str] | None = None
    prepared: set[str] = field(default_factory=set[str])
    """The targets whose tools the workers find read."""

    def imported(self) -> tuple[str, str]:
        """What `VariantPool.compiler_of` returns."""
        if self.compiler is None:
            version, fingerprint = self.server.imported(self.importing)
            self.compiler = version, fingerprint
        return self.compiler

    def prepare(self, targets: Iterable[str]) -> None:
        """Read the tools of targets, once for all workers."""
        for target in {*targets} - self.prepared:
            self.prepared.add(target)
            self.server.imported(self.server.begin_import((), f"{_FUNCTIONS}:read_tools", target))


class VariantPool:
    """Compiles requests of mode `text` or `signature`, `jobs` at a time, as a context manager.

    Args:
        jobs: how many at a time; by default one for each core.
        timeout_s: of processor time for one compile; one that sleeps may do so for two seconds more.
        interpreter: a Python with another Triton, for the requests that name none.
    """

    def __init__(
        self,
        *,
        jobs: int | None = None,
        timeout_s: float = RecordingOptions().timeout_s,
        interpreter: str | None = None,
    ) -> None:
        self.jobs = jobs or default_jobs()
        self.timeout_s = timeout_s
        self._interpreter = interpreter
        self._servers: dict[str | None, _Server] = {}
        """By interpreter."""

    def __enter__(self) -> VariantPool:
        with ExitStack() as stack:
            self.folder = stack.enter_context(own_folder())
            stack.enter_context(warm_children())
            self._held = stack
            self._server_of(self._interpreter)
            self._held = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    @property
    def compiler(self) -> tuple[str, str]:
        """(Triton's version, a text that changes with every rebuild of it and every variable it depends on).

        Waits until Triton is imported; raises what stood in the way.
        """
        return self._server_of(self._interpreter).imported()

    @property
    def compilers(self) -> tuple[tuple[str, str], ...]:
        """The same of every Python for which there was a request."""
        return tuple(self._server_of(interpreter).imported() for interpreter in self._servers)

    def _server_of(self, interpreter: str | None) -> _Server:
        """The process for a Python; it is started for the first request."""
        if interpreter not in self._servers:
            server = warm_server(interpreter)
            layouts = self._held.enter_context(LayoutServer(interpreter))
            # Triton is imported while this process does something else.
            importing = server.begin_import((), f"{_FUNCTIONS}:import_compiler")
            self._servers[interpreter] = _Server(server, layouts, importing)
        return self._servers[interpreter]

    def results(self, requests: Iterable[RecordRequest]) -> Generator[tuple[int, Capture | IrscopeError]]:
        """(0-based place of the request, its capture, or what its worker refused with), each as soon as it is there.

        Closing the iterator ends what is still under way. Raises RecordingError if the pool's own process is gone.
        """
        _ = self.compiler
        waiting = enumerate(requests)
        running: list[_Job] = []
        with selectors.DefaultSelector() as selector:
            try:
                while True:
                    while len(running) < self.jobs and (row := next(waiting, None)) is not None:
                        running.append(job := self._start(*row))
                        selector.register(job.child, selectors.EVENT_READ)
                    if not running:
                        return
                    selector.select(LONGEST_WAIT_S)
                    for job in running:
                        job.feed()
                    for job in [job for job in running if self._is_over(job)]:
                        selector.unregister(job.child)
                        running.remove(job)
                        yield job.index, self._finish(job)
            finally:
                for job in running:
                    job.resources.close()

    def compile(self, requests: Iterable[RecordRequest]) -> Generator[tuple[int, Capture]]:
        """As `results`; raises what a worker refused with (a target that Triton does not take)."""
        with closing(self.results(requests)) as results:
            for index, made in results:
                if isinstance(made, IrscopeError):
                    raise made
                yield index, made

    def compile_one(self, request: RecordRequest) -> Capture:
        ((_, capture),) = self.compile((request,))
        return capture

    def _start(self, index: int, request: RecordRequest) -> _Job:
        if request.mode == "script":
            raise RecordingError(f"a request of mode {request.mode!r} is not for the pool: it runs no script.")
        chosen = self._server_of(request.interpreter or self._interpreter)
        chosen.imported()
        chosen.prepare(request.targets[:1])
        interpreter = request.interpreter or self._interpreter
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True)))
            child = stack.enter_context(child_process(RECORDING, folder, EVENTS, interpreter=interpreter, ahead=TRITON))
            request = replace(request, log_path=str(child.log))
            assembly = Assembly(request)
            annotations = Annotations(assembly.feed, request, chosen.layouts)
            child.send(request)
            return _Job(index, request, assembly, annotations, child, stack.pop_all(), time.monotonic())

    def _is_over(self, job: _Job) -> bool:
        """Whether a worker is at its end, or out of time."""
        if job.child.at_end:
            return True
        # A worker that has not begun, or is at its end, waits for nothing but the machine.
        limit_s = self.timeout_s if job.assembly.compiling else max(self.timeout_s, _IDLE_TIMEOUT_S)
        if time.monotonic() - job.started <= limit_s:
            return False
        # By the clock it may only wait for a processor: what it has used decides, or that it sleeps.
        if job.watch is None:
            job.watch = LimitWatch(job.child.pid, ToolLimits(limit_s, _ASLEEP_S, 0.0))
        if job.watch.exceeded(LONGEST_WAIT_S):
            job.ending = "timeout"
        return job.ending == "timeout"

    def _finish(self, job: _Job) -> Capture | IrscopeError:
        with job.resources:
            if job.ending == "end":
                # It has sent all that it will.
                job.child.wait(_IDLE_TIMEOUT_S)
            outcome = job.child.end()
            for event in job.child.rest():
                job.annotations(event)
            job.annotations.finish()
            output = job.child.output()
        try:
            check_end(job.assembly, job.ending, outcome, output, self.timeout_s)
        except IrscopeError as error:
            return error
        if not (captures := job.assembly.captures()):
            return RecordingError(f"a worker began no compile.\n{output[-2000:].decode('utf-8', 'replace')}".rstrip())
        return captures[0]
