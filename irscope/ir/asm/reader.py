"""Reads the assembly of every backend: PTX, SASS and AMDGCN text to functions and instructions."""

from __future__ import annotations

from irscope.ir.asm.amdgcn import parse_amdgcn
from irscope.ir.asm.instructions import Function
from irscope.ir.asm.ptx import parse_ptx
from irscope.ir.asm.sass_reader import parse_sass
from irscope.model.capture import StageKind

__all__ = ["read_functions"]


def read_functions(text: str, kind: StageKind) -> tuple[Function, ...]:
    """The functions of a text, without the padding behind their code; none if the text is not assembly.

    Never raises: lines that cannot be read are skipped.
    """
    if kind == "ptx":
        return parse_ptx(text)
    if kind == "sass":
        return tuple(function.without_padding() for function in parse_sass(text))
    return parse_amdgcn(text) if kind == "amdgcn" else ()
