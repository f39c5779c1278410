"""Which operations give a kernel its main values, and which of their values these are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal

from irscope.analysis.movie.lowered import DOTS, GLOBAL, SYNCS, syncs_in_assembly
from irscope.analysis.movie.model import Counts, Role, Tile
from irscope.ir.body.counts import operation_counts
from irscope.ir.mlir.encoding import read_aliases, read_encoding, resolve_aliases
from irscope.ir.mlir.reader import MlirModule, Operation, Value, parse_mlir
from irscope.ir.mlir.tokens import parameters_of, types_of
from irscope.ir.mlir.types import read_types, written_result_types
from irscope.ir.mlir.uses import with_loops
from irscope.layout.rows import own_shape
from irscope.memory.machine import ACCESSES

__all__ = ["Family", "RoleText", "counts_of", "family_of"]

Family = Literal["dot", "load", "store"]
_OF_ACTION: dict[str, Family] = {"load": "load", "copy": "load", "store": "store"}
_DOTS = ("tt.dot", "tt.dot_scaled", "ttng.warp_group_dot", "ttng.tc_gen5_mma", "ttng.tc_gen5_mma_scaled")
_FAMILIES: dict[str, Family] = {
    **dict.fromkeys(_DOTS, "dot"),
    **{name: _OF_ACTION[action] for name, action in ACCESSES.items() if action in _OF_ACTION},
    # Copies by a descriptor, whose instructions nothing counts yet.
    "amdg.async_tdm_copy_global_to_local": "load",
    "amdg.async_tdm_copy_local_to_global": "store",
}
_ROLES: dict[Family, tuple[Role, ...]] = {
    "dot": ("first operand", "second operand", "result"),
    "load": ("loaded",),
    "store": ("stored",),
}
_IN_TENSOR_MEMORY = ("ttng.tc_gen5_mma", "ttng.tc_gen5_mma_scaled")
"""Dots whose third operand is where their result goes."""
_VALUE_AT = {"tt.store": 1, "amdg.buffer_store": 0, "amdgpu.buffer_store": 0}
"""The operand that is stored, where pointers and offsets have its shape too."""
# tensor<128x64xf16>   tensor<128x64x!tt.ptr<f16>>
_PLAIN = re.compile(r"tensor<((?:\d{1,9}x)+)([^,]+)>$")
# 128x64x!tt.ptr<f16>   128x64x!tt.ptr<f16, 1>
_POINTERS = re.compile(r"!tt\.ptr<([^<>,]+)(?:, \d+)?>")
# %acc_69#1
_NAME = re.compile(r"%([A-Za-z_]\w*?)(?:_\d+)?(?:#\d+)?$")
_MADE_UP = re.compile(r"(?:cst|c-?\d.*|true|false|arg\d+)$")


def family_of(name: str) -> Family | None:
    """What an operation of some name does; None if it gives no main value."""
    return _FAMILIES.get(name)


def counts_of(text: str, families: Mapping[str, int] | None = None) -> Counts:
    """The operations of an MLIR text by kind; `families`: of one in the dialects of LLVM those of its instructions."""
    found = operation_counts(text, "mlir")
    own = {family: sum(count for name, count in found.items() if _FAMILIES.get(name) == family)
           for family in _ROLES}  # fmt: skip
    syncs = sum(count for name, count in found.items() if SYNCS.intersection(name.rpartition(".")[2].split("_")))
    accesses, dots = own["load"] + own["store"], own["dot"]
    if families is not None:
        # What Triton's operations became: some of them may be left.
        accesses += sum(families.get(one, 0) for one in GLOBAL)
        dots += sum(families.get(one, 0) for one in DOTS)
        syncs = syncs_in_assembly(text) + sum(
            count for name, count in found.items() if SYNCS.intersection(re.split(r"[._]", name))
        )
    return Counts(found.total(), found["ttg.convert_layout"], accesses, dots, syncs)


@dataclass(frozen=True)
class RoleText:
    """The operations of one text that give main values."""

    text: str

    @cached_property
    def _module(self) -> MlirModule:
        return parse_mlir(self.text)

    @cached_property
    def _aliases(self) -> Mapping[str, str]:
        return read_aliases(self.text)

    @cached_property
    def operations(self) -> Mapping[int, tuple[Operation, int]]:
        """First line -> the operation, and the number of loops around it."""
        found = ((one, loops) for one, loops in with_loops(self._module) if one.name in _FAMILIES)
        return {one.first_line: (one, loops) for one, loops in found}

    def roles_at(self, line: int) -> tuple[Role, ...]:
        """The roles of an operation that are filled by a tensor."""
        operation, _ = self.operations[line]
        family = _FAMILIES[operation.name]
        return tuple(role for role in _ROLES[family] if self.tile_of(line, role) is not None)

    def tile_of(self, line: int, role: Role) -> Tile | None:
        """The type of a value of the operation on a line; None if it has no shape."""
        value = self._value(self.operations[line][0], role)
        return None if value is None else self._tile(value)

    def name_of(self, line: int, role: Role) -> str:
        """The name of a value's variable in Python, as far as the text keeps it."""
        value = self._value(self.operations[line][0], role)
        match = _NAME.match(value.name) if value is not None else None
        return match[1] if match is not None and not _MADE_UP.match(match[1]) else ""

    def _value(self, operation: Operation, role: Role) -> Value | None:
        operands = operation.operands
        if role == "first operand":
            return next(iter(operands), None)
        if role == "second operand":
            # tt.dot_scaled %a scale %sa, %b scale %sb, %acc lhs = e4m3 rhs = e4m3
            is_scaled = operation.name == "tt.dot_scaled" and " scale " in operation.text.partition(",")[0]
            return next(iter(operands[1 + is_scaled :]), None)
        if role == "result" and operation.name in _IN_TENSOR_MEMORY:
            return next(iter(operands[2:]), None)
        if role in ("result", "loaded"):
            shaped = next((one for one in operation.results if self._tile(one) is not None), None)
            return self._largest(operands, "memdesc") if shaped is None and role == "loaded" else shaped
        if operation.name in _VALUE_AT:
            return next(iter(operands[_VALUE_AT[operation.name] :]), None)
        return self._largest(operands, "tensor") or self._largest(operands, "memdesc")

    def _largest(self, values: tuple[Value, ...], form: str) -> Value | None:
        """The value of a form with most elements: barriers and indices have fewer than what is copied."""
        shaped = [(one, tile) for one in values if form in self._type(one) and (tile := self._tile(one)) is not None]
        return max(shaped, key=lambda pair: prod(pair[1].shape), default=(None, None))[0]

    def _tile(self, value: Value) -> Tile | None:
        written = self._type(value).strip()
        if (plain := _PLAIN.match(written)) is not None:
            shape = tuple(map(int, plain[1].rstrip("x").split("x")))
            return Tile(shape, plain[2].strip()) if all(shape) else None
        kind = next(iter(read_types(written)), None)
        if kind is None or written.startswith("!tt.tensordesc") or not kind.shape or not all(kind.shape):
            return None
        encoding = read_encoding(resolve_aliases(kind.encoding, self._aliases))
        covered, _ = own_shape(encoding, kind)
        alias = kind.encoding if "<" not in kind.encoding else ""
        return Tile(kind.shape, kind.element, encoding.text, alias, covered)

    def _type(self, value: Value) -> str:
        """The type of a value as it is written; empty where the text does not tell."""
        made = self._module.definition(value)
        if made is None:
            return ""
        if value in made.results:
            if made.name == "tt.load":
                # It writes the type of its pointers.
                return _POINTERS.sub(r"\1", types_of(made.text))
            written = written_result_types(made.name, f"{made.text}\n{made.closing}", len(made.results))
            at = made.results.index(value)
            return written[at] if at < len(written) else ""
        for (argument, _), result in zip(made.carried, made.results, strict=False):
            if argument == value:
                return self._type(result)
        for header in (made.text, *(block.header for region in made.regions for block in region.blocks)):
            if (found := parameters_of(header).get(value.name)) is not None:
                return found[0]
        return ""
