"""What lists a capture: the facts of its manifest, and its outline, which is read without a text of a stage."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Protocol, TypeVar

from irscope.model.capture import Capture, CaptureStatus, SnapshotLevel
from irscope.model.launch_record import Autotuning
from irscope.model.plain import tupled
from irscope.model.telling import parts_of, telling_texts
from irscope.store.file import head_of
from irscope.store.schema import checked_manifest
from irscope.target import Target

__all__ = ["CaptureFacts", "Outline", "chosen", "differences", "outline_of"]

_LEAST_DIGITS = 4

Pairs = tuple[tuple[str, str], ...]

# 5a1f0c3e99d2b740
_ID = re.compile(r"[0-9a-f]{16}")

_LARGE_PARTS = ("snapshots", "layouts", "operations", "sources")
_RARE_PARTS = ("log", "profile")


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
    signature: Pairs
    constants: Pairs
    attributes: Pairs
    options: Pairs
    """(option, value as Python prints it)."""
    command: str = ""
    origin: Pairs = ()
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
        """Whether there is a binary, one that asks for more than there is included."""
        return self.failure in ("", "fit")

    @staticmethod
    def of(capture: Capture) -> CaptureFacts:
        """The facts of a capture in memory."""
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


def differences(captures: Sequence[CaptureFacts]) -> list[str]:
    """What tells each capture from the others of its kernel: `BLOCK=64 num_warps=8`; empty where none of these does."""
    return telling_texts(
        [
            (one.name, {"target": str(one.target), "plan": one.plan, "Triton": one.triton_version} | one.parts)
            for one in captures
        ]
    )


class _Listed(Protocol):
    @property
    def facts(self) -> CaptureFacts: ...


_Row = TypeVar("_Row", bound=_Listed)


def chosen(rows: Sequence[_Row], text: str) -> list[_Row]:
    """The rows that a text names: a kernel, a pattern of its name (`soft*`), or the first digits of an id."""
    if named := [one for one in rows if one.facts.name == text]:
        return named
    if any(sign in text for sign in "*?["):
        return [one for one in rows if fnmatchcase(one.facts.name, text)]
    return [one for one in rows if len(text) >= _LEAST_DIGITS and one.facts.id.startswith(text)]


@dataclass(frozen=True, slots=True)
class Outline:
    """A capture's facts, and the rest of what its manifest states."""

    facts: CaptureFacts
    head: Capture
    """The launch, resources, environment, outcome, notes and graphs. Its stages and passes may be missing, and its id
    be another: those are in `facts`. Whether it is trusted is not known."""


def outline_of(manifest: Mapping[str, Any]) -> Outline:
    """The outline of the `capture.json` of a file; raises CaptureFormatError for one that is not valid."""
    # Most of a manifest is of passes and layouts, which are checked where the capture is read.
    checked = checked_manifest({**manifest, **dict.fromkeys(_LARGE_PARTS, ()), **dict.fromkeys(_RARE_PARTS)})
    head, stated = head_of(checked), manifest.get("id")
    facts = replace(
        CaptureFacts.of(head),
        id=stated if isinstance(stated, str) and _ID.fullmatch(stated) else "",
        plan=checked.plan,
        stages=tuple(artifact.stage for artifact in checked.artifacts),
    )
    return Outline(facts, head)
