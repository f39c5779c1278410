"""The values that decide what a kernel accesses: addresses, masks, and the conditions of its control flow.

The conditions of its assertions are followed alike.

All other values, such as the elements of a product, need not be computed to know each access of a launch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from irscope.ir.mlir.model import MlirModule, Operation, Value
from irscope.ir.mlir.passing import Passing

_DATA = {
    "store": ("value", "src"),
    "atomic": ("value", "val", "src"),
    "load": ("other",),
    "copy": ("other",),
    "allocation": ("src",),
}
"""Kind of an operation → the operands that it stores, or puts in place of what a mask leaves out."""
_SKIPPED = {"arithmetic", "view", "conversion", "reduction", "scan", "gather", "dot", "debug", "pointer", "constant"}
"""Kinds of operations that change no memory: they are executed only where something needs their results."""
_COMBINING = {"reduction", "scan", "gather", "arithmetic", "view"}
"""Kinds of operations whose regions compute on elements: these run whole or not at all."""


@dataclass(frozen=True, slots=True)
class AddressSlice:
    """What must be executed to know each access to global memory."""

    skipped: frozenset[int]
    """`id` of each operation whose results decide no access."""
    loads: tuple[Operation, ...]
    """Operations that read global memory, and whose results decide accesses."""
    reads_shared: bool
    """Whether values in shared or tensor memory decide accesses; nothing is skipped then."""
    assumed: frozenset[int] = frozenset()
    """`id` of each operation that is taken to be true, since only masks and conditions depend on it."""
    possible: frozenset[int] = frozenset()
    """`id` of each operation that such a mask may leave out, in part or as a whole."""


def address_slice(
    module: MlirModule, only: Collection[Operation] = (), *, assumes: bool = False,
    writers: Callable[[Collection[Operation]], Collection[Operation]] | None = None,
) -> AddressSlice:  # fmt: skip
    """The operations of a module that decide its accesses, by following the values backwards.

    `only`: these accesses, where not all are asked for; what decides whether they are executed is followed too.
    `assumes`: what masks and conditions take from memory counts as true, which gives all accesses that may be made.
    `writers`: gets loads, and returns the operations that may write what they read; what these write is followed too.
    """
    slicer = _Slicer(module)
    operations = [one for one in module.walk() if not only or one in only or not _touches(one, "global")]
    if assumes:
        slicer.assume(operations)
    slicer.follow(operations)
    count = -1
    while writers is not None and count < len(slicer.loads):
        count = len(slicer.loads)
        slicer.follow([], [value for writer in writers(slicer.loads) for value in writer.operands])
    loads = tuple(slicer.loads)
    assumed, possible = frozenset(slicer.assumed), frozenset(slicer.possible)
    if slicer.reads_shared:
        return AddressSlice(frozenset(), loads, True, assumed, possible)
    skipped = [operation for operation in module.walk() if slicer.may_skip(operation)]
    return AddressSlice(frozenset(map(id, skipped)), loads, False, assumed, possible)


def loads_behind(module: MlirModule, stores: Collection[Operation]) -> AddressSlice:
    """What must be executed to know what stores write."""
    slicer = _Slicer(module)
    slicer.follow([], [value for store in stores for value in store.operands])
    return AddressSlice(frozenset(), tuple(slicer.loads), slicer.reads_shared)


def _touches(operation: Operation, *spaces: str) -> bool:
    return any(effect.space in spaces for effect in operation.effects)


def _asserts(operation: Operation) -> bool:
    return operation.kind == "debug" and operation.opcode.endswith("assert")


def sources_of(module: MlirModule) -> Callable[[Value], Iterator[Value]]:
    """What tells the values that a value is computed from, through loops, branches and calls."""
    return _Slicer(module).sources


class _Slicer:
    def __init__(self, module: MlirModule) -> None:
        self.module = module
        self.needed: set[Value] = set()
        self.loads: list[Operation] = []
        self.reads_shared = False
        self.assumed: set[int] = set()
        self.possible: set[int] = set()
        self._waiting: list[Value] = []
        self._inner = {
            id(inner)
            for operation in module.walk()
            if operation.regions and operation.kind in _COMBINING
            for inner in operation.walk()
            if inner is not operation
        }
        self._passing = Passing(module)

    def may_skip(self, operation: Operation) -> bool:
        """Whether no access depends on an operation, and it changes nothing itself."""
        if id(operation) in self._inner or not self.needed.isdisjoint(operation.results) or _asserts(operation):
            return False
        return self._is_computation(operation)

    def follow(self, operations: Collection[Operation], values: Collection[Value] = ()) -> None:
        """Collect all values that operations cannot be executed without, and what other values come from."""
        self._need(iter(values))
        for operation in operations:
            self._need(self._roots(operation))
        self._trace_all()

    def _trace_all(self) -> None:
        while self._waiting:
            self._need(self.sources(self._waiting.pop()))

    def assume(self, operations: Collection[Operation]) -> None:
        """Choose what is taken to be true: parts of masks that come from memory, and of conditions without an else."""
        masks = {operation: self._masks(operation) for operation in operations}
        while True:
            # Without all masks: what needs none of them.
            bare = _Slicer(self.module)
            for operation, left in masks.items():
                bare._need(value for value in bare._roots(operation) if value not in left)
            bare._trace_all()
            # What decides addresses has to be right.
            needed = [one for one, left in masks.items() if left and not bare.needed.isdisjoint(one.results)]
            if not needed:
                break
            masks.update(dict.fromkeys(needed, ()))
        for operation, left in masks.items():
            parts = {id(owner) for value in left for owner in self._parts(value, bare.needed)}
            if parts:
                self.assumed |= parts
                self.possible |= {id(operation), *(id(inner) for inner in operation.walk())}

    @staticmethod
    def _masks(operation: Operation) -> tuple[Value, ...]:
        """Operands of which more that are true only give more accesses."""
        if _touches(operation, "global"):
            return tuple(operation.operand_group("mask"))
        others = [block for region in operation.regions[1:] for block in region.blocks if len(block.operations) > 1]
        return operation.operands[:1] if operation.name == "scf.if" and not operation.results and not others else ()

    def _parts(self, value: Value, needed: Collection[Value]) -> Iterator[Operation]:
        """The operations of a mask that come from memory, and all of which must be true for it to be."""
        owner = self.module.owners.get(value.number)
        if value in needed or not isinstance(owner, Operation):
            return
        if owner.name in ("arith.andi", "arith.ori") or owner.kind in ("view", "conversion"):
            for part in owner.operands:
                yield from self._parts(part, needed)
            return
        behind = _Slicer(self.module)
        behind.follow([], [value])
        if (behind.loads or behind.reads_shared) and owner.kind in _SKIPPED and len(owner.results) == 1:
            yield owner

    def _need(self, values: Iterator[Value]) -> None:
        for value in values:
            if value not in self.needed:
                self.needed.add(value)
                # A token orders operations: no address depends on it.
                if self.module.type_of(value).form != "token":
                    self._waiting.append(value)

    def _roots(self, operation: Operation) -> Iterator[Value]:
        """The operands that an operation cannot be executed without."""
        kind = operation.kind
        if kind in ("function", "module", "return", "yield", "call", "debug"):
            if operation.name == "scf.condition" or _asserts(operation):
                yield from operation.operands[:1]
            return
        if kind == "loop":
            yield from operation.operands[: 3 if operation.name == "scf.for" else 0]
        elif kind == "branch":
            passed = {value for _, values in operation.branches for value in values}
            yield from (value for value in operation.operands if value not in passed)
        elif _touches(operation, "global"):
            data = {value for name in _DATA.get(kind or "", ()) for value in operation.operand_group(name)}
            pointer = {value for effect in operation.effects for value in operation.operand_group(effect.operand)}
            yield from (value for value in operation.operands if value not in data or value in pointer)
        elif not self._is_computation(operation):
            # The elements of a tensor are no address of shared memory, and no condition.
            yield from (one for one in operation.operands if self.module.type_of(one).form != "tensor")

    @staticmethod
    def _is_computation(operation: Operation) -> bool:
        """Whether an operation changes neither memory that is followed nor what runs."""
        if operation.kind in _SKIPPED:
            return all(effect.kind != "writes" for effect in operation.effects)
        # Elements of shared memory: where an access needs them, nothing is skipped.
        return operation.kind in ("load", "store") and not _touches(operation, "global")

    def sources(self, value: Value) -> Iterator[Value]:
        """What a value is computed from."""
        owner = self.module.owners.get(value.number)
        if isinstance(owner, Operation):
            if id(owner) in self.assumed:
                return
            yield from self._sources(owner, value.index if len(owner.results) > 1 else 0, value)
        elif owner is not None:
            yield from self._passing.to_argument(owner, owner.arguments.index(value))

    def _sources(self, operation: Operation, place: int, value: Value) -> Iterator[Value]:
        if operation.results and value in operation.results:
            place = operation.results.index(value)
        kind = operation.kind
        if kind in ("load", "atomic", "copy") and _touches(operation, "global"):
            if operation not in self.loads:
                self.loads.append(operation)
            yield from operation.operands
        elif kind in ("load", "atomic") and _touches(operation, "shared", "tensor"):
            self.reads_shared = True
        elif kind in ("call", "conditional", "loop"):
            yield from self._passing.to_result(operation, place)
        elif kind == "allocation":
            # Which memory it is does not depend on what is put into it.
            yield from (one for one in operation.operands if self.module.type_of(one).form != "tensor")
        else:
            yield from operation.operands
            for inner in operation.walk():
                if inner is not operation:
                    yield from inner.operands
