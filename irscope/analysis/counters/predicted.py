"""What irscope computed of an operation's accesses beside what the hardware counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from irscope.analysis.counters.matched import MatchedInstruction
from irscope.ir.logs.source_page import Counters
from irscope.memory.access import MOST, Access
from irscope.memory.cost import Cost

__all__ = ["Comparison", "Quantity", "Verdict", "comparisons_of"]

Quantity = Literal["instructions", "sectors", "lines", "ways"]
"""Of global memory: instructions of warps, sectors, lines of L1; of shared memory: wavefronts over the least."""
Verdict = Literal["equal", "within 1 %", "in range", "differs"]

_CLOSE = 0.01
_GLOBAL = frozenset({"LDG", "STG", "LDGSTS", "ATOMG", "ATOM", "RED", "REDG", "LD", "ST"})
_SHARED = frozenset({"LDS", "STS", "LDSM", "STSM"})
"""Without LDGSTS, whose wavefronts differ from run to run."""


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
        for one in (
            _global(cost.access, _sum(instructions, _GLOBAL))
            if cost.access is not None
            else _shared(cost, _sum(instructions, _SHARED))
        )
    )


def _sum(instructions: Sequence[MatchedInstruction], opcodes: frozenset[str]) -> Counters:
    return Counters.sum([one.counters for one in instructions if one.opcode in opcodes])


def _global(access: Access, measured: Counters) -> Iterator[Comparison]:
    # A block of a descriptor is asked for by one thread, and its sectors are counted at no instruction.
    if not access.bits_a_lane:
        return
    launch = access.launch
    reason = "" if access.certainty == "exact" else access.mark
    reason = "; ".join(filter(None, (reason, *access.assumed)))
    pairs: tuple[tuple[Quantity, tuple[int, int], int | None], ...] = (
        ("instructions", launch.instructions, measured.executed),
        ("sectors", launch.units, measured.sectors),
        ("lines", launch.lines, measured.lines),
    )
    for quantity, (least, most), counted in pairs:
        if counted is not None and not (least == 0 and most >= MOST):
            yield Comparison(quantity, least, most, counted, reason)


def _shared(cost: Cost, measured: Counters) -> Iterator[Comparison]:
    ways = cost.figures.get("ways")
    if cost.kind == "shared" and isinstance(ways, (int, float)) and measured.wavefronts and measured.ideal_wavefronts:
        yield Comparison("ways", ways, ways, measured.wavefronts / measured.ideal_wavefronts)
