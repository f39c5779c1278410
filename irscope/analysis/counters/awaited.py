"""Which instructions an instruction of SASS waits for: those that set a scoreboard that it needs to be clear.

A scoreboard counts what is under way; an instruction that waits for one waits for all that set it since it was last
waited for. Source: see `irscope.ir.asm.instructions`.
"""

from __future__ import annotations

from irscope.ir.asm.control_flow import UNKNOWN, ControlFlow
from irscope.ir.asm.instructions import Instruction

__all__ = ["Scoreboards"]


class Scoreboards:
    """The scoreboards of one function."""

    def __init__(self, graph: ControlFlow) -> None:
        self._code = [list(block.instructions) for block in graph.blocks]
        self._places = {one.line: (number, at) for number, code in enumerate(self._code) for at, one in enumerate(code)}
        self._before: dict[int, list[int]] = {}
        for jump in graph.jumps:
            if jump.target != UNKNOWN:
                self._before.setdefault(jump.target, []).append(jump.source)

    def awaited(self, line: int) -> tuple[Instruction, ...]:
        """The instructions whose results the one on a line of the text may wait for, on any way there."""
        number, at = self._places.get(line, (UNKNOWN, 0))
        if number == UNKNOWN or (control := self._code[number][at].control) is None:
            return ()
        found: dict[int, Instruction] = {}
        for board in control.waits_for:
            found |= {one.line: one for one in self._setters(board, number, at)}
        return tuple(found[line] for line in sorted(found))

    def _setters(self, board: int, number: int, at: int) -> list[Instruction]:
        found: list[Instruction] = []
        seen: set[int] = set()
        waiting = [(number, at)]
        while waiting:
            number, at = waiting.pop()
            for one in reversed(self._code[number][:at]):
                control = one.control
                if control is not None and control.write_barrier == board:
                    found.append(one)
                if control is not None and board in control.waits_for:
                    break
            else:
                before = [block for block in self._before.get(number, ()) if block not in seen]
                seen.update(before)
                waiting += [(block, len(self._code[block])) for block in before]
        return found
