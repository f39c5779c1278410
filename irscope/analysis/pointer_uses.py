"""What a kernel does with each pointer it is given: read, written, or something that this cannot follow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from irscope.ir.mlir import Operation, Value, parse_mlir

# Of what these are given, the pointers and descriptors are read or written; nothing that points comes out of them.
_READS = frozenset(
    {
        "tt.load",
        "tt.descriptor_load",
        "tt.descriptor_gather",
        "tt.experimental_descriptor_load",
        "tt.experimental_descriptor_gather",
        "ttg.async_copy_global_to_local",
        "ttng.async_tma_copy_global_to_local",
        "ttng.async_tma_gather",
        "amdg.buffer_load",
        "amdg.buffer_load_to_local",
        "amdgpu.buffer_load",
        "amdgpu.buffer_load_to_local",
    }
)
_WRITES = frozenset(
    {
        "tt.store",
        "tt.descriptor_store",
        "tt.descriptor_scatter",
        "tt.experimental_descriptor_store",
        "tt.experimental_descriptor_scatter",
        "ttng.async_tma_copy_local_to_global",
        "ttng.async_tma_scatter",
        "amdg.buffer_store",
        "amdgpu.buffer_store",
    }
)
_BOTH = frozenset(
    {
        "tt.atomic_rmw",
        "tt.atomic_cas",
        "tt.descriptor_reduce",
        "ttng.async_tma_reduce",
        "amdg.buffer_atomic_rmw",
        "amdgpu.buffer_atomic_rmw",
    }
)
_LOOPS = ("scf.for", "scf.while")
_ENDS_OF_REGIONS = ("scf.yield", "scf.condition", "gluon.yield")
_POINTERS = ("!tt.ptr<", "!tt.tensordesc<", "!ttng.tensordesc")


@dataclass(frozen=True, slots=True)
class PointerUse:
    """What becomes of one pointer, or descriptor, among a kernel's parameters."""

    name: str
    """As the IR has it, without the sign."""
    read: bool
    written: bool


@dataclass(frozen=True, slots=True)
class PointerUses:
    """What a kernel does with memory."""

    parameters: tuple[PointerUse, ...] = ()
    """The kernel's pointers and descriptors, in its order."""
    elsewhere: bool = False
    """Whether it reads or writes by pointers that come from none of them, such as addresses held in memory."""


@dataclass(slots=True)
class _Flow:
    """Which parameters a value may point into."""

    sources: dict[tuple[int, int], frozenset[int]] = field(default_factory=dict[tuple[int, int], frozenset[int]])
    changed: bool = False

    def of(self, values: Iterable[Value]) -> frozenset[int]:
        """All that these values may point into."""
        empty: frozenset[int] = frozenset()
        return empty.union(*(self.sources.get((value.number, value.index), empty) for value in values))

    def add(self, value: Value, sources: frozenset[int]) -> None:
        """A value may point into these too."""
        key = (value.number, value.index)
        before = self.sources.get(key, frozenset[int]())
        if not sources <= before:
            self.sources[key] = before | sources
            self.changed = True


def read_pointer_uses(text: str) -> PointerUses:
    """What the kernel of a module of TTIR or TTGIR does with its pointers.

    A pointer that goes where this cannot follow (a call, inline assembly, an integer) counts as read and written.
    """
    function = parse_mlir(text).kernel
    if function is None or not function.regions[0].blocks:
        return PointerUses()
    types = _parameter_types(function.text)
    arguments = function.regions[0].blocks[0].arguments
    pointers = [argument for argument in arguments if types.get(argument.name.lstrip("%"), "").startswith(_POINTERS)]
    flow = _Flow()
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
        if operation.name in _READS | _WRITES | _BOTH:
            if operation.name not in _WRITES:
                read |= sources
            if operation.name not in _READS:
                written |= sources
            elsewhere = elsewhere or not sources
        elif sources and not _is_followed(operation):
            read |= sources
            written |= sources
    uses = tuple(
        PointerUse(argument.name.lstrip("%"), number in read, number in written)
        for number, argument in enumerate(pointers)
    )
    return PointerUses(uses, elsewhere)


def _parameter_types(head: str) -> dict[str, str]:
    # tt.func public @kernel(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32)
    rows: dict[str, str] = {}
    for part in head.partition("(")[2].split("%")[1:]:
        name, colon, rest = part.partition(": ")
        if colon:
            rows[name] = rest
    return rows


def _carry(flow: _Flow, operation: Operation) -> None:
    """Hand on what the operands point into, to results, to blocks, and to the next turn of a loop."""
    if operation.name in _LOOPS or operation.name == "scf.if":
        _carry_through_regions(flow, operation)
        return
    if operation.name in _READS | _WRITES | _BOTH or not operation.results:
        return
    if _makes_pointer(operation):
        sources = flow.of(operation.operands)
        for result in operation.results:
            flow.add(result, sources)


def _carry_through_regions(flow: _Flow, operation: Operation) -> None:
    for argument, first in operation.carried:
        flow.add(argument, flow.of((first,)))
    for region in operation.regions:
        for block in region.blocks:
            for end in block.operations:
                if end.name not in _ENDS_OF_REGIONS:
                    continue
                # The condition of a while loop comes first in the operation that ends its first region.
                handed = end.operands[1:] if end.name == "scf.condition" else end.operands
                for index, value in enumerate(handed):
                    sources = flow.of((value,))
                    if index < len(operation.results):
                        flow.add(operation.results[index], sources)
                    if operation.name == "scf.for" and index < len(operation.carried):
                        flow.add(operation.carried[index][0], sources)
                    elif operation.name == "scf.while":
                        for other in operation.regions:
                            for first_block in other.blocks[:1]:
                                if index < len(first_block.arguments):
                                    flow.add(first_block.arguments[index], sources)
    if operation.name == "scf.for":
        for result, (_, first) in zip(operation.results, operation.carried, strict=False):
            flow.add(result, flow.of((first,)))


def _makes_pointer(operation: Operation) -> bool:
    types = operation.types
    made = types.rpartition("->")[2] if "->" in types else types
    return "tt.ptr<" in made or "tensordesc" in made or operation.name in _MAKES_DESCRIPTOR


_MAKES_DESCRIPTOR = (
    "tt.make_tensor_descriptor",
    "tt.make_tensor_ptr",
    "tt.advance",
    "ttng.reinterpret_tensor_descriptor",
)


def _is_followed(operation: Operation) -> bool:
    """Whether nothing becomes of a pointer here but another pointer, that is followed."""
    if operation.name in (*_LOOPS, "scf.if", *_ENDS_OF_REGIONS):
        return True
    if operation.name in _NO_USE:
        return True
    opaque = ("call", "asm", "extern", "cf.")
    return bool(operation.results) and _makes_pointer(operation) and not any(word in operation.name for word in opaque)


_NO_USE = ("tt.return", "ttng.tensormap_fenceproxy_acquire", "tt.descriptor_prefetch", "ttng.async_tma_prefetch")
