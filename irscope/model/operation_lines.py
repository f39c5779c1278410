"""Which operation of the TTGIR each line of a stage's assembly was compiled from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

__all__ = ["OperationLines"]


@dataclass(frozen=True, slots=True)
class OperationLines:
    """The operations of one stage's lines, or why they are not known."""

    stage: str
    """`ptx`, `sass` or `amdgcn`."""
    runs: tuple[tuple[int, int], ...] = ()
    """(the operation's first line in the TTGIR, 1-based, or 0 for none; lines of the assembly), from its first line."""
    reason: str = ""
    """Why they are not known, for people; empty if they are."""

    @staticmethod
    def of(stage: str, lines: Iterable[int]) -> OperationLines:
        """The operations given for every line of the assembly."""
        return OperationLines(stage, tuple((line, len(list(same))) for line, same in groupby(lines)))

    @property
    def by_line(self) -> tuple[int, ...]:
        """The operation of every line of the assembly: index 0 is line 1."""
        return tuple(line for line, count in self.runs for _ in range(count))
