"""Reads the assembly of every backend: PTX, SASS and AMDGCN text to functions and instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from irscope.capture import stage_named
from irscope.errors import ParseError
from irscope.ir.amdgcn import AmdgcnFunction, AmdgcnModule, parse_amdgcn
from irscope.ir.control import ControlInfo, reuse_mask
from irscope.ir.instructions import AnyFunction, AnyInstruction, Instruction, Label, OpaqueLine
from irscope.ir.opcodes import classify
from irscope.ir.ptx import PtxFunction, PtxModule, parse_ptx
from irscope.ir.sass import LiveRegisters, SassFunction, SassInstruction, format_sass, with_live_registers
from irscope.ir.sass_reader import parse_sass

__all__ = [
    "AmdgcnFunction",
    "AmdgcnModule",
    "AnyFunction",
    "AnyInstruction",
    "ControlInfo",
    "Instruction",
    "Label",
    "LiveRegisters",
    "OpaqueLine",
    "PtxFunction",
    "PtxModule",
    "SassFunction",
    "SassInstruction",
    "classify",
    "count_families",
    "format_sass",
    "parse_amdgcn",
    "parse_functions",
    "parse_ptx",
    "parse_sass",
    "reuse_mask",
    "with_live_registers",
]


def parse_functions(stage: str, text: str) -> tuple[AnyFunction, ...]:
    """The functions of one stage's text, without the padding behind their code.

    Args:
        stage: `ptx`, `sass` or `amdgcn`.
        text: the stage's text.

    Raises ParseError where the stage holds no assembly; whatever the text is, it is read without one.
    """
    kind = stage_named(stage).kind
    if kind == "ptx":
        return parse_ptx(text).functions
    if kind == "sass":
        return tuple(function.without_padding() for function in parse_sass(text))
    if kind == "amdgcn":
        return parse_amdgcn(text).functions
    raise ParseError(f"stage {stage!r} holds no assembly: only ptx, sass and amdgcn have instructions.")


def count_families(instructions: Iterable[AnyInstruction]) -> dict[str, int]:
    """How many instructions there are of each family of `classify`, the most frequent first; the others not at all."""
    counts = Counter(family for item in instructions if (family := classify(item.opcode, item.operands)) is not None)
    return dict(counts.most_common())
