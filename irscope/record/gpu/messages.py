"""The commands to the process that launches on the GPU, and its events beside those of a recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Union, get_args

from irscope.device.measurement import Agreement
from irscope.record.process.events import EVENTS, RecordingEvent, event_kinds
from irscope.record.process.requests import RecordRequest

# Commands; the first says what to do


@dataclass(frozen=True, slots=True)
class CheckScript:
    """Run a script, and check its launches."""

    request: RecordRequest
    launch: int | None = None
    """Only the launches of this compile, from 1."""
    every: bool = False
    """Every launch, not only the first of each compile."""


@dataclass(frozen=True, slots=True)
class PinLaunch:
    """Run a script up to one launch, and keep that for variants of it."""

    request: RecordRequest
    launch: int | None = None
    """The number of its compile, from 1; None for the first launch that is not the autotuner's."""


@dataclass(frozen=True, slots=True)
class LoadVariant:
    key: str
    metadata: dict[str, Any]
    data: bytes


@dataclass(frozen=True, slots=True)
class CheckVariant:
    """Run a variant, and compare what it writes."""

    key: str


@dataclass(frozen=True, slots=True)
class TimeVariants:
    """Time variants and the launch's own kernel, interleaved."""

    keys: tuple[str, ...]
    rounds: int
    cold: bool
    """Whether to flush the L2 cache before each launch."""


@dataclass(frozen=True, slots=True)
class MeasureCeilings:
    """Measure what the device reaches at best."""

    dtype: str


@dataclass(frozen=True, slots=True)
class ProfileVariant:
    """Launch a variant once, for a profiler."""

    key: str


@dataclass(frozen=True, slots=True)
class StoreInputs:
    """Store the memory that the launch was given, for the process of another interpreter."""

    folder: str


@dataclass(frozen=True, slots=True)
class MakeAgain:
    """Launch on the inputs that another process stored, and store what that leaves."""

    inputs: str
    outputs: str


@dataclass(frozen=True, slots=True)
class CheckOutputs:
    """Compare what another process's launch left on this one's inputs."""

    folder: str


@dataclass(frozen=True, slots=True)
class RunProgram:
    """Run a program in the group of the process that gets this, which does nothing else."""

    command: tuple[str, ...]


Command = Union[  # noqa: UP007
    CheckScript,
    PinLaunch,
    LoadVariant,
    CheckVariant,
    TimeVariants,
    MeasureCeilings,
    ProfileVariant,
    StoreInputs,
    MakeAgain,
    CheckOutputs,
    RunProgram,
]
COMMANDS: tuple[type[Command], ...] = get_args(Command)


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


@dataclass(frozen=True, slots=True)
class Alive(RecordingEvent):
    """A launch has ended: the next one has the whole time-out again."""


@dataclass(frozen=True, slots=True)
class LaunchBegun(RecordingEvent):
    where: LaunchPlace


@dataclass(frozen=True, slots=True)
class LaunchEnded(RecordingEvent):
    """The launch that began has ended."""


@dataclass(frozen=True, slots=True)
class LaunchChecked(RecordingEvent):
    where: LaunchPlace
    agreement: Agreement

    def as_json(self) -> dict[str, Any]:
        where = self.where
        place = {"launch": where.launch, "count": where.count, "kernel": where.kernel, "grid": where.grid}
        return place | self.agreement.as_json()


@dataclass(frozen=True, slots=True)
class Fault(RecordingEvent):
    """The GPU takes nothing more from the process, which ends now."""

    detail: str
    where: LaunchPlace | None = None


@dataclass(frozen=True, slots=True)
class LaunchInfo(RecordingEvent):
    """What is known of the launch that is pinned."""

    launch: int
    """Its number among the script's compiles, from 1."""
    device: str
    """The name of the GPU."""
    bytes: int | None
    """Of its tensors: each that it reads, and each that it writes, once; None if that is not known."""
    outputs: tuple[str, ...] = ()
    """The arguments whose memory it changes."""
    poisoned: tuple[str, ...] = ()
    """Of those, the ones it never reads: they are poisoned before each run that is checked."""
    noise: str = ""
    """How two runs of the launch as it is differ, or an empty string."""
    scalars: tuple[tuple[str, bool | int | float], ...] = ()
    """(parameter, value) of its numbers."""
    l2_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class VariantChecked(RecordingEvent):
    """The answer to CheckVariant, and to CheckOutputs."""

    agreement: Agreement


@dataclass(frozen=True, slots=True)
class VariantsTimed(RecordingEvent):
    times_us: tuple[tuple[float, ...], ...]
    """Of the launch's own kernel, of that loaded once more, and of each variant: one for each round."""


@dataclass(frozen=True, slots=True)
class CeilingsMeasured(RecordingEvent):
    """What the device reaches at best, measured on the spot."""

    bytes_per_s: float
    """Of a large copy, bytes read plus bytes written."""
    flops_per_s: float | None
    """Of torch's matrix product of a dtype; None if it has none."""


@dataclass(frozen=True, slots=True)
class VariantProfiled(RecordingEvent):
    """The answer to ProfileVariant: it was launched."""


@dataclass(frozen=True, slots=True)
class MemoryStored(RecordingEvent):
    """The answer to StoreInputs, and to MakeAgain."""

    why_not: str = ""
    """Why the launch cannot be made on those inputs; empty if it was."""


@dataclass(frozen=True, slots=True)
class ProgramEnded(RecordingEvent):
    """The answer to RunProgram."""

    code: int


DEVICE_EVENTS = (*EVENTS, *event_kinds(globals()))
"""What the stream of this process may hold."""
