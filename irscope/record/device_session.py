"""A launch of a script, held on the GPU by a child process: variants of it are checked and timed there.

Nothing here imports triton or torch. A variant that faults or hangs takes the child with it; the next one that is
asked for gets a new child, which runs the script again up to the same launch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from irscope.analysis.measurement import FEWEST_ROUNDS, Agreement, Ratio, Timing, ratio_of, timing_of
from irscope.capture import Capture, stage_named
from irscope.errors import DeviceFault, RecordingError, UsageError
from irscope.record.device_process import DeviceProcess, last_lines, log_file, refusal, start_device_process
from irscope.record.events import Event
from irscope.record.request import RecordRequest
from irscope.record.session import DEFAULT_TIMEOUT_S, Progress

LAUNCH_TIMEOUT_S = 30.0
"""How long a launch may take before it counts as hanging."""


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What the device reaches at best, measured on the spot."""

    bytes_per_s: float
    """Of a large copy, bytes read plus bytes written."""
    flops_per_s: float | None
    """Of torch's matrix product of a dtype; None where there is none."""


@dataclass(frozen=True, slots=True)
class Held:
    """What is known of the launch that is held."""

    launch: int
    """Its number among the script's compiles, from 1."""
    device: str
    """The name of the GPU."""
    bytes: int | None
    """Of its tensors: each that it reads, and each that it writes, once; None where that is not known."""
    outputs: tuple[str, ...] = ()
    """The arguments whose memory it changes."""
    poisoned: tuple[str, ...] = ()
    """Of those, the ones it never reads: they are poisoned before each run that is checked."""
    noise: str = ""
    """How two runs of the launch as it is differ; empty where they don't."""
    scalars: tuple[tuple[str, float], ...] = ()
    """(parameter, value) of its numbers."""
    l2_bytes: int | None = None


@dataclass
class DeviceSession:
    """A launch that is held; `device_session` makes it."""

    request: RecordRequest
    timeout_s: float
    launch_timeout_s: float
    interpreter: str | None
    progress: Progress | None
    _log: Path
    _wanted: int | None
    _child: DeviceProcess | None = None
    _baseline: Capture | None = None
    _held: Held | None = None
    restarts: int = field(default=-1)
    """How often the child was started again."""

    @property
    def baseline(self) -> Capture:
        """The launch as it was recorded on the GPU, under the empty plan."""
        self._running()
        if self._baseline is None:
            raise RecordingError("the launch is not held.")
        return self._baseline

    @property
    def held(self) -> Held:
        """What is known of the launch."""
        self._running()
        if self._held is None:
            raise RecordingError("the launch is not held.")
        return self._held

    def check(self, capture: Capture) -> Agreement:
        """Run a variant on the launch's own inputs, and compare what it writes with what the baseline writes.

        Raises UsageError where it is no variant of this launch: other parameters, constants or target.
        """
        if (why := _not_runnable(capture)) is not None:
            return Agreement("failed", detail=why)
        self._require_variant(capture)
        child = self._running()
        key = _load(child, capture)
        child.send(Event("check", {"key": key}))
        try:
            answer = self._answer(child, ("agreement",))
        except TimeoutError:
            self._drop()
            return Agreement("timeout", detail=f"no end after {self.launch_timeout_s:g} s")
        except DeviceFault as fault:
            return Agreement("fault", detail=str(fault))
        return Agreement.from_json(answer.fields)

    def time(self, captures: Sequence[Capture], *, rounds: int, cold: bool = True) -> tuple[tuple[Timing, Ratio], ...]:
        """Time variants and the baseline, interleaved: for each its times, and its ratio to the baseline.

        `rounds`: how often each is launched, 6 at least. `cold`: flush the L2 before each launch. Raises DeviceFault
        where one of them faults or hangs: `check` each before.
        """
        return self.time_all(captures, rounds=rounds, cold=cold)[1]

    def time_all(
        self, captures: Sequence[Capture], *, rounds: int, cold: bool = True
    ) -> tuple[Timing, tuple[tuple[Timing, Ratio], ...]]:
        """As `time`, with the baseline's own times before the others."""
        if rounds < FEWEST_ROUNDS:
            raise UsageError(f"{rounds} rounds give no 95 % confidence interval: take at least {FEWEST_ROUNDS}.")
        for capture in captures:
            if (why := _not_runnable(capture)) is not None:
                raise RecordingError(f"{capture!r} cannot be timed: {why}")
            self._require_variant(capture)
        child = self._running()
        keys = [_load(child, capture) for capture in captures]
        child.send(Event("time", {"keys": keys, "rounds": rounds, "cold": cold}))
        try:
            answer = self._answer(child, ("times",))
        except TimeoutError:
            self._drop()
            raise DeviceFault(f"a launch that was timed did not end in {self.launch_timeout_s:g} s.") from None
        base, again, *others = answer["times_us"]
        rows = tuple((timing_of(times, cold=cold), ratio_of(times, base, again)) for times in others)
        return timing_of(base, cold=cold), rows

    def ceilings(self, dtype: str = "") -> Ceilings:
        """The device's copy bandwidth, and the rate of torch's matrix product of a dtype such as `float16`."""
        child = self._running()
        child.send(Event("ceilings", {"dtype": dtype}))
        try:
            answer = self._answer(child, ("ceilings",))
        except TimeoutError:
            self._drop()
            raise DeviceFault(f"the ceilings were not measured in {self.launch_timeout_s:g} s.") from None
        return Ceilings(answer["bytes_per_s"], answer["flops_per_s"])

    def close(self) -> None:
        """End the child."""
        self._drop()

    def _drop(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def _running(self) -> DeviceProcess:
        """The child, started and at the launch."""
        if self._child is None:
            self.restarts += 1
            first = Event("hold", {"launch": self._wanted})
            self._child = start_device_process(
                first, self.request, self._log, interpreter=self.interpreter, progress=self.progress, echo=None
            )
            try:
                self._wait_for_launch(self._child)
            except BaseException:
                self._drop()
                raise
        return self._child

    def _wait_for_launch(self, child: DeviceProcess) -> None:
        """Follow the script to the launch, and take what is told of that."""
        in_launch = False
        while True:
            limit = self.launch_timeout_s if in_launch else self.timeout_s if child.assembly.compiling else None
            try:
                event = child.read(limit)
            except TimeoutError:
                what = "the launch" if in_launch else f"the compile ({child.assembly.working_on})"
                raise DeviceFault(f"{what} took longer than {limit:g} s and was ended.") from None
            if event is None:
                raise RecordingError(
                    f"{child.how_it_ended()} before the launch that was asked for.\n{last_lines(self._log)}".rstrip()
                )
            if event.kind == "error":
                raise refusal(event["error"], self._with_script_end(child, event["message"]))
            # The first sign of life after the script: the launch itself is run now.
            in_launch = in_launch or event.kind == "alive"
            if event.kind == "held":
                self._take(child, event)
                return

    def _with_script_end(self, child: DeviceProcess, message: str) -> str:
        end = child.assembly.script_end
        if end is None or not end.stopped:
            return message
        return f"{message}\nThe script stopped: {end.message}\n{end.frames}".rstrip()

    def _take(self, child: DeviceProcess, event: Event) -> None:
        self._wanted = event["launch"]
        capture = child.assembly.captures()[event["launch"] - 1]
        if self._baseline is not None and capture.id != self._baseline.id:
            raise RecordingError("the script made another launch when it was run again: its launches must not change.")
        self._baseline = capture
        self._held = Held(
            launch=event["launch"],
            device=event["device"],
            bytes=event["bytes"],
            outputs=tuple(event["outputs"]),
            poisoned=tuple(event["poisoned"]),
            noise=event["noise"],
            scalars=tuple(event["scalars"].items()),
            l2_bytes=event["l2_bytes"],
        )

    def _answer(self, child: DeviceProcess, kinds: tuple[str, ...]) -> Event:
        """The next event of these kinds; raises DeviceFault where the child ends instead, and TimeoutError."""
        while True:
            event = child.read(self.launch_timeout_s)
            if event is None:
                how = child.how_it_ended()
                self._drop()
                raise DeviceFault(how)
            if event.kind == "fault":
                self._drop()
                raise DeviceFault(event["detail"])
            if event.kind == "error":
                raise refusal(event["error"], event["message"])
            if event.kind in kinds:
                return event

    def _require_variant(self, capture: Capture) -> None:
        base = self.baseline
        if capture.target != base.target:
            raise UsageError(f"a binary for {capture.target} cannot run here: the GPU is {base.target}.")
        if capture.launch.signature != base.launch.signature or capture.launch.constants != base.launch.constants:
            raise UsageError(
                f"{capture!r} was compiled for other parameters or constants than launch {self.held.launch} of "
                f"{base.name}: its binary cannot stand in for that."
            )


@contextmanager
def device_session(
    request: RecordRequest,
    launch: int | None,
    *,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    launch_timeout_s: float = LAUNCH_TIMEOUT_S,
    interpreter: str | None = None,
    progress: Progress | None = None,
) -> Iterator[DeviceSession]:
    """Run a script on the GPU up to one of its launches, and hold that for variants to be checked and timed.

    Args:
        request: the script, as `requests.request_for` makes it, with an empty plan.
        launch: the number of its compile, from 1; None for the first launch that is not autotuning's.
        timeout_s: for one kernel's compile.
        launch_timeout_s: for one launch.
        interpreter: a Python with another Triton.
        progress: is told what is under way.

    Raises NoDevice where there is no GPU, UsageError for what is no script or a plan, and RecordingError where the
    script ends without that launch.
    """
    if request.mode != "script":
        raise UsageError("only what a script launches can be run: give the FILE, not a signature, a capture or IR.")
    if request.plan:
        raise UsageError("the launch that variants are compared with is the one under the empty plan.")
    with log_file() as log:
        session = DeviceSession(request, timeout_s, launch_timeout_s, interpreter, progress, log, launch)
        try:
            session._running()
            yield session
        finally:
            session.close()


def _binary_of(capture: Capture) -> bytes | None:
    for artifact in capture.artifacts:
        if stage_named(artifact.stage).is_binary and isinstance(artifact.data, bytes):
            return artifact.data
    return None


def _not_runnable(capture: Capture) -> str | None:
    if capture.failure is not None:
        return capture.failure.why_not_run
    return "it holds no binary" if _binary_of(capture) is None else None


def _load(child: DeviceProcess, capture: Capture) -> str:
    """Give the child a capture's binary, once; returns the key it has there."""
    binary = _binary_of(capture) or b""
    metadata: dict[str, Any] = dict(capture.metadata)
    text = json.dumps(metadata, sort_keys=True, default=str)
    key = hashlib.sha256(binary + text.encode()).hexdigest()
    if key not in child.loaded:
        child.send(Event("variant", {"key": key, "metadata": json.loads(text)}, binary))
        child.loaded.add(key)
    return key
