"""The accesses of programs to global memory, observed one after another, and the conflicts among them.

Every place of the launch's memory has a shadow: which program wrote it last, which read it, and by which operation. A
conflict is a pair of accesses of two programs to one place, at least one of them a plain write, that no atomic
operation orders: neither may happen before the other on a GPU, whose programs run in any order.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from irscope.errors import NotRun, WrongProgram
from irscope.ir.mlir.model import MlirModule, Operation
from irscope.ir.reach import all_users
from irscope.machine.accesses import tile_place
from irscope.machine.control import Bindings, Executor, Machine, Step
from irscope.machine.launch import EXECUTORS
from irscope.machine.memory import GlobalMemory, ObservedAccess
from irscope.machine.values import Array, Held, dtype_of
from irscope.verify.slices import AddressSlice

_MOST_PLACES = 1 << 28
"""Of the shadow: a launch of more memory is not decided."""
_MOST_CLOCKS = 4096
"""Programs that are followed through atomic operations: each has a clock for each other one."""


@dataclass(frozen=True, slots=True)
class ElementAccess:
    operation: Operation
    program: int
    element: tuple[int, ...]
    address: int
    path: str
    detail: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """Elements that some programs access by one operation; arrays of one entry for each element that is accessed."""

    operation: Operation
    kind: str
    """`load`, `store` or `atomic`."""
    is_volatile: bool
    programs: Array
    elements: Array
    """The index of the element, flat in `shape`."""
    addresses: Array
    shape: tuple[int, ...]
    """Of the operation's tensor; empty for a scalar."""
    element_bytes: int
    is_possible: bool = False
    """Whether a mask that is not known may leave it out."""

    def element(self, at: int) -> tuple[int, ...]:
        """The index of an entry in the operation's tensor; empty for a scalar."""
        return tuple(int(index) for index in np.unravel_index(int(self.elements[at]), self.shape)) if self.shape else ()

    def element_at(self, at: int, path: str, detail: str = "") -> ElementAccess:
        program, address = int(self.programs[at]), int(self.addresses[at])
        return ElementAccess(self.operation, program, self.element(at), address, path, detail)


class Numbering:
    """Numbers of operations, in the order in which they are first asked for."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._of: dict[int, int] = {}

    def of(self, item: object) -> int:
        if id(item) not in self._of:
            self._of[id(item)] = len(self.items)
            self.items.append(item)
        return self._of[id(item)]


class Listener:
    """Takes what is observed; each method does nothing here."""

    def begin(self, memory: GlobalMemory) -> None:
        """Take the memory of the launch, before the first operation."""

    def observe(self, observed: Observed) -> None:
        """Take an access, before it is done."""

    def order(self, programs: Array) -> None:
        """Take a barrier of all threads of some programs."""

    def synchronise(self, programs: Array, addresses: Array, operation: Operation, ordering: str) -> None:
        """Take an atomic operation on a place, by program, after it was done; `ordering`: `acquire`, `acq_rel`, …."""


class OfPrograms(Listener):
    """Passes on what some programs do, of more that are executed."""

    def __init__(self, listener: Listener, programs: Sequence[int]) -> None:
        self._listener, self._programs = listener, np.asarray(programs)

    def begin(self, memory: GlobalMemory) -> None:
        self._listener.begin(memory)

    def observe(self, observed: Observed) -> None:
        own = np.isin(observed.programs, self._programs)
        if own.any():
            rows = (observed.programs, observed.elements, observed.addresses)
            programs, elements, addresses = (row[own] for row in rows)
            self._listener.observe(replace(observed, programs=programs, elements=elements, addresses=addresses))

    def order(self, programs: Array) -> None:
        self._listener.order(programs[np.isin(programs, self._programs)])

    def synchronise(self, programs: Array, addresses: Array, operation: Operation, ordering: str) -> None:
        own = np.isin(programs, self._programs)
        self._listener.synchronise(programs[own], addresses[own], operation, ordering)


UnwrittenMemory = tuple[str, int, Array, Callable[[], Array | None]]
"""The name and the number of a storage, whether each byte is written, and what says which others are; None: all."""


class UnwrittenReads(Listener):
    """Finds reads of memory that `torch.empty` allocated, and that neither the host nor a launch wrote before.

    Programs are followed in the order of their numbers: what an earlier one wrote counts as written.
    """

    def __init__(self, tensors: Sequence[UnwrittenMemory]) -> None:
        """`tensors`: their bytes are marked as they are written; the others are asked for where one is read."""
        self._tensors = tensors
        self._whole: set[str] = set()
        """Names of the tensors whose others were asked for."""
        self.found: dict[int, ElementAccess] = {}
        self.elements = 0

    def begin(self, memory: GlobalMemory) -> None:
        self._begins = [memory.address(storage) for _, storage, _, _ in self._tensors]

    def observe(self, observed: Observed) -> None:
        self.elements += observed.addresses.size
        for (path, _, written, others), begin in zip(self._tensors, self._begins, strict=True):
            places = observed.addresses - begin
            inside = (places >= 0) & (places + observed.element_bytes <= written.size)
            if not inside.any():
                continue
            bytes_ = places[inside][:, None] + np.arange(observed.element_bytes)
            if observed.kind != "store" and id(observed.operation) not in self.found:
                fresh = np.flatnonzero(~written[bytes_].all(axis=1))
                if fresh.size and path not in self._whole:
                    self._whole.add(path)
                    known = others()
                    np.logical_or(written, True if known is None else known, out=written)
                    fresh = np.flatnonzero(~written[bytes_].all(axis=1))
                if fresh.size:
                    at = int(np.flatnonzero(inside)[fresh[0]])
                    self.found[id(observed.operation)] = observed.element_at(at, path)
            if observed.kind != "load" and not observed.is_possible:
                written[bytes_] = True


def reaches_output(module: MlirModule, operation: Operation) -> bool | None:
    """Whether what an operation reads is stored, or decides what is; None if a selection may leave it out."""
    if operation.kind == "atomic":
        return True
    chooses = False
    for user in all_users(module, operation.results):
        chooses = chooses or user.opcode.endswith("select")
        if user.kind in ("store", "atomic", "branch", "conditional", "loop", "yield", "return", "call", "load"):
            return None if chooses else True
    return False


class Tracer:
    """Wraps the machine's executors: skips what decides no access, and tells a listener of each access."""

    def __init__(self, module: MlirModule, slices: AddressSlice, listener: Listener, tile_bytes: int = 1) -> None:
        """`tile_bytes`: at multiples of these tiles of a descriptor begin, and rows of its tensor."""
        self._tile_bytes = tile_bytes
        self._skipped, self._assumed, self._possible = slices.skipped, slices.assumed, slices.possible
        self._listener = listener
        self._sync = sync_operations(module)
        self._step: Step | None = None
        self._numbers: tuple[Machine | None, Array] = (None, np.zeros(0, np.int64))
        self.last: Observed | None = None
        """The access that was observed last: the one that fails, where an access fails."""
        self.step: Operation | None = None
        self.executors: Mapping[str, Executor] = {
            operation.opcode: self._wrapped(EXECUTORS.get(operation.opcode)) for operation in module.walk()
        }

    def _wrapped(self, executor: Executor | None) -> Executor:
        def execute(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
            if id(step.operation) in self._assumed:
                return [np.ones((1,) * (len(step.shape) + 1), np.bool_)]
            if id(step.operation) in self._skipped:
                return _placeholders(step)
            if executor is None:
                raise step.not_run("irscope does not execute this operation")
            self._step, self.step = step, step.operation
            if self._numbers[0] is not machine:
                if self._numbers[0] is None:
                    self._listener.begin(machine.memory)
                x, y, z = machine.program_ids
                self._numbers = (machine, x + machine.grid[0] * (y + machine.grid[1] * z))
            if self._tile_bytes > 1 and step.group("desc"):
                self._refuse_misaligned(step, frame)
            results = executor(machine, step, frame)
            if id(step.operation) in self._possible:
                # What may not be executed orders nothing.
                return results
            ordering = self._sync.get(id(step.operation))
            if ordering is not None:
                addresses = np.broadcast_to(frame.array(step.operands[self._pointer(step)]), frame.count)
                self._listener.synchronise(self._numbers[1][frame.rows], addresses, step.operation, ordering)
            if step.operation.kind == "barrier":
                self._listener.order(self._numbers[1][frame.rows])
            return results

        return execute

    def _refuse_misaligned(self, step: Step, frame: Bindings) -> None:
        tensor, offsets, _ = tile_place(step, frame)
        rows = [(one, "has rows that are {} bytes apart") for one in tensor.strides[:-1]]
        for elements, what in ((offsets[-1], "begins at byte {} of its row"), *rows):
            places = elements.astype(np.int64).reshape(-1) * tensor.dtype.itemsize
            wrong = places[places % self._tile_bytes != 0]
            if wrong.size:
                raise WrongProgram(f"a tile {what.format(wrong[0])}, not a multiple of {self._tile_bytes}")

    @staticmethod
    def _pointer(step: Step) -> int:
        return next(place for place, kind in enumerate(step.operand_types) if kind.form == "pointer")

    def on_access(self, access: ObservedAccess) -> None:
        """What the machine calls before each access to global memory."""
        step = self._step
        if step is None:
            return
        mask, addresses = access.mask, access.addresses
        shape = np.broadcast_shapes(addresses.shape, () if mask is None else mask.shape)
        shape = (len(access.rows), *shape[1:])
        full = np.broadcast_to(addresses, shape).reshape(-1)
        size = max(prod(shape[1:]), 1)
        chosen = np.flatnonzero(np.broadcast_to(True if mask is None else mask, shape))
        self.last = Observed(
            step.operation, access.kind, step.operation.attribute_texts.get("isVolatile") == "true",
            self._numbers[1][access.rows][chosen // size], chosen % size, full[chosen], shape[1:], access.element_bytes,
            id(step.operation) in self._possible,
        )  # fmt: skip
        self._listener.observe(self.last)


def _placeholders(step: Step) -> Sequence[Held]:
    """Values that nothing depends on: of one element, which stands for all."""
    placeholders: list[Held] = []
    for kind in step.types:
        try:
            dtype = dtype_of(kind)
        except NotRun:
            dtype = np.dtype(np.int64)
        placeholders.append(np.zeros((1,) * (len(kind.shape) + 1), dtype))
    return placeholders


def granule_bytes(module: MlirModule) -> int:
    """The size of the smallest element that a module accesses, or 1: one place of a shadow."""
    sizes = [8]
    for operation in module.walk():
        if any(effect.space == "global" for effect in operation.effects):
            for kind in (*operation.operand_types, *operation.result_types):
                sizes.append(_element_bytes(kind))
    return min(sizes)


def _element_bytes(kind: Any) -> int:
    element = kind
    while element is not None and element.form in ("tensor", "pointer", "descriptor", "memdesc"):
        element = element.element
    if element is None or element.form == "token":
        return 8
    if element.form == "integer" and element.bits == 1:
        # A mask.
        return 8
    try:
        return dtype_of(element).itemsize
    except NotRun:
        return 1


def places_of(size: int, granule: int) -> int:
    """The places of so many bytes; raises NotRun for more than are followed."""
    places = -(-size // granule)
    if places > _MOST_PLACES:
        raise NotRun(f"{places} places of memory are more than the {_MOST_PLACES} that are followed")
    return places


_ORDERINGS = {"2": "acquire", "3": "release"}


def sync_operations(module: MlirModule) -> Mapping[int, str]:
    """`id` of each atomic operation on a single place that orders programs, of the GPU's scope → how: not relaxed."""
    ordering: dict[int, str] = {}
    # It is asked for at each run, and few operations are atomic.
    for operation in (one for one in module.walk() if one.kind == "atomic"):
        is_single = bool(operation.results) and operation.result_types[0].form != "tensor"
        how = str(operation.attribute("sem"))
        if is_single and how not in ("relaxed", "1") and not is_of_cta(operation):
            ordering[id(operation)] = how if how in _ORDERINGS.values() else _ORDERINGS.get(how, "acq_rel")
    return ordering


def relaxed_operations(module: MlirModule) -> list[Operation]:
    """Atomic operations and `volatile` loads of a single place that order no programs."""
    ordering = sync_operations(module)
    return [
        one
        for one in module.walk()
        if (one.kind == "atomic" and id(one) not in ordering) or one.attribute_texts.get("isVolatile") == "true"
        if one.results and one.result_types[0].form != "tensor"
    ]


def is_of_cta(operation: Operation) -> bool:
    """Whether an atomic operation is one for the threads of its own program alone."""
    return operation.kind == "atomic" and str(operation.attribute("scope")) in ("cta", "2")


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two accesses to one place that nothing orders."""

    first: Operation
    first_program: int
    """-1 where several read the place, and which is not known."""
    second: Operation
    second_program: int
    address: int
    count: int
    """How many places these two operations conflict at, when it was first seen."""


_KINDS = ("store", "load", "atomic")
"""The rows of a shadow."""
_BEHIND = {"store": (0, 1, 2), "load": (0, 2), "atomic": (0, 1)}
"""The rows of what an access must be ordered behind."""


class Conflicts(Listener):
    """A shadow of the launch's memory, which finds conflicts between programs."""

    def __init__(self, granule: int, programs: int, *, with_clocks: bool) -> None:
        """`granule`: bytes of a place; `programs`: of the whole launch; `with_clocks`: atomic operations order."""
        self._granule, self._programs = granule, programs
        self._with_clocks = with_clocks and programs <= _MOST_CLOCKS
        self.lost_clocks = with_clocks and not self._with_clocks
        """Whether atomic operations may order what is found, and there are too many programs to follow them."""
        self._clocks: _Clocks | None = None
        self._operations = Numbering()
        self.found: dict[tuple[int, int], Conflict] = {}
        self.released: dict[tuple[int, tuple[Operation, ...]], Conflict] = {}
        """Where an atomic operation orders a store and an access: by the store, and those that may release it."""
        self.elements = 0
        self.own: set[int] = set()
        """Programs that read places which they write themselves."""

    def begin(self, memory: GlobalMemory) -> None:
        begin, end = memory.extent
        places = places_of(end - begin, self._granule)
        self._begin, self._places = begin, places
        self._last = np.zeros((3, places), np.int32)
        """Who accessed each place last: the number of the program plus 1; 0 for none."""
        self._operation = np.zeros((3, places), np.int16)
        self._many = np.zeros((3, places), np.bool_)
        """Whether several programs read a place, and whether several updated it."""
        if self._with_clocks:
            self._clocks = _Clocks(self._programs, places)

    def synchronise(self, programs: Array, addresses: Array, operation: Operation, ordering: str) -> None:
        if self._clocks is not None:
            self._clocks.synchronise(programs, addresses, operation, ordering)

    def observe(self, observed: Observed) -> None:
        self.elements += observed.addresses.size
        if is_of_cta(observed.operation):
            # To other programs it is a plain write.
            observed = replace(observed, kind="store")
        places = (observed.addresses - self._begin) // self._granule
        programs = (observed.programs + 1).astype(np.int32)
        for offset in range(max(observed.element_bytes // self._granule, 1)):
            inside = (places + offset >= 0) & (places + offset < self._places)
            if inside.all():
                self._take(observed, places + offset, programs)
            else:
                self._take(observed, places[inside] + offset, programs[inside])

    def _take(self, observed: Observed, places: Array, programs: Array) -> None:
        if not places.size:
            return
        operation = self._operations.of(observed.operation)
        if observed.kind != "load":
            self._note_own(self._last[1, places], programs)
        if observed.kind != "atomic":
            self._note_own(self._last[0, places], programs)
        row = _KINDS.index(observed.kind)
        is_volatile = observed.is_volatile and observed.kind == "load"
        for earlier in (0,) if is_volatile else _BEHIND[observed.kind]:
            self._check(operation, places, programs, earlier)
        if observed.kind == "store":
            self._last[0, places], self._operation[0, places] = programs, operation
            lost = np.flatnonzero(self._last[0, places] != programs)
            if lost.size:
                self._report(operation, operation, places[lost], self._last[0, places[lost]], programs[lost])
            self._last[1, places], self._many[1, places] = 0, False
        elif not is_volatile:
            self._mark(row, places, programs)
            self._operation[row, places] = operation
        if self._clocks is not None:
            self._clocks.stamp(row, places, programs - 1)

    def _mark(self, row: int, places: Array, programs: Array) -> None:
        before = self._last[row, places]
        several = (before != 0) & (before != programs)
        if self._clocks is not None:
            # The earlier access happened before: who comes after this one comes after both.
            several &= ~self._clocks.is_ordered(row, places, before - 1, programs - 1)
        self._last[row, places] = programs
        self._many[row, places] |= several | (self._last[row, places] != programs)

    def _note_own(self, before: Array, programs: Array) -> None:
        same = before == programs
        if same.any():
            self.own.update((np.unique(programs[same]) - 1).tolist())

    def _check(self, operation: int, places: Array, programs: Array, row: int) -> None:
        """Report where another program's access to a place is not before this one."""
        before = self._last[row, places]
        conflict = (before != 0) & ((before != programs) | self._many[row, places])
        if not conflict.any():
            return
        if self._clocks is not None:
            is_ordered = self._clocks.is_ordered(row, places, before - 1, programs - 1)
            at = np.flatnonzero(conflict & is_ordered)
            if row == 0 and at.size:
                place, first = int(places[at[0]]), int(before[at[0]]) - 1
                number = int(self._operation[row, place])
                key = number, self._clocks.releases_behind(place, first)
                self.released.setdefault(key, self._conflict(number, operation, places[at], before[at], programs[at]))
            conflict &= ~is_ordered
        at = np.flatnonzero(conflict)
        if at.size:
            self._report(int(self._operation[row, places[at[0]]]), operation, places[at], before[at], programs[at])

    def _report(self, first: int, second: int, places: Array, before: Array, programs: Array) -> None:
        # Of a place that several programs read, one that this program is not is not known.
        before = np.where(before == programs, 0, before)
        key = (first, second)
        if key not in self.found:
            self.found[key] = self._conflict(first, second, places, before, programs)

    def _conflict(self, first: int, second: int, places: Array, before: Array, programs: Array) -> Conflict:
        at = int(np.argmax(before != 0))
        return Conflict(
            self._operations.items[first], int(before[at]) - 1, self._operations.items[second], int(programs[at]) - 1,
            self._begin + int(places[at]) * self._granule, places.size,
        )  # fmt: skip


class _Clocks:
    """What happened before what among programs: vector clocks, which atomic operations pass on."""

    def __init__(self, programs: int, places: int) -> None:
        self._known = np.zeros((programs, programs), np.int32)
        """[q, p]: the time of p up to which everything that p did happened before what q does now."""
        np.fill_diagonal(self._known, 1)
        self._stamps = np.zeros((3, places), np.int32)
        self._released: dict[int, Array] = {}
        self._releases: dict[int, list[Operation]] = {}
        """Program → what released, at each of its times."""

    def synchronise(self, programs: Array, addresses: Array, operation: Operation, ordering: str) -> None:
        """Acquire and release at a place, one program after another, or do one of both."""
        for program, address in zip(programs.tolist(), addresses.tolist(), strict=True):
            known = self._known[program]
            before = self._released.get(address)
            if before is not None and ordering != "release":
                np.maximum(known, before, out=known)
            if ordering != "acquire":
                # What was released before goes on: who reads this comes after both.
                self._released[address] = known.copy() if before is None else np.maximum(known, before)
                known[program] += 1
                self._releases.setdefault(program, []).append(operation)

    def releases_behind(self, place: int, program: int) -> tuple[Operation, ...]:
        """What a program released by since it stored to a place, without repetitions."""
        return tuple(dict.fromkeys(self._releases.get(program, [])[self._stamps[0, place] - 1 :]))

    def stamp(self, row: int, places: Array, programs: Array) -> None:
        self._stamps[row, places] = self._known[programs, programs]

    def is_ordered(self, row: int, places: Array, before: Array, programs: Array) -> Array:
        """Whether the accesses that were noted happened before what programs do now."""
        return self._known[programs, np.maximum(before, 0)] >= self._stamps[row, places]


class WrittenBytes(Listener):
    """The bytes that a program stores, after it ran."""

    def __init__(self) -> None:
        self._places: list[Array] = []
        self._memory: GlobalMemory | None = None

    @property
    def contents(self) -> dict[int, int]:
        memory = self._memory
        if memory is None or not self._places:
            return {}
        addresses = np.unique(np.concatenate(self._places)).tolist()
        return {address: memory.peek(address, 1)[0] for address in addresses}

    def begin(self, memory: GlobalMemory) -> None:
        self._memory = memory

    def observe(self, observed: Observed) -> None:
        if observed.kind == "store":
            self._places.append((observed.addresses[:, None] + np.arange(observed.element_bytes)).reshape(-1))
