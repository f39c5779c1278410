"""The commands to the process that launches on the GPU, and its events beside those of a recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from irscope.device.measurement import Agreement
from irscope.record.process.events import RecordingEvent
from irscope.record.process.requests import RecordRequest

# Commands; the first says what to do


@dataclass(frozen=True, slots=True)
class CheckScript:
    request: RecordRequest
    launch: int | None = None
    """Only the launches of this compile, from 1."""
    every: bool = False


@dataclass(frozen=True, slots=True)
class PinLaunch:
    """Run a script up to one launch, and keep that for variants of it."""

    request: RecordRequest
    launch: int | None = None
    """The number of its compile, from 1; None for the first launch that is not the autotuner's."""


@dataclass(frozen=True, slots=True)
class Do:
    """Call a method of the launch that is kept, by its name; Answered has what it returns."""

    method: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RunProgram:
    """Run a program in the group of the process that gets this, which does nothing else."""

    command: tuple[str, ...]


Command = CheckScript | PinLaunch | Do | RunProgram


# Events


@dataclass(frozen=True, slots=True)
class LaunchPlace:
    launch: int
    """The number of its compile, from 1; 0 for a kernel that is not recorded."""
    count: int
    """Which launch of that compile, from 1; 0 if it is not counted, or was never made."""
    kernel: str
    grid: tuple[int, int, int] | None
    """None for a kernel that was never launched."""
    empty_plan: bool = False
    """Whether the kernel of the empty plan runs in its place."""


class Alive(RecordingEvent):
    """A launch has ended: the next one has the whole time-out again."""


class LaunchBegun(RecordingEvent):
    where: LaunchPlace


class LaunchEnded(RecordingEvent):
    """The launch that began has ended."""


class LaunchChecked(RecordingEvent):
    where: LaunchPlace
    agreement: Agreement

    def as_json(self) -> dict[str, Any]:
        where = self.where
        place = {"launch": where.launch, "count": where.count, "kernel": where.kernel, "grid": where.grid}
        return place | self.agreement.as_json()


class Fault(RecordingEvent):
    """The GPU takes nothing more from the process, which ends now."""

    detail: str
    where: LaunchPlace | None = None


class LaunchInfo(RecordingEvent):
    """What is known of the launch that is pinned."""

    launch: int
    """Its number among the script's compiles, from 1."""
    device: str
    bytes: int | None
    """Of its tensors: each that it reads, and each that it writes, once; None if that is not known."""
    outputs: tuple[str, ...] = ()
    noise: str = ""
    """How two runs of the launch as it is differ, or an empty string."""
    scalars: tuple[tuple[str, bool | int | float], ...] = ()
    l2_bytes: int | None = None


class Answered(RecordingEvent):
    """What a method of the launch that is kept returned; of RunProgram the exit code."""

    value: Any


@dataclass(frozen=True, slots=True)
class CeilingsMeasured:
    """What the device reaches at best, measured on the spot."""

    bytes_per_s: float
    """Of a large copy, bytes read plus bytes written."""
    flops_per_s: float | None
    """Of torch's matrix product of a dtype; None if it has none."""
