"""Facts from the uses of a kernel's values: their layouts, accesses through pointers, the precision of results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from irscope.ir.locations.model import Place, TextLocations, place_of
from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.operations import Effect
from irscope.ir.mlir.passing import Passing
from irscope.ir.mlir.reader import MlirModule, Operation, Value, parse_mlir
from irscope.ir.mlir.types import Type
from irscope.ir.reach import reached

# ── The operations of a TTGIR module that have layouts ────────────────────────────────────────────────────────


@dataclass(frozen=True)
class ModuleUses:
    """The operations of a module whose text names a type with a layout, and where they come from."""

    module: MlirModule
    operations: tuple[Operation, ...] = ()
    locations: TextLocations = field(default_factory=TextLocations)

    def place_at(self, line: int) -> Place:
        """The lines of the user's code that a line of the module comes from, innermost first."""
        kernel = self.module.kernel
        own = self.locations.chain_at(kernel.first_line) if kernel is not None else ()
        return place_of(self.locations.chain_at(line), own[0].file if own else "")


@lru_cache(maxsize=4)
def read_uses(text: str) -> ModuleUses:
    """Read a module; never raises: anything unreadable is skipped."""
    module = parse_mlir(text)
    operations = tuple([one for one in module.walk() if one.layout_types])
    return ModuleUses(module, operations, read_locations(text, "mlir"))


# ── Whether a kernel reads or writes through each pointer parameter, by following the values of its IR ──────────────

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
    parameters: tuple[PointerUse, ...] = ()
    """Its pointers and descriptors, in the order of its parameters."""
    elsewhere: bool = False
    """Whether it accesses memory through pointers from elsewhere, such as addresses read from memory."""


def read_pointer_uses(text: str) -> PointerUses:
    """The accesses of the kernel of a TTIR or TTGIR module through its pointers.

    A pointer that cannot be followed (into a call, inline assembly, an integer) counts as read and written.
    """
    module = parse_mlir(text)
    function = module.kernel
    if function is None or not function.regions[0].blocks:
        return PointerUses()
    pointers = [one for one in function.regions[0].blocks[0].arguments if points(module.type_of(one))]
    passing = Passing(module)

    def before(value: Value) -> list[Value]:
        return [one for one in _sources(module, passing, value) if points(module.type_of(one))]

    read: set[Value] = set()
    written: set[Value] = set()
    elsewhere = False
    for operation in list(function.walk())[1:]:
        accesses = _accesses(operation)
        others = [one for one in operation.operands if points(module.type_of(one))]
        for effect in accesses:
            accessed = operation.operand_group(effect.operand)
            sources = set(reached(accessed, before)).intersection(pointers)
            (read if effect.kind == "reads" else written).update(sources)
            elsewhere = elsewhere or not sources
            others = [operand for operand in others if operand not in accessed]
        if accesses or not _is_followed(operation):
            # A pointer that is stored may be read again.
            sources = set(reached(others, before))
            read |= sources
            written |= sources
    uses = tuple(PointerUse(one.name.lstrip("%"), one in read, one in written) for one in pointers)
    return PointerUses(uses, elsewhere)


def _sources(module: MlirModule, passing: Passing, value: Value) -> Iterable[Value]:
    owner = module.owners.get(value.number)
    if not isinstance(owner, Operation):
        return passing.to_argument(owner, owner.arguments.index(value)) if owner is not None else ()
    if owner.kind in ("loop", "conditional"):
        return passing.to_result(owner, owner.results.index(value))
    return () if _accesses(owner) else owner.operands


def _accesses(operation: Operation) -> list[Effect]:
    if operation.kind in ("descriptor", "allocation"):
        return []
    return [one for one in operation.effects if one.space == "global" and one.kind in ("reads", "writes")]


def points(kind: Type) -> bool:
    """Whether values of a type are pointers or descriptors, or tensors of such."""
    element = kind if kind.form in ("pointer", "descriptor") else kind.element
    return element is not None and element.form in ("pointer", "descriptor")


def _is_followed(operation: Operation) -> bool:
    """Whether an operation turns pointers only into other pointers, which are followed."""
    if operation.kind in _FOLLOWED or operation.opcode in _NO_USE:
        return True
    is_known = operation.info is not None and operation.kind not in _OPAQUE and operation.opcode not in _CALLS
    return is_known and any(map(points, operation.result_types))


# ── What the IR of a kernel says of its precision: whether inputs are read as TF32, and whether it rounds between ───

_MOVES = frozenset({
    "tt.expand_dims", "tt.broadcast", "tt.reshape", "tt.trans", "tt.splat", "tt.join", "tt.split", "tt.cat",
    "ttg.convert_layout", "ttg.local_alloc", "ttg.local_load", "ttg.memdesc_trans", "arith.extf",
})  # fmt: skip
"""What hands values on without rounding them."""
_LOADS = ("tt.load", "tt.descriptor_load", "ttng.async_tma_copy_global_to_local")
_STORES = ("tt.store", "tt.descriptor_store")
_DOTS = ("tt.dot", "ttng.warp_group_dot")
_SMOOTH = frozenset({
    "arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.negf", "arith.maximumf", "arith.minimumf",
    "arith.maxnumf", "arith.minnumf", "arith.sitofp", "arith.uitofp", "math.exp", "math.exp2", "math.log", "math.log2",
    "math.sqrt", "math.rsqrt", "math.sin", "math.cos", "math.erf", "math.tanh", "math.absf", "math.fma",
    "tt.precise_sqrt", "tt.precise_divf", "tt.approx_divf", "tt.clampf",
})  # fmt: skip
"""Functions of floats whose result moves little where their operands do."""
_OTHER = frozenset({
    "builtin.module", "module", "tt.func", "tt.return", "tt.reduce", "tt.reduce.return", "tt.make_range", "tt.addptr",
    "tt.get_program_id", "tt.get_num_programs", "tt.make_tensor_descriptor", "scf.for", "scf.if", "scf.yield",
    "arith.select", "tt.int_to_ptr", "tt.ptr_to_int",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class ArithmeticPrecision:
    reads_tf32: bool = False
    """Whether a dot reads float32 as TF32, which drops the last 13 bits."""
    rounds_between: bool = True
    """Whether a result may jump where a sum is done in another order: something between the inputs and the stores is
    rounded to a narrow format, compared, or not known."""


def read_arithmetic(text: str) -> ArithmeticPrecision:
    """The arithmetic of a TTIR or TTGIR module; never raises: of what cannot be read nothing is known."""
    module = parse_mlir(text)
    operations = list(module.walk())
    dots = [operation for operation in operations if operation.name in _DOTS]
    tf32 = [dot for dot in dots if dot.attribute("inputPrecision") == "tf32" and _reads_float32(dot)]
    from_memory = all(_is_loaded(operand, module) for dot in tf32 for operand in dot.operands[:2])
    smooth = bool(operations) and all(_is_smooth(operation, module.users) for operation in operations)
    return ArithmeticPrecision(bool(tf32), not (from_memory and smooth))


def _is_smooth(operation: Operation, users: Mapping[Value, Sequence[Operation]]) -> bool:
    """Whether what an operation makes moves little where what it reads does."""
    name = operation.name
    if name == "arith.truncf":
        return _is_stored(operation.results, users)
    if name in _DOTS:
        return not any(map(_is_narrow, operation.result_types))
    kinds = (*operation.operand_types, *operation.result_types)
    if name in _SMOOTH:
        # Arithmetic in a narrow format rounds each result to it.
        return not any(map(_is_narrow, kinds))
    if name in _MOVES or name in _LOADS or name in _STORES or name in _OTHER or operation.kind == "constant":
        return True
    return name.startswith("arith.") and all(_element(kind).form in ("integer", "index") for kind in kinds)


def _element(kind: Type) -> Type:
    return kind.element or kind


def _is_narrow(kind: Type) -> bool:
    element = _element(kind)
    return element.form == "float" and element.bits <= 16


def _reads_float32(dot: Operation) -> bool:
    """Whether its operands are float32; the precision of its input is written of others too."""
    return [_element(kind).text for kind in dot.operand_types[:2]] == ["f32", "f32"]


def _is_stored(values: Iterable[Value], users: Mapping[Value, Sequence[Operation]]) -> bool:
    for value in values:
        for user in users.get(value, ()):
            if user.name in _STORES:
                continue
            if user.name not in _MOVES or user.name == "arith.extf" or not _is_stored(user.results, users):
                return False
    return True


def _is_loaded(value: Value, module: MlirModule) -> bool:
    maker = module.maker_of(value)
    if maker is None:
        return False
    if maker.name in _LOADS:
        return True
    return maker.name in _MOVES and bool(maker.operands) and all(_is_loaded(one, module) for one in maker.operands)
