"""How many instructions a launch executes, computed from its control flow and from how often its accesses are made.

What enters a basic block leaves it: with the warps that begin, and the accesses whose number is known exactly, these
are linear equations. The number of instructions is known if it follows from them.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from irscope.analysis.counters.predicted import GLOBAL_OPCODES
from irscope.ir.asm.control_flow import UNKNOWN, ControlFlow
from irscope.ir.asm.instructions import Instruction
from irscope.memory.access import Access, Cost
from irscope.model.capture import Capture, Launch

__all__ = ["executed_instructions", "warps_of"]

_MOST_BLOCKS = 400
_EXACT = 1e-6


def executed_instructions(
    capture: Capture, graph: ControlFlow, costs: Sequence[Cost], operations: Sequence[int]
) -> int | None:
    """The instructions that all warps of a launch execute; None if that does not follow from what is known.

    Args:
        capture: with a grid.
        graph: of its SASS.
        costs: of the capture.
        operations: the TTGIR line of the operation of each line of SASS.
    """
    grid, warps = capture.launch.grid, warps_of(capture.launch)
    specialized = "warp_specialize" in capture.text("ttgir")
    if grid is None or not warps or specialized or len(graph.blocks) > _MOST_BLOCKS:
        return None
    if any(block.calls for block in graph.blocks) or any(jump.target == UNKNOWN for jump in graph.jumps):
        return None
    equations = _Equations(graph, warps)
    accesses = [cost.access for cost in costs if cost.access is not None and cost.access.bits_a_lane]
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

    def add(self, access: Access, programs: int, operations: Sequence[int]) -> None:
        """Take what an access says of the blocks that its instructions are in."""
        counts = {
            number: count
            for number in self.reached
            if (count := _accesses(self.graph.blocks[number].instructions, operations, access.line))
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


def _is_of_all_warps(access: Access) -> bool:
    """Whether none of its instructions has all lanes masked off."""
    return access.launch.instructions == access.launch.active_instructions


def _accesses(instructions: Sequence[Instruction], operations: Sequence[int], line: int) -> int:
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
