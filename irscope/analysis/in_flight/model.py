"""InFlight: what one program does in a loop, iteration by iteration: steps in order, slots, phases of barriers.

The rules of barriers are those of an mbarrier. Source: "Parallel Thread Execution ISA", Parallel Synchronization and
Communication Instructions: mbarrier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal

from irscope.analysis.flow.partitions import WarpPartition
from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.types import read_types
from irscope.memory.machine import ACCESSES

StepKind = Literal["copy", "load", "write", "read", "wait", "dot", "reduce", "convert", "tensor", "store", "atomic"]
"""`copy` begins one into shared memory, `load` one into registers; `tensor` moves to and from tensor memory."""

BEFORE = -1
"""The iteration number of steps before the loop."""
Slot = tuple[int, int]
"""A buffer, and a slot of it."""


@dataclass(frozen=True, slots=True)
class ExecutedStep:
    """One execution of an operation that moves data, multiplies, reduces or waits."""

    iteration: int
    """Of the loop, from 0; `BEFORE` it, or the trip count for what comes behind it."""
    kind: StepKind
    operation: str
    value: str
    """Its result, or the buffer that it is about; or an empty string."""
    line: int
    """In the TTGIR, 1-based."""
    place: str
    """`file:line` of the Python source, or an empty string."""
    tile: int | None
    """Which of the tiles that were written to the buffer, from 0: what is copied, read or multiplied."""
    buffer: int | None
    """An index into the rings."""
    slot: int | None
    is_off: bool
    """Whether its mask or predicate lets nothing happen."""
    until: int | None
    """The step that waits for it, or first uses it, as an index; its own if nothing has to wait."""
    partition: str = ""
    """Of specialised warps the partition that does it; empty outside of them, and of other kernels."""
    after: int | None = None
    """Of a wait of specialised warps: the step behind which its barrier was arrived at; None if it passes at first."""


@dataclass(frozen=True, slots=True)
class Stay:
    """A tile in a slot of a ring."""

    slot: int
    tile: int
    written: int
    """The step that begins to write it, as an index."""
    landed: int | None
    """The step that waits until it is there; None if nothing does."""
    read: tuple[int, ...]
    free: int | None
    """The step behind which nothing reads it; None if nothing does."""


@dataclass(frozen=True, slots=True)
class Ring:
    """A buffer in shared memory that steps of the loop write; of specialised warps in tensor memory too."""

    value: str
    type: str
    """Of a slot: `128×64×f16`."""
    slots: int
    line: int
    """Of its allocation in the TTGIR, 1-based."""
    place: str
    stays: tuple[Stay, ...]


@dataclass(frozen=True, slots=True)
class InFlight:
    """A loop of one program, or a program without a loop."""

    line: int
    """Of the loop in the TTGIR, 1-based; 0 if there is none."""
    title: str
    """`for %k = 0 to %n step 64`, as the IR has it; empty if there is none."""
    place: str
    iterations: int | None
    """Its trip count; None if that is not known, or if it is followed as if it iterated often."""
    launch_iterations: int | None
    """Its trip count in the first or the last program of the launch; None if that is not known."""
    program: tuple[int, int, int] | None
    """Which program; None if any of them does the same as far as it is known."""
    loops: int
    """How many loops of this kind the kernel has."""
    is_nested: bool
    """Whether it is shown in the first iteration of a loop around it."""
    steps: tuple[ExecutedStep, ...]
    rings: tuple[Ring, ...]
    note: str = ""
    partitions: tuple[WarpPartition, ...] = ()
    """Of specialised warps, whose steps stand in an order in which they can run: `iteration` is that of the
    partition with the loop, and before each of its steps the others run as far as the barriers let them."""

    def flying(self, step: int, kind: StepKind) -> int:
        """How many steps of a kind are begun, and not yet waited for, when a step ends."""
        begun = (one for one in self.steps[: step + 1] if one.kind == kind and not one.is_off)
        return sum(one.until is None or one.until > step for one in begun)


_KINDS: dict[str, StepKind] = {
    "local_load": "read",
    "local_store": "write",
    "reduce": "reduce",
    "scan": "reduce",
    "convert_layout": "convert",
    "tmem_load": "tensor",
    "tmem_store": "tensor",
    "tmem_copy": "tensor",
    "async_wait": "wait",
    "wait_barrier": "wait",
    "warp_group_dot_wait": "wait",
    "async_tma_store_wait": "wait",
    "async_tma_copy_global_to_local": "copy",
    "async_tma_gather": "copy",
    "async_tdm_copy_global_to_local": "copy",
}
"""By opcode, where neither the operation's kind nor its access to global memory decides."""


def kind_of_step(operation: Operation) -> StepKind | None:
    """The kind of step that an operation is; None if it is none."""
    if operation.kind == "dot":
        return "dot"
    return _KINDS.get(operation.opcode) or ACCESSES.get(operation.opcode)


class Barrier:
    """One barrier in shared memory."""

    def __init__(self) -> None:
        self.arrivals = self._pending = 1
        """That complete a phase, and that this one lacks."""
        self._bytes = 0
        """That this phase lacks."""
        self.completed = 0
        self._ends: list[int | None] = []
        """Of each complete phase the step that its last arrival stands behind."""
        self._arrived: list[tuple[int, int]] = []
        """(phase, step) that arrive at it."""

    def initialise(self, operation: Operation) -> None:
        self.arrivals = self._pending = max(_number(operation, "count", 1), 1)

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
        if operation.opcode == "barrier_expect":
            self._bytes += _number(operation, "size", 1)
            self._pending -= 1
        elif operation.opcode.startswith("async_tma_"):
            self._bytes -= _moved(operation)
        else:
            self._pending -= _number(operation, "count", 1)
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
    found = [one for one in read_types(operation.types) if one.form == "memdesc" and str(one.element) != "i64"]
    return sum(prod(one.shape) * one.element_bits // 8 for one in found[:1])


def _number(operation: Operation, name: str, default: int) -> int:
    value = operation.attribute(name)
    return value if isinstance(value, int) else default


class TrackedBuffer:
    """A buffer in shared or tensor memory; steps are told by their numbers."""

    def __init__(self, made: Operation, place: str) -> None:
        self.made = made
        self.place = place
        kind = next(iter(read_types(made.types)[-1:]), None)
        self.element = str(kind.element) if kind is not None else ""
        self.shape = kind.shape if kind is not None else ()
        self.slots = 1
        self.is_ring = False
        """Whether it has slots, or is made anew in each iteration: its tiles tell the iterations apart."""
        self.is_indexed = False
        """Whether its first dimension is that of the slots."""
        self.stays: list[Stay] = []

    @property
    def name(self) -> str:
        """The value that its allocation gives."""
        return self.made.results[0].name if self.made.results else ""

    @property
    def is_barrier(self) -> bool:
        return self.element == "i64"

    @property
    def is_shared(self) -> bool:
        return self.made.opcode == "local_alloc" and not self.is_barrier

    def index(self) -> None:
        """Note that a slot of it is asked for."""
        self.slots, self.is_ring, self.is_indexed = self.shape[0] if self.shape else 1, True, True

    def write(self, slot: int, number: int, *, lands: bool) -> int | None:
        """Write a slot; returns the tile, None if tiles do not tell iterations apart. `lands`: at once."""
        tile = len(self.stays)
        self.stays.append(Stay(slot, tile, number, number if lands else None, (), None))
        return tile if self.is_ring else None

    def land(self, copy: int, number: int) -> None:
        """Note that a step waits for the copy of another one."""
        for at, stay in enumerate(self.stays):
            if stay.written == copy and stay.landed is None:
                self.stays[at] = replace(stay, landed=number)

    def put(self, slot: int, number: int, *, lands: bool) -> int | None:
        """Write a slot, or add to what was not read since it was written; returns the tile as `write` does."""
        at = self._last(slot)
        if at is None or self.stays[at].read:
            return self.write(slot, number, lands=lands)
        if self.stays[at].landed is not None and not lands:
            self.stays[at] = replace(self.stays[at], landed=None)
        return at if self.is_ring else None

    def read(self, slot: int, number: int, wait: int | None = None) -> int | None:
        """Read a slot; returns the tile, or None if none is there or tiles do not tell iterations apart.

        `wait`: the step that the reader waited at last, for what nothing else tells to be there.
        """
        at = self._last(slot)
        if at is None:
            return None
        stay = self.stays[at]
        landed = stay.landed
        if landed is None and wait is not None and wait > stay.written and not stay.read:
            landed = wait
        self.stays[at] = replace(stay, read=(*stay.read, number), landed=landed)
        return at if self.is_ring else None

    def _last(self, slot: int) -> int | None:
        return next((at for at in range(len(self.stays) - 1, -1, -1) if self.stays[at].slot == slot), None)

    def ring(self, steps: Sequence[ExecutedStep]) -> Ring:
        """What is told of it, with the steps behind which nothing reads each tile."""
        shape = self.shape[1:] if self.is_indexed else self.shape
        kind = "×".join([*map(str, shape), self.element])
        stays = tuple(_freed(stay, steps) for stay in self.stays)
        return Ring(self.name, kind, self.slots, self.made.first_line, self.place, stays)


def _freed(stay: Stay, steps: Sequence[ExecutedStep]) -> Stay:
    ends = [steps[one].until for one in stay.read]
    known = [one for one in ends if one is not None]
    return replace(stay, free=max(known)) if known and len(known) == len(ends) else stay


@dataclass(frozen=True, slots=True)
class Doing:
    """One execution of an operation, with its operands evaluated."""

    operation: Operation
    kind: StepKind | None
    """None of an operation that is no step, but uses what was loaded, commits copies or arrives at barriers."""
    keys: tuple[int, ...]
    """What its operands are, as the follower tells values apart."""
    key: int
    """What its result is."""
    views: tuple[Slot, ...] = ()
    """Its operands in memory, without barriers."""
    barriers: tuple[Slot, ...] = ()
    """Those that it uses, and whose predicate holds."""
    target: Slot | None = None
    """Where it writes, if that is none of its operands."""
    phase: int | None = None
    """Of a wait for a barrier in specialised warps: the phase that it asks for."""
    is_off: bool = False


@dataclass(slots=True)
class _Open:
    """The operations that one partition has started, and not waited for."""

    copies: list[int] = field(default_factory=list[int])
    """Those in no group."""
    groups: list[list[int]] = field(default_factory=list[list[int]])
    """The copies of each committed group; a group that is waited for is empty."""
    dots: list[int] = field(default_factory=list[int])
    last: int | None = None
    """Its last step; and its last wait."""
    last_wait: int | None = None


class Log:
    """Steps in the order in which they were done."""

    def __init__(self, place_at: Callable[[int], str]) -> None:
        self.place_at = place_at
        self.steps: list[ExecutedStep] = []
        self.iteration = BEFORE
        self.partition = ""
        self.is_specialised = False
        """Whether tensor memory is followed too, and barriers count their phases."""
        self.buffers: list[TrackedBuffer] = []
        self.barriers: dict[Slot, Barrier] = {}
        self._tiles: dict[int, int] = {}
        """Key of a value -> the tile that it was read from."""
        self._loads: dict[int, int] = {}
        """Key of a value -> the load that it is the data of, as a step."""
        self._tokens: dict[int, int] = {}
        """Key of a token -> the copy, or the number of the group, that it is of."""
        self._opened: dict[str, _Open] = {}

    @property
    def _open(self) -> _Open:
        return self._opened.setdefault(self.partition, _Open())

    def barrier(self, at: Slot) -> Barrier:
        return self.barriers.setdefault(at, Barrier())

    def is_held(self, one: Doing) -> bool:
        """Whether it waits for a phase that is not complete."""
        return one.phase is not None and any(not self.barrier(at).passes(one.phase) for at in one.barriers)

    def do(self, one: Doing) -> None:
        self._land([self._loads[key] for key in one.keys if key in self._loads], len(self.steps))
        if one.kind is not None:
            self._step(one, one.kind)
        elif one.operation.opcode == "async_commit_group":
            mine = self._open
            mine.groups.append([self._tokens[key] for key in one.keys if key in self._tokens] or mine.copies)
            mine.copies = [each for each in mine.copies if each not in mine.groups[-1]]
            self._tokens[one.key] = len(mine.groups) - 1
        if self.is_specialised and one.kind != "wait" and not one.is_off:
            self._arrive(one)

    def _land(self, steps: Sequence[int], at: int) -> None:
        for one in steps:
            if self.steps[one].until is None:
                self.steps[one] = replace(self.steps[one], until=at)

    def _arrive(self, one: Doing) -> None:
        """Count its arrivals: those of copies and dots are theirs when they are done, which they may be at once."""
        for at in one.barriers:
            if one.operation.opcode == "tc_gen5_commit":
                # It arrives when all dots that its partition began are done.
                for dot in self._open.dots:
                    if self.steps[dot].until is None:
                        self.barrier(at).arrive(dot)
            self.barrier(at).count(one.operation, self._open.last)

    def _step(self, one: Doing, kind: StepKind) -> None:
        number = len(self.steps)
        target = one.target or (one.views[0] if one.views else None)
        tile = None
        if kind in ("copy", "write") and target is not None and not one.is_off:
            tile = self.buffers[target[0]].write(target[1], number, lands=kind == "write")
            for load in [self._loads[key] for key in one.keys if key in self._loads]:
                self.steps[load] = replace(self.steps[load], tile=tile)
        elif kind != "wait" and not one.is_off:
            tile = self._used(one, kind, number)
        shown = target if target is not None and kind in ("copy", "write", "read", "tensor") else None
        if kind == "tensor" and not self.is_specialised:
            shown = None
        results = one.operation.results
        value = self.buffers[shown[0]].name if shown is not None else results[0].name if results else ""
        line = one.operation.first_line
        self.steps.append(
            ExecutedStep(
                self.iteration, kind, one.operation.name, value, line, self.place_at(line), tile,
                shown[0] if shown else None, shown[1] if shown else None, one.is_off, None, self.partition,
            )
        )  # fmt: skip
        self._open.last = number
        self._follow(one, kind, number)

    def _used(self, one: Doing, kind: StepKind, number: int) -> int | None:
        """The tile that a step reads, or writes to tensor memory; None if it is not known."""
        written = _written_places(one.operation) if self.is_specialised else ()
        read = [view for at, view in enumerate(one.views) if at not in written]
        tiles = [self._tiles[key] for key in one.keys if key in self._tiles]
        for buffer, slot in read:
            found = self.buffers[buffer].read(slot, number, self._open.last_wait)
            tiles += [found] if found is not None else []
        for buffer, slot in (one.views[at] for at in written if at < len(one.views)):
            # A dot adds to what is there, until that is read.
            own = self.buffers[buffer].put(slot, number, lands=kind != "dot")
            tiles += [own] if own is not None and not tiles else []
        # What is multiplied are the tiles of this iteration: the newest.
        tile = max(tiles, default=None)
        if kind in ("read", "convert", "tensor") and tile is not None:
            self._tiles[one.key] = tile
        return tile

    def _follow(self, one: Doing, kind: StepKind, number: int) -> None:
        """Note what a step leaves in flight, or waits for."""
        if kind == "wait":
            self._land([number], number)
            return self._wait(one, number)
        if self.steps[number].is_off:
            # It keeps its place in a group, but nothing is on its way.
            self._land([number], number)
        is_async = one.operation.attribute("isAsync") is True or "is_async" in one.operation.attribute_texts
        is_async = kind == "dot" and is_async
        if is_async and (self.is_specialised or not one.barriers):
            self._open.dots.append(number)
        if kind == "load":
            self._loads[one.key] = number
        elif one.barriers:
            for at in one.barriers:
                self.barrier(at).arrive(number)
        elif kind == "copy":
            self._open.copies.append(number)
            self._tokens[one.key] = number
        elif not is_async:
            self._land([number], number)
        return None

    def _wait(self, one: Doing, number: int) -> None:
        mine, opcode = self._open, one.operation.opcode
        tokens = [self._tokens[key] for key in one.keys if key in self._tokens]
        if opcode == "wait_barrier":
            mine.last_wait = number
            for at in one.barriers if not one.is_off else ():
                self._arrived(self.barrier(at).take(one.phase), number)
                self.steps[number] = replace(self.steps[number], after=self.barrier(at).completed_behind())
        elif opcode == "warp_group_dot_wait":
            done = mine.dots[: len(mine.dots) - _number(one.operation, "pendings", 0)]
            mine.dots = mine.dots[len(done) :]
            self._arrived(done, number)
        elif opcode == "async_wait" and (left := _number(one.operation, "num", -1)) >= 0:
            self._committed(len(mine.groups) - left, number)
        elif tokens:
            self._committed(max(tokens) + 1, number)

    def _committed(self, groups: int, number: int) -> None:
        """The first groups are there; those before them too, as they end in order."""
        own = self._open.groups
        count = min(max(groups, 0), len(own))
        self._arrived([one for group in own[:count] for one in group], number)
        own[:count] = [[] for _ in range(count)]

    def _arrived(self, steps: Sequence[int], number: int) -> None:
        self._land(steps, number)
        tiles = [tile for one in steps if (tile := self.steps[one].tile) is not None and not self.steps[one].is_off]
        self.steps[number] = replace(self.steps[number], tile=max(tiles, default=None))
        for one in steps:
            step = self.steps[one]
            if step.kind == "copy" and step.buffer is not None:
                self.buffers[step.buffer].land(one, number)

    def rings(self) -> tuple[Ring, ...]:
        """The buffers that steps write, without barriers; steps then tell theirs among these."""
        kept = [
            number
            for number, one in enumerate(self.buffers)
            if one.stays and not one.is_barrier and (one.is_shared or self.is_specialised)
        ]
        for at, step in enumerate(self.steps):
            ring = kept.index(step.buffer) if step.buffer in kept else None
            self.steps[at] = replace(step, buffer=ring, slot=step.slot if ring is not None else None)
        return tuple(self.buffers[number].ring(self.steps) for number in kept)


def _written_places(operation: Operation) -> list[int]:
    """Which of the operation's operands in memory, barriers left out, it writes."""
    kinds = zip(operation.operands, operation.operand_types, strict=False)
    held = [value for value, kind in kinds if kind.form == "memdesc" and str(kind.element) != "i64"]
    return [held.index(value) for value in operation.written if value in held]
