"""What irscope computed of an operation's accesses beside what the hardware counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from irscope.analysis.counters.matched import MatchedInstruction
from irscope.ir.logs.source_page import Counters
from irscope.memory.access import MOST, Access, Cost, Span
from irscope.memory.machine import Action, Machine

__all__ = ["GLOBAL_OPCODES", "Comparison", "Quantity", "Verdict", "comparisons_of"]

Quantity = Literal["instructions", "sectors", "lines", "ways", "wavefronts"]
"""Of global memory: instructions of warps, sectors, lines of L1; of shared memory: wavefronts, also over the least."""
Verdict = Literal["equal", "within 1 %", "in range", "differs"]

_CLOSE = 0.01
GLOBAL_OPCODES = frozenset({"LDG", "STG", "LDGSTS", "ATOMG", "ATOM", "RED", "REDG", "LD", "ST"})
_SHARED = frozenset({"LDS", "STS", "LDSM", "STSM"})
"""Without LDGSTS, whose wavefronts differ from run to run."""
_WARP_LANES = 32
_OF_COPIES = "the hardware counts some sectors of asynchronous copies more or less often, and not alike in each run"
_GLOBAL_ACTIONS: tuple[Action, ...] = ("global load", "global store", "async copy", "atomic")


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


def comparisons_of(
    costs: Sequence[Cost],
    own: Sequence[MatchedInstruction],
    kernel: Sequence[MatchedInstruction],
    machine: Machine,
    programs: int,
) -> tuple[Comparison, ...]:
    """The comparisons of one operation.

    Args:
        costs: its own.
        own: its instructions.
        kernel: all instructions.
        machine: the instructions of the PTX, by operation.
        programs: of the launch.
    """
    found: list[Comparison] = []
    for cost in costs:
        access = cost.access
        # A block of a descriptor is asked for by one thread, and its sectors are counted at no instruction.
        if access is not None and access.bits_a_lane:
            in_ptx = machine.count(access.line, *_GLOBAL_ACTIONS) if machine.by_operation else 0
            found += _global(access, own, kernel, in_ptx)
        elif access is None:
            found += _shared(cost, own, programs)
    return tuple(found)


def _global(
    access: Access, own: Sequence[MatchedInstruction], kernel: Sequence[MatchedInstruction], in_ptx: int
) -> Iterator[Comparison]:
    launch = access.launch
    accesses = [one for one in own if one.opcode in GLOBAL_OPCODES]
    measured = Counters.sum([one.counters for one in accesses])
    reason = "" if access.certainty == "exact" else access.mark
    reason = _joined(reason, *access.assumed)
    fewer = _joined(_left_out(accesses, in_ptx), _skipped(accesses, own, kernel))
    if measured.executed is not None and not _is_unknown(launch.instructions):
        least, most = launch.instructions
        why = fewer if measured.executed < most else _repeated(accesses, in_ptx) if measured.executed > most else ""
        yield Comparison(
            "instructions",
            launch.active_instructions[0] if fewer and measured.executed < most else least,
            most,
            measured.executed,
            _joined(why, reason),
        )
    figures: tuple[tuple[Quantity, Span, int | None], ...] = (
        ("sectors", launch.units, measured.sectors),
        ("lines", launch.lines, measured.lines),
    )
    for quantity, (least, most), counted in figures:
        if counted is not None and not _is_unknown((least, most)):
            unsteady = _OF_COPIES if access.action == "copy" and quantity == "sectors" else ""
            why = _joined(fewer, unsteady) if counted < least else unsteady if counted > most else ""
            yield Comparison(quantity, least, most, counted, _joined(why, reason))


def _joined(*parts: str) -> str:
    return "; ".join(filter(None, parts))


def _is_unknown(span: Span) -> bool:
    return span[0] == 0 and span[1] >= MOST


def _left_out(accesses: Sequence[MatchedInstruction], in_ptx: int) -> str:
    """That the assembler left accesses out: those that are never made, and all but one of equal ones."""
    count = len(accesses)
    return f"the SASS has {count} of the {in_ptx} instructions of the PTX" if 0 < count < in_ptx else ""


def _skipped(
    accesses: Sequence[MatchedInstruction], own: Sequence[MatchedInstruction], kernel: Sequence[MatchedInstruction]
) -> str:
    """The instruction by which warps may leave before an access: those that have all lanes masked off, for instance."""
    last = max((one.offset for one in accesses), default=0)
    ways = [one for one in kernel if one.opcode == "EXIT"] + [one for one in own if one.opcode == "BRA"]
    leaving = next((one for one in ways if one.offset < last and _is_predicated(one)), None)
    return f"warps may leave before it, at {leaving.text!r} ({leaving.offset:04x})" if leaving is not None else ""


def _repeated(accesses: Sequence[MatchedInstruction], in_ptx: int) -> str:
    """That the assembler unrolled or peeled a loop around an access, and predicated what is made too often."""
    count = len(accesses)
    if count <= in_ptx or not any(map(_is_predicated, accesses)):
        return ""
    return f"the SASS has {count} instructions for {in_ptx} of the PTX, some of which execute with their predicate off"


def _is_predicated(instruction: MatchedInstruction) -> bool:
    return instruction.text.startswith("@")


def _shared(cost: Cost, instructions: Sequence[MatchedInstruction], programs: int) -> Iterator[Comparison]:
    """Wavefronts, or these over the least: by the bits that are moved, for instructions may be narrower than layouts
    allow."""
    figures = cost.figures
    # Some loads are there for their side effect alone: @!PT LDS RZ, [RZ].
    own = [one for one in instructions if one.opcode in _SHARED and not one.text.startswith("@!PT")]
    moved = sum(_bits_a_lane(one) * (one.counters.executed or 0) for one in own)
    total = Counters.sum([one.counters for one in own])
    if not moved or total.wavefronts is None:
        return
    if "cta_wavefronts" in figures and not cost.loops:
        predicted = figures["cta_wavefronts"] * programs
        yield Comparison("wavefronts", predicted, predicted, total.wavefronts)
    if "minimum_wavefronts" not in figures:
        return
    least = figures["minimum_wavefronts"] / (figures["instructions"] * figures["bits_a_lane"])
    left = next((one for one in own if one.counters.threads != _WARP_LANES * (one.counters.executed or 0)), None)
    why = f"lanes had left before {left.text!r} ({left.offset:04x})" if left is not None else ""
    ways = total.wavefronts / moved / least
    yield Comparison("ways", figures["ways"], figures["ways"], ways, why if ways < figures["ways"] else "")


def _bits_a_lane(one: MatchedInstruction) -> int:
    """As the access has it; of ldmatrix and stmatrix, for which Nsight Compute says 128, by the number of matrices."""
    if one.opcode not in ("LDSM", "STSM"):
        return one.access_bits
    # LDSM.16.M88.4    STSM.16.MT88.2    LDSM.16.M88
    matrices = next(word for word in one.text.split() if word.startswith(one.opcode)).rpartition(".")[2]
    return 32 * int(matrices) if matrices in ("2", "4") else 32
