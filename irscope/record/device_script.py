"""A script run on the GPU under a plan, each of its launches checked: the parent's side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irscope.analysis.measurement import Agreement, Verdict
from irscope.capture import Capture
from irscope.errors import RecordingError, UsageError
from irscope.record.assembly import ScriptEnd
from irscope.record.device_process import DeviceProcess, last_lines, log_file, refusal, start_device_process
from irscope.record.device_session import LAUNCH_TIMEOUT_S
from irscope.record.events import Event
from irscope.record.request import RecordRequest
from irscope.record.session import DEFAULT_TIMEOUT_S, Progress


@dataclass(frozen=True, slots=True)
class LaunchCheck:
    """What came of one launch."""

    launch: int
    """The number of its compile, from 1."""
    count: int
    """Which launch of that compile, from 1; 0 where it was never launched."""
    kernel: str
    grid: tuple[int, int, int] | None
    agreement: Agreement

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        grid = list(self.grid) if self.grid is not None else None
        return {
            "launch": self.launch,
            "count": self.count,
            "kernel": self.kernel,
            "grid": grid,
            **self.agreement.as_json(),
        }


@dataclass(frozen=True, slots=True)
class ScriptCheck:
    """What came of a whole script."""

    launches: tuple[LaunchCheck, ...]
    captures: tuple[Capture, ...]
    script_end: ScriptEnd | None
    """How the script ended; None where its process did before."""
    ended: str = ""
    """How its process ended, where it did before the script."""

    @property
    def passes(self) -> bool:
        """Whether every launch that was checked passes, and the script ended well."""
        well = self.script_end is not None and not self.script_end.stopped
        return bool(self.launches) and all(row.agreement.passes for row in self.launches) and well


def check_script_on_device(
    request: RecordRequest,
    *,
    launch: int | None = None,
    every: bool = False,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    launch_timeout_s: float = LAUNCH_TIMEOUT_S,
    interpreter: str | None = None,
    progress: Progress | None = None,
    echo: Callable[[str], None] | None = None,
) -> ScriptCheck:
    """Run a script on the GPU under its request's plan, and check its launches against the empty plan's.

    Args:
        request: the script, as `requests.request_for` makes it.
        launch: only the launches of this compile, from 1.
        every: every launch, not only the first of each compile.
        timeout_s: for one kernel's compile.
        launch_timeout_s: for one launch.
        interpreter: a Python with another Triton.
        progress: is told what is under way.
        echo: gets what the script prints, as it comes.

    Raises NoDevice where there is no GPU, and RecordingError where the process ends before its first compile.
    """
    if request.mode != "script":
        raise UsageError("only what a script launches can be run: give the FILE, not a signature, a capture or IR.")
    with log_file() as log:
        first = Event("check-script", {"launch": launch, "every": every})
        child = start_device_process(first, request, log, interpreter=interpreter, progress=progress, echo=echo)
        try:
            return _Follower(child, log, timeout_s, launch_timeout_s).follow()
        finally:
            child.close()


class _Follower:
    def __init__(self, child: DeviceProcess, log: Path, timeout_s: float, launch_timeout_s: float) -> None:
        self._child = child
        self._log = log
        self._timeout_s = timeout_s
        self._launch_timeout_s = launch_timeout_s
        self._rows: list[LaunchCheck] = []
        self._launching: Event | None = None
        self._fault = ""

    def follow(self) -> ScriptCheck:
        """Take what is told until the end, whatever that is."""
        while True:
            compiling = self._child.assembly.compiling
            limit = self._launch_timeout_s if self._launching else self._timeout_s if compiling else None
            try:
                event = self._child.read(limit)
            except TimeoutError:
                return self._timed_out()
            if event is None or event.kind == "done":
                return self._ended(event is None)
            self._take(event)

    def _take(self, event: Event) -> None:
        if event.kind == "launch-begins":
            self._launching = event
        elif event.kind == "launch-ended":
            self._launching = None
        elif event.kind == "checked":
            self._rows.append(_row(event, Agreement.from_json(event["agreement"])))
        elif event.kind == "fault":
            self._fault = event["detail"]
            self._launching = None
            self._add(event, "fault", self._fault)
        elif event.kind == "error":
            raise refusal(event["error"], event["message"])

    def _add(self, where: Event, verdict: Verdict, detail: str) -> None:
        if where.fields.get("plan") == "empty":
            detail = f"under the empty plan already: {detail}"
        fresh = _row(where, Agreement(verdict, detail=detail))
        # What was checked and found well, and then failed as the script's own launch, has failed.
        self._rows = [row for row in self._rows if (row.launch, row.count) != (fresh.launch, fresh.count)]
        self._rows.append(fresh)

    def _timed_out(self) -> ScriptCheck:
        if self._launching is not None:
            self._add(self._launching, "timeout", f"no end after {self._launch_timeout_s:g} s")
        else:
            message = f"the compile took longer than {self._timeout_s:g} s and was ended."
            self._child.assembly.fail_open("timeout", message, b"")
        return self._made("it was ended")

    def _ended(self, early: bool) -> ScriptCheck:
        if not early:
            return self._made("")
        how = self._fault or self._child.how_it_ended()
        if not self._rows and not self._child.assembly.count:
            raise RecordingError(f"{how} before any kernel was compiled.\n{last_lines(self._log)}".rstrip())
        if self._launching is not None:
            self._add(self._launching, "fault", how)
        self._child.assembly.fail_open("abort", f"the compiler's process ended: {how}.", self._log.read_bytes())
        return self._made(how)

    def _made(self, ended: str) -> ScriptCheck:
        captures = self._child.assembly.captures()
        failed = [
            LaunchCheck(number, 0, capture.name, None, Agreement("failed", detail=_why(capture)))
            for number, capture in enumerate(captures, 1)
            if capture.failure is not None and all(row.launch != number for row in self._rows)
        ]
        rows = sorted([*self._rows, *failed], key=lambda row: (row.launch, row.count))
        return ScriptCheck(tuple(rows), captures, self._child.assembly.script_end, ended)


def _row(event: Event, agreement: Agreement) -> LaunchCheck:
    x, y, z = event["grid"]
    return LaunchCheck(event["launch"], event["count"], event["kernel"], (x, y, z), agreement)


def _why(capture: Capture) -> str:
    failure = capture.failure
    if failure is None:
        return ""
    return failure.why_not_run
