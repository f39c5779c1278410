"""Reads the text of an encoding, such as `#ttg.blocked<{…}>`, into its kind and parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Union

from irscope.errors import ParseError
from irscope.ir.mlir.alias_table import AliasTable, definitions
from irscope.ir.mlir.tokens import closing, split_commas

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

    items: tuple[tuple[str, Value], ...]

    def __getitem__(self, name: str) -> Value | None:
        return next((value for key, value in self.items if key == name), None)


Value = Union[int, bool, str, "Encoding", Padding, Dictionary, tuple["Value", ...]]
"""The value of a parameter: a number, a word, an encoding, a padding, a dictionary, or a list of these."""

_KINDS: dict[_Space, str] = {
    "registers": "blocked slice nvidia_mma dot_op linear generic_linear amd_mfma amd_wmma",
    "shared": "swizzled_shared nvmma_shared padded_shared shared_linear amd_rotating_shared partitioned_shared",
    "tensor": "tensor_memory_encoding tensor_memory_scales_encoding",
}
_SPACES: dict[str, _Space] = {kind: space for space, kinds in _KINDS.items() for kind in kinds.split()}

KINDS = tuple(_SPACES)
"""The kinds of layouts that irscope knows the memory of."""

_LAYOUT_DIALECTS = ("#ttg.", "#ttng.", "#gluon.", "#amdg.")
_DEEPEST = 32
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
    parameters: tuple[tuple[str, Value], ...]
    """In the order of the text; a parameter without a name has an empty one."""
    text: str
    """As written, with every alias resolved."""

    @property
    def kind(self) -> str:
        """`blocked`, `nvidia_mma`, …: the name without the dialect."""
        return self.name.rpartition(".")[2]

    @property
    def space(self) -> _Space:
        """The memory that holds the elements."""
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

    def __getitem__(self, name: str) -> Value | None:
        """The value of a parameter; None if the text does not give it."""
        return next((value for key, value in self.parameters if key == name), None)

    def __str__(self) -> str:
        return self.text


def is_layout_alias(line: str) -> bool:
    """Whether a line of a module defines an alias of a layout: `#blocked1 = #ttg.blocked<{…}>`."""
    name, sign, value = line.partition(" = ")
    return name[:1] == "#" and bool(sign) and value.startswith(_LAYOUT_DIALECTS) and not name.startswith("#loc")


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
        raise ParseError(f"{text!r} is no encoding: write one as TTGIR does, such as '#ttg.blocked<{{…}}>'.")
    return read_encoding(text)


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
    if match is None or depth > _DEEPEST:
        raise ParseError(f"{text[:80]!r} is no encoding, or is nested too deep")
    body = text[match.end() :]
    return Encoding(match[0][1:], _items(_inside(body), depth) if body else (), text)


def _inside(text: str) -> str:
    """The text within the brackets that enclose a whole text."""
    if text[:1] not in ("<", "{", "[") or closing(text, 0) != len(text) - 1:
        raise ParseError(f"{text[:80]!r} is no list in brackets")
    return text[1:-1]


def _items(text: str, depth: int) -> tuple[tuple[str, Value], ...]:
    """The parameters of a comma-separated list; a dictionary without a name adds its own."""
    if depth > _DEEPEST:
        raise ParseError("it is nested too deep")
    items: list[tuple[str, Value]] = []
    for part in filter(None, split_commas(text)):
        # [512:+16] {order = [1, 0]}
        while part[:1] in ("{", "["):
            end = closing(part, 0) + 1
            if part[0] == "{":
                items += _items(_inside(part[:end]), depth + 1)
            else:
                items.append(("", _value(part[:end], depth)))
            part = part[end:].strip()
        if (named := _NAMED.fullmatch(part)) is not None:
            items.append((named[1], _value(named[2], depth)))
        elif part:
            items.append(("", _value(part, depth)))
    return tuple(items)


def _value(text: str, depth: int) -> Value:
    if depth > _DEEPEST:
        raise ParseError("it is nested too deep")
    if text[:1] == "#":
        return _encoding(text, depth + 1)
    if text[:1] == "{":
        return Dictionary(_items(_inside(text), depth + 1))
    if text[:1] == "[":
        return tuple(_value(part, depth + 1) for part in filter(None, split_commas(_inside(text))))
    match = _PLAIN.fullmatch(text)
    if match is None:
        raise ParseError(f"{text[:80]!r} is no value")
    if match["number"] is None:
        return text == "true" if text in ("true", "false") else text.strip('"')
    number = _number(match["number"])
    return Padding(number, _number(match["padding"])) if match["padding"] else number


def _number(digits: str) -> int:
    """The value of decimal digits; 0 if there are too many for any size."""
    return int(digits) if digits.lstrip("-").isdecimal() and len(digits) < 20 else 0
