"""The words of each language that stages are written in: one table of patterns per language, in `grammars.txt`.

LLVM IR and PTX have grammars here because the lexers of Pygments know fixed lists of words, which the compilers of
today have outgrown: an attribute such as `captures(none)` becomes a row of errors, one per letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

from pygments.token import (
    Error,
    Text,
    Whitespace,
    _TokenType,  # pyright: ignore[reportPrivateUsage]
    string_to_tokentype,
)

from irscope.model.capture import StageKind

TokenType = _TokenType


@dataclass(frozen=True)
class Grammar:
    """The kinds of words of a language. Where several patterns match, the first one counts."""

    rules: tuple[tuple[TokenType, str], ...]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """All rules as one pattern; `match.lastindex - 1` is the index of the rule that matched."""
        return re.compile("|".join(f"({pattern})" for _, pattern in self.rules), re.MULTILINE)

    @cached_property
    def types(self) -> tuple[TokenType, ...]:
        """The kind of each rule's words."""
        return tuple(token for token, _ in self.rules)

    def tokens(self, text: str) -> Iterator[tuple[int, TokenType, str]]:
        """The words of a text, with their places; they rejoin to the text. Time is linear in its length."""
        end = 0
        for match in self.pattern.finditer(text):
            start = match.start()
            if start > end:
                yield from _between(text[end:start], end)
            yield start, self.types[(match.lastindex or 1) - 1], match[0]
            end = match.end()
        if end < len(text):
            yield from _between(text[end:], end)


def _between(gap: str, start: int) -> Iterator[tuple[int, TokenType, str]]:
    """What no rule matched: blanks, and characters that the language does not have."""
    for match in re.finditer(r"(\s+)|\S", gap):
        yield start + match.start(), Whitespace if match[1] else Error, match[0]


# Each pattern stops at the end of its line or consumes what it looked at, so that no text makes matching slow.
_STRING = r'(?<!\\)"(?:[^"\\\n]|\\.)*"'
_BLOCK_COMMENT = r"/\*(?:[^*]|\*(?!/))*(?:\*/)?"

_PLAIN = Grammar(((Text, r"[^\n]+"),))


def _grammars() -> Iterator[tuple[StageKind, Grammar]]:
    text = Path(__file__).with_name("grammars.txt").read_text("utf-8")
    text = text.replace("<STRING>", _STRING).replace("<BLOCK COMMENT>", _BLOCK_COMMENT)
    for kind, *lines in (part.splitlines() for part in text.split("\n[")[1:]):
        rows = (line.partition(" ") for line in lines if line and not line.startswith("# "))
        yield cast(StageKind, kind.removesuffix("]")), Grammar(tuple((string_to_tokentype(a), b) for a, _, b in rows))


GRAMMARS: dict[StageKind, Grammar] = {**dict(_grammars()), "binary": _PLAIN}
"""The grammar of each kind of stage; a binary's text is plain."""
