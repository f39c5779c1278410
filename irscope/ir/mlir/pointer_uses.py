"""Whether a kernel reads or writes through each pointer parameter, by following the values of its IR."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from irscope.ir.mlir.reader import Operation, Value, parse_mlir

# Operations that access memory through pointers or descriptors; their results never point. Older dialects call some
# `tt.experimental_descriptor_load` or `amdgpu.buffer_load`, which `_accesses` allows for.
_BOTH = frozenset(
    {"tt.atomic_rmw", "tt.atomic_cas", "tt.descriptor_reduce", "ttng.async_tma_reduce", "amdg.buffer_atomic_rmw"}
)
_READS = _BOTH.union((
    "tt.load", "tt.descriptor_load", "tt.descriptor_gather", "ttg.async_copy_global_to_local",
    "ttng.async_tma_copy_global_to_local", "ttng.async_tma_gather", "amdg.buffer_load", "amdg.buffer_load_to_local",
))  # fmt: skip
_WRITES = _BOTH.union((
    "tt.store", "tt.descriptor_store", "tt.descriptor_scatter", "ttng.async_tma_copy_local_to_global",
    "ttng.async_tma_scatter", "amdg.buffer_store",
))  # fmt: skip
_LOOPS = ("scf.for", "scf.while")
_BRANCHES = ("cf.br", "cf.cond_br", "cf.switch")
_ENDS_OF_REGIONS = ("scf.yield", "scf.condition", "gluon.yield")
_MAKES_DESCRIPTOR = (
    "tt.make_tensor_descriptor", "tt.make_tensor_ptr", "tt.advance", "ttng.reinterpret_tensor_descriptor",
)  # fmt: skip
_NO_USE = (
    "tt.return", "tt.descriptor_prefetch", "ttng.async_tma_prefetch", "ttng.prefetch_tensormap",
    "ttng.tensormap_fenceproxy_acquire",
)  # fmt: skip
_FOLLOWED = (*_LOOPS, "scf.if", *_ENDS_OF_REGIONS, *_BRANCHES, *_NO_USE)
_POINTERS = ("!tt.ptr<", "!tt.tensordesc<", "!ttng.tensordesc")


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
    pointers = [argument for argument, kind, _ in function.parameters if kind.startswith(_POINTERS)]
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
        sources = flow.of(operation.operands)
        reads, writes = _accesses(operation)
        if reads or writes:
            read |= sources if reads else frozenset[int]()
            written |= sources if writes else frozenset[int]()
            elsewhere = elsewhere or not sources
        elif sources and not _is_followed(operation):
            read |= sources
            written |= sources
    uses = tuple(
        PointerUse(argument.name.lstrip("%"), number in read, number in written)
        for number, argument in enumerate(pointers)
    )
    return PointerUses(uses, elsewhere)


def _accesses(operation: Operation) -> tuple[bool, bool]:
    """Whether an operation reads, and whether it writes, through its operands."""
    name = operation.name.replace("experimental_", "").replace("amdgpu.", "amdg.")
    return name in _READS, name in _WRITES


def _carry(flow: _Flow, operation: Operation) -> None:
    """Propagate the operands' parameters to results, block arguments and the next iteration of a loop."""
    if operation.name in _LOOPS or operation.name == "scf.if":
        _carry_through_regions(flow, operation)
        return
    if operation.name in _BRANCHES:
        for argument in (one for label in operation.successors for one in flow.targets.get(label, ())):
            flow.add(argument, flow.of(operation.operands))
    if operation.results and not any(_accesses(operation)) and _makes_pointer(operation):
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
        if end.name in _ENDS_OF_REGIONS:
            # The condition of a while loop comes first in the operation that ends its first region.
            handed = end.operands[1:] if end.name == "scf.condition" else end.operands
            for receivers in (operation.results, *again):
                for receiver, value in zip(receivers, handed, strict=False):
                    flow.add(receiver, flow.of((value,)))
    if operation.name == "scf.for":
        for result, (_, first) in zip(operation.results, operation.carried, strict=False):
            flow.add(result, flow.of((first,)))


def _makes_pointer(operation: Operation) -> bool:
    types = operation.types
    made = types.rpartition("->")[2] if "->" in types else types
    return "tt.ptr<" in made or "tensordesc" in made or operation.name in _MAKES_DESCRIPTOR


def _is_followed(operation: Operation) -> bool:
    """Whether an operation turns pointers only into other pointers, which are followed."""
    if operation.name in _FOLLOWED:
        return True
    opaque = ("call", "asm", "extern", "cf.")
    return bool(operation.results) and _makes_pointer(operation) and not any(word in operation.name for word in opaque)
