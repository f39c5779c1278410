"""The functions of LLVM IR as assembly's readers give theirs: instructions one after another, and labels."""

from __future__ import annotations

import re

from irscope.analysis.flow.dataflow_llvm import operation_name
from irscope.ir.asm.instructions import Function, Instruction, Label
from irscope.ir.locations.model import text_lines

# define ptx_kernel void @kernel(ptr addrspace(1) %0) {
_DEFINE = re.compile(r'define .*?@(?:"(?P<quoted>[^"]*)"|(?P<name>[\w.$-]+))\(')
# 47:                                               ; preds = %0
_LABEL = re.compile(r'(?:"(?P<quoted>[^"]*)"|(?P<name>[\w.$-]+)):')
#   %9 = add i32 %8, 1, !dbg !14        store i32 0, ptr %2
_INSTRUCTION = re.compile(r'  (?:%(?:"[^"]*"|[\w.$-]+) = )?(?:(?:tail|musttail|notail) )?(?P<opcode>[a-z]\w*)\b')
_OPENS = re.compile(r"  switch\b[^\]]*$")


def read_llvm_functions(text: str) -> tuple[Function, ...]:
    """Read the functions of a module. Never raises: a line that cannot be read is left out.

    An instruction's opcode is the name of what it calls, where it calls; its operand is its text.
    """
    functions: list[Function] = []
    name = ""
    instructions: list[Instruction] = []
    labels: list[Label] = []
    for number, line in enumerate(text_lines(text), 1):
        define = _DEFINE.match(line)
        if define is not None:
            name, instructions, labels = define["quoted"] or define["name"], [], []
        elif line[:1] == "}" and name:
            functions.append(Function(name, tuple(instructions), tuple(labels)))
            name = ""
        elif name and line[:2] == "  ":
            _read_instruction(line, number, instructions)
        elif name and (label := _LABEL.match(line)) is not None:
            labels.append(Label(label["quoted"] or label["name"], len(instructions)))
    return tuple(functions)


def _read_instruction(line: str, number: int, instructions: list[Instruction]) -> None:
    last = instructions[-1] if instructions else None
    if last is not None and last.opcode == "switch" and _OPENS.match(last.operands[0]):  # its cases, a line each
        whole = f"{last.operands[0]} {line.strip()}"
        instructions[-1] = Instruction("switch", (whole,), line=last.line)
        return
    match = _INSTRUCTION.match(line)
    if match is not None:
        code = line.partition(", !dbg ")[0]
        instructions.append(Instruction(operation_name(match["opcode"], code), (code,), line=number))
