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


class ThreadConflicts(Listener):
    """A shadow of the memory of some programs, by thread; programs do not meet in it (`Conflicts` has seen to that)."""

    def __init__(self, granule: int, owners: Owners, programs: int = 1) -> None:
        """`programs`: of the whole launch."""
        self._granule, self._owners = granule, owners
        self._barriers = np.ones(programs, np.int32)
        """Of each program, their number so far: a write before the last one is ordered."""
        self._operations = Numbering()
        self.found: dict[tuple[int, int], ThreadConflict] = {}
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
        by_copies = not conflict.any()
        if by_copies:
            conflict = recent if several else recent & self._copied[row, places]
        at = np.flatnonzero(conflict)
        if not at.size:
            return
        first = int(self._operation[row, places[at[0]]])
        key = (first, number)
        if key in self.found and not self.found[key].by_copies:
            return
        owner = int(before[at[0]])
        self.found[key] = ThreadConflict(
            self._operations.items[first], max(owner - 1, 0) % _MOST_THREADS, observed.operation,
            int(threads[at[0]]) % _MOST_THREADS, observed.element(int(entries[at[0]])),
            self._first + int(places[at[0]]) * self._granule, int(own[at[0]]), by_copies,
        )  # fmt: skip


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

    def may_be_missing(self, first: tuple[str, int], second: tuple[str, int], writes: tuple[bool, bool]) -> bool | None:
        """Whether some path leads from an access of one line of Python to one of another without a barrier.

        `writes`: for each of the two, whether it writes: one line may load and store. None where the assembly has
        barriers, and no such access to global memory of one of the lines.
        """
        instructions = [item for flow in self._flows for block in flow.blocks for item in block.instructions]
        if instructions and all(item.family != "barrier" for item in instructions):
            return True
        answers = [self._is_open(flow, first, second, writes) for flow in self._flows]
        known = [answer for answer in answers if answer is not None]
        return any(known) if known else None

    def releases(self, store: tuple[str, int], release: tuple[str, int]) -> bool:
        """Whether an atomic operation releases what all threads stored: a barrier stands on every path to it."""
        return self.may_be_missing(store, release, (True, True)) is not True

    def _is_open(
        self, flow: ControlFlow, first: tuple[str, int], second: tuple[str, int], writes: tuple[bool, bool]
    ) -> bool | None:
        starts, ends = (
            {place for place, item in self._accesses(flow, write) if self._places.get(item.line) == line}
            for line, write in zip((first, second), writes, strict=True)
        )
        if not starts or not ends:
            return None
        blocks = {block.number: block.instructions for block in flow.blocks}

        def following(at: tuple[int, int]) -> list[tuple[int, int]]:
            number, index = at
            if number not in blocks or (index < len(blocks[number]) and blocks[number][index].family == "barrier"):
                return []
            if index < len(blocks[number]):
                return [(number, index + 1)]
            return [(jump.target, 0) for jump in flow.jumps if jump.source == number]

        return not ends.isdisjoint(reached(((block, index + 1) for block, index in starts), following))

    @staticmethod
    def _accesses(flow: ControlFlow, writes: bool) -> Iterator[tuple[tuple[int, int], Instruction]]:
        for block in flow.blocks:
            for index, item in enumerate(block.instructions):
                if "global" in (item.effect.writes if writes else item.effect.reads):
                    yield (block.number, index), item
