"""Sums the counters of a launch by operation of the TTGIR, or where these are not known by line of Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import prod

from irscope.analysis.counters.matched import MatchedInstruction, matched_instructions
from irscope.analysis.counters.predicted import (
    GLOBAL_OPCODES,
    CounterComparison,
    comparisons_of,
    executed_instructions,
    warps_of,
)
from irscope.ir.asm.control_flow import UNKNOWN, ControlFlow, read_control_flow
from irscope.ir.asm.instructions import Instruction
from irscope.ir.locations.model import chain_texts, line_text, place_of
from irscope.ir.locations.stages import capture_locations
from irscope.ir.logs.source_page import Counters
from irscope.ir.mlir.types import read_types
from irscope.ir.mlir.uses import read_uses, with_loops
from irscope.memory.costs import costs_of
from irscope.memory.machine import read_machine
from irscope.model.capture import Capture


class Scoreboards:
    """The scoreboards of one function: which instructions an instruction of SASS waits for.

    A scoreboard counts what is under way; an instruction that waits for one waits for all that set it since it was last
    waited for. Source: see `irscope.ir.asm.control`.
    """

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


_GLOBAL_STALL = "long_sb"


@dataclass(frozen=True, slots=True)
class CountedOperation:
    """One operation of the TTGIR, or one line of Python, with the counters of its instructions."""

    line: int
    """In the TTGIR, 1-based; 0 for what is no operation's own."""
    operation: str
    """`tt.load`; empty for what is no operation's own."""
    place: str
    """`file:line` of the Python source; empty if it is not known."""
    chain: tuple[str, ...]
    """`file:line` of every frame, innermost first."""
    layouts: tuple[str, ...]
    loops: int
    """The number of loops around it in the TTGIR."""
    instructions: tuple[MatchedInstruction, ...]
    counters: Counters
    comparisons: tuple[CounterComparison, ...] = ()
    awaited: tuple[int, ...] = ()
    """The TTGIR lines of other operations whose global memory its instructions were found waiting for, most first."""


@dataclass(frozen=True, slots=True)
class CountedLaunch:
    """The counters of a launch, joined to its code."""

    operations: tuple[CountedOperation, ...]
    """The ones where warps waited most first."""
    counters: Counters
    """Of all instructions."""
    predicted_executed: int | None
    """The instructions of warps that irscope computed; None if they do not follow from what is known."""
    by_operation: bool
    """Whether the instructions are the operations' own; otherwise the rows are lines of Python, without predictions."""
    why_not: str = ""
    """Why they are not, for people; or an empty string."""
    uncompared: str = ""
    """Why accesses to global memory have no predictions, for people; or an empty string."""


def counted_launch(capture: Capture) -> CountedLaunch:
    """Join a capture's profile to its operations; raises UsageError if it is of other code."""
    return _Join(capture).launch()


class _Join:
    """One capture, and what its rows are made of."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.instructions = matched_instructions(capture)
        known = next((row for row in capture.operations if row.stage == "sass"), None)
        self.operation_of = known.by_line if known is not None else ()
        self.why_not = known.reason if known is not None else "which ones they are is not known"
        self.uncompared = _why_uncompared(capture, self.instructions)
        self.chains = capture_locations(capture, capture.text("sass"), "sass")
        uses = read_uses(capture.texts.get("ttgir", ""))
        self.operations = {one.first_line: (one, loops) for one, loops in with_loops(uses.module)}
        costs = costs_of(capture) if self.operation_of else []
        self.costs = [cost for cost in costs if cost.access is None or not self.uncompared]
        self.machine = read_machine(capture)
        graphs = read_control_flow(capture.text("sass"), "sass")
        self.graph = next((one for one in graphs if one.function == capture.name), graphs[0])
        self.boards = Scoreboards(self.graph)

    def launch(self) -> CountedLaunch:
        groups: dict[Hashable, list[MatchedInstruction]] = {}
        for one in self.instructions:
            operation = self.operation_of[one.line - 1] if self.operation_of else 0
            groups.setdefault(operation or self.chains.chain_at(one.line), []).append(one)
        rows = [self._row(key, found) for key, found in groups.items()]
        rows.sort(key=lambda row: (-row.counters.stalled, -(row.counters.executed or 0), row.line))
        total = Counters.sum([one.counters for one in self.instructions])
        if not self.operation_of:
            return CountedLaunch(tuple(rows), total, None, False, self.why_not)
        predicted = None
        if not self.uncompared:
            predicted = executed_instructions(self.capture, self.graph, self.costs, self.operation_of)
        return CountedLaunch(tuple(rows), total, predicted, True, uncompared=self.uncompared)

    def _row(self, key: Hashable, instructions: Sequence[MatchedInstruction]) -> CountedOperation:
        chain = self.chains.chain_at(instructions[0].line)
        # An operation that the TTGIR's reader does not know has a place all the same.
        operation, loops = self.operations.get(key, (None, 0)) if isinstance(key, int) else (None, 0)
        kinds = read_types(f"{operation.text} {operation.closing}") if operation is not None else []
        own = [cost for cost in self.costs if cost.line == key]
        return CountedOperation(
            operation.first_line if operation is not None else 0,
            operation.name if operation is not None else "",
            line_text(place_of(chain, self.capture.launch.kernel.file)),
            chain_texts(chain),
            tuple(dict.fromkeys(kind.encoding for kind in kinds if kind.encoding)),
            loops,
            tuple(instructions),
            Counters.sum([one.counters for one in instructions]),
            comparisons_of(own, instructions, self.instructions, self.machine, prod(self.capture.launch.grid or (0,))),
            self._awaited(key, instructions),
        )

    def _awaited(self, key: Hashable, instructions: Sequence[MatchedInstruction]) -> tuple[int, ...]:
        found = Counter[int]()
        for one in instructions if self.operation_of else ():
            stalls = dict(one.counters.stalls).get(_GLOBAL_STALL, 0)
            for setter in self.boards.awaited(one.line) if stalls else ():
                operation = self.operation_of[setter.line - 1]
                if operation and operation != key and setter.opcode.partition(".")[0] in GLOBAL_OPCODES:
                    found[operation] += stalls
        return tuple(sorted(found, key=lambda line: (-found[line], line)))


def _why_uncompared(capture: Capture, instructions: Sequence[MatchedInstruction]) -> str:
    launch = capture.launch
    warps = warps_of(launch)
    if launch.record is None or warps is None:
        return "the capture holds no record of a launch"
    counted = instructions[0].counters.executed if instructions else None
    if counted is None or counted == warps or "warp_specialize" in capture.texts.get("ttgir", ""):
        return ""
    # Every warp executes the first instruction once.
    return f"the profile is of a launch of {counted} warps, the capture's has {warps}"
