"""Which operations give a kernel its main values, and which of their values these are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal

from irscope.analysis.movie.lowered import DOTS, GLOBAL, SYNCS, syncs_in_assembly
from irscope.analysis.movie.model import Counts, Role, Tile
from irscope.ir.columns import operation_counts
from irscope.ir.mlir.operations import opcode_of
from irscope.ir.mlir.reader import MlirModule, Operation, Value, parse_mlir
from irscope.ir.mlir.tokens import python_name
from irscope.ir.mlir.uses import with_loops
from irscope.layout.rows import own_shape
from irscope.memory.machine import ACCESSES

__all__ = ["Family", "RoleText", "counts_of", "family_of"]

Family = Literal["dot", "load", "store"]
_OF_ACTION: dict[str, Family] = {"load": "load", "copy": "load", "store": "store"}
_DOTS = ("dot", "dot_scaled", "warp_group_dot", "tc_gen5_mma", "tc_gen5_mma_scaled")
_FAMILIES: dict[str, Family] = {
    **dict.fromkeys(_DOTS, "dot"),
    **{opcode_of(name): _OF_ACTION[action] for name, action in ACCESSES.items() if action in _OF_ACTION},
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
        accesses += sum(families.get(one, 0) for one in GLOBAL)
        dots += sum(families.get(one, 0) for one in DOTS)
        syncs = syncs_in_assembly(text) + sum(
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
