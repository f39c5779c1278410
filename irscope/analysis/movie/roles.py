"""Which operations give a kernel its main values, and which of their values these are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal

from irscope.analysis.movie.model import Counts, Role, Tile
from irscope.ir.asm.opcodes import classify
from irscope.ir.columns import operation_counts
from irscope.ir.mlir.operations import opcode_of
from irscope.ir.mlir.reader import MlirModule, Operation, Value, parse_mlir
from irscope.ir.mlir.tokens import python_name
from irscope.ir.mlir.uses import with_loops
from irscope.layout.rows import own_shape
from irscope.memory.machine import ACCESSES

Family = Literal["dot", "load", "store"]
_OF_ACTION: dict[str, Family] = {"load": "load", "copy": "load", "store": "store"}
_DOTS = ("dot", "dot_scaled", "warp_group_dot", "tc_gen5_mma", "tc_gen5_mma_scaled")
_FAMILIES: dict[str, Family] = {
    **dict.fromkeys(_DOTS, "dot"),
    **{opcode: _OF_ACTION[action] for opcode, action in ACCESSES.items() if action in _OF_ACTION},
    # Copies by a descriptor, whose instructions nothing counts yet.
    "async_tdm_copy_global_to_local": "load",
    "async_tdm_copy_local_to_global": "store",
}
_ROLES: dict[Family, tuple[Role, ...]] = {
    "dot": ("first operand", "second operand", "result"),
    "load": ("loaded",),
    "store": ("stored",),
}
_IN_TENSOR_MEMORY = ("tc_gen5_mma", "tc_gen5_mma_scaled")
"""Dots whose third operand is where their result goes."""


def family_of(name: str) -> Family | None:
    """What an operation of some name does; None if it gives no main value."""
    return _FAMILIES.get(opcode_of(name))


def counts_of(text: str, families: Mapping[str, int] | None = None) -> Counts:
    """The operations of an MLIR text by kind; `families`: of one in the dialects of LLVM those of its instructions."""
    found = operation_counts(text, "mlir")
    own = {family: sum(count for name, count in found.items() if family_of(name) == family)
           for family in _ROLES}  # fmt: skip
    syncs = sum(count for name, count in found.items() if SYNCS.intersection(name.rpartition(".")[2].split("_")))
    accesses, dots = own["load"] + own["store"], own["dot"]
    if families is not None:
        # What Triton's operations became: some of them may be left.
        accesses += sum(families.get(one, 0) for one in _GLOBAL)
        dots += sum(families.get(one, 0) for one in _MATRIX_FAMILIES)
        syncs = _syncs_in_assembly(text) + sum(
            count for name, count in found.items() if SYNCS.intersection(name.replace("_", ".").split("."))
        )
    conversions = sum(count for name, count in found.items() if opcode_of(name) == "convert_layout")
    return Counts(found.total(), conversions, accesses, dots, syncs)


@dataclass(frozen=True)
class RoleText:
    """The operations of one text that give main values."""

    text: str

    @cached_property
    def _module(self) -> MlirModule:
        return parse_mlir(self.text)

    @cached_property
    def operations(self) -> Mapping[int, tuple[Operation, int]]:
        """First line -> the operation, and the number of loops around it."""
        found = ((one, loops) for one, loops in with_loops(self._module) if one.opcode in _FAMILIES)
        return {one.first_line: (one, loops) for one, loops in found}

    def roles_at(self, line: int) -> tuple[Role, ...]:
        """The roles of an operation that are filled by a tensor."""
        operation, _ = self.operations[line]
        family = _FAMILIES[operation.opcode]
        return tuple(role for role in _ROLES[family] if self.tile_of(line, role) is not None)

    def tile_of(self, line: int, role: Role) -> Tile | None:
        """The type of a value of the operation on a line; None if it has no shape."""
        value = self._value(self.operations[line][0], role)
        return None if value is None else self._tile(value)

    def name_of(self, line: int, role: Role) -> str:
        """The name of a value's variable in Python, as far as the text keeps it."""
        value = self._value(self.operations[line][0], role)
        return python_name(value.name) if value is not None else ""

    def _value(self, operation: Operation, role: Role) -> Value | None:
        operands = operation.operands
        if role == "first operand":
            return operation.operand("a")
        if role == "second operand":
            return operation.operand("b")
        if role == "result" and operation.opcode in _IN_TENSOR_MEMORY:
            return operation.operand("d")
        if role in ("result", "loaded"):
            shaped = next((one for one in operation.results if self._tile(one) is not None), None)
            return self._largest(operands, "memdesc") if shaped is None and role == "loaded" else shaped
        stored = operation.operand("value")
        return stored or self._largest(operands, "tensor") or self._largest(operands, "memdesc")

    def _largest(self, values: tuple[Value, ...], form: str) -> Value | None:
        """The value of a form with most elements: barriers and indices have fewer than what is copied."""
        ours = [one for one in values if self._module.type_of(one).form == form]
        shaped = [(one, tile) for one in ours if (tile := self._tile(one)) is not None]
        return max(shaped, key=lambda pair: prod(pair[1].shape), default=(None, None))[0]

    def _tile(self, value: Value) -> Tile | None:
        kind = self._module.type_of(value)
        if kind.form not in ("tensor", "memdesc") or not kind.shape or not all(kind.shape):
            return None
        encoding = self._module.encoding_of(kind)
        if encoding is None:
            return Tile(kind.shape, str(kind.element))
        covered, _ = own_shape(encoding, kind)
        alias = kind.encoding if "<" not in kind.encoding else ""
        return Tile(kind.shape, str(kind.element), encoding.text, alias, covered)


_GLOBAL = ("ld.global", "st.global", "cp.async", "tma.load", "tma.store", "tma.copy", "tma.reduce")
"""Families that load from global memory or store to it."""
_MATRIX_FAMILIES = ("wgmma", "mma", "tcgen05.mma", "mfma", "wmma")
"""Families of matrix instructions."""
SYNCS = frozenset({"barrier", "wait"})
"""A part of the name of what waits or is a barrier."""
_TOLD = (
    *_MATRIX_FAMILIES, "ldmatrix", "stmatrix", "tcgen05.ld", "tcgen05.st", "tcgen05.cp", *_GLOBAL, "cp.async.wait",
    "ld.shared", "st.shared", "atomic.global", "atomic.shared", "shuffle", "warp.reduce", "warp.vote", "mbarrier",
    "barrier", "wait", "fence",
)  # fmt: skip
"""Families that are told, in their order; arithmetic and moves are not, nor functions, which LLVM chooses later."""
_SPACES = ("global", "shared")
"""Memories that families are of; an access to another one is generic."""
_AMD_SHUFFLES = ("update_dpp", "permlane", "ds_bpermute", "ds_permute", "ds_swizzle", "mov_dpp")


def is_lowered(text: str) -> bool:
    """Whether an MLIR text is in the dialects of LLVM."""
    return "llvm.func" in text


def families_of(text: str) -> Mapping[str, int]:
    """Family -> how many instructions of it the code of one thread has, in the order of the families.

    Args:
        text: in the dialects of LLVM. What it holds as inline assembly is counted by its opcodes.
    """
    found: Counter[str] = Counter()
    for operation in parse_mlir(text).walk():
        for family in filter(None, _families(operation)):
            name, _, width = family.rpartition(".")
            found[name if width.isdecimal() else family] += 1
    return {name: found[name] for name in _TOLD if found[name]}


def _syncs_in_assembly(text: str) -> int:
    assembly = (one for one in parse_mlir(text).walk() if one.kind == "assembly")
    opcodes = (opcode for one in assembly for opcode in _opcodes(one))
    return sum(bool(SYNCS.union({"bar"}).intersection(_words(opcode))) for opcode in opcodes)


def _words(name: str) -> list[str]:
    return name.replace("_", ".").split(".")


def _families(operation: Operation) -> Iterator[str | None]:
    name = operation.name
    if operation.kind == "assembly":
        yield from map(classify, _opcodes(operation))
    elif name in ("llvm.load", "llvm.store", "llvm.atomicrmw", "llvm.cmpxchg"):
        what = {"llvm.load": "ld", "llvm.store": "st"}.get(name, "atomic")
        yield f"{what}.{next((one.space for one in operation.effects if one.space in _SPACES), 'generic')}"
    elif name == "llvm.call_intrinsic":
        # llvm.call_intrinsic "llvm.nvvm.barrier0"() …
        dialect, _, own = str(operation.attribute("intrin")).removeprefix("llvm.").partition(".")
        yield _of_nvidia(own) if dialect == "nvvm" else _of_amd(own) if dialect == "amdgcn" else None
    elif name == "nvg.wgmma":
        # Of Triton's own dialect, between the two.
        yield "wgmma"
    elif name.startswith("nvvm."):
        yield _of_nvidia(name.removeprefix("nvvm."))
    elif name.startswith("rocdl."):
        yield _of_amd(name.removeprefix("rocdl."))


def _opcodes(operation: Operation) -> Iterator[str]:
    """`cp.async.cg.shared.global` of each statement of inline assembly, `@$5 cp.async.cg.shared.global [ $0 ], …`."""
    for line in str(operation.attribute("asm_string")).split("\n"):
        for statement in line.partition("//")[0].split(";"):
            words = [word for word in statement.strip(" {}\t").split() if word[0] != "@"]
            if words and words[0][0].islower():
                yield words[0]


def _of_nvidia(name: str) -> str | None:
    """`shfl.sync`, `cp.async.wait.group`: named as the instructions of PTX, with dots."""
    name = name.replace(".group", "_group")
    return None if name.startswith("read.") else classify(f"{name}.")


def _of_amd(name: str) -> str | None:
    """`raw.ptr.buffer.load`, `mfma.f32.32x32x8f16`: named as the instructions, some without what stands before."""
    plain = name.replace(".", "_").removeprefix("raw_ptr_").removeprefix("raw_")
    if plain.startswith(_AMD_SHUFFLES):
        return "shuffle"
    if plain.startswith(("buffer_load_lds", "buffer_load_async_lds", "global_load_lds", "global_load_async_lds")):
        return "cp.async"
    if plain == "barrier":
        return "barrier"
    return classify(
        f"v_{plain}" if plain.startswith(("mfma", "wmma", "smfma", "swmma", "exp2", "rcp", "rsq")) else plain
    )
