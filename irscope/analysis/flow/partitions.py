"""A warp-specialised kernel: its partitions with their warps, the buffers and the barriers between them.

Read from the TTGIR: each region of `ttg.warp_specialize` is the code of some warps. A ring of barriers or of buffers is
one allocation, whose slots are indexed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from irscope.ir.mlir.model import MlirModule, Operation, Region, Value
from irscope.ir.mlir.reader import parse_mlir

__all__ = ["Partition", "WarpRing", "WarpRingUse", "WarpSpecialization", "read_partitions"]

_SPECIALIZE = "ttg.warp_specialize"
_DEFAULT = "default"
_ALLOCATIONS = ("ttg.local_alloc", "ttng.tmem_alloc")
_UNUSED = ("ttng.init_barrier", "ttng.inval_barrier", "ttg.local_dealloc", "ttng.tmem_dealloc", _SPECIALIZE)
# They name buffers only to keep their order.
_OF_BARRIERS = ("ttng.wait_barrier", "ttng.barrier_expect", "ttng.arrive_barrier")
# Which of an operation's buffers it writes: their places among its buffers.
_WRITES: Mapping[str, tuple[int, ...]] = {
    "ttg.local_store": (0,),
    "ttg.async_copy_global_to_local": (0,),
    "ttng.async_tma_copy_global_to_local": (0,),
    "ttng.async_tma_gather": (0,),
    "ttng.tmem_store": (0,),
    "ttng.tmem_copy": (1,),
    "ttng.tc_gen5_mma": (2,),
    "ttng.tc_gen5_mma_scaled": (2,),
}
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
# %c1_i32 = arith.constant 1 : i32
_CONSTANT = re.compile(r"= arith\.constant (?P<value>-?\d{1,19}|true|false)\b")
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
            found = [root for one in operation.operands if (root := self._root(one)) is not None]
            buffers = [root for root in found if not self._is_barrier(root)]
            if len(buffers) == len(found) and _BARRIER.search(operation.types.partition("->")[0]):
                is_traced = False
            for root in found:
                if operation.name in _OF_BARRIERS and root in buffers:
                    continue
                roots[root.first_line] = root
                action = self._action(operation, root, buffers)
                phase = self._phase(operation) if action == "waits" else ""
                use = WarpRingUse(
                    names.get(operation.first_line, ""), action, operation.name, operation.first_line, phase
                )
                uses.setdefault(root.first_line, {})[use] = None
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
        for _ in range(_MOST_STEPS):
            if (outer := self._outer.get(value.number) or self._carried.get(value.number)) is not None:
                value = outer
                continue
            operation = self._module.definition(value)
            if operation is None or operation.name in _ALLOCATIONS:
                return operation
            if not operation.name.startswith("ttg.memdesc_") or not operation.operands:
                return None
            value = operation.operands[0]
        return None

    def _action(self, operation: Operation, root: Operation, buffers: list[Operation]) -> Action:
        if self._is_barrier(root):
            waits: dict[str, Action] = {"ttng.wait_barrier": "waits", "ttng.barrier_expect": "expects"}
            return waits.get(operation.name, "arrives")
        written = _WRITES.get(operation.name, ())
        return "writes" if any(place < len(buffers) and buffers[place] is root for place in written) else "reads"

    def _phase(self, wait: Operation) -> str:
        if len(wait.operands) < 2:
            return ""
        value = first = wait.operands[1]
        for _ in range(_MOST_STEPS):
            operation = self._module.definition(value)
            if operation is None:
                break
            if (match := _CONSTANT.search(operation.text)) is not None:
                return match["value"]
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
        # A ring of one slot may have no axis of slots.
        slots = int(shape[0]) if len(shape) > (1 if self._is_barrier(root) else 2) else 1
        what = "x".join([*shape[1 if len(shape) > 2 else 0 :], match["element"]]) if match is not None else ""
        return WarpRing(value, root.first_line, slots, self._arrivals.get(root.first_line, what), uses)

    def _is_barrier(self, allocation: Operation) -> bool:
        return allocation.first_line in self._arrivals


def _is_telling(name: str) -> bool:
    return name.startswith(("ttng.", "ttg.", "tt.")) and not name.startswith(("ttg.memdesc_", "ttg.warp_"))


def _walk(region: Region) -> Iterator[Operation]:
    for block in region.blocks:
        for operation in block.operations:
            yield from operation.walk()


def _items(pattern: re.Pattern[str], text: str) -> list[int]:
    match = pattern.search(text)
    return [int(item) for item in match["items"].split(",") if item.strip().lstrip("-").isdecimal()] if match else []


def _item(items: list[int], index: int) -> int | None:
    return items[index] if index < len(items) else None
