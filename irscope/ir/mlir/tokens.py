"""The tokens that structure MLIR text, with their spans: brackets, commas, colons, arrows and locations.

Everything that splits MLIR text goes through `marks`: lists, types, attributes, parameters and `loc(...)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256

STRING = r'(?<!\\)"(?:[^"\\\n]|\\.)*"'
"""A string with its escapes; it never spans two lines."""
ALIAS = re.compile(r"[#!][A-Za-z_$][\w$]*(?![\w$.<])")
"""A use of an alias: `#blocked1`, but not `#ttg.slice<…>`."""

VALUE_NAME = re.compile(r"%[\w$.-]+")
"""The name of a value: `%acc_69`, without the number of a result."""

# "text with ) in it"   loc(   ->   (   ,   :
_MARK = re.compile(STRING + r"|(?<![\w.$@%#!-])loc\(|->|[()\[\]{}<>,:]")
_OPENING = frozenset(["loc(", "(", "[", "{", "<"])
_CLOSING = frozenset(")]}>")

Mark = tuple[str, int, int]
"""(token, position, how many brackets it stands in); a bracket does not stand in itself."""


def marks(text: str, start: int = 0, stop: int | None = None) -> Iterator[Mark]:
    """The structuring tokens of a part of a text, in order; strings are skipped, surplus closing brackets ignored."""
    depth = 0
    for match in _MARK.finditer(text, start, len(text) if stop is None else stop):
        token = match[0]
        if token in _OPENING:
            yield token, match.start(), depth
            depth += 1
        elif token in _CLOSING:
            depth = max(depth - 1, 0)
            yield token, match.start(), depth
        elif token[0] != '"':
            yield token, match.start(), depth


def closing(text: str, opening: int, stop: int | None = None) -> int:
    """The position of the bracket that closes the one at `opening`, before `stop`; -1 if there is none."""
    for token, position, depth in marks(text, opening, stop):
        if not depth and token in _CLOSING:
            return position
    return -1


def split_commas(text: str) -> list[str]:
    """A list split at the commas outside of brackets."""
    parts: list[str] = []
    start = 0
    for token, position, depth in marks(text):
        if token == "," and not depth:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]


def last_mark(text: str, token: str) -> int:
    """The position of the last such token outside of brackets; -1 if there is none."""
    return max((position for one, position, depth in marks(text) if one == token and not depth), default=-1)


def split_types(text: str) -> tuple[str, str]:
    """What stands before and behind the last ` : ` outside of brackets: an operation's text and its types."""
    start = -1
    for token, position, depth in marks(text):
        if token == ":" and not depth and text[position - 1 : position + 2] == " : ":
            start = position
    return (text[: start - 1], text[start + 2 :].strip()) if start >= 0 else (text, "")


def types_of(text: str) -> str:
    """The types of an operation: what follows the last ` : ` outside of brackets; an empty string if nothing does."""
    return split_types(text)[1].removesuffix("{").strip()


def parameters_of(header: str) -> dict[str, tuple[str, str]]:
    """The arguments that the head of a function or block declares: name → (type, attributes)."""
    opening = header.find("(")
    end = closing(header, opening) if opening >= 0 else -1
    found: dict[str, tuple[str, str]] = {}
    for part in split_commas(header[opening + 1 : end]) if end >= 0 else ():
        name, colon, rest = part.partition(": ")
        if colon:
            kind, _, attributes = rest.partition(" {")
            found[name] = kind, attributes.removesuffix("}")
    return found


def behind_arrow(text: str) -> list[str]:
    """The types behind the last arrow outside of brackets; an empty list if there is none."""
    start = last_mark(text, "->")
    if start < 0:
        return []
    rest = text[start + 2 :].strip()
    if rest.startswith("(") and (end := closing(rest, 0)) >= 0:
        return [part for part in split_commas(rest[1:end]) if part]
    return split_commas(rest.removesuffix("{").strip())


def attribute_spans(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each attribute dictionary of an operation, properties included; those of types are left out."""
    start = outer = -1
    for token, position, depth in marks(text):
        if start < 0:
            # A brace that ends the line opens a region.
            if token == "{" and position + 1 < len(text):
                start, outer = position, depth
        elif token == "}" and depth == outer:
            # " <{axis = 0}>" are properties, "#ttg.blocked<{…}>" is an attribute of a type.
            if text[start - 1 : start] != "<":
                yield start, position + 1
            elif text[start - 2 : start - 1] == " ":
                yield start - 1, position + 2
            start = -1


def location_spans(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each outermost `loc(...)` of a line; one that is not closed is left out."""
    start = outer = -1
    for token, position, depth in marks(text):
        if start < 0:
            if token == "loc(":
                start, outer = position, depth
        elif token == ")" and depth == outer:
            yield start, position + 1
            start = -1


def trailing_location(line: str) -> str | None:
    """What stands in the `loc(...)` that ends a line; None if the line ends otherwise."""
    start = line.rfind("loc(")
    if start < 0 or line[-1] != ")":
        return None
    inner = line[start + 4 : -1]
    if line[start - 1] in " \t" and '"' not in inner and inner.count("(") == inner.count(")"):
        return inner
    last = None
    for last in location_spans(line):  # noqa: B007 (the last one is wanted)
        pass
    return line[last[0] + 4 : -1] if last is not None and last[1] == len(line) else None


_NAMED_BY_COMPILER = ("true", "false", "cst")


def python_name(value: str) -> str:
    """The Python variable that a value's name says it is of: `acc` of `%acc_69#1`; empty without one."""
    name = value.removeprefix("%").partition("#")[0]
    stem, line, number = name.rpartition("_")
    if line and number.isdecimal():
        name = stem
    is_counted = name.startswith("arg") and name[3:].isdecimal()
    is_constant = name[:1] == "c" and name[1:].removeprefix("-")[:1].isdecimal()
    if is_counted or is_constant or name in _NAMED_BY_COMPILER:
        return ""
    return name if name.isascii() and name.isidentifier() else ""


# ── Definitions of aliases (`#blocked`, `!type`, `!3`), each resolved once and to a bounded length, however they nest ─

LONGEST = 20_000
"""Characters of a resolved alias: twenty aliases that double would make a text of a million."""


_LAYOUT_DIALECTS = ("#ttg.", "#ttng.", "#gluon.", "#amdg.")
# "#blocked = #ttg.blocked<{…}>"   '#loc3 = loc("x.py":1:2)'   "!t = tensor<4xf32>"
_DEFINITION = re.compile(r"([#!][A-Za-z_$][\w$]*) = ((?:.*\S)?)\s*$")


def definitions(text: str) -> dict[str, str]:
    """The aliases that a module defines: alias with its sign → its text, as written."""
    lines = (line for line in text.split("\n") if line[:1] in ("#", "!"))
    return {match[1]: match[2] for line in lines if (match := _DEFINITION.match(line)) is not None}


def is_layout_alias(line: str) -> bool:
    """Whether a line of a module defines an alias of a layout: `#blocked1 = #ttg.blocked<{…}>`."""
    name, sign, value = line.partition(" = ")
    return name[:1] == "#" and bool(sign) and value.startswith(_LAYOUT_DIALECTS) and not name.startswith("#loc")


def reachable(names: Iterable[str], bodies: Mapping[str, str], pattern: re.Pattern[str] = ALIAS) -> set[str]:
    """The names that are defined, of those given and those that their definitions use, directly or through others."""
    waiting, reached = list(names), set[str]()
    while waiting:
        one = waiting.pop()
        if one not in reached and one in bodies:
            reached.add(one)
            waiting.extend(pattern.findall(bodies[one]))
    return reached


class AliasTable:
    """Replaces aliases by their definitions."""

    def __init__(self, definitions: Mapping[str, str], pattern: re.Pattern[str] = ALIAS) -> None:
        """`definitions`: alias with its sign → its text. `pattern`: matches an alias within a text."""
        self._definitions = definitions
        self._pattern = pattern
        self._resolved: dict[str, str] = {}

    def resolve(self, name: str) -> str:
        """The definition of an alias with the aliases in it resolved; the name itself if it is not defined.

        An alias within its own definition becomes `<itself>`. A text of more than `LONGEST` characters is cut; a digest
        at its end tells two such texts apart.
        """
        if name not in self._definitions:
            return name
        # An explicit stack: a hostile text may nest aliases deeper than Python's own stack allows.
        stack, visiting = [name], set[str]()
        while stack:
            top = stack[-1]
            if top in self._resolved:
                stack.pop()
                continue
            value = self._definitions[top]
            missing = [
                other
                for other in self._pattern.findall(value)
                if other in self._definitions and other not in self._resolved and other not in visiting and other != top
            ]
            if missing:
                visiting.add(top)
                stack.extend(missing)
                continue
            self._resolved[top] = self._bounded(self._pattern.sub(self._replacement, value))
            visiting.discard(top)
            stack.pop()
        return self._resolved[name]

    def expand(self, text: str) -> str:
        """The text with every alias replaced by its definition; undefined names stay."""
        if "#" not in text and "!" not in text:
            return text
        return self._bounded(self._pattern.sub(lambda match: self.resolve(match[0]), text), len(text))

    def _replacement(self, match: re.Match[str]) -> str:
        name = match[0]
        return self._resolved.get(name, name if name not in self._definitions else f"{name[0]}<itself>")

    @staticmethod
    def _bounded(text: str, own: int = 0) -> str:
        if len(text) <= max(LONGEST, 2 * own):
            return text
        return f"{text[:80]}…{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
