"""A script run on the GPU under a plan, each of its launches checked: the parent's side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from irscope.device.measurement import Agreement, Verdict
from irscope.errors import RecordingError, UsageError
from irscope.model.capture import Capture
from irscope.record.gpu import messages
from irscope.record.gpu.session import LAUNCH_TIMEOUT_S, DeviceProcess, device_process
from irscope.record.process.events import Done, RecordingEvent, Refused, ScriptEnd
from irscope.record.process.own_folder import own_folder
from irscope.record.process.requests import RecordRequest
from irscope.record.process.session import Progress


@dataclass(frozen=True, slots=True)
class ScriptCheck:
    """What came of a whole script."""

    launches: tuple[messages.LaunchChecked, ...]
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
    launch_timeout_s: float = LAUNCH_TIMEOUT_S,
    progress: Progress | None = None,
    echo: Callable[[str], None] | None = None,
) -> ScriptCheck:
    """Run a script on the GPU under its request's plan, and check its launches against the empty plan's.

    Args:
        request: the script, as `requests.request_for` makes it.
        launch: only the launches of this compile, from 1.
        every: every launch, not only the first of each compile.
        launch_timeout_s: for one launch.
        progress: gets a text of what is under way.
        echo: gets what the script prints, as it comes.

    Raises NoDevice where there is no GPU, and RecordingError where the process ends before its first compile.
    """
    if request.mode != "script":
        raise UsageError("only what a script launches can be run: give the FILE, not a signature, a capture or IR.")
    first = messages.CheckScript(request, launch, every)
    with own_folder() as folder, device_process(first, folder, progress=progress, echo=echo) as child:
        return _Follower(child, request.timeout_s, launch_timeout_s).follow()


class _Follower:
    def __init__(self, child: DeviceProcess, timeout_s: float, launch_timeout_s: float) -> None:
        self._child = child
        self._timeout_s = timeout_s
        self._launch_timeout_s = launch_timeout_s
        self._rows: list[messages.LaunchChecked] = []
        self._launching: messages.LaunchPlace | None = None
        self._fault = ""

    def follow(self) -> ScriptCheck:
        """Take events until the end, whatever that is."""
        while True:
            compiling = self._child.assembly.compiling
            limit = self._launch_timeout_s if self._launching else self._timeout_s if compiling else None
            try:
                event = self._child.read(limit)
            except TimeoutError:
                return self._timed_out()
            if event is None or isinstance(event, Done):
                return self._ended(event is None)
            self._take(event)

    def _take(self, event: RecordingEvent) -> None:
        match event:
            case messages.LaunchBegun():
                self._launching = event.where
            case messages.LaunchEnded():
                self._launching = None
            case messages.LaunchChecked():
                self._rows.append(event)
            case messages.Fault():
                self._fault = event.detail
                if event.where is not None:
                    self._add(event.where, "fault", self._fault)
                self._launching = None
            case Refused():
                raise event.as_error()
            case _:
                return

    def _add(self, where: messages.LaunchPlace, verdict: Verdict, detail: str) -> None:
        if where.empty_plan:
            detail = f"under the empty plan already: {detail}"
            # What was checked and found well, and then failed as the script's own launch, has failed.
        self._rows = [row for row in self._rows if (row.where.launch, row.where.count) != (where.launch, where.count)]
        self._rows.append(messages.LaunchChecked(where, Agreement(verdict, detail=detail)))

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
        if not self._rows and not self._child.assembly.numbers:
            raise RecordingError(f"{how} before any kernel was compiled.\n{self._child.last_lines()}".rstrip())
        if self._launching is not None:
            self._add(self._launching, "fault", how)
        self._child.assembly.fail_open("abort", f"the compiler's process ended: {how}.", self._child.log.read_bytes())
        return self._made(how)

    def _made(self, ended: str) -> ScriptCheck:
        self._child.annotations.finish()
        captures = self._child.assembly.captures()
        failed = [
            messages.LaunchChecked(
                messages.LaunchPlace(number, 0, capture.name, None),
                Agreement("failed", detail=capture.failure.why_not_run),
            )
            for number, capture in enumerate(captures, 1)
            if capture.failure is not None and all(row.where.launch != number for row in self._rows)
        ]
        rows = sorted([*self._rows, *failed], key=lambda row: (row.where.launch, row.where.count))
        return ScriptCheck(tuple(rows), captures, self._child.assembly.script_end, ended)
