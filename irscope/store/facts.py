"""What lists a capture: the facts of its manifest, without a text of a stage."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from irscope.model.autotuning import Autotuning
from irscope.model.capture import Capture, CaptureStatus
from irscope.model.plain import tupled
from irscope.store.schema import Manifest
from irscope.target import Target

__all__ = ["CaptureFacts", "differences"]

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
        )

    @staticmethod
    def of_manifest(checked: Manifest, stated: object) -> CaptureFacts:
        """The facts of a manifest; `stated`: the id that the file states, any value."""
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
        )

    def _inputs(self) -> Iterator[tuple[str, str]]:
        yield "target", str(self.target)
        yield "plan", self.plan
        yield "Triton", self.triton_version
        yield from self.constants
        yield from self.options
        yield from ((f"type({name})", kind) for name, kind in self.signature if kind != "constexpr")
        for name, text in self.attributes:
            # tt.divisibility=16, tt.pointer_range=32
            for row in text.split(", "):
                key, _, value = row.partition("=")
                yield (f"{name}%{value}", "0") if key == "tt.divisibility" else (f"{name}.{key}", value)


def _texts(options: Sequence[tuple[str, Any]]) -> Pairs:
    return tuple((name, str(tupled(value))) for name, value in options)


def differences(captures: Sequence[CaptureFacts]) -> list[str]:
    """What tells each capture from the others of its kernel: `BLOCK=64 num_warps=8`; empty where none of these does."""
    rows = [dict(one._inputs()) for one in captures]  # pyright: ignore[reportPrivateUsage]
    telling: dict[str, list[str]] = {}
    for name in {one.name for one in captures}:
        group = [row for one, row in zip(captures, rows, strict=True) if one.name == name]
        inputs = dict.fromkeys(key for row in group for key in row)
        telling[name] = [key for key in inputs if len({row.get(key) for row in group}) > 1]
    return [
        " ".join(f"{key}={row[key]}" for key in telling[one.name] if row.get(key))
        for one, row in zip(captures, rows, strict=True)
    ]
