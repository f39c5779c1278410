"""The one model of PTX, SASS, AMD GPU assembly and LLVM IR as code: functions, labels and instructions.

What an instruction does is a reading of its text by the table of its language: `family` and `effect` say what kind it
is and which memory it touches, `writes` and `reads` name its registers one by one, `branch` says where it goes on.
What a table does not know is opaque: `is_known` is False, and it is taken to do anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from irscope.ir.asm.amdgcn_opcodes import amdgcn_access, amdgcn_flow
from irscope.ir.asm.opcodes import MemoryEffect, effect_of, family_of, ptx_opcode
from irscope.ir.asm.operands import (
    Mode,
    Operand,
    RegisterAccess,
    parse_operand,
    register_names,
    register_templates,
    registers_of,
)
from irscope.ir.asm.sass_opcodes import sass_access, sass_flow
from irscope.ir.locations.model import Chain
from irscope.model.capture import StageKind

# ── The control fields of a SASS instruction (Volta and later): stall, yield, scoreboard barriers, operand reuse ────
# Since Volta, NVIDIA's 128-bit instructions carry their own scheduling. Counted from the lowest bit of the 128:
#
#     105–108  stall: cycles before the warp's next instruction may issue
#     109      yield: 0 lets the scheduler switch to another warp, 1 prefers to stay
#     110–112  write barrier: the scoreboard set until the result is written, 7 for none
#     113–115  read barrier: the scoreboard set until the operands are read, 7 for none
#     116–121  wait mask: the scoreboards that must be clear before it issues
#     122–125  reuse: source operands kept in the operand cache, `.reuse` in the text
#
# Sources: Z. Jia, M. Maggioni, B. Staiger, D. P. Scarpazza, "Dissecting the NVIDIA Volta GPU Architecture via
# Microbenchmarking" (arXiv:1804.06826), 2018, section 2.1; the notation is the one that maxas, turingas and CuAssembler
# have established: `B01----:R2:W3:Y:S04`.

_NO_BARRIER = 7

# B------:R-:W0:-:S07    B01----:R2:W-:Y:S12
CONTROL = re.compile(r"B(?P<wait>[0-5-]{6}):R(?P<read>[0-6-]):W(?P<write>[0-6-]):(?P<yields>[Y-]):S(?P<stall>\d\d)")

# "        0010  B------:R-:W1:-:S01  G002:P0:U00:Q0  LDC R7, c[0x0][0x22c]": address, control, live registers
COLUMNS = re.compile(
    r"^\s*[0-9a-f]{4,}\s+(?:(?P<control>B[\d-]{6}:R[\d-]:W[\d-]:[Y-]:S\d\d)|-)\s+(?P<live>G\d+(?::[PUQ]\d+)*)?\s*"
)
# G002:P0:U00:Q0
_LIVE = re.compile(r"G(\d+):P(\d+):U(\d+):Q\d+")


def without_columns(line: str) -> str:
    return COLUMNS.sub("", line)


def columns_of(line: str) -> tuple[str, ...]:
    """The columns of control and of live registers before an instruction of SASS, those that are there."""
    found = COLUMNS.match(line)
    return tuple([text for text in found.groups() if text]) if found else ()


def column_meaning(column: str) -> str:
    live = _LIVE.fullmatch(column)
    if live is not None:
        general, predicates, uniform = map(int, live.groups())
        return f"live: {general} registers, {predicates} predicates, {uniform} uniform"
    control = ControlInfo.parse(column)
    if control is None:
        return ""
    parts = [f"stalls {control.stall} cycles"]
    if control.yields:
        parts.insert(0, "may yield to another warp")
    if control.read_barrier is not None:
        parts.insert(0, f"sets scoreboard {control.read_barrier} until its operands are read")
    if control.write_barrier is not None:
        parts.insert(0, f"sets scoreboard {control.write_barrier} until its result is written")
    if control.waits_for:
        parts.insert(0, f"waits for scoreboard {', '.join(map(str, control.waits_for))}")
    return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class ControlInfo:
    """How one instruction is scheduled. As text `B01----:R2:W3:Y:S04`."""

    stall: int = 0
    """Cycles before the warp's next instruction may issue, 0 to 15."""
    yields: bool = False
    """Whether the scheduler is asked to switch to another warp."""
    write_barrier: int | None = None
    """The scoreboard that is set until the result is written, 0 to 5."""
    read_barrier: int | None = None
    """The scoreboard that is set until the operands are read, 0 to 5."""
    wait_mask: int = 0
    """Bit n: it waits for scoreboard n to clear."""

    @staticmethod
    def decode(encoding: tuple[int, int]) -> ControlInfo:
        """Read the fields from an encoding, given as its low and its high 64 bits."""
        bits = encoding[1] >> (105 - 64)
        write, read = bits >> 5 & 7, bits >> 8 & 7
        return ControlInfo(
            stall=bits & 15,
            yields=not bits >> 4 & 1,
            write_barrier=None if write == _NO_BARRIER else write,
            read_barrier=None if read == _NO_BARRIER else read,
            wait_mask=bits >> 11 & 63,
        )

    @staticmethod
    def parse(text: str) -> ControlInfo | None:
        """Read `B01----:R2:W3:Y:S04`; None if the text has another form."""
        match = CONTROL.fullmatch(text)
        if match is None:
            return None
        return ControlInfo(
            stall=int(match["stall"]),
            yields=match["yields"] == "Y",
            write_barrier=None if match["write"] == "-" else int(match["write"]),
            read_barrier=None if match["read"] == "-" else int(match["read"]),
            wait_mask=sum(1 << int(digit) for digit in set(match["wait"]) - {"-"}),
        )

    def __str__(self) -> str:
        waits = "".join(str(n) if self.wait_mask >> n & 1 else "-" for n in range(6))
        read = "-" if self.read_barrier is None else self.read_barrier
        write = "-" if self.write_barrier is None else self.write_barrier
        return f"B{waits}:R{read}:W{write}:{'Y' if self.yields else '-'}:S{self.stall:02}"

    @property
    def waits_for(self) -> tuple[int, ...]:
        return tuple(n for n in range(6) if self.wait_mask >> n & 1)


@dataclass(frozen=True, slots=True)
class LiveRegisters:
    """How many registers hold a value at an instruction. As text `G013:P2:U04:Q0`."""

    general: int = 0
    predicate: int = 0
    uniform: int = 0
    uniform_predicate: int = 0

    @staticmethod
    def parse(text: str) -> LiveRegisters:
        """Read `G013:P2:U04:Q0`; a part that is not there is 0."""
        parts = {part[0]: int(part[1:]) for part in text.split(":")}
        return LiveRegisters(parts.get("G", 0), parts.get("P", 0), parts.get("U", 0), parts.get("Q", 0))

    def __str__(self) -> str:
        return f"G{self.general:03}:P{self.predicate}:U{self.uniform:02}:Q{self.uniform_predicate}"


Ending = Literal["", "exit", "return"]
Spill = Literal["", "store", "load"]
_ALWAYS = ("", "@PT", "@UPT")
# label %12       label %"a b"       i32 3, label %7
_LLVM_LABEL = re.compile(r'(?:\bi\d+ (?P<value>-?\d+), )?\blabel %("?)(?P<name>[^",\s\]]+|[^"]+)\2')
# %12       %"a name", but not the label of a block
_LLVM_VALUE = re.compile(r'(?<!label )%(?:"[^"]*"|[\w.$-]+)')


@dataclass(frozen=True, slots=True)
class Branch:
    """The possible successors of an instruction that is not always followed by the next one."""

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


@dataclass(frozen=True, slots=True)
class Instruction:
    opcode: str
    """With every suffix: `ld.global.v4.b32`, `v_add_f32_e32`, `LDG.E.128`; of LLVM IR `add`, `call`."""
    operands: tuple[str, ...] = ()
    """As they are written; of LLVM IR one, the whole text of the instruction."""
    predicate: str = ""
    """`@%p1`, `@!UP1`, or an empty string."""
    line: int = field(default=0, compare=False)
    """1-based line of the text it begins on."""
    kind: StageKind = field(default="ptx", compare=False)
    """The language: `ptx`, `sass`, `amdgcn` or `llvm`."""
    span: tuple[int, int] = field(default=(0, 0), compare=False)
    """Where it stands in the text: the first character and the one behind the last."""
    offset: int = 0
    """Of SASS: bytes from the start of its section."""
    control: ControlInfo | None = None
    """Of SASS: how it is scheduled."""
    location: Chain = ()
    """Of SASS, as its text states it; `irscope.ir.locations.stages` says where each line of a text comes from."""
    live: LiveRegisters | None = None
    """Of SASS: how many registers hold a value at it, where nvdisasm counted them."""
    encoding: tuple[int, int] | None = field(default=None, compare=False)
    """Of SASS: its low and its high 64 bits; None in irscope's normal form, which has the control fields only."""

    @property
    def text(self) -> str:
        """The instruction on one line, predicate included, blanks normalised."""
        if self.kind == "llvm":
            return self.operands[0] if self.operands else self.opcode
        return " ".join(part for part in (self.predicate, self.opcode, ", ".join(self.operands)) if part)

    @property
    def family(self) -> str | None:
        """What it is: `mma`, `ld.global.128`; None if it belongs to no family, or if no table knows it."""
        return family_of(self.kind, self.opcode, self.operands)

    @property
    def effect(self) -> MemoryEffect:
        return effect_of(self.family)

    @property
    def arguments(self) -> tuple[Operand, ...]:
        """Of PTX: its operands, taken apart."""
        return tuple([parse_operand(operand) for operand in self.operands])

    @property
    def access(self) -> RegisterAccess | None:
        """Of machine code: what it does with the registers that its text names, and with others."""
        return _access(self.text, self.kind)

    @property
    def is_known(self) -> bool:
        """Whether the table of its language knows what it does to registers or memory."""
        if self.kind in _ACCESSES:
            access = self.access
            return access is not None and not access.is_unknown
        return self.kind == "llvm" or self.family is not None

    @property
    def registers(self) -> tuple[tuple[str, Mode], ...]:
        """Each single register with how it is used: `R4` to `R7` of `LDG.E.128 R4`, `scc` of an `s_addc_u32`.

        Of PTX they are all names that stand where a register may: a variable of shared memory is among them.
        """
        if self.kind in _ACCESSES:
            return _machine_registers(self.text, self.kind)
        if self.kind == "llvm":
            names = _LLVM_VALUE.findall(self.text)
            is_result = self.text.lstrip().startswith("%")
            return tuple([(name, "w" if is_result and not place else "r") for place, name in enumerate(names)])
        return self._virtual_registers() if self.kind == "ptx" else ()

    @property
    def writes(self) -> tuple[str, ...]:
        return tuple([name for name, mode in self.registers if mode != "r"])

    @property
    def reads(self) -> tuple[str, ...]:
        """The registers it reads, those it modifies in place among them."""
        return tuple([name for name, mode in self.registers if mode != "w"])

    @property
    def branch(self) -> Branch | None:
        """Where it may go; None if the next instruction always follows."""
        if self.kind == "llvm":
            return _llvm_branch(self)
        return _amdgcn_branch(self) if self.kind == "amdgcn" else _branch(self)

    def _virtual_registers(self) -> tuple[tuple[str, Mode], ...]:
        opcode = ptx_opcode(self.opcode)
        found: list[tuple[str, Mode]] = []
        if self.predicate:
            found.append((self.predicate.lstrip("@!"), "r"))
        arguments = () if opcode.flow in ("jump", "call") else self.arguments
        for index, argument in enumerate(arguments):
            mode = opcode.mode(index, argument)
            found.extend((name, mode) for name in argument.names if name != "_")
        return tuple(found)


@dataclass(frozen=True, slots=True)
class CodeLabel:
    """A name for a place in a function's code."""

    name: str
    index: int
    """0-based index of the instruction it stands before; the number of instructions for one at the end."""
    scope: tuple[int, int] | None = field(default=None, compare=False)
    """The instructions that can name it, from the first to behind the last; None for all of the function.

    Blocks of inline assembly in PTX have labels of their own, and two blocks may have one of the same name.
    """


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    instructions: tuple[Instruction, ...] = ()
    labels: tuple[CodeLabel, ...] = ()


def spill_of(line: str) -> Spill:
    """Whether a line of SASS or AMD GPU assembly stores to local memory, or loads from it: with Triton, a spill."""
    if "Folded Spill" in line or "Folded Reload" in line:
        return "store" if "Folded Spill" in line else "load"
    names = {word.partition(".")[0] for word in line.split()}
    if "STL" in names or any(name.startswith("scratch_store") for name in names):
        return "store"
    return "load" if "LDL" in names or any(name.startswith("scratch_load") for name in names) else ""


_ACCESSES = {"sass": sass_access, "amdgcn": amdgcn_access}


@lru_cache(1 << 14)
def _access(text: str, kind: StageKind) -> RegisterAccess | None:
    return _ACCESSES[kind](register_templates(text, kind)) if kind in _ACCESSES else None


@lru_cache(1 << 14)
def _machine_registers(text: str, kind: StageKind) -> tuple[tuple[str, Mode], ...]:
    access = _access(text, kind)
    if access is None:
        return ()
    found: list[tuple[str, Mode]] = []
    for (width, mode), name in zip(access.holes, register_names(text, kind), strict=True):
        found.extend((register, mode) for register in registers_of(name, width))
    return (*found, *access.implicit)


def _branch(item: Instruction) -> Branch | None:
    flow = ptx_opcode(item.opcode).flow if item.kind == "ptx" else sass_flow(item.opcode)
    if flow == "next":
        return None
    predicate = "" if item.predicate in _ALWAYS else item.predicate
    if flow in ("end", "return"):
        return Branch(falls=bool(predicate), ending="exit" if flow == "end" else "return")
    if item.kind == "ptx":
        # call (retval), helper, (parameter);      bra $L__BB0_2;
        named = [operand for operand in item.operands if not operand.startswith("(")][:1]
        named = [] if named and named[0].startswith("%") else named
        others = list[str]()
    else:
        # The predicate may stand among the operands too: BRA P1, `(.L_x_3)      BRA.DIV UR4, `(.L_x_9)
        named = [operand.partition("`(")[2].partition(")")[0] for operand in item.operands if "`(" in operand][:1]
        others = [operand for operand in item.operands if "`(" not in operand]
    if flow == "call":
        return Branch(falls=True, calls=tuple(named) or ("",))
    if flow != "anywhere" and named:
        condition = " ".join([part for part in (predicate, *others) if part])
        return Branch(((named[0], condition),), bool(condition))
    return Branch(falls=bool(predicate), is_unknown=True, condition=predicate)


def _amdgcn_branch(item: Instruction) -> Branch | None:
    name, flow = item.opcode, amdgcn_flow(item.opcode)
    if flow in ("jump", "branch") and item.operands:
        condition = name.removeprefix("s_cbranch_") if flow == "branch" else ""
        return Branch(((item.operands[-1], condition),), flow == "branch")
    if name == "s_setpc_b64":
        # The calling convention keeps the address to return to in these.
        returns = item.operands == ("s[30:31]",)
        return Branch(ending="return" if returns else "", is_unknown=not returns)
    if name in ("s_swappc_b64", "s_call_b64"):
        return Branch(falls=True, calls=("",))
    return Branch(ending="exit") if flow == "end" else None


def _llvm_branch(item: Instruction) -> Branch | None:
    if item.opcode in ("indirectbr", "callbr", "invoke"):
        return Branch(is_unknown=True)
    if item.opcode in ("ret", "unreachable"):
        return Branch(ending="return" if item.opcode == "ret" else "exit")
    if item.opcode not in ("br", "switch"):
        return None
    found = [(match["name"], match["value"]) for match in _LLVM_LABEL.finditer(item.text)]
    if item.opcode == "switch":
        return Branch(tuple([(name, value or "default") for name, value in found]))
    conditions = ("true", "false") if len(found) == 2 else ("",) * len(found)
    return Branch(tuple([(name, condition) for (name, _), condition in zip(found, conditions, strict=True)]))
