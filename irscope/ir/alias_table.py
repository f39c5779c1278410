"""What aliases (`#blocked`, `!type`, `!3`) stand for, each resolved once and to a bounded length, however they nest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256

__all__ = ["LONGEST", "AliasTable"]

LONGEST = 20_000
"""Characters of an alias with those it names put in. Twenty aliases that double would make a text of a million."""


class AliasTable:
    """Puts in for aliases what they stand for."""

    def __init__(self, definitions: Mapping[str, str], pattern: re.Pattern[str]) -> None:
        """`definitions`: alias with its sign → its text. `pattern`: matches an alias within a text."""
        self._definitions = definitions
        self._pattern = pattern
        self._resolved: dict[str, str] = {}

    def resolve(self, name: str) -> str:
        """The text an alias stands for, its own aliases put in; the name itself where nothing defines it.

        An alias that names itself stands for `<itself>` there. A text of more than `LONGEST` characters is cut, and a
        digest of it says whether two are equal.
        """
        if name not in self._definitions:
            return name
        # A stack of its own: a hostile text may nest aliases deeper than Python may call.
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
            self._resolved[top] = self._bounded(self._pattern.sub(self._put_in, value))
            visiting.discard(top)
            stack.pop()
        return self._resolved[name]

    def expand(self, text: str) -> str:
        """A text with every alias it names put in; unknown names stay."""
        if "#" not in text and "!" not in text:
            return text
        return self._bounded(self._pattern.sub(lambda match: self.resolve(match[0]), text), len(text))

    def _put_in(self, match: re.Match[str]) -> str:
        name = match[0]
        return self._resolved.get(name, name if name not in self._definitions else f"{name[0]}<itself>")

    @staticmethod
    def _bounded(text: str, own: int = 0) -> str:
        if len(text) <= max(LONGEST, 2 * own):
            return text
        return f"{text[:80]}…{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
