"""What irscope computes of a launch, compared with what the hardware counted: accesses, and instructions executed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from irscope.analysis.counters.matched import MatchedInstruction
from irscope.ir.asm.control_flow import UNKNOWN, ControlFlow
from irscope.ir.asm.instructions import Instruction
from irscope.ir.logs.source_page import Counters
from irscope.memory.access import MOST, Cost, GlobalAccess, Span
from irscope.memory.machine import Action, MemoryInstructions
from irscope.model.capture import Capture, Launch

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
class CounterComparison:
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
    machine: MemoryInstructions,
    programs: int,
) -> tuple[CounterComparison, ...]:
    found: list[CounterComparison] = []
    for cost in costs:
        access = cost.access
        # A block of a descriptor is asked for by one thread, and its sectors are counted at no instruction.
        if access is not None and access.bits_per_thread:
            in_ptx = machine.count(access.line, *_GLOBAL_ACTIONS) if machine.by_operation else 0
            found += _global(access, own, kernel, in_ptx)
        elif access is None:
            found += _shared(cost, own, programs)
    return tuple(found)


def _global(
    access: GlobalAccess, own: Sequence[MatchedInstruction], kernel: Sequence[MatchedInstruction], in_ptx: int
) -> Iterator[CounterComparison]:
    launch = access.launch
    accesses = [one for one in own if one.opcode in GLOBAL_OPCODES]
    measured = Counters.sum([one.counters for one in accesses])
    reason = "" if access.certainty == "exact" else access.mark
    reason = _joined(reason, *access.assumed)
    fewer = _joined(_left_out(accesses, in_ptx), _skipped(accesses, own, kernel))
    if measured.executed is not None and not _is_unknown(launch.instructions):
        least, most = launch.instructions
        why = fewer if measured.executed < most else _repeated(accesses, in_ptx) if measured.executed > most else ""
        yield CounterComparison(
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
            yield CounterComparison(quantity, least, most, counted, _joined(why, reason))


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


def _shared(cost: Cost, instructions: Sequence[MatchedInstruction], programs: int) -> Iterator[CounterComparison]:
    """Wavefronts, or these over the least: by the bits that are moved, for instructions may be narrower than layouts
    allow."""
    figures = cost.figures
    # Some loads are there for their side effect alone: @!PT LDS RZ, [RZ].
    own = [one for one in instructions if one.opcode in _SHARED and not one.text.startswith("@!PT")]
    moved = sum(_bits_per_thread(one) * (one.counters.executed or 0) for one in own)
    total = Counters.sum([one.counters for one in own])
    if not moved or total.wavefronts is None:
        return
    if "cta_wavefronts" in figures and not cost.loops:
        predicted = figures["cta_wavefronts"] * programs
        yield CounterComparison("wavefronts", predicted, predicted, total.wavefronts)
    if "minimum_wavefronts" not in figures:
        return
    least = figures["minimum_wavefronts"] / (figures["instructions"] * figures["bits_per_thread"])
    left = next((one for one in own if one.counters.threads != _WARP_LANES * (one.counters.executed or 0)), None)
    why = f"lanes had left before {left.text!r} ({left.offset:04x})" if left is not None else ""
    ways = total.wavefronts / moved / least
    yield CounterComparison("ways", figures["ways"], figures["ways"], ways, why if ways < figures["ways"] else "")


def _bits_per_thread(one: MatchedInstruction) -> int:
    """As the access has it; of ldmatrix and stmatrix, for which Nsight Compute says 128, by the number of matrices."""
    if one.opcode not in ("LDSM", "STSM"):
        return one.access_bits
    # LDSM.16.M88.4    STSM.16.MT88.2    LDSM.16.M88
    matrices = next(word for word in one.text.split() if word.startswith(one.opcode)).rpartition(".")[2]
    return 32 * int(matrices) if matrices in ("2", "4") else 32


# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.


_MOST_BLOCKS = 400
_EXACT = 1e-6


def executed_instructions(
    capture: Capture, graph: ControlFlow, costs: Sequence[Cost], operations: Sequence[int]
) -> int | None:
    """The instructions that all warps of a launch execute; None if that does not follow from what is known.

    What enters a basic block leaves it: with the warps that begin, and the accesses whose number is known exactly,
    these are linear equations.

    Args:
        operations: the TTGIR line of the operation of each line of SASS.
    """
    grid, warps = capture.launch.grid, warps_of(capture.launch)
    specialized = "warp_specialize" in capture.text("ttgir")
    if grid is None or not warps or specialized or len(graph.blocks) > _MOST_BLOCKS:
        return None
    if any(block.calls for block in graph.blocks) or any(jump.target == UNKNOWN for jump in graph.jumps):
        return None
    equations = _Equations(graph, warps)
    accesses = [cost.access for cost in costs if cost.access is not None and cost.access.bits_per_thread]
    # Warps that have nothing to store may end before they load what the others store.
    leaving = any(one.action in ("store", "atomic") and not _is_of_all_warps(one) for one in accesses)
    for access in accesses:
        if access.certainty == "exact" and not (leaving and access.action in ("load", "copy")):
            equations.add(access, prod(grid), operations)
    return equations.total()


def warps_of(launch: Launch) -> int | None:
    """The warps of all programs; None if the grid is not known."""
    each = int(launch.option("num_warps", 4) or 4) * int(launch.option("num_ctas", 1) or 1)
    return None if launch.grid is None else prod(launch.grid) * each


class _Equations:
    """What is known of how often the ways between the blocks of a graph are taken; an end is a way too."""

    def __init__(self, graph: ControlFlow, warps: int) -> None:
        self.graph = graph
        self.warps = warps
        self.reached = _reached(graph)
        self.ways = [(jump.source, jump.target) for jump in graph.jumps if jump.source in self.reached]
        self.ways += [(number, UNKNOWN) for number in self.reached if graph.blocks[number].ending]
        self.rows: list[list[int]] = []
        self.values: list[int] = []
        for number in self.reached:
            row = [(source == number) - (target == number) for source, target in self.ways]
            self._put(row, warps if number == 0 else 0)

    def _put(self, row: list[int], value: int) -> None:
        self.rows.append(row)
        self.values.append(value)

    def add(self, access: GlobalAccess, programs: int, operations: Sequence[int]) -> None:
        """Take what an access says of the blocks that its instructions are in."""
        counts = {
            number: count
            for number in self.reached
            if (count := _access_count(self.graph.blocks[number].instructions, operations, access.line))
        }
        loops = [loop.body for loop in self.graph.loops if counts.keys() <= loop.body]
        launch = access.launch
        # Nothing branches around what is in a loop of one block; a warp may branch around what it has masked off.
        if counts and ([*map(len, loops)] == [1] or _is_of_all_warps(access)):
            self._put([counts.get(source, 0) for source, _ in self.ways], launch.instructions[0])
        each = launch.executions[0] // programs
        alike = {access.first.executions, access.inner.executions, access.last.executions} == {(each, each)}
        if counts and len(loops) == 1 and alike and launch.executions[0] == each * programs > 0:
            # All that a warp does of it is in this one loop, so each warp gets there, once.
            self._put([target in loops[0] and source not in loops[0] for source, target in self.ways], self.warps)

    def total(self) -> int | None:
        """The instructions that are executed; None if they do not follow, or if what is known does not fit together."""
        import numpy as np

        matrix, values = np.array(self.rows, dtype=float), np.array(self.values, dtype=float)
        sizes = np.array([len(self.graph.blocks[source].instructions) for source, _ in self.ways], dtype=float)
        weights = np.linalg.lstsq(matrix.T, sizes, rcond=None)[0]
        taken = np.linalg.lstsq(matrix, values, rcond=None)[0]
        follows = np.abs(matrix.T @ weights - sizes).max() < _EXACT
        fits = np.abs(matrix @ taken - values).max() < _EXACT * values.max()
        return round(float(sizes @ taken)) if follows and fits else None


def _is_of_all_warps(access: GlobalAccess) -> bool:
    """Whether none of its instructions has all lanes masked off."""
    return access.launch.instructions == access.launch.active_instructions


def _access_count(instructions: Sequence[Instruction], operations: Sequence[int], line: int) -> int:
    """The instructions of a block that access global memory for an operation."""
    return sum(
        one.opcode.partition(".")[0] in GLOBAL_OPCODES and operations[one.line - 1] == line for one in instructions
    )


def _reached(graph: ControlFlow) -> list[int]:
    """The blocks that can be reached from the first."""
    following: dict[int, list[int]] = {}
    for jump in graph.jumps:
        following.setdefault(jump.source, []).append(jump.target)
    found, waiting = {0}, [0]
    while waiting:
        fresh = [target for target in following.get(waiting.pop(), ()) if target not in found]
        found.update(fresh)
        waiting += fresh
    return sorted(found)
