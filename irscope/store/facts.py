"""What lists a capture: the facts of its manifest, without a text of a stage."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from irscope.model.autotuning import Autotuning
from irscope.model.capture import Capture, CaptureStatus, SnapshotLevel
from irscope.model.plain import tupled
from irscope.model.telling import parts_of, telling_texts
from irscope.store.schema import Manifest, checked_manifest
from irscope.target import Target

if TYPE_CHECKING:
    from irscope.model.graph_origin import GraphOrigin

__all__ = ["CaptureFacts", "chosen", "differences"]

_LEAST_DIGITS = 4

Pairs = tuple[tuple[str, str], ...]

# 5a1f0c3e99d2b740
_ID = re.compile(r"[0-9a-f]{16}")


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
            _texts(launch.options),
            capture.environment.command,
            capture.environment.origin,
            _graph_names(capture.graphs),
            capture.snapshot_level,
        )

    @staticmethod
    def of_manifest(manifest: Mapping[str, Any]) -> CaptureFacts:
        """The facts that the `capture.json` of a file states; raises CaptureFormatError for one that is not valid."""
        return CaptureFacts.of_checked(checked_manifest(dict(manifest)), manifest.get("id"))

    @staticmethod
    def of_checked(checked: Manifest, stated: object) -> CaptureFacts:
        """The facts of a manifest that was checked; `stated`: what the file says its id is."""
        launch = checked.launch
        backend, _, arch = checked.target.partition(":")
        return CaptureFacts(
            stated if isinstance(stated, str) and _ID.fullmatch(stated) else "",
            launch.kernel.name,
            launch.kernel.file,
            launch.kernel.line,
            Target(backend, arch, checked.warp_size),
            checked.plan,
            checked.status,
            checked.failure.kind if checked.failure else "",
            checked.environment.triton_version,
            checked.environment.date,
            tuple(item.stage for item in checked.artifacts),
            launch.autotuning,
            launch.signature,
            launch.constants,
            launch.attributes,
            _texts(launch.options),
            checked.environment.command,
            checked.environment.origin,
            _graph_names(checked.graphs),
            checked.snapshot_level,
        )


def _texts(options: Sequence[tuple[str, Any]]) -> Pairs:
    return tuple((name, str(tupled(value))) for name, value in options)


def _graph_names(origins: Sequence[GraphOrigin]) -> tuple[str, ...]:
    return tuple(f"{origin.graph} {origin.part}".rstrip() for origin in origins)


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
