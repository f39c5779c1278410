"""Reads the types of TTGIR that have a layout: `tensor<128x64xf16, #blocked>`, `!ttg.memdesc<64xf16, #shared, …>`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

# 128x64x!tt.ptr<f16>   128xf32   f32
_SHAPE = re.compile(r"((?:\d+x)*)(.*)$", re.DOTALL)
# where a type with a layout may begin: "tensor<", "memdesc<", and the short form "-> <128x64xf16, #shared, …>"
_START = re.compile(r"\b(tensor|memdesc)<(?=[\d!a-z])|(?<![\w>])(<)(?=\d+x)")
# 128x64
_ALLOCATED = re.compile(r"\d+(?:x\d+)*$")
# f16   bf16   i32   f8E4M3FN   !tt.ptr<f16>
_WIDTH = re.compile(r"[a-z]+(\d+)")

# "<", ">" but not that of "->"
_ANGLE = re.compile(r"<|(?<!-)>")

_POINTER_BITS = 64


@dataclass(frozen=True, slots=True)
class LayoutType:
    """A tensor or memory descriptor with a layout."""

    form: Literal["tensor", "memdesc"]
    shape: tuple[int, ...]
    element: str
    """`f16`, `!tt.ptr<f16>`, …"""
    encoding: str
    """As the type writes it: an alias or the whole."""
    space: str = ""
    """A memory descriptor's space, as written: `#smem`."""
    allocated: tuple[int, ...] = ()
    """The shape of the whole allocation, where the descriptor is a part of one."""

    @property
    def element_bits(self) -> int:
        """Bits of an element; a pointer has 64, an i1 in memory 8."""
        return element_bits(self.element)

    @property
    def pointee(self) -> str:
        """What a tensor of pointers points to; empty for others."""
        return (
            self.element.removeprefix("!tt.ptr<").split(",")[0].rstrip(">").strip() if "tt.ptr<" in self.element else ""
        )

    def __str__(self) -> str:
        return "x".join([*map(str, self.shape), self.element])


def element_bits(element: str) -> int:
    """Bits that an element takes in memory: `f16` 16, `bf16` 16, `f8E4M3FN` 8, `i1` 8, a pointer 64; 0 if not known."""
    if "tt.ptr<" in element:
        return _POINTER_BITS
    match = _WIDTH.match(element)
    if match is None:
        return 0
    bits = int(match[1]) if len(match[1]) < 6 else 0
    return max(bits, 8) if element == "i1" else bits


def read_types(text: str) -> list[LayoutType]:
    """The types with a layout in a text, in their order."""
    return [kind for _, kind in types_with_positions(text)]


def types_with_positions(text: str) -> Iterator[tuple[int, LayoutType]]:
    """(where it begins, type) of each type with a layout, those that have none passed over."""
    position = 0
    while (match := _START.search(text, position)) is not None:
        opening = match.end() - 1
        closing = _closing(text, opening)
        if closing < 0:
            return
        kind = _read(match[1] or "memdesc", text[opening + 1 : closing])
        if kind is not None:
            yield match.start(), kind
        # A tensor may stand in another type, such as !tt.tensordesc<tensor<…>>, never in a tensor.
        position = closing


def split_commas(text: str) -> list[str]:
    """A list split at the commas that stand in no bracket; `->` is no bracket."""
    parts: list[str] = []
    depth = start = 0
    for index, character in enumerate(text):
        if character in "<([{":
            depth += 1
        elif character in ")]}" or (character == ">" and text[index - 1] != "-"):
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    return [*parts, text[start:].strip()]


def _closing(text: str, opening: int) -> int:
    depth = 0
    for match in _ANGLE.finditer(text, opening):
        depth += 1 if match[0] == "<" else -1
        if depth == 0:
            return match.start()
    return -1


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
