"""Reads PTX, AMD GPU assembly and LLVM IR as code: functions, labels and instructions."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal

from irscope.ir.asm.instructions import CodeLabel, Function, Instruction
from irscope.ir.asm.operands import split_operands
from irscope.ir.locations.model import text_lines

# ── Reads PTX: functions with their parameters and registers, labels and instructions ───────────────────────────────
# Source: NVIDIA's "PTX ISA" manual, chapters 4 (syntax) and 11 (directives).

# // to the end of the line      /* over lines */
_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
# .section .debug_info {…}      .visible .entry matmul_kernel(      .func  (.param .b32 func_retval0) helper(
_OUTSIDE = re.compile(r"\.(?P<what>section|entry|func)\b")
# .entry k(      .func  (.param .b32 func_retval0) helper(
_HEADER = re.compile(r"\.(?:entry|func)\b\s*(?:\([^()]*\)\s*)?(?P<name>[\w$.%]+)")
# {      }      .loc 1 16 15      $L__BB0_2:
_BEFORE = re.compile(r"\s*(?:(?P<brace>[{}])|\.(?:loc|file)\b[^\n]*|(?P<label>[\w$%.]+)\s*:(?!:))")
# @!%p1 bra $L__BB0_2
_PTX_STATEMENT = re.compile(r"(?:(?P<predicate>@!?[\w$%]+)\s+)?(?P<opcode>[a-z][\w.:]*)(?:\s+(?P<operands>.*))?$")
# Of debuggers: they begin and end no block.
_DEBUG_LABELS = ("$L__tmp", "$L__func_begin", "$L__func_end")


@dataclass(frozen=True, slots=True)
class PtxFunction(Function):
    parameters: tuple[tuple[str, str], ...] = ()
    """(name, type): `("matmul_kernel_param_0", ".u64 .ptr .global .align 1")`."""
    registers: tuple[tuple[str, str], ...] = ()
    """(name, type) of each register that is declared: `("p", "pred")`, and `("%r", "b32")` for all of `%r<53>`."""
    directives: tuple[str, ...] = ()
    """What stands between its parameters and its body: `reqntid 128`."""
    tables: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """(name, labels) of each table that `brx.idx` chooses from."""

    def type_of(self, register: str) -> str:
        """The type that a register was declared with, such as `b32`; empty for a name that is no register."""
        types = dict(self.registers)
        return types.get(register) or types.get(register.rstrip("0123456789"), "")

    @property
    def threads(self) -> int | None:
        """The threads of a CTA, or the most that it may have; None if neither is stated."""
        for directive in self.directives:
            name, *numbers = directive.replace(",", " ").split()
            if name in ("reqntid", "maxntid") and numbers and numbers[0].isdecimal():
                return int(numbers[0][:6])
        return None


def parse_ptx(text: str) -> tuple[PtxFunction, ...]:
    """The functions of a PTX text that have a body. Never raises: unknown statements are skipped."""
    # Blanks in the place of a comment: what stands behind it stays where it is.
    bare = _COMMENT.sub(lambda comment: "\n".join([" " * len(line) for line in comment[0].split("\n")]), text)
    return _PtxReader(bare).read()


class _PtxReader:
    """Reads a text without comments; the last fields are what it has seen of the function it is in."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = list(accumulate(len(line) + 1 for line in text.split("\n")))
        """Where each line ends."""
        self.functions: list[PtxFunction] = []
        self._open()

    def _open(self) -> None:
        self.instructions: list[Instruction] = []
        self.labels: list[CodeLabel] = []
        self.registers: dict[str, str] = {}
        self.tables: dict[str, tuple[str, ...]] = {}

    def read(self) -> tuple[PtxFunction, ...]:
        found = _OUTSIDE.search(self.text)
        while found is not None:
            # Debug data are passed over.
            end = self.text.find("}", found.end()) if found["what"] == "section" else self._declared(found)
            found = _OUTSIDE.search(self.text, end) if end >= 0 else None
        return tuple(self.functions)

    def _declared(self, header: re.Match[str]) -> int:
        """Where a declaration, or a function with its body, ends; -1 if that does not stand there."""
        brace, semicolon = self.text.find("{", header.end()), self.text.find(";", header.end())
        if brace < 0 or 0 <= semicolon < brace:
            return semicolon
        head = self.text[header.start() : brace]
        name = _HEADER.match(head)
        _, opened, behind = head.rpartition(")")
        given = head[: head.rfind(")")].rpartition("(")[2] if opened else ""
        parameters = [parameter.split() for parameter in split_operands(given)]
        end = self._body(brace + 1)
        if name is not None:
            self.functions.append(
                PtxFunction(
                    name["name"],
                    tuple(self.instructions),
                    tuple(self.labels),
                    tuple([(words[-1], " ".join(words[1:-1])) for words in parameters if words[0] == ".param"]),
                    tuple(self.registers.items()),
                    tuple([" ".join(part.split()) for part in behind.split(".")[1:]]) if opened else (),
                    tuple(self.tables.items()),
                )
            )
        self._open()
        return end

    def _body(self, place: int) -> int:
        """Read statements up to the brace that ends the function; where that is, or -1 for none."""
        opened: list[tuple[int, int]] = []
        """Of each block that is open: how many instructions and labels stand before it."""
        while True:
            before = _BEFORE.match(self.text, place)
            if before is None:
                end = self.text.find(";", place)
                if end < 0:
                    return -1
                self._statement(place, end)
                place = end + 1
                continue
            place = before.end()
            if before["label"] and not before["label"].startswith(_DEBUG_LABELS):
                self.labels.append(CodeLabel(before["label"], len(self.instructions)))
            if before["brace"] == "{":
                opened.append((len(self.instructions), len(self.labels)))
            elif before["brace"] == "}" and not opened:
                return place
            elif before["brace"] == "}":
                first, labels = opened.pop()
                scope = first, len(self.instructions)
                inner = [replace(one, scope=one.scope or scope) for one in self.labels[labels:]]
                self.labels[labels:] = inner

    def _statement(self, start: int, end: int) -> None:
        raw = self.text[start:end]
        start += len(raw) - len(raw.lstrip())
        text = " ".join(raw.split())
        if text.startswith(".reg "):
            _, kind, names = (*text.split(maxsplit=2), "", "")[:3]
            for name in split_operands(names):
                self.registers[name.partition("<")[0]] = kind.lstrip(".")
            return
        if text.startswith(".branchtargets") and self.labels:
            self.tables[self.labels[-1].name] = split_operands(text.removeprefix(".branchtargets"))
            return
        match = _PTX_STATEMENT.match(text)
        if match is None:
            return
        operands = split_operands(match["operands"] or "")
        line = bisect_right(self.lines, start) + 1
        self.instructions.append(
            Instruction(match["opcode"], operands, match["predicate"] or "", line, "ptx", (start, end))
        )


# ── Reads AMDGCN assembly as LLVM writes it: functions, instructions and metadata ───────────────────────────────────
# Source: LLVM's "User Guide for AMDGPU Backend": code object metadata, kernel info comments.

# 	.type	softmax_kernel,@function
_FUNCTION_TYPE = re.compile(r"\s*\.type\s+(?P<name>[^\s,]+),\s*@function")
# .LBB0_2:      softmax_kernel:
_LABEL = re.compile(r"(?P<name>[\w$.@]+):")
# 	v_add_f32_e32 v1, v2, v3
_AMD_INSTRUCTION = re.compile(r"\s*(?P<opcode>[a-z]\w*)(?:\s+(?P<operands>.*))?$")
# 	.set .Lsoftmax_kernel.num_vgpr, 23
_SET = re.compile(r"\s*\.set\s+\.?L?(?P<function>[\w$.]+)\.(?P<name>num_vgpr|num_agpr),\s*(?P<value>\d{1,9})\s*$")
# ; NumVgprs: 23      ; codeLenInByte = 1324      ; LDSByteSize: 0 bytes/workgroup (compile time only)
_INFO = re.compile(r"; (?P<name>\w+)\s*[:=]\s*(?P<value>\d{1,12})\b")
# '  - .agpr_count:     0'      '    .name:           softmax_kernel'
_METADATA = re.compile(r"(?P<indent>  - |    )\.(?P<name>\w+):\s+(?P<value>\S.*)$")

_INFO_NAMES = frozenset(("NumVgprs", "NumAgprs", "TotalNumSgprs", "ScratchSize", "LDSByteSize", "codeLenInByte"))


@dataclass(frozen=True, slots=True)
class AmdgcnFunction(Function):
    """One function of the text, with what the compiler states about it in directives, comments and metadata."""

    info: tuple[tuple[str, int], ...] = ()
    """The numbers of the `Kernel info` comment: `NumVgprs`, `ScratchSize`, `codeLenInByte`, …"""
    metadata: tuple[tuple[str, str], ...] = ()
    """The kernel's entry of `.amdgpu_metadata`, without its arguments: (`vgpr_count`, `23`)."""

    def number(self, name: str) -> int | None:
        """A number by its name in the metadata or the info comment; None if neither has it."""
        for key, value in (*self.metadata, *self.info):
            if key == name and str(value).isdecimal() and len(str(value)) < 13:
                return int(value)
        return None


@dataclass(slots=True)
class _AmdgcnDraft:
    """What was seen of one function so far."""

    name: str
    has_begun: bool = False
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    labels: list[CodeLabel] = field(default_factory=list[CodeLabel])
    info: dict[str, int] = field(default_factory=dict[str, int])
    metadata: dict[str, str] = field(default_factory=dict[str, str])

    def finished(self) -> AmdgcnFunction:
        facts = tuple(self.info.items()), tuple(self.metadata.items())
        return AmdgcnFunction(self.name, tuple(self.instructions), tuple(self.labels), *facts)


def parse_amdgcn(text: str) -> tuple[AmdgcnFunction, ...]:
    """The functions of an AMDGCN text. Never raises: unknown lines are skipped."""
    reader = _AmdgcnReader()
    for number, line in enumerate(text.split("\n"), 1):
        reader.read(line, number)
        reader.start += len(line) + 1
    return tuple(draft.finished() for draft in reader.drafts.values())


class _AmdgcnReader:
    def __init__(self) -> None:
        self.drafts: dict[str, _AmdgcnDraft] = {}
        self.start = 0
        """Where the line begins in the text."""
        self.open: _AmdgcnDraft | None = None
        """The function whose code is being read."""
        self.last: _AmdgcnDraft | None = None
        """The function whose code was read last: the info comments behind it are its own."""
        self.entry: dict[str, str] | None = None
        """The entry of the metadata that is being read; None outside of the metadata."""

    def read(self, line: str, number: int) -> None:
        if self.entry is not None:
            self._read_metadata(line, self.entry)
            return
        code, semicolon, comment = line.partition(";")
        info = _INFO.match(f";{comment}") if semicolon else None
        if info is not None and self.open is None and self.last is not None and info["name"] in _INFO_NAMES:
            self.last.info[info["name"]] = int(info["value"])
        if code.strip():
            self._read_code(code.rstrip(), number)

    def _read_code(self, code: str, number: int) -> None:
        label = _LABEL.match(code)
        if label is not None:
            self._read_label(label["name"])
            return
        if code.lstrip().startswith("."):
            self._read_directive(code)
            return
        if self.open is None:
            return
        match = _AMD_INSTRUCTION.match(code)
        if match is not None:
            operands = split_operands(match["operands"] or "")
            span = self.start + match.start("opcode"), self.start + len(code)
            self.open.instructions.append(Instruction(match["opcode"], operands, line=number, kind="amdgcn", span=span))

    def _read_label(self, name: str) -> None:
        draft = self.drafts.get(name)
        if draft is not None and not draft.has_begun:
            draft.has_begun = True
            self.open = self.last = draft
        elif name.startswith(".Lfunc_end"):
            self.open = None
        elif self.open is not None and not name.startswith((".Ltmp", ".Lfunc_begin")):  # those only serve debuggers
            self.open.labels.append(CodeLabel(name, len(self.open.instructions)))

    def _read_directive(self, code: str) -> None:
        function = _FUNCTION_TYPE.match(code)
        if function is not None:
            self.drafts.setdefault(function["name"], _AmdgcnDraft(function["name"]))
            return
        words = code.split()
        if words[0] in (".section", ".size"):
            self.open = None
        elif words[0] == ".amdgpu_metadata":
            self.entry = {}
        elif words[0] == ".set" and (match := _SET.match(code)) is not None:
            name = match["function"]
            draft = self.drafts.get(name) or self.drafts.get(name.removeprefix("L"))
            if draft is not None:
                draft.info[match["name"]] = int(match["value"])

    def _read_metadata(self, line: str, entry: dict[str, str]) -> None:
        if line.strip() == ".end_amdgpu_metadata":
            self._end_entry(entry)
            self.entry = None
            return
        match = _METADATA.match(line)
        if match is None:
            return
        if match["indent"] == "  - ":
            self._end_entry(entry)
            entry = self.entry = {}
        entry[match["name"]] = match["value"].strip().strip("'\"")

    def _end_entry(self, entry: dict[str, str]) -> None:
        draft = self.drafts.get(entry.get("name", ""))
        if draft is not None:
            draft.metadata.update(entry)


# ── Reads LLVM IR as code: functions, blocks and instructions, and what they are by the name of what they call ──────

_LlvmRole = Literal["sync", "dot", "shared", "memory", "reduce", "control", "argument", "trivial"]

_QUOTED = r'"(?P<quoted>[^"]*)"|(?P<name>[\w.$-]+)'
# @llvm.nvvm.ex2.approx.ftz.f32(      @"a name"(
_SYMBOL = re.compile(rf"@(?:{_QUOTED})\(")
# 47:                                               ; preds = %0
_BLOCK_LABEL = re.compile(rf"(?:{_QUOTED}):")
#   %9 = add i32 %8, 1, !dbg !14        store i32 0, ptr %2
_LLVM_INSTRUCTION = re.compile(r'  (?:%(?:"[^"]*"|[\w.$-]+) = )?(?:(?:tail|musttail|notail) )?(?P<opcode>[a-z]\w*)\b')
# call void asm sideeffect "@$2 st.global.b32 [ $1 + 0 ], { $0 };", "r,l,b"(
_ASM = re.compile(r'\basm (?:\w+ ){0,4}"(?P<text>[^"]*)"')

# ld.global.b32      s_waitcnt
_OPCODE = re.compile(r"[a-z]\w*(?:[.:]+\w+)+$|[sv]_\w+$")

# Role, and what a name contains that has it, behind a dot what a word of it begins with. The first row decides.
_ROLES: tuple[tuple[_LlvmRole, tuple[str, ...]], ...] = (
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
    labels: list[CodeLabel] = []
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
            labels.append(CodeLabel(label["quoted"] or label["name"], len(instructions)))
        start += len(line) + 1
    return tuple(functions)


def _read_instruction(line: str, number: int, start: int, instructions: list[Instruction]) -> None:
    last = instructions[-1] if instructions else None
    if last is not None and last.opcode == "switch" and "]" not in last.operands[0]:  # its cases, a line each
        whole = f"{last.operands[0]} {line.strip()}"
        span = last.span[0], start + len(line)
        instructions[-1] = Instruction("switch", (whole,), line=last.line, kind="llvm", span=span)
        return
    match = _LLVM_INSTRUCTION.match(line)
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


def llvm_role(name: str) -> _LlvmRole:
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
    words = assembly.replace("\\0A", " ").replace("\\09", " ").replace(";", " ").split()
    found = [word for word in words if _OPCODE.match(word)]
    # A load is preceded by a move that clears its registers.
    return next((word for word in found if not word.startswith("mov.")), found[0] if found else "inline assembly")
