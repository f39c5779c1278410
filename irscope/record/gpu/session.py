"""Launches on the GPU, the parent's side: one pinned with variants of it, or those of a script, each checked.

Nothing here imports triton or torch. A variant that faults or hangs takes the child with it; the next one that is
asked for gets a new child, which runs the script again up to the same launch.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from irscope.device.measurement import (
    Agreement,
    Measurement,
    Ratio,
    Timing,
    Verdict,
    quantile,
    ratio_of,
    require_rounds,
    timing_of,
)
from irscope.errors import DeviceFault, RecordingError, UsageError
from irscope.interruption import Interrupted
from irscope.model.capture import Capture, stage_named
from irscope.record.gpu import messages
from irscope.record.gpu.messages import CheckScript, Command, PinLaunch
from irscope.record.process.annotations import Annotations, LayoutServer
from irscope.record.process.assembly import Assembly
from irscope.record.process.child import LONGEST_WAIT_S, Child, child_process
from irscope.record.process.events import Done, RecordingEvent, Refused, ScriptEnd
from irscope.record.process.own_folder import own_folder
from irscope.record.process.requests import RecordRequest
from irscope.record.process.session import Progress

_LONGEST_END_S = 5.0


class DeviceProcess:
    def __init__(self, child: Child, assembly: Assembly, annotations: Annotations, progress: Progress | None) -> None:
        self.assembly = assembly
        self.annotations = annotations
        """Feed that, and add to it."""
        self.loaded: set[str] = set()
        self.log = child.log
        self.last_lines = child.last_lines
        self._child = child
        self._progress = progress
        self._waiting: deque[RecordingEvent] = deque()

    def send(self, command: Command) -> None:
        self._child.send(command)

    def read(self, timeout_s: float | None) -> RecordingEvent | None:
        """The next event, also fed to the assembly; None once the process has ended. Raises TimeoutError."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._waiting:
            left_s = LONGEST_WAIT_S if deadline is None else min(LONGEST_WAIT_S, deadline - time.monotonic())
            if left_s < 0:
                raise TimeoutError
            self._waiting.extend(self._child.read(left_s))
            if self._child.at_end and not self._waiting:
                return None
        event = self._waiting.popleft()
        self.annotations(event)
        if self._progress is not None:
            self._progress(self.assembly.working_on)
        return event

    def how_it_ended(self) -> str:
        self._child.wait(_LONGEST_END_S)
        return f"the process {self._child.end()}"


@contextmanager
def _device_process(
    first: CheckScript | PinLaunch,
    folder: Path,
    *,
    progress: Progress | None = None,
    echo: Callable[[str], None] | None = None,
) -> Iterator[DeviceProcess]:
    """Start the child with its first command, until the end of the block; its files are in `folder`."""
    module = "irscope.record.gpu.child"
    request = first.request
    with (
        LayoutServer(request.interpreter) as server,
        child_process(module, folder, interpreter=request.interpreter, echo=echo) as child,
    ):
        child.send(replace(first, request=replace(request, log_path=str(child.log))))
        assembly = Assembly(request)
        yield DeviceProcess(child, assembly, Annotations(assembly.feed, request, server), progress)


_LAUNCH_TIMEOUT_S = 30.0
"""How long a launch may take before it counts as hanging."""


class _Ended(DeviceFault):
    """The child ended instead of answering."""


@dataclass
class DeviceSession:
    request: RecordRequest
    launch_timeout_s: float
    progress: Progress | None
    _folder: Path
    _number: int | None
    """Of the launch's compile; None until it is known."""
    _running: ExitStack = field(default_factory=ExitStack)
    _child: DeviceProcess | None = None
    _baseline: Capture | None = None
    _info: messages.LaunchInfo | None = None
    restarts: int = field(default=-1)
    """How often the child was started again."""

    @property
    def baseline(self) -> Capture:
        self._started()
        assert self._baseline is not None
        return self._baseline

    @property
    def info(self) -> messages.LaunchInfo:
        self._started()
        assert self._info is not None
        return self._info

    def check(self, capture: Capture) -> Agreement:
        """Run a variant on the launch's inputs, and compare what it writes; raises UsageError for another launch's."""
        if (why := why_not_runnable(capture)) is not None:
            return Agreement("failed", detail=why)
        require_variant(capture, self.baseline, self.info.launch)
        try:
            return self._ask("check", self._load(capture))
        except TimeoutError:
            return Agreement("timeout", detail=f"no end after {self.launch_timeout_s:g} s")
        except DeviceFault as fault:
            return Agreement("fault", detail=str(fault))

    def time(self, captures: Sequence[Capture], *, rounds: int, cold: bool = True) -> tuple[tuple[Timing, Ratio], ...]:
        """Time variants and the baseline, interleaved: for each its times and its ratio. `check` each before."""
        return self.time_all(captures, rounds=rounds, cold=cold)[1]

    def time_all(
        self, captures: Sequence[Capture], *, rounds: int, cold: bool = True
    ) -> tuple[Timing, tuple[tuple[Timing, Ratio], ...]]:
        """As `time`, with the baseline's own times before the others."""
        require_rounds(rounds)
        for capture in captures:
            if (why := why_not_runnable(capture)) is not None:
                raise RecordingError(f"{capture!r} cannot be timed: {why}")
            require_variant(capture, self.baseline, self.info.launch)
        base, again, *others = self.times_us(captures, rounds=rounds, cold=cold)
        rows = tuple((timing_of(times, cold=cold), ratio_of(times, base, again)) for times in others)
        return timing_of(base, cold=cold), rows

    def times_us(
        self, captures: Sequence[Capture] = (), *, rounds: int, cold: bool = True
    ) -> tuple[tuple[float, ...], ...]:
        """Microseconds in each round: of the baseline, of its own program loaded once more, and of each variant."""
        try:
            return self._ask("time", tuple(map(self._load, captures)), rounds, cold)
        except TimeoutError:
            raise DeviceFault(f"a launch that was timed did not end in {self.launch_timeout_s:g} s.") from None

    def store_inputs(self, folder: Path) -> None:
        """Store the memory that the launch was given in a folder, for the session of another interpreter."""
        self._ask("store_inputs", str(folder))

    def make_again(self, inputs: Path, outputs: Path) -> str:
        """Make the launch on stored inputs, and store what it leaves; or say why not. Raises DeviceFault."""
        return self._ask("make_again", str(inputs), str(outputs))

    def check_outputs(self, folder: Path) -> Agreement:
        return self._ask("check_outputs", str(folder))

    def ceilings(self, dtype: str = "") -> messages.CeilingsMeasured:
        """The device's copy bandwidth, and the rate of torch's matrix product of a dtype such as `float16`."""
        try:
            return self._ask("ceilings", dtype)
        except TimeoutError:
            raise DeviceFault(f"the ceilings were not measured in {self.launch_timeout_s:g} s.") from None

    def close(self) -> None:
        self._child = None
        self._running.close()

    def _started(self) -> DeviceProcess:
        if self._child is None:
            self.restarts += 1
            first = messages.PinLaunch(self.request, self._number)
            process = _device_process(first, self._folder, progress=self.progress)
            self._child = self._running.enter_context(process)
            try:
                self._wait_for_launch(self._child)
            except BaseException:
                self.close()
                raise
        return self._child

    def _wait_for_launch(self, child: DeviceProcess) -> None:
        in_launch = False
        while True:
            limit = self.launch_timeout_s if in_launch else self.request.timeout_s if child.assembly.compiling else None
            try:
                event = child.read(limit)
            except TimeoutError:
                what = "the launch" if in_launch else f"the compile ({child.assembly.working_on})"
                raise DeviceFault(f"{what} took longer than {limit:g} s and was ended.") from None
            if event is None:
                raise RecordingError(
                    f"{child.how_it_ended()} before the requested launch.\n{child.last_lines()}".rstrip()
                )
            if isinstance(event, Refused):
                raise replace(event, message=self._with_script_end(child, event.message)).as_error()
            # The first sign of life after the script: the launch itself is run now.
            in_launch = in_launch or isinstance(event, messages.Alive)
            if isinstance(event, messages.LaunchInfo):
                self._take(child, event)
                return

    def _with_script_end(self, child: DeviceProcess, message: str) -> str:
        end = child.assembly.script_end
        if end is None or not end.stopped:
            return message
        return f"{message}\nThe script stopped: {end.message}\n{end.frames}".rstrip()

    def _take(self, child: DeviceProcess, info: messages.LaunchInfo) -> None:
        self._number = info.launch
        capture = child.assembly.capture(child.assembly.numbers[info.launch - 1])
        if self._baseline is not None and capture.id != self._baseline.id:
            raise RecordingError("the script made another launch when it was run again: its launches must not change.")
        self._baseline, self._info = capture, info

    def _load(self, capture: Capture) -> str:
        """Give the child a capture's binary, once; returns the key it has there."""
        child, load = self._started(), load_command(capture, own_grid(capture, self.baseline))
        key = load.arguments[0]
        if key not in child.loaded:
            self._ask(load.method, *load.arguments)
            child.loaded.add(key)
        return key

    def _ask(self, method: str, *arguments: Any) -> Any:
        """What a method of the launch returns; raises DeviceFault if the child ends instead, and TimeoutError."""
        child = self._started()
        try:
            child.send(messages.Do(method, arguments))
            while True:
                event = child.read(self.launch_timeout_s)
                if event is None:
                    raise _Ended(child.how_it_ended())
                if isinstance(event, messages.Fault):
                    raise _Ended(event.detail)
                if isinstance(event, Refused):
                    raise event.as_error()
                if isinstance(event, messages.Answered):
                    return event.value
        except (TimeoutError, _Ended, Interrupted, KeyboardInterrupt):
            # What it may still answer would be taken for the answer to the next command.
            self.close()
            raise


def require_variant(capture: Capture, base: Capture, launch: int) -> None:
    """Raise UsageError for what is no variant of a launch: other parameters or target, or constants without a grid."""
    if capture.target != base.target:
        raise UsageError(f"a binary for {capture.target} cannot run here: the GPU is {base.target}.")
    has_others = capture.launch.constants != base.launch.constants
    if capture.launch.signature != base.launch.signature or (has_others and own_grid(capture, base) is None):
        raise UsageError(
            f"{capture!r} was compiled for other parameters or constants than launch {launch} of "
            f"{base.name}: that launch cannot run its binary."
        )


def require_script(request: RecordRequest) -> None:
    if request.mode != "script":
        raise UsageError("only launches of a script can be run: give the FILE, not a signature, a capture or IR.")


@contextmanager
def device_session(
    request: RecordRequest,
    launch: int | None,
    *,
    launch_timeout_s: float = _LAUNCH_TIMEOUT_S,
    progress: Progress | None = None,
) -> Iterator[DeviceSession]:
    """Run a script on the GPU up to one of its launches, and hold that for variants to be checked and timed.

    `launch`: the number of its compile, from 1; None for the first launch that is not autotuning's. Raises NoDevice,
    UsageError for what is no script or has a plan, and RecordingError where the script ends without that launch.
    """
    require_script(request)
    if request.plan:
        raise UsageError("variants are compared with the launch that has every pass on: leave out the plan.")
    with own_folder() as folder:
        session = DeviceSession(request, launch_timeout_s, progress, folder, launch)
        try:
            session._started()
            yield session
        finally:
            session.close()


def _binary_of(capture: Capture) -> bytes | None:
    for artifact in capture.artifacts:
        if stage_named(artifact.stage).is_binary and isinstance(artifact.data, bytes):
            return artifact.data
    return None


def why_not_runnable(capture: Capture) -> str | None:
    """Why a capture's binary cannot be launched; None if it can."""
    if capture.failure is not None:
        return capture.failure.why_not_run
    return "it holds no binary" if _binary_of(capture) is None else None


def own_grid(capture: Capture, base: Capture) -> tuple[int, int, int] | None:
    """The grid of a variant with other values of tl.constexpr, its tiles; None where it runs on the launch's grid."""
    return capture.launch.grid if capture.launch.constants != base.launch.constants else None


def load_command(capture: Capture, grid: tuple[int, int, int] | None = None) -> messages.Do:
    """The command that gives a process on the GPU a capture's binary; `grid`: in place of the launch's own."""
    binary = _binary_of(capture) or b""
    metadata: dict[str, Any] = dict(capture.metadata)
    text = json.dumps(metadata, sort_keys=True, default=str)
    key = hashlib.sha256(binary + f"{text}{grid}".encode()).hexdigest()
    return messages.Do("load", (key, json.loads(text), binary, grid))


_BLOCKS = 20


def measure_pair(before: DeviceSession, after: DeviceSession, *, rounds: int = 100, cold: bool = True) -> Measurement:
    """Compare what two sessions' launches leave, on the inputs of the first, and time them in up to 20 turns.

    The ratio is of the medians of turns that follow each other, and its interval holds what a second copy of the first
    one's program differs from the first. Raises UsageError for too few rounds, and DeviceFault.
    """
    require_rounds(rounds)
    agreement, why_not = _compared(before, after)
    device = before.info.device
    if agreement is not None and agreement.verdict in ("fault", "timeout", "failed"):
        return Measurement(device, agreement=agreement)
    blocks = min(rounds, _BLOCKS)
    each = -(-rounds // blocks)
    sides = (before, after)
    times: tuple[list[tuple[float, ...]], list[tuple[float, ...]]] = ([], [])
    again: list[tuple[float, ...]] = []
    for number in range(blocks):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            base, copy = sides[side].times_us(rounds=each, cold=cold)
            times[side].append(base)
            again += [copy] if side == 0 else []
    ours, theirs, noise = ([quantile(sorted(block), 0.5) for block in rows] for rows in (*times, again))
    first, second = (timing_of([*chain.from_iterable(rows)], cold=cold) for rows in times)
    return Measurement(device, first, second, ratio_of(theirs, ours, noise), agreement, why_not)


def _compared(before: DeviceSession, after: DeviceSession) -> tuple[Agreement | None, str]:
    """(whether the second leaves what the first leaves, why that is not known)."""
    with own_folder() as folder:
        inputs, outputs = (_made(folder / name) for name in ("inputs", "outputs"))
        before.store_inputs(inputs)
        try:
            why_not = after.make_again(inputs, outputs)
        except TimeoutError:
            return Agreement("timeout", detail=f"no end after {after.launch_timeout_s:g} s"), ""
        except DeviceFault as fault:
            return Agreement("fault", detail=str(fault)), ""
        try:
            return (None, why_not) if why_not else (before.check_outputs(outputs), "")
        except TimeoutError:
            return None, f"the comparison did not end in {before.launch_timeout_s:g} s"


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@dataclass(frozen=True, slots=True)
class ScriptCheck:
    launches: tuple[messages.LaunchChecked, ...]
    captures: tuple[Capture, ...]
    script_end: ScriptEnd | None
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
    launch_timeout_s: float = _LAUNCH_TIMEOUT_S,
    echo: Callable[[str], None] | None = None,
) -> ScriptCheck:
    """Run a script on the GPU under its request's plan, and check its launches against the empty plan's.

    `launch`: only those of this compile, from 1. `every`: not only the first of each. Raises NoDevice, and
    RecordingError where the process ends before its first compile.
    """
    require_script(request)
    first = messages.CheckScript(request, launch, every)
    with own_folder() as folder, _device_process(first, folder, echo=echo) as child:
        return _ScriptFollower(child, request.timeout_s, launch_timeout_s).follow()


class _ScriptFollower:
    def __init__(self, child: DeviceProcess, timeout_s: float, launch_timeout_s: float) -> None:
        self._child = child
        self._timeout_s = timeout_s
        self._launch_timeout_s = launch_timeout_s
        self._rows: list[messages.LaunchChecked] = []
        self._launching: messages.LaunchPlace | None = None
        self._fault = ""

    def follow(self) -> ScriptCheck:
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
            self._child.assembly.time_out(self._timeout_s)
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
