"""Conflicts between threads of one program: a place that one thread writes and another reads, without a barrier.

Triton orders accesses to shared memory by barriers that it inserts; for global memory it inserts none. So a program
that stores and loads the same addresses is right only if each address belongs to the same thread both times, or if a
barrier stands between, in the TTGIR or in the assembly that was compiled from it.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from irscope.errors import UsageError
from irscope.ir.asm.control_flow import ControlFlow, read_control_flow
from irscope.ir.asm.instructions import Instruction
from irscope.ir.locations.model import place_of
from irscope.ir.locations.stages import capture_locations
from irscope.ir.mlir.model import MlirModule, Operation
from irscope.ir.mlir.types import Type
from irscope.ir.reach import all_users, reached
from irscope.layout.computed import computed_map
from irscope.layout.maps import ThreadMap
from irscope.machine.memory import GlobalMemory
from irscope.machine.values import Array
from irscope.model.capture import Capture, StageKind
from irscope.model.layout import LinearLayout
from irscope.verify.trace import Listener, Numbering, Observed, places_of


@dataclass(frozen=True, slots=True)
class ThreadConflict:
    """Two accesses of different threads of one program to one place, with no barrier between in the TTGIR."""

    first: Operation
    first_thread: int
    second: Operation
    second_thread: int
    element: tuple[int, ...]
    address: int
    program: int
    by_copies: bool = False
    """Whether only other threads than the first one that holds an element do it: they hold copies of it."""


class Owners:
    """Which thread holds each element of a tensor in registers, by the layouts of a capture."""

    def __init__(self, capture: Capture, module: MlirModule) -> None:
        self._module = module
        self._maps = {(row.encoding, row.shape): row.map for row in capture.layouts or ()}
        self._known: dict[tuple[str, tuple[int, ...]], tuple[Array, bool] | None] = {}
        self.lanes = capture.target.warp_size

    def of(self, operation: Operation, shape: tuple[int, ...]) -> tuple[Array, bool] | None:
        """(the first thread that holds each element, whether others hold it too); None for an unknown layout.

        `shape`: of the tensor, or with axes of size 1 along which all elements are equal: one stands for all there.
        """
        if not shape:
            return np.zeros(1, np.int64), True
        kinds = [kind for kind in (*operation.operand_types, *operation.result_types) if kind.encoding]
        kind = next((kind for kind in kinds if kind.form == "tensor" and _stands_for(shape, kind.shape)), None)
        if kind is None:
            return None
        key = (self._module.resolve(kind.encoding), kind.shape)
        if key not in self._known:
            self._known[key] = self._read(kind)
        known = self._known[key]
        if known is None or shape == kind.shape:
            return known
        return known[0].reshape(kind.shape)[tuple(slice(size) for size in shape)].reshape(-1), True

    def _read(self, kind: Type) -> tuple[Array, bool] | None:
        layout = self.layout(kind)
        if layout is None:
            return None
        threads = ThreadMap.of(layout)
        if threads.blocks > 1:
            return None
        elements = np.array(threads.elements)
        owner = np.arange(elements.size) // threads.registers
        first = np.full(threads.size, -1, np.int64)
        first[elements[::-1]] = owner[::-1]
        return first, bool((first[elements] != owner).any())

    def layout(self, kind: Type) -> LinearLayout | None:
        """The layout of a tensor's type: the compiler's own where the capture has it; None where it is not known."""
        stored = self._maps.get((self._module.resolve(kind.encoding), kind.shape))
        if stored is not None:
            return stored.layout
        encoding = self._module.encoding_of(kind)
        try:
            computed = computed_map(encoding, kind.shape) if encoding is not None else None
        except (UsageError, KeyError, TypeError, ValueError):
            return None
        return computed.layout if computed is not None else None


def _stands_for(shape: tuple[int, ...], whole: tuple[int, ...]) -> bool:
    return len(shape) == len(whole) and all(size in (1, full) for size, full in zip(shape, whole, strict=True))


_MOST_THREADS = 1 << 11
"""Of a program: a thread of a launch is its program times so many, and its own number."""


_MOST_PROGRAMS = 4
"""Whose conflicting places are noted."""


class ThreadConflicts(Listener):
    """A shadow of the memory of some programs, by thread; programs do not meet in it (`Conflicts` has seen to that)."""

    def __init__(self, granule: int, owners: Owners, programs: int = 1) -> None:
        """`programs`: of the whole launch."""
        self._granule, self._owners = granule, owners
        self._barriers = np.ones(programs, np.int32)
        """Of each program, their number so far: a write before the last one is ordered."""
        self._operations = Numbering()
        self.found: dict[tuple[int, int], ThreadConflict] = {}
        self.places: dict[int, Array] = {}
        """Program → the addresses at which its threads conflict, of some of these programs."""
        self.has_more = False
        """Whether the threads of other programs conflict, too."""
        self.without_layout: set[str] = set()

    def begin(self, memory: GlobalMemory) -> None:
        begin, end = memory.extent
        self._first = begin
        places = places_of(end - begin, self._granule)
        self._thread = np.zeros((2, places), np.int64)
        """Who wrote, and who read, each place last: the number of the thread in the launch plus 1; 0 for none."""
        self._copied = np.zeros((2, places), np.bool_)
        self._when = np.zeros((2, places), np.int32)
        self._operation = np.zeros((2, places), np.int16)

    def order(self, programs: Array) -> None:
        self._barriers[programs] += 1

    def observe(self, observed: Observed) -> None:
        if observed.kind == "atomic" or observed.is_volatile:
            return
        owners = self._owners.of(observed.operation, observed.shape)
        if owners is None:
            self.without_layout.add(observed.operation.name)
            return
        owner, is_copied = owners
        is_store = observed.kind == "store"
        threads = owner[observed.elements] if observed.shape else np.zeros(observed.elements.size, np.int64)
        threads = threads + observed.programs.astype(np.int64) * _MOST_THREADS
        places = (observed.addresses - self._first) // self._granule
        inside = (places >= 0) & (places < self._thread.shape[1])
        places, threads, entries = places[inside], threads[inside], np.flatnonzero(inside)
        number = self._operations.of(observed.operation)
        # A store of copies is done by the first thread; a load by each that holds the element.
        several = is_copied and not is_store
        self._check(0, observed, number, places, threads, entries, several)
        if is_store:
            self._check(1, observed, number, places, threads, entries, several)
        row = 0 if is_store else 1
        self._thread[row, places] = threads + 1
        self._copied[row, places] = several
        self._when[row, places] = self._barriers[threads // _MOST_THREADS]
        self._operation[row, places] = number

    def _check(
        self,
        row: int,
        observed: Observed,
        number: int,
        places: Array,
        threads: Array,
        entries: Array,
        several: bool,
    ) -> None:
        """`several`: whether other threads do it too, which hold copies of the element."""
        before = self._thread[row, places]
        own = threads // _MOST_THREADS
        recent = (
            (before != 0) & ((before - 1) // _MOST_THREADS == own) & (self._when[row, places] == self._barriers[own])
        )
        conflict = recent & (before != threads + 1)
        copied = recent & ~conflict if several else recent & ~conflict & self._copied[row, places]
        for at, by_copies in ((np.flatnonzero(conflict), False), (np.flatnonzero(copied), True)):
            if at.size:
                self._note(own[at], places[at])
            firsts = self._operation[row, places[at]]
            while at.size:
                first, one = int(firsts[0]), int(at[0])
                key = (first, number)
                if key not in self.found or (self.found[key].by_copies and not by_copies):
                    self.found[key] = ThreadConflict(
                        self._operations.items[first], int(before[one] - 1) % _MOST_THREADS, observed.operation,
                        int(threads[one]) % _MOST_THREADS, observed.element(int(entries[one])),
                        self._first + int(places[one]) * self._granule, int(own[one]), by_copies,
                    )  # fmt: skip
                others = firsts != first
                at, firsts = at[others], firsts[others]

    def _note(self, programs: Array, places: Array) -> None:
        """Note where threads of programs conflict."""
        for program in np.unique(programs).tolist():
            if len(self.places) == _MOST_PROGRAMS and program not in self.places:
                self.has_more = True
                return
            noted = self.places.get(program, np.zeros(0, np.int64))
            addresses = self._first + places[programs == program] * self._granule
            self.places[program] = np.union1d(noted, addresses)


def stays_in_thread(module: MlirModule, operation: Operation) -> bool:
    """Whether what an operation reads is only computed on by element, and stored: copies of it decide nothing.

    A scalar that is made a tensor goes on to all threads.
    """
    is_scalar = all(kind.form != "tensor" for kind in operation.result_types)
    for user in all_users(module, operation.results):
        if user.kind == "store":
            continue
        if user.kind not in ("arithmetic", "view") or user.regions or (is_scalar and user.kind == "view"):
            return False
    return True


_Place = tuple[int, int]
"""A block of the assembly, and the index of an instruction in it."""


class Barriers:
    """Whether a barrier of all threads stands between two accesses, in the assembly of a capture."""

    def __init__(self, capture: Capture) -> None:
        self._flows: tuple[ControlFlow, ...] = ()
        self._places: Mapping[int, tuple[str, int]] = {}
        texts = capture.texts
        stages: list[tuple[str, StageKind]] = [("ptx", "ptx"), ("amdgcn", "amdgcn")]
        for stage, kind in stages:
            if text := texts.get(stage):
                self._flows = read_control_flow(text, kind)
                locations = capture_locations(capture, text, kind)
                chains = ((line, locations.chain_at(line)) for line in range(1, text.count("\n") + 2))
                places = ((line, place_of(chain, capture.launch.kernel.file)) for line, chain in chains if chain)
                self._places = {line: place[0] for line, place in places if place}

    @cached_property
    def are_none(self) -> bool:
        """Whether the assembly has no barrier at all."""
        instructions = [item for flow in self._flows for block in flow.blocks for item in block.instructions]
        return bool(instructions) and all(item.family != "barrier" for item in instructions)

    def may_be_missing(self, first: tuple[str, int], second: tuple[str, int], writes: tuple[bool, bool]) -> bool | None:
        """Whether some path leads from an access of one line of Python to one of another without a barrier.

        `writes`: for each of the two, whether it writes: one line may load and store. None where the assembly has
        barriers, and no such access to global memory of one of the lines.
        """
        if self.are_none:
            return True
        answers = [self._is_open(flow, first, second, writes) for flow in self._flows]
        known = [answer for answer in answers if answer is not None]
        return any(known) if known else None

    def are_missing(self, first: tuple[str, int], second: tuple[str, int], writes: tuple[bool, bool]) -> bool:
        """Whether no path between two such accesses has a barrier, of those that `may_be_missing` searches."""
        if self.are_none:
            return True
        for flow in self._flows:
            starts, ends = self._places_of(flow, first, second, writes)
            behind = self._reached(flow, starts, through=True)
            blocks = {block.number: block.instructions for block in flow.blocks}
            barriers = {
                (number, index) for number, index in behind
                if index < len(blocks.get(number, ())) and blocks[number][index].family == "barrier"
            }  # fmt: skip
            if not ends.isdisjoint(self._reached(flow, barriers, through=True)):
                return False
        return True

    def releases(self, store: tuple[str, int], release: tuple[str, int]) -> bool:
        """Whether an atomic operation releases what all threads stored: a barrier stands on every path to it."""
        return self.may_be_missing(store, release, (True, True)) is not True

    def _is_open(
        self, flow: ControlFlow, first: tuple[str, int], second: tuple[str, int], writes: tuple[bool, bool]
    ) -> bool | None:
        starts, ends = self._places_of(flow, first, second, writes)
        if not starts or not ends:
            return None
        return not ends.isdisjoint(self._reached(flow, starts))

    def _places_of(
        self, flow: ControlFlow, first: tuple[str, int], second: tuple[str, int], writes: tuple[bool, bool]
    ) -> tuple[set[_Place], set[_Place]]:
        starts, ends = (
            {place for place, item in self._accesses(flow, write) if self._places.get(item.line) == line}
            for line, write in zip((first, second), writes, strict=True)
        )
        return starts, ends

    @staticmethod
    def _reached(flow: ControlFlow, starts: set[_Place], *, through: bool = False) -> set[_Place]:
        """What follows some instructions on any path without a barrier; `through`: or with one."""
        blocks = {block.number: block.instructions for block in flow.blocks}

        def following(at: _Place) -> list[_Place]:
            number, index = at
            if number not in blocks:
                return []
            if index == len(blocks[number]):
                return [(jump.target, 0) for jump in flow.jumps if jump.source == number]
            return [(number, index + 1)] if through or blocks[number][index].family != "barrier" else []

        return set(reached(((block, index + 1) for block, index in starts), following))

    @staticmethod
    def _accesses(flow: ControlFlow, writes: bool) -> Iterator[tuple[_Place, Instruction]]:
        for block in flow.blocks:
            for index, item in enumerate(block.instructions):
                if "global" in (item.effect.writes if writes else item.effect.reads):
                    yield (block.number, index), item
