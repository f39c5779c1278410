"""What a file states of its capture without its texts: what lists many captures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from irscope.model.capture import Capture
from irscope.store.facts import CaptureFacts
from irscope.store.file import head_of
from irscope.store.schema import checked_manifest

__all__ = ["Outline", "outline_of"]

_LARGE_PARTS = ("snapshots", "layouts", "operations", "sources")
_RARE_PARTS = ("log", "profile")


@dataclass(frozen=True, slots=True)
class Outline:
    """A capture's facts, and the rest of what its manifest states."""

    facts: CaptureFacts
    head: Capture
    """The launch, resources, environment, outcome, notes and graphs. Its stages and passes may be missing, and its id
    be another: those are in `facts`."""


def outline_of(manifest: Mapping[str, Any]) -> Outline:
    """The outline of the `capture.json` of a file; raises CaptureFormatError for one that is not valid."""
    # Most of a manifest is of passes and layouts, which are checked where the capture is read.
    checked = checked_manifest({**manifest, **dict.fromkeys(_LARGE_PARTS, ()), **dict.fromkeys(_RARE_PARTS)})
    return Outline(CaptureFacts.of_checked(checked, manifest.get("id")), head_of(checked))
