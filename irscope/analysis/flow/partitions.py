"""A warp-specialised kernel: its partitions with their warps, the buffers and the barriers between them.

Read from the TTGIR: each region of `ttg.warp_specialize` is the code of some warps. A ring of barriers or of buffers is
one allocation, whose slots are indexed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from irscope.analysis.flow.first_values import FirstValues, constant_of
from irscope.ir.mlir.model import MlirModule, Operation, Region, Value
from irscope.ir.mlir.reader import parse_mlir

__all__ = [
    "WRITES",
    "Partition",
    "WarpRing",
    "WarpRingUse",
    "WarpSpecialization",
    "most_specialised",
    "read_partitions",
]

_SPECIALIZE = "ttg.warp_specialize"
_DEFAULT = "default"
_ALLOCATIONS = ("ttg.local_alloc", "ttng.tmem_alloc")
_UNUSED = ("ttng.init_barrier", "ttng.inval_barrier", "ttg.local_dealloc", "ttng.tmem_dealloc", _SPECIALIZE)
# They name buffers only to keep their order.
_OF_BARRIERS = ("ttng.wait_barrier", "ttng.barrier_expect", "ttng.arrive_barrier")
WRITES: Mapping[str, tuple[int, ...]] = {
    "ttg.local_store": (0,),
    "ttg.async_copy_global_to_local": (0,),
    "ttng.async_tma_copy_global_to_local": (0,),
    "ttng.async_tma_gather": (0,),
    "ttng.tmem_store": (0,),
    "ttng.tmem_copy": (1,),
    "ttng.tc_gen5_mma": (2,),
    "ttng.tc_gen5_mma_scaled": (2,),
}
"""Which of an operation's buffers it writes: their places among its buffers."""
# !ttg.memdesc<3x128x64xf16, #shared, #smem, mutable>
_MEMDESC = re.compile(r"!ttg\.memdesc<(?P<shape>(?:\d{1,9}x){1,8})(?P<element>[^,>]{1,60})")
# !ttg.memdesc<3x1xi64, #shared, #smem, mutable>
_BARRIER = re.compile(r"!ttg\.memdesc<(?:\d{1,9}x){1,8}i64\b")
# partition0(%arg: i32) num_warps(4) {
_WARPS = re.compile(r"\bnum_warps\((?P<warps>\d{1,4})\)")
# "ttg.num-warps" = 4 : i32
_DEFAULT_WARPS = re.compile(r'"ttg\.num-warps" = (?P<warps>\d{1,4})\b')
# requestedRegisters = array<i32: 24, 24>      warpGroupStartIds = array<i32: 4, 8>
_ARRAY = r"\b{} = array<i32: (?P<items>[-\d, ]{{1,200}})>"
_REGISTERS = re.compile(_ARRAY.format("(?:requestedRegisters|actualRegisters)"))
_FIRST_WARPS = re.compile(_ARRAY.format("warpGroupStartIds"))
# ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
_ARRIVALS = re.compile(r", (?P<count>\d{1,9}) :")
# ttng.barrier_expect %full, 32768, %true : !ttg.memdesc<1xi64, #shared, #smem, mutable>
_EXPECTED = re.compile(r"barrier_expect %[\w#.]+, (?P<bytes>\d{1,18})\b")
_LOOPS = ("scf.for", "scf.while")
_MOST_STEPS = 64
"""Operations that a value is followed through."""
_MOST_READ = 16
"""Warp specialisations of a text."""

Action = Literal["waits", "expects", "arrives", "reads", "writes"]


@dataclass(frozen=True, slots=True)
class Partition:
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
        """The uses with an action."""
        return tuple(use for use in self.uses if use.action == action)


@dataclass(frozen=True, slots=True)
class WarpSpecialization:
    """One `ttg.warp_specialize`."""

    line: int
    partitions: tuple[Partition, ...]
    buffers: tuple[WarpRing, ...]
    """What one partition writes and another reads."""
    barriers: tuple[WarpRing, ...]
    is_traced: bool
    """Whether each use of a barrier was followed to its allocation: only then is what has no use known to have none."""


def read_partitions(text: str) -> tuple[WarpSpecialization, ...]:
    """The warp specialisations of a TTGIR; none of any other kernel. Never raises."""
    if _SPECIALIZE not in text:
        return ()
    module = parse_mlir(text)
    found = _DEFAULT_WARPS.search(text)
    warps = int(found["warps"]) if found is not None else None
    specialized = (one for one in module.walk() if one.name == _SPECIALIZE)
    return tuple(_Reader(module, one, warps).read() for one in islice(specialized, _MOST_READ))


def most_specialised(found: Sequence[WarpSpecialization]) -> WarpSpecialization | None:
    """That whose partitions hand over most to one another; None if there is none."""
    return max(found, key=lambda each: sum(len(ring.uses) for ring in (*each.buffers, *each.barriers)), default=None)


class _Reader:
    def __init__(self, module: MlirModule, specialize: Operation, warps: int | None) -> None:
        self._module, self._specialize, self._default_warps = module, specialize, warps
        self._outer = {
            argument.number: operand
            for region in specialize.regions
            for block in region.blocks[:1]
            if len(block.arguments) == len(specialize.operands)
            for argument, operand in zip(block.arguments, specialize.operands, strict=True)
        }
        self._carried = {argument.number: first for operation in module.walk() for argument, first in operation.carried}
        self._loops = {line: loops for region in specialize.regions for line, loops in _loops_around(region)}
        self._first = FirstValues(module, self._outer | self._carried | dict(_begins(module)))
        self._indexed = set[int]()
        """Lines of the allocations of which a slot is asked for."""
        self._arrivals = dict(self._initialised())
        """Line of the allocation of barriers -> the arrivals that complete a phase."""

    def _initialised(self) -> Iterator[tuple[int, str]]:
        for operation in self._module.walk():
            if operation.name == "ttng.init_barrier" and operation.operands:
                root, count = self._root(operation.operands[0]), _ARRIVALS.search(operation.text)
                if root is not None:
                    yield root.first_line, count["count"] if count is not None else "?"

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
            if operation.name == "tt.call" and _BARRIER.search(operation.types):
                is_traced = False
            if operation.name in _UNUSED or not _is_telling(operation.name):
                continue
            parts = [(root, one) for one in operation.operands if (root := self._root(one)) is not None]
            found = [root for root, _ in parts]
            buffers = [root for root in found if not self._is_barrier(root)]
            if len(buffers) == len(found) and _BARRIER.search(operation.types.partition("->")[0]):
                is_traced = False
            for root, part in parts:
                if operation.name in _OF_BARRIERS and root in buffers:
                    continue
                roots[root.first_line] = root
                action = self._action(operation, root, buffers)
                uses.setdefault(root.first_line, {})[self._use(operation, action, names, part)] = None
        rings = [self._ring(root, tuple(uses[line])) for line, root in sorted(roots.items())]
        barriers = tuple(ring for ring in rings if ring.line in self._arrivals)
        shared = (ring for ring in rings if ring.line not in self._arrivals)
        between = tuple(ring for ring in shared if len({one.partition for one in ring.uses} - {""}) > 1)
        return WarpSpecialization(self._specialize.first_line, partitions, between, barriers, is_traced)

    def _partitions(self) -> Iterator[Partition]:
        text = f"{self._specialize.text} {self._specialize.closing}"
        registers, first_warps = _items(_REGISTERS, text), _items(_FIRST_WARPS, text)
        for number, region in enumerate(self._specialize.regions):
            block = region.blocks[0] if region.blocks else None
            header = block.header if block is not None else ""
            own = _WARPS.search(header) if number else None
            counts = Counter(one.name for one in _walk(region) if _is_telling(one.name))
            first = block.operations[0].first_line if block is not None and block.operations else 0
            yield Partition(
                f"partition{number - 1}" if number else _DEFAULT,
                (block.line if block is not None and block.line else first),
                self._default_warps if not number else int(own["warps"]) if own is not None else None,
                0 if not number else _item(first_warps, number - 1),
                _item(registers, number - 1) if number else None,
                tuple(counts.most_common()),
            )

    def _root(self, value: Value) -> Operation | None:
        """The allocation that a value is a part of."""
        return next((one for one in self._views(value) if one.name in _ALLOCATIONS), None)

    def _views(self, value: Value) -> Iterator[Operation]:
        """What makes a value a part of an allocation, and last the allocation."""
        for _ in range(_MOST_STEPS):
            if (outer := self._outer.get(value.number) or self._carried.get(value.number)) is not None:
                value = outer
                continue
            operation = self._module.definition(value)
            if operation is None:
                return
            yield operation
            if not operation.name.startswith("ttg.memdesc_") or not operation.operands:
                return
            value = operation.operands[0]

    def _slot(self, part: Value) -> int | None:
        """What the view next to the allocation chooses; 0 where there is none to choose."""
        views = list(self._views(part))
        indexed = [one for one in views if one.name == "ttg.memdesc_index" and len(one.operands) > 1]
        if indexed:
            self._indexed.add(views[-1].first_line)
        return self._first.of(indexed[-1].operands[1]) if indexed else 0

    def _action(self, operation: Operation, root: Operation, buffers: list[Operation]) -> Action:
        if self._is_barrier(root):
            waits: dict[str, Action] = {"ttng.wait_barrier": "waits", "ttng.barrier_expect": "expects"}
            return waits.get(operation.name, "arrives")
        written = WRITES.get(operation.name, ())
        return "writes" if any(place < len(buffers) and buffers[place] is root for place in written) else "reads"

    def _use(self, operation: Operation, action: Action, names: Mapping[int, str], part: Value) -> WarpRingUse:
        line, phase, first = operation.first_line, "", None
        if action == "waits" and len(operation.operands) > 1:
            phase, first = self._phase(operation.operands[1]), self._first.of(operation.operands[1])
        expected = _EXPECTED.search(operation.text) if action == "expects" else None
        return WarpRingUse(
            names.get(line, ""),
            action,
            operation.name,
            line,
            phase,
            first,
            int(expected["bytes"]) if expected is not None else None,
            self._slot(part),
            self._loops.get(line, ()),
        )

    def _phase(self, value: Value) -> str:
        first = value
        for _ in range(_MOST_STEPS):
            operation = self._module.definition(value)
            if operation is None:
                break
            if (constant := constant_of(operation)) is not None:
                return str(constant)
            if operation.name == "arith.xori":
                return "flips"
            if operation.name != "arith.select" or len(operation.operands) < 3:
                break
            # %phase = arith.select %wraps, %flipped, %old
            value = operation.operands[1]
        return first.name

    def _ring(self, root: Operation, uses: tuple[WarpRingUse, ...]) -> WarpRing:
        match = _MEMDESC.search(root.types.rpartition("->")[2])
        shape = match["shape"].rstrip("x").split("x") if match is not None else []
        value = root.results[0].name if root.results else ""
        # A ring of one slot may have no axis of slots: only who asks for a slot tells it from a dimension of the data.
        has_slots = root.first_line in self._indexed and bool(shape)
        slots = int(shape[0]) if has_slots else 1
        what = "x".join([*shape[has_slots:], match["element"]]) if match is not None else ""
        return WarpRing(value, root.first_line, slots, self._arrivals.get(root.first_line, what), uses)

    def _is_barrier(self, allocation: Operation) -> bool:
        return allocation.first_line in self._arrivals


def _is_telling(name: str) -> bool:
    return name.startswith(("ttng.", "ttg.", "tt.")) and not name.startswith(("ttg.memdesc_", "ttg.warp_"))


def _walk(region: Region) -> Iterator[Operation]:
    for block in region.blocks:
        for operation in block.operations:
            yield from operation.walk()


def _begins(module: MlirModule) -> Iterator[tuple[int, Value]]:
    """(number of the variable, its first value) of each loop that counts."""
    for operation in module.walk():
        blocks = [block for region in operation.regions[:1] for block in region.blocks[:1]]
        # scf.for %i = %lower to %upper step %step
        if operation.name == "scf.for" and operation.operands and blocks and blocks[0].arguments:
            yield blocks[0].arguments[0].number, operation.operands[0]


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


def _items(pattern: re.Pattern[str], text: str) -> list[int]:
    match = pattern.search(text)
    return [int(item) for item in match["items"].split(",") if item.strip().lstrip("-").isdecimal()] if match else []


def _item(items: list[int], index: int) -> int | None:
    return items[index] if index < len(items) else None
