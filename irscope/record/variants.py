"""A pool of warm workers that compile variants of a capture, several at once.

The workers are forks of one process that has imported Triton (`irscope.record.zygote`), each serves one request and
ends. What happens to one of them (an abort, a hang, an exception) is that variant's failed capture, and no other's.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from irscope import errors
from irscope.capture import Capture
from irscope.errors import IrscopeError, RecordingError
from irscope.plan import PassPlan
from irscope.record.assembly import Assembly
from irscope.record.events import FrameReader
from irscope.record.own_folder import own_folder
from irscope.record.request import RecordRequest, SnapshotLevel
from irscope.record.requests import request_from_capture
from irscope.record.session import DEFAULT_TIMEOUT_S, check_end, child_environment

_POLL_S = 0.2
_IDLE_TIMEOUT_S = 60.0


def variant_request(capture: Capture, plan: PassPlan, *, snapshots: SnapshotLevel = "none") -> RecordRequest:
    """The request for a capture's own source under another plan, with nothing that a comparison can do without."""
    request = request_from_capture(capture, plan=str(plan), snapshots=snapshots)
    return replace(request, disassemble=False, layouts=False)


@dataclass(slots=True)
class _Job:
    """One worker under way."""

    index: int
    assembly: Assembly
    pid: int
    stream: int
    folder: Path
    started: float
    frames: FrameReader = field(default_factory=FrameReader)
    ending: str = "end"


class VariantPool:
    """Compiles requests of mode `text`, `jobs` at a time, as a context manager.

    `jobs`: by default one for each core. `timeout_s`: for one compile. `interpreter`: a Python with another Triton.
    """

    def __init__(
        self, *, jobs: int | None = None, timeout_s: float = DEFAULT_TIMEOUT_S, interpreter: str | None = None
    ) -> None:
        self.jobs = jobs or len(os.sched_getaffinity(0))
        self._timeout_s = timeout_s
        self._interpreter = interpreter or sys.executable
        self._told: dict[str, Any] | None = None

    def __enter__(self) -> VariantPool:
        self._held = ExitStack()
        self._folder = self._held.enter_context(own_folder())
        self._log = self._folder / "log"
        self._control, theirs = socket.socketpair()
        self._answers = self._control.makefile("rb")
        try:
            with theirs, open(self._log, "wb") as log:
                self._process = subprocess.Popen(
                    [self._interpreter, "-m", "irscope.record.zygote", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(theirs.fileno(),),
                    env=child_environment(self._folder),
                    # Ctrl-C is for this process, which then ends the workers.
                    start_new_session=True,
                )
        except OSError as error:
            self._close()
            raise RecordingError(
                f"the interpreter {self._interpreter!r} cannot be started: {error.strerror}."
            ) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The end of its socket is the end of it; it holds no state that a signal could hurt.
        self._process.kill()
        self._process.wait()
        self._close()

    def _close(self) -> None:
        self._answers.close()
        self._control.close()
        self._held.close()

    @property
    def compiler(self) -> tuple[str, str]:
        """(Triton's version, a text that changes with every rebuild of it and every variable it depends on).

        Waits until Triton is imported; raises what stood in the way.
        """
        told = self._ready()
        return told["triton_version"], told["compiler"]

    def _ready(self) -> dict[str, Any]:
        if self._told is None:
            self._told = self._answer()
        if "error" in self._told:
            kind = getattr(errors, self._told["error"], RecordingError)
            raise (kind if issubclass(kind, IrscopeError) else RecordingError)(self._told["message"])
        return self._told

    def compile(self, requests: Iterable[RecordRequest]) -> Iterator[tuple[int, Capture]]:
        """(0-based place of the request, its capture), each as soon as it is there.

        Closing the iterator ends what is still under way. Raises what a worker refused with (a target that Triton does
        not take), and RecordingError where the pool's own process is gone.
        """
        self._ready()
        waiting = enumerate(requests)
        running: dict[int, _Job] = {}
        with selectors.DefaultSelector() as selector:
            try:
                while True:
                    while len(running) < self.jobs and (row := next(waiting, None)) is not None:
                        job = self._start(*row)
                        running[job.stream] = job
                        selector.register(job.stream, selectors.EVENT_READ)
                    if not running:
                        return
                    for job in self._ended(selector, running):
                        selector.unregister(job.stream)
                        del running[job.stream]
                        yield job.index, self._finish(job)
            finally:
                for job in running.values():
                    self._abandon(job)

    def compile_one(self, request: RecordRequest) -> Capture:
        """The capture of one request."""
        ((_, capture),) = self.compile((request,))
        return capture

    def _start(self, index: int, request: RecordRequest) -> _Job:
        if request.mode != "text":
            raise RecordingError(
                f"a request of mode {request.mode!r} is not for the pool: it compiles texts of stages."
            )
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        log = folder / "log"
        request = replace(request, log_path=str(log))
        command = os.environ.get("IRSCOPE_COMMAND_LINE") or " ".join(["irscope", *sys.argv[1:]])
        date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        read_end, write_end = os.pipe()
        try:
            with open(log, "ab") as output:
                pid = self._ask({"compile": request.to_json()}, (write_end, output.fileno()))["pid"]
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        return _Job(index, Assembly(request, command, date), pid, read_end, folder, time.monotonic())

    def _ended(self, selector: selectors.BaseSelector, running: dict[int, _Job]) -> list[_Job]:
        """Feed what the workers tell; the ones that are at their end, or out of time."""
        ended: list[_Job] = []
        for key, _ in selector.select(_POLL_S):
            job = running[key.fd]
            chunk = os.read(job.stream, 1 << 20)
            for event in job.frames.feed(chunk):
                job.assembly.feed(event)
            if not chunk:
                ended.append(job)
        now = time.monotonic()
        for job in running.values():
            # A worker that has not begun, or is at its end, waits for nothing but the machine.
            limit = self._timeout_s if job.assembly.compiling else max(self._timeout_s, _IDLE_TIMEOUT_S)
            if job not in ended and now - job.started > limit:
                job.ending = "timeout"
                ended.append(job)
        return ended

    def _finish(self, job: _Job) -> Capture:
        code = self._reap(job)
        output = (job.folder / "log").read_bytes()
        check_end(job.assembly, job.ending, code, output, self._timeout_s)
        if not (captures := job.assembly.captures()):
            raise RecordingError(f"a worker began no compile.\n{output[-2000:].decode('utf-8', 'replace')}".rstrip())
        return captures[0]

    def _reap(self, job: _Job) -> int:
        if job.ending != "end":
            _kill(job.pid)
        os.close(job.stream)
        return self._ask({"wait": job.pid})["code"]

    def _abandon(self, job: _Job) -> None:
        _kill(job.pid)
        os.close(job.stream)
        with contextlib.suppress(RecordingError):
            self._ask({"wait": job.pid})

    # The socket to the warm process

    def _ask(self, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> dict[str, Any]:
        data = json.dumps(message).encode() + b"\n"
        try:
            if descriptors:
                data = data[socket.send_fds(self._control, [data], list(descriptors)) :]
            self._control.sendall(data)
        except OSError as error:
            raise self._gone() from error
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        with contextlib.suppress(OSError):
            if line := self._answers.readline():
                return json.loads(line)
        raise self._gone()

    def _gone(self) -> RecordingError:
        said = "\n".join(self._log.read_text("utf-8", "replace").splitlines()[-20:])
        return RecordingError(f"the process that compiles variants ended.\n{said}".rstrip())


def _kill(pid: int) -> None:
    """End a worker and whatever it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
