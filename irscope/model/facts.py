"""What of a capture is known without its texts: its facts, by which it is listed and found, and its outline."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.model.capture import Capture, CaptureStatus, SnapshotLevel
from irscope.model.launch_record import Autotuning
from irscope.model.plain import tupled
from irscope.model.telling import parts_of
from irscope.target import Target

_Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CaptureFacts:
    """What a list of captures shows, and what it is searched by."""

    id: str
    name: str
    file: str
    line: int
    target: Target
    plan: str
    status: CaptureStatus
    failure: str
    """The kind of the failure; empty for none."""
    triton_version: str
    date: str
    stages: tuple[str, ...]
    autotuning: Autotuning | None
    signature: _Pairs
    constants: _Pairs
    attributes: _Pairs
    options: _Pairs
    """(option, value as Python prints it)."""
    command: str = ""
    origin: _Pairs = ()
    """As `Environment.origin` has it: a test, a cell, a process."""
    graphs: tuple[str, ...] = ()
    """The graphs of TorchInductor's that the kernel is of: `0 forward`."""
    snapshot_level: SnapshotLevel = "none"

    @property
    def parts(self) -> dict[str, str]:
        """The launch's constants, types and options."""
        return parts_of(self)

    @property
    def has_compiled(self) -> bool:
        """Whether there is a binary, including one that exceeds the device's limits."""
        return self.failure in ("", "fit")

    @staticmethod
    def of(capture: Capture) -> CaptureFacts:
        launch = capture.launch
        return CaptureFacts(
            capture.id,
            capture.name,
            launch.kernel.file,
            launch.kernel.line,
            capture.target,
            str(capture.plan),
            capture.status,
            capture.failure.kind if capture.failure else "",
            capture.environment.triton_version,
            capture.environment.date,
            capture.stages,
            launch.autotuning,
            launch.signature,
            launch.constants,
            launch.attributes,
            tuple((name, str(tupled(value))) for name, value in launch.options),
            capture.environment.command,
            capture.environment.origin,
            tuple(f"{origin.graph} {origin.part}".rstrip() for origin in capture.graphs),
            capture.snapshot_level,
        )


@dataclass(frozen=True, slots=True)
class Outline:
    """A capture's facts, and the rest of what its manifest states."""

    facts: CaptureFacts
    head: Capture
    """The launch, resources, environment, outcome, notes and graphs. Its stages and passes may be missing, and its id
    be another: those are in `facts`. Whether it is trusted is not known."""
