"""Reads the types of MLIR operations, and those with a layout: `tensor<128x64xf16, #blocked>`, `!ttg.memdesc<…>`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from irscope.ir.mlir.tokens import behind_arrow, closing, split_commas, types_of

# 128x64x!tt.ptr<f16>   128xf32   f32
_SHAPE = re.compile(r"((?:\d+x)*)(.*)$", re.DOTALL)
# where a type with a layout may begin: "tensor<", "memdesc<", and the short form "-> <128x64xf16, #shared, …>"
_START = re.compile(r"\b(tensor|memdesc)<(?=[\d!a-z])|(?<![\w>])(<)(?=\d+x)")
# 128x64
_ALLOCATED = re.compile(r"\d{1,18}(?:x\d{1,18}){0,30}$")
# f16   bf16   i32   f8E4M3FN   !tt.ptr<f16>
_WIDTH = re.compile(r"[a-z]+(\d+)")

_POINTER_BITS = 64
_GIVE_TOKENS = ("ttg.async_copy_global_to_local", "ttg.async_commit_group", "ttg.async_wait")
_TYPES_FIRST = ("scf.for", "scf.while", "scf.if", "scf.execute_region", "scf.index_switch")
"""Operations with regions that write their types on the opening line."""


@dataclass(frozen=True, slots=True)
class LayoutType:
    """A tensor or memory descriptor with a layout."""

    form: Literal["tensor", "memdesc"]
    shape: tuple[int, ...]
    element: str
    """`f16`, `!tt.ptr<f16>`, …"""
    encoding: str
    """As written in the type: an alias, or the whole encoding."""
    space: str = ""
    """The memory space of a descriptor, as written: `#smem`."""
    allocated: tuple[int, ...] = ()
    """The shape of the whole allocation if the descriptor is a part of one."""

    @property
    def element_bits(self) -> int:
        """Bits per element in memory: 64 for a pointer, 8 for an i1."""
        return element_bits(self.element)

    @property
    def pointee(self) -> str:
        """The type that a tensor of pointers points to; empty for other tensors."""
        return (
            self.element.removeprefix("!tt.ptr<").split(",")[0].rstrip(">").strip() if "tt.ptr<" in self.element else ""
        )

    def __str__(self) -> str:
        return "x".join([*map(str, self.shape), self.element])


def element_bits(element: str) -> int:
    """Bits per element in memory: `f16` 16, `bf16` 16, `f8E4M3FN` 8, `i1` 8, a pointer 64; 0 if unknown."""
    if "tt.ptr<" in element:
        return _POINTER_BITS
    match = _WIDTH.match(element)
    if match is None:
        return 0
    bits = int(match[1]) if len(match[1]) < 6 else 0
    return max(bits, 8) if element == "i1" else bits


def read_types(text: str) -> list[LayoutType]:
    """The types with a layout in a text, in their order; those without one are left out."""
    found: list[LayoutType] = []
    position = 0
    while (match := _START.search(text, position)) is not None:
        opening = match.end() - 1
        end = closing(text, opening)
        if end < 0:
            break
        kind = _read(match[1] or "memdesc", text[opening + 1 : end])
        if kind is not None:
            found.append(kind)
        # A tensor may stand in another type, such as !tt.tensordesc<tensor<…>>, never in a tensor.
        position = end
    return found


def written_result_types(name: str, text: str, count: int) -> tuple[str, ...]:
    """The types that an operation's text gives its `count` results; fewer if it does not say.

    They stand behind the arrow or `to`; without either, results have the types of the operands.
    """
    if not count:
        return ()
    if name in _GIVE_TOKENS:
        return ("!ttg.async.token",) * count
    first, _, last = text.partition("\n")
    if name in _TYPES_FIRST:
        return tuple(behind_arrow(first)[:count])
    types = types_of(last or first)
    if "->" in types and (arrow := behind_arrow(types)):
        return tuple(arrow[:count])
    if " to " in types:
        return (types.rpartition(" to ")[2],) * count
    parts = split_commas(types)
    if name == "arith.constant" and not types:
        return ("i1",)  # arith.constant true
    if name == "arith.select":
        return (parts[-1],)
    if len(parts) == count:
        return tuple(part for part in parts if part)
    return (parts[0],) * count if parts[0] else ()


@lru_cache(maxsize=4096)
def _read(form: str, inside: str) -> LayoutType | None:
    parts = split_commas(inside)
    if len(parts) < 2 or not parts[1].startswith("#"):
        return None
    match = _SHAPE.match(parts[0])
    if match is None or len(match[1]) > 200:
        return None
    shape = tuple(int(size) for size in match[1].split("x") if size)
    allocated = tuple(int(size) for size in parts[-1].split("x")) if _ALLOCATED.match(parts[-1]) else ()
    memory = parts[2] if form == "memdesc" and len(parts) > 2 else ""
    return LayoutType("tensor" if form == "tensor" else "memdesc", shape, match[2], parts[1], memory, allocated)
