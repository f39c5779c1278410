"""What the compiler printed of its reasons while it compiled, pass by pass."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MOST_LOG_BYTES", "MOST_LOG_LINES", "CompilerLog", "PassLog"]

MOST_LOG_BYTES = 4 << 20
MOST_LOG_LINES = 100_000
"""The most that is kept of what one pass printed; on a matmul the longest takes half a megabyte and 2,000 lines."""


@dataclass(frozen=True, slots=True)
class PassLog:
    """What was printed during one pass, or in a stage before, between and after its passes."""

    stage: str
    text: str
    """As printed, with the location of every operation in it."""
    index: int | None = None
    """The `index` of the pass's snapshot; None for what the stage printed outside of its passes."""
    lines_left_out: int = 0
    """How many lines more there were than are kept."""


@dataclass(frozen=True, slots=True)
class CompilerLog:
    """The log of a second compile of a capture, which differed from the first one only in what it printed."""

    passes: tuple[PassLog, ...] = ()
    """Those that printed something, in the order they ran; a stage's own output stands after that of its passes."""
    differing: tuple[str, ...] = ()
    """The stages that the second compile made otherwise than the first, for which the log may not hold.

    Of one and the same PTX, ptxas may make another cubin the next time.
    """
