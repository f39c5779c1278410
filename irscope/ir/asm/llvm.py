"""Reads LLVM IR as code: functions, blocks and instructions, and what they are by the name of what they call."""

from __future__ import annotations

import re
from typing import Literal

from irscope.ir.asm.instructions import Function, Instruction, Label
from irscope.ir.locations.model import text_lines

__all__ = ["LlvmRole", "llvm_role", "operation_name", "parse_llvm", "symbol_of"]

LlvmRole = Literal["sync", "dot", "shared", "memory", "reduce", "control", "argument", "trivial"]

_QUOTED = r'"(?P<quoted>[^"]*)"|(?P<name>[\w.$-]+)'
# @llvm.nvvm.ex2.approx.ftz.f32(      @"a name"(
_SYMBOL = re.compile(rf"@(?:{_QUOTED})\(")
# 47:                                               ; preds = %0
_BLOCK_LABEL = re.compile(rf"(?:{_QUOTED}):")
#   %9 = add i32 %8, 1, !dbg !14        store i32 0, ptr %2
_INSTRUCTION = re.compile(r'  (?:%(?:"[^"]*"|[\w.$-]+) = )?(?:(?:tail|musttail|notail) )?(?P<opcode>[a-z]\w*)\b')
# call void asm sideeffect "@$2 st.global.b32 [ $1 + 0 ], { $0 };", "r,l,b"(
_ASM = re.compile(r'\basm (?:\w+ ){0,4}"(?P<text>[^"]*)"')

# ld.global.b32      s_waitcnt
_OPCODE = re.compile(r"[a-z]\w*(?:[.:]+\w+)+$|[sv]_\w+$")

# Role, and what a name contains that has it, behind a dot what a word of it begins with. The first row decides.
_ROLES: tuple[tuple[LlvmRole, tuple[str, ...]], ...] = (
    ("sync", ("barrier", "wait", "fence", "commit")),
    ("dot", ("mma", "mfma", ".dot")),
    ("shared", ("shared", "lds", "ldmatrix", "stmatrix", "ds_", "ds.", "addrspace(3)")),
    ("memory", ("ld.global", "st.global", "cp.async", "buffer.load", "buffer.store", "raw.ptr", "atomic")),
    ("memory", (".load", ".store")),
    ("reduce", ("shfl", "bpermute", "permlane", "swizzle")),
)
_CONTROL = ("br", "ret", "switch", "unreachable")


def parse_llvm(text: str) -> tuple[Function, ...]:
    """Read the functions of a module. Never raises: a line that cannot be read is left out."""
    functions: list[Function] = []
    name = ""
    instructions: list[Instruction] = []
    labels: list[Label] = []
    start = 0
    for number, line in enumerate(text_lines(text), 1):
        if line.startswith("define "):
            name, instructions, labels = symbol_of(line), [], []
        elif line[:1] == "}" and name:
            functions.append(Function(name, tuple(instructions), tuple(labels)))
            name = ""
        elif name and line[:2] == "  ":
            _read_instruction(line, number, start, instructions)
        elif name and (label := _BLOCK_LABEL.match(line)) is not None:
            labels.append(Label(label["quoted"] or label["name"], len(instructions)))
        start += len(line) + 1
    return tuple(functions)


def _read_instruction(line: str, number: int, start: int, instructions: list[Instruction]) -> None:
    last = instructions[-1] if instructions else None
    if last is not None and last.opcode == "switch" and "]" not in last.operands[0]:  # its cases, a line each
        whole = f"{last.operands[0]} {line.strip()}"
        span = last.span[0], start + len(line)
        instructions[-1] = Instruction("switch", (whole,), line=last.line, kind="llvm", span=span)
        return
    match = _INSTRUCTION.match(line)
    if match is not None:
        code = line.partition(", !dbg ")[0]
        span = start + 2, start + len(code)
        instructions.append(Instruction(match["opcode"], (code,), line=number, kind="llvm", span=span))


def symbol_of(text: str) -> str:
    """The function that a line defines or calls, without `@`; empty for none."""
    symbol = _SYMBOL.search(text)
    return (symbol["quoted"] or symbol["name"] or "") if symbol is not None else ""


def operation_name(opcode: str, text: str) -> str:
    """The name of an instruction in a picture: of a call the function, without `llvm.`, or the inline assembly."""
    if opcode != "call":
        return opcode
    assembly = _ASM.search(text)
    if assembly is not None:
        return f"asm {_mnemonic(assembly['text'])}"
    return symbol_of(text).removeprefix("llvm.") or opcode


def llvm_role(name: str) -> LlvmRole:
    """The role of an instruction, by the name that `operation_name` gives."""
    words = "." + name.replace(" ", ".")
    for role, parts in _ROLES:
        if any(part in (words if part[0] == "." else name) for part in parts):
            return role
    first = words.split(".")[1]
    if first == "phi":
        return "argument"
    return "control" if first in _CONTROL else "trivial"


def _mnemonic(assembly: str) -> str:
    """The first instruction of inline assembly that is not a move, without its predicate and operands."""
    words = assembly.replace("\\0A", " ").replace("\\09", " ").replace(";", " ").split()
    found = [word for word in words if _OPCODE.match(word)]
    # A load is preceded by a move that clears its registers.
    return next((word for word in found if not word.startswith("mov.")), found[0] if found else "inline assembly")
