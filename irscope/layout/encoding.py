"""Reads the text of an encoding, such as `#ttg.blocked<{…}>`: kind and parameters; what it can't read stays text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Union

from irscope.errors import ParseError
from irscope.ir.alias_table import AliasTable

Space = Literal["registers", "shared", "tensor", "unknown"]
"""Where the elements lie."""

Value = Union[int, bool, str, "Encoding", tuple["Value", ...], tuple[tuple[str, "Value"], ...]]
"""A parameter's value: a number, a word, an encoding, or a list of such."""

_SPACES: dict[str, Space] = {
    "blocked": "registers",
    "slice": "registers",
    "nvidia_mma": "registers",
    "dot_op": "registers",
    "linear": "registers",
    "generic_linear": "registers",
    "amd_mfma": "registers",
    "amd_wmma": "registers",
    "swizzled_shared": "shared",
    "nvmma_shared": "shared",
    "padded_shared": "shared",
    "shared_linear": "shared",
    "amd_rotating_shared": "shared",
    "partitioned_shared": "shared",
    "tensor_memory_encoding": "tensor",
    "tensor_memory_scales_encoding": "tensor",
}

_DEEPEST = 32
"""How far encodings may stand in one another: deeper ones are no compiler's."""

# #blocked1 = #ttg.blocked<{…}>
_ALIAS = re.compile(r"^(#[A-Za-z_][\w$]*) = (#[A-Za-z_][\w$]*\.[\w$.]+.*?)\s*$", re.MULTILINE)
# #blocked1   #ttg.blocked   #ttg.slice
_NAME = re.compile(r"#[A-Za-z_][\w$.]*")
# #ttg.blocked   "text"   -12   true   sizePerThread   512   :+   <{   }>   [
_TOKEN = re.compile(r'\s*(#[A-Za-z_][\w$.]*|"[^"]*"|-?\d+|[A-Za-z_][\w$.]*|:\+|[<>{}\[\]()=,:+])')


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding of MLIR: its name, its parameters, its text."""

    name: str
    """With the dialect: `ttg.blocked`; empty where the text is none that irscope can read."""
    parameters: tuple[tuple[str, Value], ...]
    """In the order of the text; the name of one that is written without any is empty."""
    text: str
    """As written, with every alias put in."""

    @property
    def kind(self) -> str:
        """`blocked`, `nvidia_mma`, …: the name without the dialect."""
        return self.name.rpartition(".")[2]

    @property
    def space(self) -> Space:
        """Where the elements lie."""
        return _SPACES.get(self.kind, "unknown")

    @property
    def title(self) -> str:
        """What people call it: `mma v3`, `dot operand 0 of mma v2`, `slice 1 of blocked`, `128-byte nvmma shared`."""
        if "." not in self.name:
            # An alias that nothing was put in for.
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

    def __getitem__(self, name: str) -> Value | None:
        """A parameter; None where the text does not give it."""
        return next((value for key, value in self.parameters if key == name), None)

    def __str__(self) -> str:
        return self.text


def read_aliases(text: str) -> dict[str, str]:
    """The encodings that a module gives names to: alias with its sign → text, aliases in it put in."""
    raw = {match[1]: match[2] for match in _ALIAS.finditer(text)}
    table = AliasTable(raw, _NAME)
    return {name: table.resolve(name) for name in raw}


def resolve_aliases(text: str, aliases: Mapping[str, str]) -> str:
    """A text with every alias it names put in; unknown names stay."""
    return AliasTable(aliases, _NAME).expand(text)


def parse_encoding(text: str, aliases: Mapping[str, str] | None = None) -> Encoding:
    """Read an encoding; raises ParseError where it is none. Of one with a strange body only the text is kept."""
    text = " ".join(resolve_aliases(text.strip(), aliases or {}).split())
    match = _NAME.match(text)
    if match is None or "." not in match[0]:
        raise ParseError(f"{text!r} is no encoding: write one as TTGIR does, such as '#ttg.blocked<{{…}}>'.")
    return read_encoding(text)


def read_encoding(text: str) -> Encoding:
    """Read an encoding whose aliases are put in; never raises: what it can't read stays text."""
    match = _NAME.match(text)
    try:
        reader = _Reader(text)
        encoding = reader.encoding(0)
        if not reader.at_end:
            raise ParseError("more follows")
        return encoding
    except (ParseError, StopIteration):
        return Encoding(match[0].removeprefix("#") if match and "." in match[0] else "", (), text)


class _Reader:
    """Reads the words of an encoding, a value at a time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = list(_words(text))
        self._next = 0

    @property
    def at_end(self) -> bool:
        return self._next >= len(self._words)

    def _peek(self) -> str:
        return "" if self.at_end else self._words[self._next][0]

    def _take(self, expected: str = "") -> str:
        if self.at_end:
            raise ParseError("the text ends early")
        word = self._words[self._next][0]
        if expected and word != expected:
            raise ParseError(f"{word!r} stands where {expected!r} should")
        self._next += 1
        return word

    def encoding(self, depth: int) -> Encoding:
        if depth > _DEEPEST:
            raise ParseError("it is too deep")
        first = self._next
        name = self._take()
        if not name.startswith("#"):
            raise ParseError(f"{name!r} begins no encoding")
        parameters: tuple[tuple[str, Value], ...] = ()
        if self._peek() == "<":
            self._take("<")
            parameters = self._items(">", depth)
            self._take(">")
        text = self._text[self._words[first][1] : self._words[self._next - 1][2]]
        return Encoding(name[1:], parameters, text)

    def _items(self, closing: str, depth: int) -> tuple[tuple[str, Value], ...]:
        items: list[tuple[str, Value]] = []
        while self._peek() not in (closing, ""):
            if self._peek() == "{":
                self._take("{")
                items += self._items("}", depth)
                self._take("}")
            elif self._peek() == ",":
                self._take(",")
            else:
                items.append(self._item(depth))
        return tuple(items)

    def _item(self, depth: int) -> tuple[str, Value]:
        value = self._value(depth)
        if self._peek() == "=" and isinstance(value, str):
            self._take("=")
            return value, self._value(depth)
        return "", value

    def _value(self, depth: int) -> Value:
        if depth > _DEEPEST:
            raise ParseError("it is too deep")
        word = self._peek()
        if word.startswith("#"):
            return self.encoding(depth + 1)
        if word == "{":
            self._take("{")
            items = self._items("}", depth + 1)
            self._take("}")
            return items
        if word == "[":
            return self._list(depth + 1)
        if word in ("true", "false"):
            return self._take() == "true"
        if word.lstrip("-").isdigit():
            number = int(self._take()) if len(word) < 20 else 0
            if self._peek() == ":+":
                # 512:+16, an interval and its padding
                self._take()
                return (number, int(self._take()))
            if self._peek() == ":":
                # 0 : i32
                self._take()
                self._take()
            return number
        if word in ("<", ">", "}", "]", ")", "=", ",", ""):
            raise ParseError(f"{word!r} is no value")
        return self._take().strip('"')

    def _list(self, depth: int) -> tuple[Value, ...]:
        self._take("[")
        values: list[Value] = []
        while self._peek() != "]":
            values.append(self._value(depth))
            if self._peek() == ",":
                self._take(",")
        self._take("]")
        return tuple(values)


def _words(text: str) -> Iterator[tuple[str, int, int]]:
    position = 0
    while position < len(text) and not text[position:].isspace():
        match = _TOKEN.match(text, position)
        if match is None:
            raise ParseError(f"{text[position]!r} belongs in no encoding")
        yield match[1], match.start(1), match.end(1)
        position = match.end()
