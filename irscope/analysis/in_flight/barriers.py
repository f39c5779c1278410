"""A barrier that specialised warps hand buffers over with: which phases are complete, and what arrived in each.

Its rules are those of an mbarrier. Source: "Parallel Thread Execution ISA", Parallel Synchronization and Communication
Instructions: mbarrier.
"""

from __future__ import annotations

import re
from math import prod

from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.types import read_types

__all__ = ["Barrier"]

# ttng.barrier_expect %full, 32768, %true : …      ttng.arrive_barrier %b, 1 : …
_NUMBER = re.compile(r"%[\w#]+, (\d{1,18})\b")
_TMA = "ttng.async_tma_"


class Barrier:
    """One barrier in shared memory."""

    def __init__(self) -> None:
        self.arrivals = self._pending = 1
        """That complete a phase, and that this one lacks."""
        self._bytes = 0
        """That this phase lacks."""
        self.completed = 0
        """How many phases are complete."""
        self._ends: list[int | None] = []
        """Of each complete phase the step that its last arrival stands behind."""
        self._arrived: list[tuple[int, int]] = []
        """(phase, step) that arrive at it."""

    def initialise(self, operation: Operation) -> None:
        """Set it as a `ttng.init_barrier` does."""
        self.arrivals = self._pending = max(_number_of(operation), 1)

    def passes(self, phase: int) -> bool:
        """Whether a wait for a phase passes: a new barrier lets a wait for 1 pass."""
        return self.completed & 1 != phase & 1

    def arrive(self, step: int) -> None:
        """Note that a step arrives, when it is done."""
        self._arrived.append((self.completed, step))

    def completed_behind(self) -> int | None:
        """The step that completed its last phase, or that stands before what did; None if none is complete."""
        return self._ends[-1] if self._ends else None

    def count(self, operation: Operation, behind: int | None) -> None:
        """Count what an operation does to its phase, as if what it begins were done at once.

        `behind`: the step that it is, or that stands before it in its partition.
        """
        if operation.name == "ttng.barrier_expect":
            self._bytes += _number_of(operation)
            self._pending -= 1
        elif operation.name.startswith(_TMA):
            self._bytes -= _moved(operation)
        else:
            self._pending -= _number_of(operation) if operation.name == "ttng.arrive_barrier" else 1
        if self._pending == self._bytes == 0:
            self.completed += 1
            self._ends.append(behind)
            self._pending = self.arrivals

    def take(self, phase: int | None) -> list[int]:
        """The steps that a wait waits for: of phases that are complete; without a phase all."""
        own = [step for at, step in self._arrived if phase is None or at < self.completed]
        self._arrived = [(at, step) for at, step in self._arrived if phase is not None and at >= self.completed]
        return own


def _moved(operation: Operation) -> int:
    """The bytes that a copy moves to shared memory."""
    found = [one for one in read_types(operation.types) if one.form == "memdesc" and one.element != "i64"]
    return sum(prod(one.shape) * one.element_bits // 8 for one in found[:1])


def _number_of(operation: Operation) -> int:
    """The number that stands behind its barrier; 1 if there is none."""
    match = _NUMBER.search(operation.text)
    return int(match[1]) if match is not None else 1
