"""Definitions of aliases (`#blocked`, `!type`, `!3`), each resolved once and to a bounded length, however they nest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256

from irscope.ir.mlir.tokens import ALIAS

__all__ = ["LONGEST", "AliasTable", "definitions", "reachable"]

LONGEST = 20_000
"""Characters of a resolved alias: twenty aliases that double would make a text of a million."""


# "#blocked = #ttg.blocked<{…}>"   '#loc3 = loc("x.py":1:2)'   "!t = tensor<4xf32>"
_DEFINITION = re.compile(r"([#!][A-Za-z_$][\w$]*) = ((?:.*\S)?)\s*$")


def definitions(text: str) -> dict[str, str]:
    """The aliases that a module defines: alias with its sign → its text, as written."""
    lines = (line for line in text.split("\n") if line[:1] in ("#", "!"))
    return {match[1]: match[2] for line in lines if (match := _DEFINITION.match(line)) is not None}


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
