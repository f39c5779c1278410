"""What a compiler prints of its reasons, told apart by the pass that printed it."""

from __future__ import annotations

from collections.abc import Callable

from irscope.model.evidence import MOST_LOG_BYTES, MOST_LOG_LINES
from irscope.record.process.events import Logged

__all__ = ["PassLogs", "logged"]


class PassLogs:
    """Cuts the output of a process where passes begin and end, and reports each piece."""

    def __init__(self, number: int, read: Callable[[], str], report: Callable[[Logged], None]) -> None:
        """`number`: the compile's. `read`: gives what was printed since it was called last."""
        self._number = number
        self._read = read
        self._report = report
        self._outside: list[str] = []

    def pass_begins(self) -> None:
        """What was printed until now is the stage's own."""
        self._outside.append(self._read())

    def pass_ends(self, stage: str, index: int) -> None:
        """Report what was printed since the pass began."""
        self._send(stage, index, self._read())

    def stage_ends(self, stage: str, more: str) -> None:
        """Report what was printed in the stage outside of its passes, and `more`, which the process did not print."""
        outside, self._outside = [*self._outside, self._read(), more], []
        self._send(stage, None, "".join(outside))

    def _send(self, stage: str, index: int | None, text: str) -> None:
        if text:
            self._report(logged(self._number, stage, index, text))


def logged(number: int, stage: str, index: int | None, text: str) -> Logged:
    """The event of what was printed in a pass, or in a stage, cut to what is kept."""
    lines = text.split("\n")
    room, kept = MOST_LOG_BYTES, 0
    for line in lines[:MOST_LOG_LINES]:
        room -= len(line.encode("utf-8", "replace")) + 1
        if room < 0:
            break
        kept += 1
    # What ends in a line feed has one part more than lines.
    left_out = len(lines) - kept - (lines[-1] == "")
    return Logged(number, stage, index, "\n".join(lines[:kept]) if left_out > 0 else text, max(0, left_out))
