"""Sums the counters of a launch by operation of the TTGIR, or where these are not known by line of Python."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from irscope.analysis.counters.executed import executed_instructions, warps_of
from irscope.analysis.counters.matched import MatchedInstruction, matched_instructions
from irscope.analysis.counters.predicted import Comparison, comparisons_of
from irscope.ir.locations.model import Chain
from irscope.ir.locations.stages import capture_locations
from irscope.ir.locations.user import chain_texts, line_text, place_of
from irscope.ir.logs.source_page import Counters
from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.types import read_types
from irscope.ir.mlir.uses import read_uses, with_loops
from irscope.memory.costs import costs_of
from irscope.memory.machine import read_machine
from irscope.model.capture import Capture

__all__ = ["CountedLaunch", "CountedOperation", "counted_launch"]


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
    comparisons: tuple[Comparison, ...] = ()


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
    instructions = matched_instructions(capture)
    known = next((row for row in capture.operations if row.stage == "sass"), None)
    by_line = known.by_line if known is not None else ()
    chains = capture_locations(capture, capture.text("sass"), "sass")
    groups: dict[Hashable, list[MatchedInstruction]] = {}
    for one in instructions:
        operation = by_line[one.line - 1] if by_line else 0
        groups.setdefault(operation or chains.chain_at(one.line), []).append(one)
    uses = read_uses(capture.text("ttgir"))
    operations = {one.first_line: (one, loops) for one, loops in with_loops(uses.module)}
    uncompared = _why_uncompared(capture, instructions)
    costs = [cost for cost in costs_of(capture) if cost.access is None or not uncompared] if by_line else []
    machine = read_machine(capture)
    rows: list[CountedOperation] = []
    for key, found in groups.items():
        chain = chains.chain_at(found[0].line)
        # An operation that the TTGIR's reader does not know has a place all the same.
        operation, loops = operations.get(key, (None, 0)) if isinstance(key, int) else (None, 0)
        own = [cost for cost in costs if cost.line == key]
        rows.append(
            _row(
                operation,
                loops,
                chain,
                found,
                comparisons_of(own, found, instructions, machine),
                capture.launch.kernel.file,
            )
        )
    why_not = "" if by_line else known.reason if known is not None else "nobody found out which they are"
    rows.sort(key=lambda row: (-row.counters.stalled, -(row.counters.executed or 0), row.line))
    total = Counters.sum([one.counters for one in instructions])
    predicted = executed_instructions(capture, costs, by_line) if by_line and not uncompared else None
    return CountedLaunch(tuple(rows), total, predicted, bool(by_line), why_not, uncompared)


def _why_uncompared(capture: Capture, instructions: Sequence[MatchedInstruction]) -> str:
    launch = capture.launch
    warps = warps_of(launch)
    if launch.record is None or warps is None:
        return "the capture holds no record of a launch"
    counted = instructions[0].counters.executed if instructions else None
    if counted is None or counted == warps or "ttg.warp_specialize" in capture.text("ttgir"):
        return ""
    # Every warp executes the first instruction once.
    return f"the profile is of a launch of {counted} warps, the capture's has {warps}"


def _row(
    operation: Operation | None,
    loops: int,
    chain: Chain,
    instructions: list[MatchedInstruction],
    comparisons: tuple[Comparison, ...],
    kernel_file: str,
) -> CountedOperation:
    kinds = read_types(f"{operation.text} {operation.closing}") if operation is not None else []
    return CountedOperation(
        operation.first_line if operation is not None else 0,
        operation.name if operation is not None else "",
        line_text(place_of(chain, kernel_file)),
        chain_texts(chain),
        tuple(dict.fromkeys(kind.encoding for kind in kinds if kind.encoding)),
        loops,
        tuple(instructions),
        Counters.sum([one.counters for one in instructions]),
        comparisons,
    )
