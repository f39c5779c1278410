"""Where an instruction may go: branches, ends, returns and calls of PTX, SASS, AMDGCN and LLVM IR.

Sources: NVIDIA's "PTX ISA" (control flow instructions) and "CUDA Binary Utilities"; LLVM's AMDGPU instructions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from irscope.ir.asm.instructions import Instruction
from irscope.model.capture import StageKind

Ending = Literal["", "exit", "return"]

# `(.L_x_1)
_SASS_LABEL = re.compile(r"`\((?P<name>[^()]+)\)")
# label %12       label %"a b"
_LLVM_LABEL = re.compile(r'label %("?)(?P<name>[^",\s\]]+|[^"]+)\1')
# i32 3, label %7
_LLVM_CASE = re.compile(r'i\d+ (?P<value>-?\d+), label %("?)(?P<name>[^",\s\]]+|[^"]+)\2')
_ALWAYS = ("", "@PT", "@UPT")


@dataclass(frozen=True, slots=True)
class Branch:
    """What may run after an instruction that the next one does not always follow."""

    targets: tuple[tuple[str, str], ...] = ()
    """(label, the condition for it)."""
    falls: bool = False
    """Whether the next instruction may run."""
    ending: Ending = ""
    calls: tuple[str, ...] = ()
    is_unknown: bool = False
    """Whether it goes where a register says."""
    condition: str = ""
    """Of a jump to an unknown place."""


def branch_of(item: Instruction, kind: StageKind) -> Branch | None:
    """Where an instruction may go; None for one that the next always follows."""
    readers = {"ptx": _ptx, "sass": _sass, "amdgcn": _amdgcn, "llvm": _llvm}
    return readers[kind](item) if kind in readers else None


def _ptx(item: Instruction) -> Branch | None:
    name = item.opcode.partition(".")[0]
    conditional = bool(item.predicate)
    if name == "bra" and item.operands:
        return Branch(((item.operands[-1], item.predicate),), conditional)
    if name == "brx":
        return Branch(falls=conditional, is_unknown=True, condition=item.predicate)
    if name in ("ret", "exit", "trap"):
        return Branch(falls=conditional, ending="return" if name == "ret" else "exit")
    if name == "call":
        named = [operand for operand in item.operands if not operand.startswith("(")]
        called = named[0] if named and not named[0].startswith("%") else ""
        return Branch(falls=True, calls=(called,))
    return None


def _sass(item: Instruction) -> Branch | None:
    name = item.opcode.partition(".")[0]
    label = next((match["name"] for operand in item.operands if (match := _SASS_LABEL.search(operand))), "")
    # The predicate may stand among the operands too: BRA P1, `(.L_x_3)      BRA.DIV UR4, `(.L_x_9)
    others = [operand for operand in item.operands if not _SASS_LABEL.search(operand)]
    predicate = "" if item.predicate in _ALWAYS else item.predicate
    condition = " ".join([one for one in (predicate, *others) if one])
    if name in ("BRA", "JMP") and label:
        return Branch(((label, condition),), bool(condition))
    if name in ("BRA", "JMP", "BRX", "JMX", "BRXU", "JMXU"):
        return Branch(falls=bool(predicate), is_unknown=True, condition=predicate)
    if name in ("EXIT", "KILL"):
        return Branch(falls=bool(predicate), ending="exit")
    if name == "RET":
        return Branch(falls=bool(predicate), ending="return")
    if name == "CALL":
        return Branch(falls=True, calls=(label,))
    return None


def _amdgcn(item: Instruction) -> Branch | None:
    name = item.opcode
    if name == "s_branch" and item.operands:
        return Branch(((item.operands[0], ""),))
    if name.startswith("s_cbranch_") and item.operands:
        return Branch(((item.operands[-1], name.removeprefix("s_cbranch_")),), True)
    if name == "s_setpc_b64":
        # The calling convention keeps the address to return to in these.
        returns = item.operands == ("s[30:31]",)
        return Branch(ending="return" if returns else "", is_unknown=not returns)
    if name in ("s_swappc_b64", "s_call_b64"):
        return Branch(falls=True, calls=("",))
    return Branch(ending="exit") if name.startswith("s_endpgm") else None


def _llvm(item: Instruction) -> Branch | None:
    text = item.operands[0] if item.operands else ""
    if item.opcode == "br":
        names = [match["name"] for match in _LLVM_LABEL.finditer(text)]
        conditions = ("true", "false") if len(names) == 2 else ("",) * len(names)
        return Branch(tuple(zip(names, conditions, strict=True)))
    if item.opcode == "switch":
        cases = [(match["name"], match["value"]) for match in _LLVM_CASE.finditer(text)]
        default = _LLVM_LABEL.search(text)
        return Branch((*([(default["name"], "default")] if default else []), *cases))
    if item.opcode in ("indirectbr", "callbr", "invoke"):
        return Branch(is_unknown=True)
    if item.opcode in ("ret", "unreachable"):
        return Branch(ending="return" if item.opcode == "ret" else "exit")
    return None
