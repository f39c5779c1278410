"""What a CTA of PTX that is executed asks of global memory, and tells of shared memory and of what orders accesses."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irscope.ir.asm.instructions import Instruction

_Integers = NDArray[np.int64]
Spans = Sequence[tuple[int, int]]
"""(first byte, number of bytes) of each part that one instruction accesses."""


class CtaMemory:
    """What a CTA reads of global memory while it runs alone; here nothing is known."""

    def load(self, addresses: _Integers, size: int) -> tuple[_Integers, NDArray[np.bool_]]:
        """Integers of so many bytes, and which of them are known."""
        return np.zeros(len(addresses), np.int64), np.zeros(len(addresses), np.bool_)

    def store(self, address: int, size: int, value: int | None) -> None:
        """Note what an atomic operation leaves at an address; None for what is not known."""


class CtaListener:
    """Takes what a CTA does; each method does nothing here. `threads`: their numbers in the CTA."""

    def access(
        self, item: Instruction, threads: _Integers, addresses: _Integers, size: int, writes: bool, space: str
    ) -> None:
        """Take an access by threads themselves, each of `size` units; `space`: `shared` or `tensor`."""

    def copy(self, item: Instruction, threads: _Integers, addresses: _Integers, size: int) -> None:
        """Take a `cp.async`."""

    def queue(
        self, item: Instruction, queue: str, threads: _Integers, reads: Spans, writes: Spans, tensor: Any
    ) -> None:
        """Take what a unit (`matrix`, `tensor matrix`, `bulk store`) begins to do for threads."""

    def commit(self, queue: str, threads: _Integers) -> None:
        """Take the end of a group."""

    def wait(self, queue: str, threads: _Integers, pending: int) -> None:
        """Take a wait for all groups but the last ones."""

    def bulk_load(self, item: Instruction, thread: int, spans: Spans, barrier: int, phase: int) -> None:
        """Take a copy that an mbarrier's phase waits for."""

    def arrive(self, threads: _Integers, barrier: int, queue: str = "") -> None:
        """Take arrivals at an mbarrier; with a queue, those that come when the unit has done what was begun so far."""

    def complete(self, barrier: int, phase: int) -> None:
        """Take the end of an mbarrier's phase."""

    def waited(self, threads: _Integers, barrier: int) -> None:
        """Take the end of a wait at an mbarrier."""

    def barrier(self, threads: _Integers) -> None:
        """Take a barrier among threads."""

    def fence(self, threads: _Integers) -> None:
        """Take a fence between the generic and the asynchronous proxy."""
