"""The words of each language that stages are written in, and the Pygments lexers that irscope registers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, cast

from pygments.lexer import Lexer
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
class _Grammar:
    """The kinds of words of a language. Where several patterns match, the first one counts."""

    rules: tuple[tuple[TokenType, str], ...]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """All rules as one pattern; `match.lastindex - 1` is the index of the rule that matched."""
        return re.compile("|".join(f"({pattern})" for _, pattern in self.rules), re.MULTILINE)

    @cached_property
    def types(self) -> tuple[TokenType, ...]:
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

_PLAIN = _Grammar(((Text, r"[^\n]+"),))


def _grammars() -> Iterator[tuple[StageKind, _Grammar]]:
    text = Path(__file__).with_name("grammars.txt").read_text("utf-8")
    text = text.replace("<STRING>", _STRING).replace("<BLOCK COMMENT>", _BLOCK_COMMENT)
    for kind, *lines in (part.splitlines() for part in text.split("\n[")[1:]):
        rows = (line.partition(" ") for line in lines if line and not line.startswith("# "))
        yield cast(StageKind, kind.removesuffix("]")), _Grammar(tuple((string_to_tokentype(a), b) for a, _, b in rows))


GRAMMARS: dict[StageKind, _Grammar] = {**dict(_grammars()), "binary": _PLAIN}
"""The grammar of each kind of stage; a binary's text is plain."""


class GrammarLexer(Lexer):
    """A lexer that reads the words of a grammar. Its tokens rejoin to the input: no line is stripped or added."""

    grammar: ClassVar[_Grammar]

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"stripnl": False, "ensurenl": False} | options)  # pyright: ignore[reportUnknownMemberType]

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, TokenType, str]]:
        return self.grammar.tokens(text)


class MlirLexer(GrammarLexer):
    """MLIR, with the dialects of Triton."""

    name = "MLIR"
    aliases: ClassVar[Sequence[str]] = ["mlir", "ttir", "ttgir", "glir"]
    filenames: ClassVar[Sequence[str]] = ["*.mlir", "*.ttir", "*.ttgir", "*.glir"]
    mimetypes: ClassVar[Sequence[str]] = ["text/x-mlir"]
    url = "https://mlir.llvm.org"
    grammar = GRAMMARS["mlir"]


class SassLexer(GrammarLexer):
    """SASS, NVIDIA's machine code, as nvdisasm prints it or in irscope's normal form."""

    name = "SASS"
    aliases: ClassVar[Sequence[str]] = ["nvsass"]
    url = "https://docs.nvidia.com/cuda/cuda-binary-utilities"
    grammar = GRAMMARS["sass"]


class AmdgcnLexer(GrammarLexer):
    """The assembly of AMD's GPUs, as LLVM prints it."""

    name = "AMDGCN"
    aliases: ClassVar[Sequence[str]] = ["amdgcn"]
    filenames: ClassVar[Sequence[str]] = ["*.amdgcn"]
    url = "https://llvm.org/docs/AMDGPUUsage.html"
    grammar = GRAMMARS["amdgcn"]
