"""Shared and tensor memory: allocations of each program, views of them, asynchronous copies and mbarriers.

The bytes of an allocation lie in the order of the tensor's elements, whatever its encoding: an element is where it was
put as long as it is written and read through one form (element type and encoding). Reading through another form than
was written is refused, since then the encoding would matter.

An asynchronous copy takes effect when it is waited for; until then its destination holds poison, all bits set, which
is NaN in each float. With `lands_late` false it takes effect at once: a fault may show in one of both only.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np

from irscope.errors import NotRun, WrongProgram
from irscope.ir.mlir.model import MlirModule
from irscope.ir.mlir.types import Type
from irscope.machine.arithmetic import Arithmetic
from irscope.machine.values import Array, MemoryAllocation, MemoryView, dtype_of, take


@dataclass(slots=True, eq=False)
class _Copy:
    """An asynchronous copy under way."""

    view: MemoryView
    rows: Array
    values: Array
    barrier: MemoryView | None = None


@dataclass(slots=True, eq=False)
class _Group:
    """Copies that are waited for together, and the programs that did not wait for them yet."""

    copies: list[_Copy]
    waiting: Array


@dataclass(slots=True)
class Mbarrier:
    count: int
    missing: int
    """Arrivals that the phase still waits for."""
    bytes: int = 0
    """Bytes of copies that it still waits for."""
    landing: int = 0
    """Of these, what copies bring that were begun: they end as late as they may, where a thread waits for them."""
    phase: int = 0

    def wait_text(self, name: str, parity: int) -> str:
        """What a wait for a parity waits for, where that never comes: the phase that is due, and what it lacks."""
        lacks = [f"{self.missing} of {self.count} arrivals"] if self.missing else []
        lacks += [f"{self.bytes} bytes of copies"] if self.bytes > 0 else []
        lacks += [f"a count of {-self.bytes} bytes more, which copies brought"] if self.bytes < 0 else []
        ended = f"{self.phase} phase{'s' if self.phase != 1 else ''} of it ended"
        return (
            f"the wait for phase {parity} of {name} never completes: {ended}, and the next one, of parity "
            f"{self.phase & 1}, lacks {' and '.join(lacks)}"
        )


class _Barriers:
    """The mbarriers of an allocation, by program and place."""

    def __init__(self, programs: int, places: int) -> None:
        self.count = np.zeros((programs, places), np.int64)
        self.missing = np.zeros((programs, places), np.int64)
        """Arrivals that the phase still waits for."""
        self.bytes = np.zeros((programs, places), np.int64)
        """Bytes of copies that it still waits for."""
        self.phase = np.zeros((programs, places), np.int64)
        self.is_made = np.zeros((programs, places), np.bool_)


class SharedMemory:
    """The shared and tensor memory of programs that run together."""

    def __init__(self, programs: int, lands_late: bool = True, arithmetic: Arithmetic | None = None) -> None:
        self.programs = programs
        self.arithmetic = arithmetic or Arithmetic()
        self.lands_late = lands_late
        self._open: list[_Copy] = []
        """Copies that no group was made of yet."""
        self._groups: list[_Group] = []
        self._of_barriers: list[_Copy] = []

    # ── elements ──────────────────────────────────────────────────────────────────────────────────────────────

    def allocate(self, kind: Type, module: MlirModule, name: str) -> MemoryView:
        """Memory for a descriptor's type, which nobody wrote; `name`: of the value that holds it."""
        dtype = dtype_of(kind)
        strides = contiguous(kind.shape, dtype.itemsize)
        size = prod(kind.shape) * dtype.itemsize * self.arithmetic.cell_bytes
        data = np.full((self.programs, size), 255, np.uint8)
        memory = MemoryAllocation(data, name=name)
        return MemoryView((memory,), np.zeros(1, np.int64), kind.shape, strides, dtype, form_of(kind, module))

    def read(self, view: MemoryView, rows: Array) -> Array:
        """The elements of a view; raises NotRun where they were written through another form."""
        for memory in view.memories:
            if memory.written_as not in ("", view.form):
                raise NotRun(f"memory written as {memory.written_as} is read as {view.form}")
        parts = self._windows(view, len(rows))
        if len(parts) == 1:
            whole = parts[0][0]
            found = whole.copy() if len(rows) == self.programs else whole[rows]
        else:
            found = np.empty((len(rows), *parts[0][0].shape[1:]), parts[0][0].dtype)
            for window, here in parts:
                found[here] = window[rows[here]]
        return found.reshape(len(rows), *view.shape) if view.lies_as else found

    def write(self, view: MemoryView, values: Array, rows: Array, mask: Array | None = None) -> None:
        """Write the elements of a view. `mask`: by program, which of them write."""
        if view.lies_as:
            values = np.broadcast_to(values, (values.shape[0], *view.shape)).reshape(values.shape[0], *view.lies_as)
        for window, here in self._windows(view, len(rows), mask):
            window[rows[here]] = values if values.shape[0] == 1 else values[here]
        for memory in view.memories:
            memory.written_as = view.form

    def _windows(self, view: MemoryView, count: int, mask: Array | None = None) -> list[tuple[Array, Array]]:
        """(elements of a view in all programs, the places of those that hold it there) of each place that it has."""
        index = np.arange(count) if mask is None else np.flatnonzero(mask)
        offset, owner = (np.broadcast_to(one, count)[index] for one in (view.offset, view.owner))
        if not len(index):
            return []
        if (offset == offset[0]).all() and (owner == owner[0]).all():
            return [(self._window(view, view.memories[owner[0]], int(offset[0])), index)]
        pairs, which = np.unique(np.stack((owner, offset)), axis=1, return_inverse=True)
        which = which.reshape(-1)
        return [
            (self._window(view, view.memories[memory], int(begin)), index[which == place])
            for place, (memory, begin) in enumerate(pairs.T)
        ]

    def _window(self, view: MemoryView, memory: MemoryAllocation, offset: int) -> Array:
        cell = self.arithmetic.cell_bytes
        data = memory.data
        shape = view.lies_as or view.shape
        last = offset + sum(stride * (size - 1) for stride, size in zip(view.strides, shape, strict=True))
        size = data.shape[1] // cell
        if offset < 0 or last + view.dtype.itemsize > size:
            raise WrongProgram(f"a view begins {offset} bytes into an allocation of {size} bytes and ends outside it")
        strides = (data.strides[0], *(cell * stride for stride in view.strides))
        dtype = self.arithmetic.held_as(view.dtype)
        return np.ndarray((self.programs, *shape), dtype, cast(Any, data), offset * cell, strides)

    # ── asynchronous copies ───────────────────────────────────────────────────────────────────────────────────

    def copy(self, view: MemoryView, values: Array, rows: Array, barrier: MemoryView | None = None) -> None:
        """Begin to write values: they are there once the copy's group, or its barrier, was waited for."""
        found = _Copy(view, rows, np.broadcast_to(values, (len(rows), *values.shape[1:])), barrier)
        if not self.lands_late:
            self._land(found, np.ones(self.programs, np.bool_))
        else:
            self.write(view, self.arithmetic.poison(view.dtype, len(view.shape)), rows)
        if barrier is not None:
            self._of_barriers.append(found)
        else:
            self._open.append(found)

    def commit(self, rows: Array) -> int:
        """Make a group of the copies that programs began; returns the number of groups before it."""
        waiting = np.zeros(self.programs, np.bool_)
        waiting[rows] = True
        mine = [one for one in self._open if waiting[one.rows].any()]
        self._open = [one for one in self._open if not waiting[one.rows].any()]
        self._groups.append(_Group(mine, waiting))
        return len(self._groups) - 1

    def wait(self, rows: Array, pending: int, groups: Sequence[int] = ()) -> None:
        """Let the groups of programs land, but for the last `pending` ones; or up to the last of the given groups."""
        mine = np.zeros(self.programs, np.bool_)
        mine[rows] = True
        later = np.zeros(self.programs, np.int64)
        for number in reversed(range(len(self._groups))):
            group = self._groups[number]
            here = mine & group.waiting
            ready = here & (later >= pending) if not groups else here & (number <= max(groups))
            for copy in group.copies:
                self._land(copy, ready)
            group.waiting &= ~ready
            later += here

    def _land(self, copy: _Copy, ready: Array) -> None:
        now = ready[copy.rows]
        if now.any():
            self.write(copy.view, copy.values, copy.rows, now)

    # ── mbarriers ─────────────────────────────────────────────────────────────────────────────────────────────

    def _barrier(self, view: MemoryView, rows: Array) -> tuple[_Barriers, tuple[Array, Array]]:
        memory = view.memory
        if memory.barriers is None:
            memory.barriers = _Barriers(self.programs, memory.data.shape[1] // 8)
        return memory.barriers, (rows, np.broadcast_to(view.offset, len(rows)) // 8)

    def init_barrier(self, view: MemoryView, count: int, rows: Array) -> None:
        """Make an mbarrier, which waits for so many arrivals in each phase."""
        barriers, at = self._barrier(view, rows)
        barriers.count[at] = barriers.missing[at] = count
        barriers.bytes[at] = barriers.phase[at] = 0
        barriers.is_made[at] = True

    def arrive(self, view: MemoryView, rows: Array, count: int = 1, size: int = 0, mask: Array | None = None) -> None:
        """Arrive at an mbarrier, and let the phase wait for so many bytes; `mask`: by program, which of them do."""
        barriers, at = self._barrier(view, rows)
        does = np.broadcast_to(True if mask is None else mask, len(rows))
        if not barriers.is_made[at][does].all():
            raise WrongProgram("an arrival at an mbarrier that was not initialised")
        ended = does & (barriers.missing[at] <= 0)
        if ended.any():
            # Of a phase that nobody waited for: it is of the next one.
            self._land_copies(view.memory, at[0][ended], at[1][ended])
        barriers.missing[at] -= np.where(does, count, 0)
        barriers.bytes[at] += np.where(does, size, 0)
        self._complete(barriers, at)

    def _complete(self, barriers: _Barriers, at: tuple[Array, Array]) -> None:
        ends = (barriers.missing[at] == 0) & (barriers.bytes[at] == 0)
        barriers.phase[at] += ends
        barriers.missing[at] = np.where(ends, barriers.count[at], barriers.missing[at])

    def is_ready(self, view: MemoryView, parity: Array, rows: Array, mask: Array | None = None) -> bool:
        """Whether the phase of a parity is complete, for all programs; its copies land, since they are waited for."""
        barriers, at = self._barrier(view, rows)
        waits = np.broadcast_to(True if mask is None else mask, len(rows))
        blocked = waits & ((barriers.phase[at] & 1) == (parity & 1))
        if blocked.any():
            self._land_copies(view.memory, at[0][blocked], at[1][blocked])
            blocked = waits & ((barriers.phase[at] & 1) == (parity & 1))
        return not blocked.any()

    def describe_wait(self, view: MemoryView, parity: Array, rows: Array) -> str:
        """What a wait of which nothing more comes waits for, of the first program that does."""
        barriers, at = self._barrier(view, rows)
        first = int(np.argmax((barriers.phase[at] & 1) == (parity & 1)))
        row, place = int(at[0][first]), int(at[1][first])
        several = barriers.count.shape[1] > 1
        count, missing, left, phase = (
            int(one[row, place]) for one in (barriers.count, barriers.missing, barriers.bytes, barriers.phase)
        )
        name = f"mbarrier {view.memory.name.lstrip('%')}{f'[{place}]' if several else ''}"
        return Mbarrier(count, missing, left, phase=phase).wait_text(name, int(parity[first]) & 1)

    def phase(self, view: MemoryView, rows: Array) -> Array:
        barriers, at = self._barrier(view, rows)
        return barriers.phase[at] & 1

    def _land_copies(self, memory: MemoryAllocation, rows: Array, places: Array) -> None:
        """Let the copies land that mbarriers wait for."""
        awaited = np.full(self.programs, -1, np.int64)
        awaited[rows] = places
        left: list[_Copy] = []
        for copy in self._of_barriers:
            barrier = cast(MemoryView, copy.barrier)
            now = awaited[copy.rows] == np.broadcast_to(barrier.offset, len(copy.rows)) // 8
            if barrier.memory is not memory or not now.any():
                left.append(copy)
                continue
            if self.lands_late:
                self.write(copy.view, copy.values, copy.rows, now)
            barriers, at = self._barrier(barrier, copy.rows)
            barriers.bytes[at] -= np.where(now, prod(copy.view.shape) * copy.view.dtype.itemsize, 0)
            self._complete(barriers, at)
            others = np.flatnonzero(~now)
            if len(others):
                own, its = cast(MemoryView, take(copy.view, others)), cast(MemoryView, take(barrier, others))
                left.append(_Copy(own, copy.rows[others], copy.values[others], its))
        self._of_barriers = left


def contiguous(shape: Sequence[int], size: int) -> tuple[int, ...]:
    """The strides in bytes of elements of a size that lie one behind another."""
    return tuple(prod(shape[axis + 1 :]) * size for axis in range(len(shape)))


def form_of(kind: Type, module: MlirModule) -> str:
    """The element type and the encoding of a memory descriptor, which views of other shapes share."""
    element = kind.element.text if kind.element is not None else ""
    return f"{element} {module.resolve(kind.encoding)}"
