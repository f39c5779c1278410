"""Attributes of operations, read: numbers, words, symbols, lists, dense constants, encodings and types."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Union

from irscope.errors import ParseError
from irscope.ir.mlir.encoding import Dictionary, Encoding, Padding, read_encoding
from irscope.ir.mlir.tokens import closing, marks, split_commas
from irscope.ir.mlir.typed import Type, parse_type
from irscope.ir.quoted import unescape_ir

__all__ = ["AttributeValue", "Dense", "Symbol", "Word", "parse_attribute", "parse_entries"]

# 12   -4   0x1F   1.000000e+00   -5.000000e-01   4.6566126E-10
_INTEGER = re.compile(r"-?(?:0x[0-9A-Fa-f]{1,64}|\d{1,80})$")
_FLOAT = re.compile(r"-?\d{1,400}\.\d{1,400}(?:[eE][+-]?\d{1,4})?$")
# #arith.fastmath<none>   #nvvm<shfl_kind bfly>   #llvm.cconv<ccc>   #ub.poison
_WORD = re.compile(r"#[\w.]+<(?:\w+ )?(?P<word>[\w, ]+)>$|#[\w]+\.(?P<bare>\w+)$")
# @matmul   @"quoted"   @module::@function
_SYMBOL = re.compile(r'@(?P<name>"[^"\n]*"|[\w$.-]+)(?:::@.*)?$')
_DEEPEST = 24
_STRUCTS = {16: "<e", 32: "<f", 64: "<d"}


class Symbol(str):
    """The name of a function or global, without the sign."""

    __slots__ = ()


class Word(str):
    """A word that stands for itself: one of an enumeration, or an attribute that irscope does not read further."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Dense:
    """The constant elements of a tensor or vector."""

    type: Type
    values: tuple[int | float | bool, ...]
    """One value for all elements, or each element in row-major order; empty if the text could not be read."""

    @property
    def is_splat(self) -> bool:
        """Whether one value stands for all elements."""
        return len(self.values) == 1


AttributeValue = Union[  # noqa: UP007 (it names itself)
    int, float, bool, str, Symbol, Word, Dense, Type, Encoding, Padding, Dictionary, tuple["AttributeValue", ...]
]
"""What an attribute is: strings are `str`; words and symbols are strings of their own kinds."""


@lru_cache(maxsize=8192)
def parse_attribute(text: str) -> AttributeValue:
    """Read an attribute whose aliases are resolved; never raises: what cannot be read is a `Word`. No text: True."""
    try:
        return _parse(text.strip(), 0)
    except (ParseError, ValueError, OverflowError, struct.error):
        return Word(text.strip())


def parse_entries(text: str) -> dict[str, str]:
    """The entries of a dictionary without its braces: `a = 1 : i32, "b.c" = x, unit` → name → text; a unit has none."""
    found: dict[str, str] = {}
    for part in split_commas(text):
        if part:
            name, _, value = part.partition(" = ")
            found[name.strip().strip('"')] = value.strip()
    return found


def _parse(text: str, depth: int) -> AttributeValue:
    if depth > _DEEPEST:
        return Word(text)
    if not text or text in ("true", "unit"):
        return True
    if text == "false":
        return False
    first = text[0]
    if first == '"':
        return unescape_ir(text[1 : text.rfind('"')])
    if first == "@":
        match = _SYMBOL.match(text)
        return Symbol(match["name"].strip('"')) if match is not None else Word(text)
    if first == "[":
        return _items(text, depth)
    if first == "{":
        entries = parse_entries(text[1:-1])
        return Dictionary(tuple((name, _parse(value, depth + 1)) for name, value in entries.items()))  # type: ignore[arg-type]
    if first == "#":
        word = _WORD.match(text)
        return Word(word["word"] or word["bare"]) if word is not None else read_encoding(text)
    if first == "<":
        return Word(text[1:-1])
    if first == "!" or first == "(":
        return parse_type(text)
    if text.startswith("array<"):
        # array<i32: 1, 0>   array<i64>
        _, _, inside = text[6:-1].partition(":")
        return tuple(_parse(part, depth + 1) for part in split_commas(inside) if part)
    if text.startswith("dense<"):
        return _dense(text)
    if first.isdigit() or first == "-":
        return _number(text)
    kind = parse_type(text)
    return kind if kind.form != "opaque" else Word(text)


def _items(text: str, depth: int) -> tuple[AttributeValue, ...]:
    return tuple(_parse(part, depth + 1) for part in split_commas(text[1 : closing(text, 0)]) if part)


def _number(text: str) -> int | float:
    digits, _, kind = text.partition(" : ")
    return _scalar(digits.strip(), parse_type(kind) if kind else None)


def _scalar(digits: str, kind: Type | None) -> int | float | bool:
    if digits in ("true", "false"):
        return digits == "true"
    if _FLOAT.match(digits):
        return float(digits)
    if not _INTEGER.match(digits):
        raise ParseError(f"{digits[:80]!r} is no number")
    value = int(digits, 0) if "x" in digits else int(digits)
    if kind is None or kind.form != "float":
        return value
    return _bits_as_float(value, kind) if "x" in digits else float(value)


def _bits_as_float(value: int, kind: Type) -> float:
    """The float whose bits are written: `0xFF800000 : f32`."""
    if kind.text == "bf16":
        return float(struct.unpack("<f", (value << 16).to_bytes(4, "little"))[0])
    if kind.bits not in _STRUCTS:
        raise ParseError(f"the bits of a {kind.text} are not read")
    return float(struct.unpack(_STRUCTS[kind.bits], value.to_bytes(kind.bits // 8, "little"))[0])


def _dense(text: str) -> Dense:
    end = closing(text, 5)
    kind = parse_type(text[end + 1 :].strip().removeprefix(":"))
    inside = text[6:end].strip()
    if inside[:1] == '"':
        return Dense(kind, _of_bytes(inside.strip('"'), kind))
    digits = [part for part in inside.replace("[", " ").replace("]", " ").replace(",", " ").split() if part]
    return Dense(kind, tuple(_scalar(part, kind.element) for part in digits))


def _of_bytes(digits: str, kind: Type) -> tuple[int | float, ...]:
    """The elements that a hexadecimal string holds: `dense<"0x0000803F…">`, little-endian."""
    data = bytes.fromhex(digits.removeprefix("0x"))
    element = kind.element
    size = max(element.bits // 8, 1) if element is not None else 0
    if element is None or not size or len(data) % size:
        raise ParseError("the bytes of a dense constant do not fit its type")
    words = [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]
    if element.form == "float":
        return tuple(_bits_as_float(word, element) for word in words)
    top = 1 << (8 * size - 1)
    return tuple(word - 2 * top if word >= top else word for word in words)


def dictionary_span(text: str) -> tuple[int, int] | None:
    """(start, end) of the last attribute dictionary outside of brackets; None if there is none."""
    start, found = -1, None
    for token, position, depth in marks(text):
        if depth:
            continue
        if token == "{":
            start = position
        elif token == "}" and start >= 0:
            found, start = (start, position + 1), -1
    return found
