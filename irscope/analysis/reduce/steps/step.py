"""What a step is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from irscope.analysis.reduce.program import Program

Edit = int | str | tuple[int | str, ...]
"""One place that a step may shrink; it names operations and values by their numbers, which copies of a program keep."""


class Step(Protocol):
    """One way to shrink a program. Whether what comes out is valid, and still interesting, is not its business."""

    @property
    def name(self) -> str:
        """In the plural, as a report counts them: `operations`."""
        ...

    def edits(self, program: Program) -> Sequence[Edit]:
        """All places, those first that should go first; neighbours are tried together."""
        ...

    def apply(self, program: Program, chosen: frozenset[Edit]) -> None:
        """Shrink a program in place at the chosen places; one that is gone meanwhile is passed over."""
        ...
