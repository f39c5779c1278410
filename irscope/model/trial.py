"""A compile that is tried: a capture's own source, or the IR after one of its passes, with something changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from irscope.model.capture import Capture, PassSnapshot

__all__ = ["CompileTrials", "Trial"]


@dataclass(frozen=True, slots=True)
class Trial:
    """What is compiled in place of a capture's own source."""

    text: str
    """The source; with `after`, the IR after that pass."""
    after: PassSnapshot | None = None
    options: tuple[tuple[str, Any], ...] = ()
    """(compile option, value), in place of the launch's own."""
    last_stage: str = ""
    """The stage after which the compile stops; empty for none."""
    layouts: bool = False
    """Whether the layouts are asked of the compiler."""


CompileTrials = Callable[[Capture, Sequence[Trial]], Iterator[tuple[int, Capture]]]
"""Compiles trials of a capture, and yields (0-based place of the trial, its capture), each as soon as it is there."""
