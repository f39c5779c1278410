"""What irscope computed of an operation's accesses beside what the hardware counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from irscope.analysis.counters.matched import MatchedInstruction
from irscope.ir.logs.source_page import Counters
from irscope.memory.access import MOST, Access, Span
from irscope.memory.cost import Cost

__all__ = ["GLOBAL_OPCODES", "Comparison", "Quantity", "Verdict", "comparisons_of"]

Quantity = Literal["instructions", "sectors", "lines", "ways"]
"""Of global memory: instructions of warps, sectors, lines of L1; of shared memory: wavefronts over the least."""
Verdict = Literal["equal", "within 1 %", "in range", "differs"]

_CLOSE = 0.01
GLOBAL_OPCODES = frozenset({"LDG", "STG", "LDGSTS", "ATOMG", "ATOM", "RED", "REDG", "LD", "ST"})
_SHARED = frozenset({"LDS", "STS", "LDSM", "STSM"})
"""Without LDGSTS, whose wavefronts differ from run to run."""
_LEAVING = frozenset({"EXIT", "BRA"})


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure of one operation, predicted for the whole launch and measured."""

    quantity: Quantity
    least: float
    most: float
    """Predicted; the same as `least` where it is not a range."""
    measured: float
    reason: str = ""
    """Why the prediction is no exact one; empty if it is exact."""

    @property
    def verdict(self) -> Verdict:
        """Whether they agree."""
        if self.least == self.measured == self.most:
            return "equal"
        if self.least < self.most and self.least <= self.measured <= self.most:
            return "in range"
        distance = max(self.least - self.measured, self.measured - self.most)
        return "within 1 %" if distance <= _CLOSE * self.measured else "differs"


def comparisons_of(costs: Sequence[Cost], instructions: Sequence[MatchedInstruction]) -> tuple[Comparison, ...]:
    """The comparisons of one operation: its costs, and its own instructions."""
    return tuple(
        one
        for cost in costs
        for one in (_global(cost.access, instructions) if cost.access is not None else _shared(cost, instructions))
    )


def _global(access: Access, instructions: Sequence[MatchedInstruction]) -> Iterator[Comparison]:
    # A block of a descriptor is asked for by one thread, and its sectors are counted at no instruction.
    if not access.bits_a_lane:
        return
    launch = access.launch
    measured = Counters.sum([one.counters for one in instructions if one.opcode in GLOBAL_OPCODES])
    reason = "" if access.certainty == "exact" else access.mark
    reason = "; ".join(filter(None, (reason, *access.assumed)))
    if measured.executed is not None and not _is_unknown(launch.instructions):
        least, most = launch.instructions
        if skipped := _skipped(instructions):
            least = launch.active_instructions[0]
        why = "; ".join(filter(None, (skipped, reason)))
        yield Comparison("instructions", least, most, measured.executed, why)
    if measured.sectors is not None and not _is_unknown(launch.units):
        yield Comparison("sectors", *launch.units, measured.sectors, reason)
    if measured.lines is not None and not _is_unknown(launch.lines):
        yield Comparison("lines", *launch.lines, measured.lines, reason)


def _is_unknown(span: Span) -> bool:
    return span[0] == 0 and span[1] >= MOST


def _skipped(instructions: Sequence[MatchedInstruction]) -> str:
    """The branch of an operation's own by which warps with nothing to do may skip its access."""
    leaving = next((one for one in instructions if one.opcode in _LEAVING and one.text.startswith("@")), None)
    return (
        f"warps whose lanes are all masked off may leave before it, at {leaving.text!r}" if leaving is not None else ""
    )


def _shared(cost: Cost, instructions: Sequence[MatchedInstruction]) -> Iterator[Comparison]:
    """Wavefronts over the least; by the bits that are moved, for instructions may be narrower than layouts allow."""
    figures = cost.figures
    # Some loads are there for their side effect alone: @!PT LDS RZ, [RZ].
    own = [one for one in instructions if one.opcode in _SHARED and not one.text.startswith("@!PT")]
    moved = sum(one.access_bits * (one.counters.executed or 0) for one in own)
    counted = Counters.sum([one.counters for one in own]).wavefronts
    if "minimum_wavefronts" not in figures or not moved or counted is None:
        return
    least = figures["minimum_wavefronts"] / (figures["instructions"] * figures["bits_a_lane"])
    yield Comparison("ways", figures["ways"], figures["ways"], counted / moved / least)
