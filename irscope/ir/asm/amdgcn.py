"""Reads AMDGCN assembly as LLVM writes it: functions, instructions and metadata.

Source: LLVM's "User Guide for AMDGPU Backend": code object metadata, kernel info comments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from irscope.ir.asm.instructions import Function, Instruction, Label
from irscope.ir.asm.operands import split_operands

# 	.type	softmax_kernel,@function
_FUNCTION_TYPE = re.compile(r"\s*\.type\s+(?P<name>[^\s,]+),\s*@function")
# .LBB0_2:      softmax_kernel:
_LABEL = re.compile(r"(?P<name>[\w$.@]+):")
# 	v_add_f32_e32 v1, v2, v3
_INSTRUCTION = re.compile(r"\s*(?P<opcode>[a-z]\w*)(?:\s+(?P<operands>.*))?$")
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
class _Draft:
    """What was seen of one function so far."""

    name: str
    has_begun: bool = False
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    labels: list[Label] = field(default_factory=list[Label])
    info: dict[str, int] = field(default_factory=dict[str, int])
    metadata: dict[str, str] = field(default_factory=dict[str, str])

    def finished(self) -> AmdgcnFunction:
        facts = tuple(self.info.items()), tuple(self.metadata.items())
        return AmdgcnFunction(self.name, tuple(self.instructions), tuple(self.labels), *facts)


def parse_amdgcn(text: str) -> tuple[AmdgcnFunction, ...]:
    """The functions of an AMDGCN text. Never raises: unknown lines are skipped."""
    reader = _Reader()
    for number, line in enumerate(text.split("\n"), 1):
        reader.read(line, number)
        reader.start += len(line) + 1
    return tuple(draft.finished() for draft in reader.drafts.values())


class _Reader:
    """Reads a text line by line."""

    def __init__(self) -> None:
        self.drafts: dict[str, _Draft] = {}
        self.start = 0
        """Where the line begins in the text."""
        self.open: _Draft | None = None
        """The function whose code is being read."""
        self.last: _Draft | None = None
        """The function whose code was read last: the info comments behind it are its own."""
        self.entry: dict[str, str] | None = None
        """The entry of the metadata that is being read; None outside of the metadata."""

    def read(self, line: str, number: int) -> None:
        if self.entry is not None:
            self._read_metadata(line)
            return
        code, semicolon, comment = line.partition(";")
        if semicolon:
            self._read_comment(comment)
        if code.strip():
            self._read_code(code.rstrip(), number)

    def _read_comment(self, comment: str) -> None:
        info = _INFO.match(f";{comment}")
        if info is not None and self.open is None and self.last is not None and info["name"] in _INFO_NAMES:
            self.last.info[info["name"]] = int(info["value"])

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
        match = _INSTRUCTION.match(code)
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
            self.open.labels.append(Label(name, len(self.open.instructions)))

    def _read_directive(self, code: str) -> None:
        function = _FUNCTION_TYPE.match(code)
        if function is not None:
            self.drafts.setdefault(function["name"], _Draft(function["name"]))
            return
        words = code.split()
        if words[0] in (".section", ".size"):
            self.open = None
        elif words[0] == ".amdgpu_metadata":
            self.entry = {}
        elif words[0] == ".set":
            self._read_set(code)

    def _read_set(self, code: str) -> None:
        match = _SET.match(code)
        if match is None:
            return
        name = match["function"]
        draft = self.drafts.get(name) or self.drafts.get(name.removeprefix("L"))
        if draft is not None:
            draft.info[match["name"]] = int(match["value"])

    def _read_metadata(self, line: str) -> None:
        entry = self.entry if self.entry is not None else {}
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
