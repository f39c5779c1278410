"""Whether a kernel reads or writes through each pointer parameter, by following the values of its IR."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from irscope.ir.mlir.reader import Operation, Value, parse_mlir
from irscope.ir.mlir.typed import Type
from irscope.ir.tables.operations import Effect

_LOOPS = ("scf.for", "scf.while")
_NO_USE = ("return", "descriptor_prefetch", "async_tma_prefetch", "prefetch_tensormap", "tensormap_fenceproxy_acquire")
_FOLLOWED = ("loop", "conditional", "yield", "branch")
_OPAQUE = ("call", "assembly")
_CALLS = ("extern_elementwise", "map_elementwise")
"""What they do with a pointer stands elsewhere."""


@dataclass(frozen=True, slots=True)
class PointerUse:
    """The accesses through one pointer or descriptor parameter of a kernel."""

    name: str
    """The name in the IR, without the sign."""
    read: bool
    written: bool


@dataclass(frozen=True, slots=True)
class PointerUses:
    """The memory accesses of a kernel."""

    parameters: tuple[PointerUse, ...] = ()
    """Its pointers and descriptors, in the order of its parameters."""
    elsewhere: bool = False
    """Whether it accesses memory through pointers from elsewhere, such as addresses read from memory."""


@dataclass(slots=True)
class _Flow:
    """The parameters whose memory each value may point into."""

    targets: dict[str, tuple[Value, ...]]
    """Label of a block of the function → its arguments."""
    sources: dict[tuple[int, int], frozenset[int]] = field(default_factory=dict[tuple[int, int], frozenset[int]])
    changed: bool = False

    def of(self, values: Iterable[Value]) -> frozenset[int]:
        """The parameters that any of these values may point into."""
        empty: frozenset[int] = frozenset()
        return empty.union(*(self.sources.get((value.number, value.index), empty) for value in values))

    def add(self, value: Value, sources: frozenset[int]) -> None:
        """Add parameters that a value may point into."""
        key = (value.number, value.index)
        before = self.sources.get(key, frozenset[int]())
        if not sources <= before:
            self.sources[key] = before | sources
            self.changed = True


def read_pointer_uses(text: str) -> PointerUses:
    """The accesses of the kernel of a TTIR or TTGIR module through its pointers.

    A pointer that cannot be followed (into a call, inline assembly, an integer) counts as read and written.
    """
    function = parse_mlir(text).kernel
    if function is None or not function.regions[0].blocks:
        return PointerUses()
    module = parse_mlir(text)
    pointers = [one for one in function.regions[0].blocks[0].arguments if _points(module.type_of(one))]
    flow = _Flow({block.label: block.arguments for block in function.regions[0].blocks})
    for number, argument in enumerate(pointers):
        flow.add(argument, frozenset({number}))
    operations = list(function.walk())[1:]
    flow.changed = True
    while flow.changed:
        flow.changed = False
        for operation in operations:
            _carry(flow, operation)
    read: set[int] = set()
    written: set[int] = set()
    elsewhere = False
    for operation in operations:
        accesses = _accesses(operation)
        others: tuple[Value, ...] = tuple(operation.operands)
        for effect in accesses:
            accessed = operation.operand_group(effect.operand)
            sources = flow.of(accessed)
            (read if effect.kind == "reads" else written).update(sources)
            elsewhere = elsewhere or not sources
            others = tuple(operand for operand in others if operand not in accessed)
        sources = flow.of(others)
        if sources and (accesses or not _is_followed(operation)):
            # A pointer that is stored may be read again.
            read |= sources
            written |= sources
    uses = tuple(
        PointerUse(argument.name.lstrip("%"), number in read, number in written)
        for number, argument in enumerate(pointers)
    )
    return PointerUses(uses, elsewhere)


def _accesses(operation: Operation) -> list[Effect]:
    """The accesses to global memory through the operands."""
    if operation.kind in ("descriptor", "allocation"):
        return []
    return [one for one in operation.effects if one.space == "global" and one.kind in ("reads", "writes")]


def _carry(flow: _Flow, operation: Operation) -> None:
    """Propagate the operands' parameters to results, block arguments and the next iteration of a loop."""
    if operation.name in _LOOPS or operation.name == "scf.if":
        _carry_through_regions(flow, operation)
        return
    for label, values in operation.branches:
        for argument, value in zip(flow.targets.get(label, ()), values, strict=False):
            flow.add(argument, flow.of((value,)))
    if operation.results and not _accesses(operation) and any(map(_points, operation.result_types)):
        sources = flow.of(operation.operands)
        for result in operation.results:
            flow.add(result, sources)


def _carry_through_regions(flow: _Flow, operation: Operation) -> None:
    for argument, first in operation.carried:
        flow.add(argument, flow.of((first,)))
    # What the next iteration begins with: the arguments of scf.for, those of either region of scf.while.
    again = [[argument for argument, _ in operation.carried]] if operation.name == "scf.for" else []
    if operation.name == "scf.while":
        again = [list(block.arguments) for region in operation.regions for block in region.blocks[:1]]
    for end in operation.children:
        if end.kind == "yield":
            # The condition of a while loop comes first in the operation that ends its first region.
            handed = end.operands[1:] if end.name == "scf.condition" else end.operands
            for receivers in (operation.results, *again):
                for receiver, value in zip(receivers, handed, strict=False):
                    flow.add(receiver, flow.of((value,)))
    if operation.name == "scf.for":
        for result, (_, first) in zip(operation.results, operation.carried, strict=False):
            flow.add(result, flow.of((first,)))


def _points(kind: Type) -> bool:
    """Whether a type is, or holds, pointers to global memory, or is a tensor descriptor."""
    element = kind if kind.form in ("pointer", "descriptor") else kind.element
    return element is not None and element.form in ("pointer", "descriptor")


def _is_followed(operation: Operation) -> bool:
    """Whether an operation turns pointers only into other pointers, which are followed."""
    if operation.kind in _FOLLOWED or operation.opcode in _NO_USE:
        return True
    is_known = operation.info is not None and operation.kind not in _OPAQUE and operation.opcode not in _CALLS
    return is_known and any(map(_points, operation.result_types))
