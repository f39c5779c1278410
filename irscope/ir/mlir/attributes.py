"""Attributes of operations, read: numbers, words, symbols, lists, dense constants, encodings and types."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union

from irscope.errors import ParseError
from irscope.ir.mlir.tokens import AliasTable, closing, definitions, marks, split_commas
from irscope.ir.mlir.types import Type, parse_type
from irscope.ir.quoted import unescape_ir

# ── Reads the text of an encoding, such as `#ttg.blocked<{…}>`, into its kind and parameters ────────────────────────

_Space = Literal["registers", "shared", "tensor", "unknown"]
"""The memory that holds the elements."""


class Padding(NamedTuple):
    """What `padded_shared` adds: after each interval of elements, so many that hold nothing."""

    interval: int
    length: int

    def __str__(self) -> str:
        return f"{self.interval}:+{self.length}"


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Named values as a parameter: `{warp = [[0, 1], [1, 0]]}`."""

    items: tuple[tuple[str, Parameter], ...]

    def __getitem__(self, name: str) -> Parameter | None:
        return next((value for key, value in self.items if key == name), None)


Parameter = Union[int, bool, str, "Encoding", Padding, Dictionary, tuple["Parameter", ...]]
"""The value of a parameter: a number, a word, an encoding, a padding, a dictionary, or a list of these."""

_KINDS: dict[_Space, str] = {
    "registers": "blocked slice nvidia_mma dot_op linear generic_linear amd_mfma amd_wmma",
    "shared": "swizzled_shared nvmma_shared padded_shared shared_linear amd_rotating_shared partitioned_shared",
    "tensor": "tensor_memory_encoding tensor_memory_scales_encoding",
}
_SPACES: dict[str, _Space] = {kind: space for space, kinds in _KINDS.items() for kind in kinds.split()}

KINDS = tuple(_SPACES)
"""The kinds of layouts that irscope knows the memory of."""

_DEEPEST_ENCODING = 32
"""Levels of nesting; no compiler prints more."""

# #ttg.blocked<{…}>
_OF_DIALECT = re.compile(r"#[A-Za-z_][\w$]*\.[\w$.]")
# #blocked1   #ttg.blocked   #ttg.slice
_NAME = re.compile(r"#[A-Za-z_][\w$.]*")
# 512   -12   0 : i32   512:+16, an interval and its padding   sizePerThread   "text"
_PLAIN = re.compile(r'(?P<number>-?\d+)(?: : \w+|\s*:\s*\+\s*(?P<padding>\w+))?|[A-Za-z_]\w*|"[^"]*"')
# sizePerThread = [1, 4]
_NAMED = re.compile(r"([A-Za-z_]\w*)\s*=\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding of MLIR: its name, its parameters, its text."""

    name: str
    """With the dialect: `ttg.blocked`; empty if irscope cannot read the text."""
    parameters: tuple[tuple[str, Parameter], ...]
    """In the order of the text; a parameter without a name has an empty one."""
    text: str
    """As written, with every alias resolved."""

    @property
    def kind(self) -> str:
        """`blocked`, `nvidia_mma`, …: the name without the dialect."""
        return self.name.rpartition(".")[2]

    @property
    def space(self) -> _Space:
        return _SPACES.get(self.kind, "unknown")

    @property
    def title(self) -> str:
        """The name for tables: `mma v3`, `dot operand 0 of mma v2`, `slice 1 of blocked`, `128-byte nvmma shared`."""
        if "." not in self.name:
            # An alias that was not resolved.
            return self.text
        parent = self["parent"]
        if self.kind in ("dot_op", "slice") and isinstance(parent, Encoding):
            what = f"dot operand {self['opIdx']}" if self.kind == "dot_op" else f"slice {self['dim']}"
            return f"{what} of {parent.title}"
        if self.kind == "nvidia_mma":
            version = self["versionMajor"]
            return f"mma v{version}" if version is not None else "mma"
        if self.kind == "nvmma_shared":
            return f"{self['swizzlingByteWidth']}-byte nvmma shared"
        return (self.kind or "unknown").removesuffix("_encoding").replace("amd_", "").replace("_", " ")

    @property
    def numbers(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """(name, numbers) of each parameter that is a list of integers, those of its parent too."""
        rows: list[tuple[str, tuple[int, ...]]] = []
        for name, value in self.parameters:
            if isinstance(value, Encoding):
                rows += value.numbers
            elif isinstance(value, tuple) and value and not isinstance(value, Padding):
                integers = tuple(number for number in value if isinstance(number, int))
                rows += [(name, integers)] if len(integers) == len(value) else []
        return tuple(rows)

    @property
    def is_blocked(self) -> bool:
        """Whether its elements are in registers as `coalesce` deals them out, for no matrix unit."""
        return self.kind == "blocked"

    @property
    def is_matrix(self) -> bool:
        """Whether it is the layout of the result of a matrix instruction."""
        return self.kind in ("nvidia_mma", "amd_mfma", "amd_wmma")

    def __getitem__(self, name: str) -> Parameter | None:
        """The value of a parameter; None if the text does not give it."""
        return next((value for key, value in self.parameters if key == name), None)

    def __str__(self) -> str:
        return self.text


def read_aliases(text: str) -> dict[str, str]:
    """The encodings that a module defines aliases for: alias with its sign → text, its own aliases resolved."""
    raw = {name: value for name, value in definitions(text).items() if name[0] == "#" and _OF_DIALECT.match(value)}
    table = AliasTable(raw)
    return {name: table.resolve(name) for name in raw}


def resolve_aliases(text: str, aliases: Mapping[str, str]) -> str:
    """The text with every alias replaced by its definition; undefined names stay."""
    return AliasTable(aliases).expand(text)


def parse_encoding(text: str, aliases: Mapping[str, str] | None = None) -> Encoding:
    """Read an encoding; raises ParseError if the text is not one. If its body cannot be read, only the text is kept."""
    text = " ".join(resolve_aliases(text.strip(), aliases or {}).split())
    match = _NAME.match(text)
    if match is None or "." not in match[0]:
        raise ParseError(f"{text!r} is not an encoding: write one as TTGIR does, such as '#ttg.blocked<{{…}}>'.")
    return read_encoding(text)


def base_layout(layout: str) -> str:
    """The layout that another is made from, as written: `#mma` of `#ttg.slice<{dim = 1, parent = #mma}>`."""
    made = read_encoding(layout)
    while isinstance(parent := made["parent"], Encoding):
        made = parent
    return made.text


def short_layout(layout: str) -> str:
    """A layout in a few words: `slice 1 of #mma`, `dot operand 0 of #mma1`; an alias as it is."""
    made = read_encoding(layout)
    return made.title if made.kind in ("slice", "dot_op") else layout


def with_numbers(text: str, numbers: Mapping[str, Sequence[int]]) -> str:
    """The text of an encoding with other integers in lists of its parameters: name → integers."""
    for name, integers in numbers.items():
        head, found, rest = text.partition(f"{name} = [")
        if found:
            text = f"{head}{name} = {list(integers)}{rest.partition(']')[2]}"
    return text


def read_encoding(text: str) -> Encoding:
    """Read an encoding whose aliases are resolved; never raises: of what cannot be read only the text is kept."""
    try:
        return _encoding(text, 0)
    except ParseError:
        match = _NAME.match(text)
        return Encoding(match[0].removeprefix("#") if match and "." in match[0] else "", (), text)


def _encoding(text: str, depth: int) -> Encoding:
    match = _NAME.match(text)
    if match is None or depth > _DEEPEST_ENCODING:
        raise ParseError(f"{text[:80]!r} is not an encoding, or is nested too deep")
    body = text[match.end() :]
    return Encoding(match[0][1:], _parameters(_inside(body), depth) if body else (), text)


def _inside(text: str) -> str:
    if text[:1] not in ("<", "{", "[") or closing(text, 0) != len(text) - 1:
        raise ParseError(f"{text[:80]!r} is not a list in brackets")
    return text[1:-1]


def _parameters(text: str, depth: int) -> tuple[tuple[str, Parameter], ...]:
    """The parameters of a comma-separated list; a dictionary without a name adds its own."""
    if depth > _DEEPEST_ENCODING:
        raise ParseError("it is nested too deep")
    items: list[tuple[str, Parameter]] = []
    for part in filter(None, split_commas(text)):
        # [512:+16] {order = [1, 0]}
        while part[:1] in ("{", "["):
            end = closing(part, 0) + 1
            if part[0] == "{":
                items += _parameters(_inside(part[:end]), depth + 1)
            else:
                items.append(("", _value(part[:end], depth)))
            part = part[end:].strip()
        if (named := _NAMED.fullmatch(part)) is not None:
            items.append((named[1], _value(named[2], depth)))
        elif part:
            items.append(("", _value(part, depth)))
    return tuple(items)


def _value(text: str, depth: int) -> Parameter:
    if depth > _DEEPEST_ENCODING:
        raise ParseError("it is nested too deep")
    if text[:1] == "#":
        return _encoding(text, depth + 1)
    if text[:1] == "{":
        return Dictionary(_parameters(_inside(text), depth + 1))
    if text[:1] == "[":
        return tuple(_value(part, depth + 1) for part in filter(None, split_commas(_inside(text))))
    match = _PLAIN.fullmatch(text)
    if match is None:
        raise ParseError(f"{text[:80]!r} is not a value")
    if match["number"] is None:
        return text == "true" if text in ("true", "false") else text.strip('"')
    number = _digits(match["number"])
    return Padding(number, _digits(match["padding"])) if match["padding"] else number


def _digits(digits: str) -> int:
    """The value of decimal digits; 0 if there are too many for any size."""
    return int(digits) if digits.lstrip("-").isdecimal() and len(digits) < 20 else 0


# 12   -4   0x1F   1.000000e+00   -5.000000e-01   4.6566126E-10
_INTEGER = re.compile(r"-?(?:0x[0-9A-Fa-f]{1,64}|\d{1,80})$")
_FLOAT = re.compile(r"-?\d{1,400}\.\d{1,400}(?:[eE][+-]?\d{1,4})?$")
# #arith.fastmath<none>   #nvvm<shfl_kind bfly>   #llvm.cconv<ccc>   #ub.poison
_WORD = re.compile(r"#[\w.]+<(?:\w+ )?(?P<word>[\w, ]+)>$|#[\w]+\.(?P<bare>\w+)$")
# @matmul   @"quoted"   @module::@function
_SYMBOL = re.compile(r'@(?P<name>"[^"\n]*"|[\w$.-]+)(?:::@.*)?$')
_DEEPEST = 24
_STRUCTS = {16: "<e", 32: "<f", 64: "<d"}


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
        return len(self.values) == 1


AttributeValue = Union[  # noqa: UP007 (it names itself)
    int, float, bool, str, Word, Dense, Type, Encoding, Padding, Dictionary, tuple["AttributeValue", ...]
]
"""What an attribute is: strings and the names of symbols are `str`, words strings of their own kind."""


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
        return match["name"].strip('"') if match is not None else Word(text)
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
        raise ParseError(f"{digits[:80]!r} is not a number")
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


# ── Attributes of operations: the words of enumerations, and what holds if a text leaves an attribute out ───────────

NUM_STAGES = "tt.num_stages"
"""What `tl.range(…, num_stages=…)` asks for, on its loop."""

_TABLES: dict[str, Any] = json.loads(Path(__file__).with_name("attributes.json").read_bytes())
ENUMERATIONS: dict[str, tuple[str, ...]] = {name: tuple(words) for name, words in _TABLES["enumerations"].items()}
"""The words of an attribute that the generic form prints as a number; by attribute, or by operation and attribute."""
DEFAULTS: dict[str, str] = _TABLES["defaults"]
"""The value of an attribute that a text leaves out, for the operations that have such an attribute."""
