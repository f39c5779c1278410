"""A warp-specialised kernel: its partitions with their warps, the buffers and the barriers between them.

Read from the TTGIR: each region of `ttg.warp_specialize` is the code of some warps. A ring of barriers or of buffers is
one allocation, whose slots are indexed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from irscope.analysis.bounds import intervals
from irscope.ir.mlir.attributes import AttributeValue
from irscope.ir.mlir.model import MlirModule, Operation, Region, Value
from irscope.ir.mlir.reader import parse_mlir
from irscope.ir.mlir.types import Type

_SPECIALIZE = "warp_specialize"
_STRUCTURE = ("warp_id", "warp_yield", "warp_return", _SPECIALIZE)
_DEFAULT = "default"
_ALLOCATIONS = ("local_alloc", "tmem_alloc")
_UNUSED = ("init_barrier", "inval_barrier", "local_dealloc", "tmem_dealloc", _SPECIALIZE)
# They name buffers only to keep their order.
_OF_BARRIERS = ("wait_barrier", "barrier_expect", "arrive_barrier")
_LOOPS = ("scf.for", "scf.while")
_MOST_VIEWS = 64
"""Operations that a value is followed through."""
_MOST_READ = 16
"""Warp specialisations of a text."""

Action = Literal["waits", "expects", "arrives", "reads", "writes"]


@dataclass(frozen=True, slots=True)
class WarpPartition:
    """The code of some warps."""

    name: str
    """`default`, or `partition0` and so on."""
    line: int
    """Of the TTGIR, 1-based, where its code begins."""
    warps: int | None
    first_warp: int | None
    """Its first warp among those of the block; None if the text does not say."""
    registers: int | None
    """Registers per thread that it asks for; None if it does not."""
    operations: tuple[tuple[str, int], ...]
    """(operation of `ttg` or `ttng` or of memory, how many), the most frequent first."""


@dataclass(frozen=True, slots=True)
class WarpRingUse:
    """One operation at a barrier or a buffer."""

    partition: str
    """Empty outside of them all."""
    action: Action
    operation: str
    line: int
    phase: str = ""
    """Of a wait: `0` or `1`, or `flips` where it is another each time around the ring, or the value's name."""
    first_phase: int | None = None
    """Of a wait: its phase when it runs first; a new barrier is in phase 0, so that 1 passes. None if not known."""
    bytes: int | None = None
    """That are expected, of a copy by TMA; None of anything else."""
    slot: int | None = None
    """Of the ring, at its first execution; None if it is not known."""
    loops: tuple[int, ...] = ()
    """Lines of the TTGIR where the loops around it begin, within its partition; the outermost first."""


@dataclass(frozen=True, slots=True)
class WarpRing:
    """One allocation of barriers or of a buffer that several partitions use."""

    value: str
    line: int
    slots: int
    what: str
    """The type of a slot: `128x64xf16`; of a barrier how many arrivals complete a phase."""
    uses: tuple[WarpRingUse, ...]

    def by(self, action: Action) -> tuple[WarpRingUse, ...]:
        return tuple(use for use in self.uses if use.action == action)


@dataclass(frozen=True, slots=True)
class WarpSpecialization:
    line: int
    partitions: tuple[WarpPartition, ...]
    buffers: tuple[WarpRing, ...]
    """The data that one partition writes and another reads."""
    barriers: tuple[WarpRing, ...]
    is_traced: bool
    """Whether each use of a barrier was followed to its allocation: only then is what has no use known to have none."""


def read_partitions(text: str) -> tuple[WarpSpecialization, ...]:
    """The warp specialisations of a TTGIR; none of any other kernel. Never raises."""
    if _SPECIALIZE not in text:
        return ()
    module = parse_mlir(text)
    stated = module.option("num-warps")
    warps = stated if isinstance(stated, int) else None
    specialized = (one for one in module.walk() if one.opcode == _SPECIALIZE)
    return tuple(_PartitionReader(module, one, warps).read() for one in islice(specialized, _MOST_READ))


def most_specialised(found: Sequence[WarpSpecialization]) -> WarpSpecialization | None:
    """That whose partitions hand over most to one another; None if there is none."""
    return max(found, key=lambda each: sum(len(ring.uses) for ring in (*each.buffers, *each.barriers)), default=None)


class _PartitionReader:
    def __init__(self, module: MlirModule, specialize: Operation, warps: int | None) -> None:
        self._module, self._specialize, self._default_warps = module, specialize, warps
        self._entered = {
            argument: operand
            for region in specialize.regions
            for block in region.blocks[:1]
            if len(block.arguments) == len(specialize.operands)
            for argument, operand in zip(block.arguments, specialize.operands, strict=True)
        }
        """Arguments of partitions and what loops carry → what each of them is at first."""
        self._entered |= {argument: first for operation in module.walk() for argument, first in operation.carried}
        self._loops = {line: loops for region in specialize.regions for line, loops in _loops_around(region)}
        first = intervals(module.kernel, None, same=self._entered | dict(_begins(module))) if module.kernel else {}
        self._first = {value: one[0] for value, one in first.items() if one is not None and one[0] == one[1]}
        self._indexed = set[int]()
        """Lines of the allocations of which a slot is asked for."""
        self._arrivals = dict(self._initialised())
        """Line of the allocation of barriers -> the arrivals that complete a phase."""

    def _initialised(self) -> Iterator[tuple[int, str]]:
        for operation in self._module.walk():
            if operation.opcode == "init_barrier" and operation.operands:
                root, count = self._root(operation.operands[0]), operation.attribute("count")
                if root is not None:
                    yield root.first_line, str(count) if count is not None else "?"

    def read(self) -> WarpSpecialization:
        partitions = tuple(self._partitions())
        names = {
            operation.first_line: partition.name
            for partition, region in zip(partitions, self._specialize.regions, strict=True)
            for operation in _walk(region)
        }
        # By the line of the allocation; each use once, in the order of the text.
        uses: dict[int, dict[WarpRingUse, None]] = {}
        roots: dict[int, Operation] = {}
        kernel, is_traced = self._module.kernel, True
        for operation in kernel.walk() if kernel is not None else ():
            if operation.opcode == "call" and any(map(_holds_barriers, operation.operand_types)):
                is_traced = False
            if operation.opcode in _UNUSED or not _is_telling(operation):
                continue
            parts = [(root, one) for one in operation.operands if (root := self._root(one)) is not None]
            found = [root for root, _ in parts]
            buffers = [root for root in found if not self._is_barrier(root)]
            if len(buffers) == len(found) and any(map(_holds_barriers, operation.operand_types)):
                is_traced = False
            for root, part in parts:
                if operation.opcode in _OF_BARRIERS and root in buffers:
                    continue
                roots[root.first_line] = root
                action = self._action(operation, root)
                uses.setdefault(root.first_line, {})[self._use(operation, action, names, part)] = None
        rings = [self._ring(root, tuple(uses[line])) for line, root in sorted(roots.items())]
        barriers = tuple(ring for ring in rings if ring.line in self._arrivals)
        shared = (ring for ring in rings if ring.line not in self._arrivals)
        between = tuple(ring for ring in shared if len({one.partition for one in ring.uses} - {""}) > 1)
        return WarpSpecialization(self._specialize.first_line, partitions, between, barriers, is_traced)

    def _partitions(self) -> Iterator[WarpPartition]:
        asked = self._specialize.attribute("requestedRegisters") or self._specialize.attribute("actualRegisters")
        registers, first_warps = _numbers(asked), _numbers(self._specialize.attribute("warpGroupStartIds"))
        warps = self._specialize.partition_warps
        for number, region in enumerate(self._specialize.regions):
            block = region.blocks[0] if region.blocks else None
            counts = Counter(one.name for one in _walk(region) if _is_telling(one))
            first = block.operations[0].first_line if block is not None and block.operations else 0
            yield WarpPartition(
                f"partition{number - 1}" if number else _DEFAULT,
                (block.line if block is not None and block.line else first),
                warps[number] if number else self._default_warps,
                0 if not number else _item(first_warps, number - 1),
                _item(registers, number - 1) if number else None,
                tuple(counts.most_common()),
            )

    def _root(self, value: Value) -> Operation | None:
        return next((one for one in self._views(value) if one.opcode in _ALLOCATIONS), None)

    def _views(self, value: Value) -> Iterator[Operation]:
        """The operations that make a value a part of an allocation, and last the allocation."""
        for _ in range(_MOST_VIEWS):
            if value in self._entered:
                value = self._entered[value]
                continue
            operation = self._module.definition(value)
            if operation is None:
                return
            yield operation
            if not operation.opcode.startswith("memdesc_") or not operation.operands:
                return
            value = operation.operands[0]

    def _slot(self, part: Value) -> int | None:
        """What the view next to the allocation chooses; 0 where there is none to choose."""
        views = list(self._views(part))
        indexed = [one for one in views if one.opcode == "memdesc_index" and len(one.operands) > 1]
        if indexed:
            self._indexed.add(views[-1].first_line)
        return self._first.get(indexed[-1].operands[1]) if indexed else 0

    def _action(self, operation: Operation, root: Operation) -> Action:
        if self._is_barrier(root):
            waits: dict[str, Action] = {"wait_barrier": "waits", "barrier_expect": "expects"}
            return waits.get(operation.opcode, "arrives")
        return "writes" if any(self._root(value) is root for value in operation.written) else "reads"

    def _use(self, operation: Operation, action: Action, names: Mapping[int, str], part: Value) -> WarpRingUse:
        line, phase, first = operation.first_line, "", None
        if action == "waits" and len(operation.operands) > 1:
            phase, first = self._phase(operation.operands[1]), self._first.get(operation.operands[1])
        expected = operation.attribute("size") if action == "expects" else None
        return WarpRingUse(
            names.get(line, ""),
            action,
            operation.name,
            line,
            phase,
            first,
            expected if isinstance(expected, int) else None,
            self._slot(part),
            self._loops.get(line, ()),
        )

    def _phase(self, value: Value) -> str:
        first = value
        for _ in range(_MOST_VIEWS):
            operation = self._module.definition(value)
            if operation is None:
                break
            if (constant := operation.constant) is not None:
                return str(constant)
            if operation.name == "arith.xori":
                return "flips"
            if operation.name != "arith.select" or len(operation.operands) < 3:
                break
            # %phase = arith.select %wraps, %flipped, %old
            value = operation.operands[1]
        return first.name

    def _ring(self, root: Operation, uses: tuple[WarpRingUse, ...]) -> WarpRing:
        kind = next(iter(root.result_types), None)
        shape: tuple[int, ...] = kind.shape if kind is not None else ()
        value = root.results[0].name if root.results else ""
        # A ring of one slot may have no axis of slots: only who asks for a slot tells it from a dimension of the data.
        has_slots = root.first_line in self._indexed and bool(shape)
        slots = next(iter(shape), 1) if has_slots else 1
        what = "x".join([*map(str, shape[has_slots:]), str(kind.element)]) if kind is not None else ""
        return WarpRing(value, root.first_line, slots, self._arrivals.get(root.first_line, what), uses)

    def _is_barrier(self, allocation: Operation) -> bool:
        return allocation.first_line in self._arrivals


def _is_telling(operation: Operation) -> bool:
    opcode = operation.opcode
    return operation.is_of_triton and opcode not in _STRUCTURE and not opcode.startswith("memdesc_")


def _holds_barriers(kind: Type) -> bool:
    return kind.form == "memdesc" and kind.element is not None and kind.element.text == "i64"


def _walk(region: Region) -> Iterator[Operation]:
    for block in region.blocks:
        for operation in block.operations:
            yield from operation.walk()


def _begins(module: MlirModule) -> Iterator[tuple[Value, Value]]:
    """(the variable, its first value) of each loop that counts."""
    for operation in module.walk():
        blocks = [block for region in operation.regions[:1] for block in region.blocks[:1]]
        # scf.for %i = %lower to %upper step %step
        if operation.name == "scf.for" and operation.operands and blocks and blocks[0].arguments:
            yield blocks[0].arguments[0], operation.operands[0]


def _loops_around(region: Region) -> Iterator[tuple[int, tuple[int, ...]]]:
    """(line, lines of the loops around it, the outermost first) of each operation."""
    waiting: list[tuple[Operation, tuple[int, ...]]] = [
        (one, ()) for block in region.blocks for one in block.operations
    ]
    while waiting:
        operation, loops = waiting.pop()
        yield operation.first_line, loops
        inner = (*loops, operation.first_line) if operation.name in _LOOPS else loops
        waiting += [(one, inner) for one in operation.children]


def _numbers(value: AttributeValue | None) -> list[int]:
    return [item for item in value if isinstance(item, int)] if isinstance(value, tuple) else []


def _item(items: list[int], index: int) -> int | None:
    return items[index] if index < len(items) else None


Part = Literal["before", "begin", "loop", "end", "after"]
"""Before all partitions, then of a partition before its loop, in it and after it, and after all partitions."""
_PARTS: tuple[Part, ...] = ("before", "begin", "loop", "end", "after")
_Slot = tuple[int, int | None]
"""Line of a ring's allocation, and one of its slots."""


@dataclass(frozen=True, slots=True)
class WarpEvent:
    """One operation at barriers or buffers."""

    partition: str
    """Empty outside of them all."""
    line: int
    """Of the TTGIR, 1-based."""
    operation: str
    part: Part
    loops: tuple[int, ...]
    """Lines of the TTGIR where the loops around it begin, within its partition; the outermost first."""
    touched: tuple[tuple[int, WarpRingUse], ...]
    """(line of the allocation, use) for each ring."""

    @property
    def waits(self) -> WarpRingUse | None:
        """Its use of a barrier that it waits for; None if it does not wait."""
        return next((use for _, use in self.touched if use.action == "waits"), None)


@dataclass(frozen=True, slots=True)
class WarpChannel:
    """Buffers that some partitions share, with their barriers."""

    buffers: tuple[WarpRing, ...]
    barriers: tuple[WarpRing, ...]

    @property
    def rings(self) -> tuple[WarpRing, ...]:
        """All of them, the buffers first."""
        return (*self.buffers, *self.barriers)


def events_of(found: WarpSpecialization) -> tuple[WarpEvent, ...]:
    """The operations at a specialisation's barriers and buffers, in an order in which a first turn may run them."""
    lanes = {name: place for place, name in enumerate(["", *(one.name for one in found.partitions)])}
    events = tuple(_ordered_events(found))
    arrived: set[_Slot] = set()
    ordered: list[WarpEvent] = []
    for part in _PARTS:
        ordered += _runnable([(lanes[one.partition], one) for one in events if one.part == part], arrived)
    return tuple(ordered)


def _ordered_events(found: WarpSpecialization) -> Iterator[WarpEvent]:
    touched: dict[int, list[tuple[int, WarpRingUse]]] = {}
    for ring in (*found.buffers, *_used_barriers(found)):
        for use in ring.uses:
            touched.setdefault(use.line, []).append((ring.line, use))
    in_loops: dict[str, list[int]] = {}
    for line, uses in touched.items():
        if uses[0][1].loops:
            in_loops.setdefault(uses[0][1].partition, []).append(line)
    for line, uses in sorted(touched.items()):
        one = uses[0][1]
        yield WarpEvent(
            one.partition, line, one.operation, _part(one, found.line, in_loops.get(one.partition)), one.loops,
            tuple(uses),
        )  # fmt: skip


def _part(use: WarpRingUse, begin: int, in_loops: Sequence[int] | None) -> Part:
    if not use.partition:
        return "before" if use.line < begin else "after"
    if in_loops is None or min(in_loops) <= use.line <= max(in_loops):
        return "loop"
    return "begin" if use.line < min(in_loops) else "end"


def _runnable(events: Sequence[tuple[int, WarpEvent]], arrived: set[_Slot]) -> Iterator[WarpEvent]:
    """Of (lane, event) an order in which each lane runs on until it has to wait; what arrives is put into `arrived`."""
    waiting: dict[int, list[WarpEvent]] = {}
    for lane, event in events:
        waiting.setdefault(lane, []).append(event)
    lane = next(iter(waiting), 0)
    while waiting:
        ready = [one for one in waiting if not _is_held(waiting[one][0], arrived)]
        # Where each waits for another one, one of them goes on: what it waits for is not known to be in this turn.
        lane = lane if lane in ready else next(iter(ready or waiting))
        event = waiting[lane].pop(0)
        arrived.update((ring, use.slot) for ring, use in event.touched if use.action == "arrives")
        yield event
        if not waiting[lane]:
            del waiting[lane]


def _is_held(event: WarpEvent, arrived: set[_Slot]) -> bool:
    return any(
        use.action == "waits" and use.first_phase == 0 and (ring, use.slot) not in arrived
        for ring, use in event.touched
    )


def channels_of(found: WarpSpecialization) -> tuple[WarpChannel, ...]:
    """The buffers and barriers that the same partitions use, from the first partitions to the last."""
    users: dict[frozenset[str], list[WarpRing]] = {}
    for ring in (*found.buffers, *_used_barriers(found)):
        users.setdefault(frozenset(use.partition for use in ring.uses if use.partition), []).append(ring)
    channels = [
        WarpChannel(
            tuple(ring for ring in rings if ring in found.buffers),
            tuple(ring for ring in rings if ring in found.barriers),
        )
        for rings in users.values()
    ]
    names = [one.name for one in found.partitions]
    return tuple(sorted(channels, key=lambda one: _middle(one, names)))


def _used_barriers(found: WarpSpecialization) -> tuple[WarpRing, ...]:
    return tuple(ring for ring in found.barriers if any(use.partition for use in ring.uses))


def _middle(channel: WarpChannel, names: Sequence[str]) -> float:
    places = [names.index(use.partition) for ring in channel.rings for use in ring.uses if use.partition in names]
    return (min(places) + max(places)) / 2 if places else 0.0
