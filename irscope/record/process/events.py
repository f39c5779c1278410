"""What a recording process reports as it goes: one class for each kind of event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from irscope import errors
from irscope.errors import IrscopeError, RecordingError
from irscope.ir.logs.time_trace import LlvmTrace, Part
from irscope.model.capture import Environment, Launch, PassSnapshot, Target
from irscope.model.evidence import GraphOrigin, PassLog
from irscope.model.launch_record import Assumption, OtherLaunch
from irscope.model.layout import LayoutRow
from irscope.record.process.requests import CompileJob

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:
    # Only type checkers read it.
    def dataclass_transform(**_):
        return lambda kind: kind


@dataclass_transform(frozen_default=True)
class RecordingEvent:
    """Something that a recording process reports: each of its kinds is a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


# Events of the whole recording


class Begun(RecordingEvent):
    """The process has found Triton, and what it records for."""

    environment: Environment
    """Versions, platform, tools and GPU; the parent knows the rest."""
    real: bool = False
    nvdisasm: str = ""
    """The path of its Triton's nvdisasm; empty where there is none."""


class Note(RecordingEvent):
    text: str


class SourceRead(RecordingEvent):
    path: str
    data: str


class KernelGenerated(RecordingEvent):
    name: str
    origin: GraphOrigin
    data: str
    """The text of the module that defines it."""


class Launched(RecordingEvent):
    hash: str
    grid: tuple[int, int, int]
    assumptions: tuple[Assumption, ...] = ()
    origin: tuple[tuple[str, str], ...] = ()


class LaunchedAgain(RecordingEvent):
    """A compiled kernel was launched with other arguments, or another grid, than before."""

    hash: str
    launch: OtherLaunch


class LaunchLeft(RecordingEvent):
    """What the tensors of a kernel's first launch on a GPU held before it and after it."""

    hash: str
    contents: tuple[tuple[str, str, str], ...]
    """As `LaunchRecord.with_contents` takes them."""


class Timed(RecordingEvent):
    kernel: str
    tuning: int
    """Counts the searches for a fastest configuration."""
    config: str
    times_ms: tuple[float, ...]
    """The median and two quantiles."""


class ScriptEnd(RecordingEvent):
    code: int = 0
    message: str = ""
    frames: str = ""
    of_compile: bool = False
    """Whether it ended with the error of a compile, which that compile's capture holds."""
    target: str = ""
    complete: bool = False
    """Whether it ran to its end although it failed, as tests do."""
    passed_over: tuple[str, ...] = ()
    """The kernels that it launched, and that were not asked for."""

    @property
    def stopped(self) -> bool:
        return self.code != 0


class Joined(RecordingEvent):
    """A process of the program, other than the one that the recording started, reports what it compiles from now on."""

    pid: int
    command: str


class Resumed(RecordingEvent):
    """A process whose connection was closed reports through another one."""

    pid: int


class Refused(RecordingEvent):
    """The process cannot do what it was asked for."""

    error: str
    """The name of a class of `irscope.errors`."""
    message: str

    def as_error(self) -> IrscopeError:
        kind = getattr(errors, self.error, RecordingError)
        return (kind if issubclass(kind, IrscopeError) else RecordingError)(self.message)


class Done(RecordingEvent):
    """Everything was reported."""


# Events of one compile


class CompileEvent(RecordingEvent):
    """Something about one compile."""

    n: int


class CompileBegun(CompileEvent):
    target: Target
    launch: Launch
    log: int = 0
    """Where what is printed from now on begins in the log of the process, in bytes."""
    origin: tuple[tuple[str, str], ...] = ()


class HandedOver(CompileEvent):
    """A worker is to go on with the compile, which the process does not wait for."""

    job: CompileJob
    frames: str = ""
    """The calls that led to its launch, in the program's own code."""


class LoadFailed(CompileEvent):
    """The part has not the resources for the compiled kernel, which its launch would have raised."""

    error: str
    """The name of the error's class."""
    message: str


class JobEnded(CompileEvent):
    """A worker has reported all of a compile that was handed over."""


class CompileDropped(CompileEvent):
    """The same compile is under way already: nothing more comes of this one."""


class AlreadyStored(CompileEvent):
    """A capture of the compile is stored: nothing more comes of it."""

    id: str
    hash: str
    """The key in Triton's cache, by which it is launched."""


class OptionsKnown(CompileEvent):
    options: dict[str, Any]


class CompilerKnown(CompileEvent):
    """What makes the code of the target: as `Environment` has it."""

    parts: tuple[tuple[str, str], ...]
    variables: tuple[tuple[str, str], ...]
    tools: dict[str, str]
    front: str = ""
    """As `KnownCompile` has it."""


class StageBegun(CompileEvent):
    stage: str
    log: int = 0


class Parsing(CompileEvent):
    """The text that the compile starts from is being parsed."""

    stage: str
    """The stage of the text; empty once it was parsed."""


class StageFailed(CompileEvent):
    stage: str
    diagnostics: str = ""


class ArtifactMade(CompileEvent):
    """A stage made its artifact, or a tool made one from another."""

    stage: str
    data: str | bytes = ""
    duration_us: int | None = None
    processor_us: int | None = None


class StageLeftOut(CompileEvent):
    """A stage that was to be made from another could not be made."""

    stage: str


class _PassEvent(CompileEvent):
    step: PassSnapshot
    """The pass as it stands before it runs."""


class PassBegun(_PassEvent):
    log: int = 0


class PassEnded(CompileEvent):
    """A pass ended, or the plan switches it off."""

    step: PassSnapshot
    """With what came of it. Its text is None if it did not change, or was not printed."""


class PassFailed(_PassEvent):
    message: str = ""
    diagnostics: str = ""


class PassingText(CompileEvent):
    """The IR after a pass, kept only until the next one ends; None if it did not change."""

    index: int
    data: str | None = None


class PassText(CompileEvent):
    """The IR after a pass that ended earlier."""

    index: int
    data: str


class Logged(CompileEvent):
    """What the compiler printed of its reasons."""

    log: PassLog


class LlvmPassesKnown(CompileEvent):
    """LLVM's passes of a stage that may be left out, in the order it came to them."""

    passes: tuple[PassSnapshot, ...]


class TimesKnown(CompileEvent):
    """Where the time of the compile went: the arguments of `compile_times`."""

    parts: tuple[Part, ...]
    traces: tuple[LlvmTrace, ...]
    processor_ns: int
    notes: tuple[str, ...]


class LlvmDump(CompileEvent):
    """What LLVM printed of its own passes."""

    stage: str
    data: str


class LayoutsKnown(CompileEvent):
    """What the compiler says of each layout of the TTGIR."""

    layouts: tuple[LayoutRow, ...]


class CompileFailed(CompileEvent):
    error: str
    message: str
    frames: str
    diagnostics: str
    log: str
    errno: int = 0
    """Of an error of the operating system; ENOMEM of a MemoryError."""


class CompileEnded(CompileEvent):
    hash: str
    metadata: dict[str, Any]
    log: str
    cached: bool = False


EventSink = Callable[[RecordingEvent], None]
