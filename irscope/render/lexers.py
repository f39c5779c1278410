"""Pygments lexers for the languages that stages are written in.

LLVM IR and PTX have lexers of their own here because Pygments' know fixed lists of words, which the compilers of today
have outgrown: an attribute such as `captures(none)` becomes a row of errors, a letter each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from pygments.lexer import Lexer

from irscope.capture import StageKind
from irscope.render.grammars import AMDGCN, LLVM, MLIR, PLAIN, PTX, SASS, Grammar, TokenType


class GrammarLexer(Lexer):
    """A lexer that reads the words of a grammar. Its tokens rejoin to the input: no line is stripped or added."""

    grammar: ClassVar[Grammar]

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"stripnl": False, "ensurenl": False} | options)  # pyright: ignore[reportUnknownMemberType]

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, TokenType, str]]:
        """The words of a text: place, type, text."""
        return self.grammar.tokens(text)


class MlirLexer(GrammarLexer):
    """MLIR, with the dialects of Triton."""

    name = "MLIR"
    aliases: ClassVar[Sequence[str]] = ["mlir", "ttir", "ttgir", "glir"]
    filenames: ClassVar[Sequence[str]] = ["*.mlir", "*.ttir", "*.ttgir", "*.glir"]
    mimetypes: ClassVar[Sequence[str]] = ["text/x-mlir"]
    url = "https://mlir.llvm.org"
    grammar = MLIR


class LlvmIrLexer(GrammarLexer):
    """LLVM IR."""

    name = "LLVM IR"
    aliases: ClassVar[Sequence[str]] = ["llir"]
    filenames: ClassVar[Sequence[str]] = ["*.llir"]
    mimetypes: ClassVar[Sequence[str]] = []
    url = "https://llvm.org/docs/LangRef.html"
    grammar = LLVM


class PtxLexer(GrammarLexer):
    """PTX, NVIDIA's virtual assembly."""

    name = "PTX (irscope)"
    aliases: ClassVar[Sequence[str]] = ["nvptx"]
    filenames: ClassVar[Sequence[str]] = []
    mimetypes: ClassVar[Sequence[str]] = []
    url = "https://docs.nvidia.com/cuda/parallel-thread-execution"
    grammar = PTX


class SassLexer(GrammarLexer):
    """SASS, NVIDIA's machine code, as nvdisasm prints it or in irscope's normal form."""

    name = "SASS"
    aliases: ClassVar[Sequence[str]] = ["nvsass"]
    filenames: ClassVar[Sequence[str]] = []
    mimetypes: ClassVar[Sequence[str]] = []
    url = "https://docs.nvidia.com/cuda/cuda-binary-utilities"
    grammar = SASS


class AmdgcnLexer(GrammarLexer):
    """The assembly of AMD's GPUs, as LLVM prints it."""

    name = "AMDGCN"
    aliases: ClassVar[Sequence[str]] = ["amdgcn"]
    filenames: ClassVar[Sequence[str]] = ["*.amdgcn"]
    mimetypes: ClassVar[Sequence[str]] = []
    url = "https://llvm.org/docs/AMDGPUUsage.html"
    grammar = AMDGCN


class PlainLexer(GrammarLexer):
    """A text in no language that irscope knows."""

    name = "Plain (irscope)"
    grammar = PLAIN


_LEXERS: dict[str, type[GrammarLexer]] = {
    "mlir": MlirLexer,
    "llvm": LlvmIrLexer,
    "ptx": PtxLexer,
    "sass": SassLexer,
    "amdgcn": AmdgcnLexer,
}


def lexer_for(kind: StageKind) -> Lexer:
    """The lexer of a stage's language; one that leaves the text plain for a binary."""
    return _LEXERS.get(kind, PlainLexer)()


def grammar_for(kind: StageKind) -> Grammar:
    """The words of a stage's language."""
    return _LEXERS.get(kind, PlainLexer).grammar
