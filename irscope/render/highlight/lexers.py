"""The Pygments lexers that irscope registers: languages of stages that Pygments itself has no lexer for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from pygments.lexer import Lexer

from irscope.render.highlight.grammars import GRAMMARS, Grammar, TokenType


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
