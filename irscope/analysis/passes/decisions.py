"""What the compiler decided of each operation of a capture, and why, by its own log."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from irscope.ir.locations.model import Chain
from irscope.model.capture import Capture
from irscope.model.evidence import CompilerLog

if TYPE_CHECKING:
    from irscope.ir.logs.decisions import Decision

__all__ = ["Decisions", "decisions_of"]


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions of one compile."""

    all: tuple[Decision, ...]
    """In the order of the passes."""

    def about(self, chain: Chain) -> tuple[Decision, ...]:
        """Those about the operations with a location, its callers included; an operation keeps it from pass to pass.

        Of several operations with one location (`tl.load` makes a load, and a conversion of what it loads), each
        decision names its own.
        """
        places = _places(chain)
        return tuple(decision for decision in self.all if places and _places(decision.chain) == places)

    def on(self, file: str, line: int) -> tuple[Decision, ...]:
        """Those about a line of Python, 1-based, itself or one that it calls."""
        return tuple(
            decision
            for decision in self.all
            if any(frame.line == line and frame.file == file for frame in decision.chain)
        )


def decisions_of(capture: Capture) -> Decisions:
    """The decisions in a capture's log; none if it holds no log."""
    return _decisions(capture.log) if capture.log is not None else Decisions(())


@lru_cache(maxsize=8)
def _decisions(log: CompilerLog) -> Decisions:
    # Few captures hold a log.
    from irscope.ir.logs.reasons import read_decisions

    return Decisions(tuple(decision for item in log.passes for decision in read_decisions(item)))


def _places(chain: Chain) -> tuple[tuple[str, int, int], ...]:
    return tuple((frame.file, frame.line, frame.column) for frame in chain)
