"""Reads AMDGCN assembly as LLVM writes it: functions, instructions, kernel descriptors and metadata.

Source: LLVM's "User Guide for AMDGPU Backend": code object metadata, `.amdhsa_` directives, kernel info comments.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from irscope.ir.instructions import Instruction, Label, OpaqueLine, split_operands

# 	.amdgcn_target "amdgcn-amd-amdhsa-unknown-gfx942"
_TARGET = re.compile(r'\s*\.amdgcn_target\s+"[^"]*?(?P<arch>gfx[0-9a-f]+)[^"]*"')
# 	.type	softmax_kernel,@function
_FUNCTION_TYPE = re.compile(r"\s*\.type\s+(?P<name>[^\s,]+),\s*@function")
# .LBB0_2:      softmax_kernel:
_LABEL = re.compile(r"(?P<name>[\w$.@]+):")
# 	v_add_f32_e32 v1, v2, v3
_INSTRUCTION = re.compile(r"\s*(?P<opcode>[a-z]\w*)(?:\s+(?P<operands>.*))?$")
# 		.amdhsa_next_free_vgpr 23
_DESCRIPTOR = re.compile(r"\s*\.(?P<name>amdhsa_\w+)\s+(?P<value>\S+)")
# 	.set .Lsoftmax_kernel.num_vgpr, 23
_SET = re.compile(
    r"\s*\.set\s+\.?L?(?P<function>[\w$.]+)\.(?P<name>num_vgpr|num_agpr|numbered_sgpr),\s*(?P<value>\d{1,9})\s*$"
)
# ; NumVgprs: 23      ; codeLenInByte = 1324      ; LDSByteSize: 0 bytes/workgroup (compile time only)
_INFO = re.compile(r"; (?P<name>\w+)\s*[:=]\s*(?P<value>\d{1,12})\b")
# '  - .agpr_count:     0'      '    .name:           softmax_kernel'
_METADATA = re.compile(r"(?P<indent>  - |    )\.(?P<name>\w+):\s+(?P<value>\S.*)$")

_SIZES = (
    "TotalNumSgprs",
    "NumSgprs",
    "NumVgprs",
    "NumAgprs",
    "TotalNumVgprs",
    "ScratchSize",
    "LDSByteSize",
    "Occupancy",
)
_INFO_NAMES = frozenset(("codeLenInByte", "NumVGPRsForWavesPerEU", "NumSGPRsForWavesPerEU", *_SIZES))


@dataclass(frozen=True, slots=True)
class AmdgcnFunction:
    """One function of the text, with what the compiler says of it in directives, comments and metadata."""

    name: str
    instructions: tuple[Instruction, ...] = ()
    labels: tuple[Label, ...] = ()
    opaque: tuple[OpaqueLine, ...] = ()
    info: tuple[tuple[str, int], ...] = ()
    """The numbers of the `Kernel info` comment: `NumVgprs`, `ScratchSize`, `Occupancy`, `codeLenInByte`, …"""
    descriptor: tuple[tuple[str, str], ...] = ()
    """The `.amdhsa_` directives: (`amdhsa_next_free_vgpr`, `23`); empty for what is no kernel."""
    metadata: tuple[tuple[str, str], ...] = ()
    """The kernel's entry of `.amdgpu_metadata`, without its arguments: (`vgpr_count`, `23`)."""
    line: int = field(default=0, compare=False)

    @property
    def is_kernel(self) -> bool:
        """Whether it can be launched."""
        return bool(self.descriptor)

    def number(self, name: str) -> int | None:
        """A number by its name in the metadata, the info comment or the descriptor; None where none has it."""
        for key, value in (*self.metadata, *self.info, *self.descriptor):
            if key == name and str(value).isdecimal() and len(str(value)) < 13:
                return int(value)
        return None


@dataclass(frozen=True, slots=True)
class AmdgcnModule:
    """An AMDGCN text."""

    arch: str = ""
    """`gfx942`."""
    functions: tuple[AmdgcnFunction, ...] = ()


@dataclass(slots=True)
class _Draft:
    """What was seen of one function so far."""

    name: str
    line: int = 0
    instructions: list[Instruction] = field(default_factory=list[Instruction])
    labels: list[Label] = field(default_factory=list[Label])
    opaque: list[OpaqueLine] = field(default_factory=list[OpaqueLine])
    info: dict[str, int] = field(default_factory=dict[str, int])
    descriptor: dict[str, str] = field(default_factory=dict[str, str])
    metadata: dict[str, str] = field(default_factory=dict[str, str])

    def finished(self) -> AmdgcnFunction:
        return AmdgcnFunction(
            self.name,
            tuple(self.instructions),
            tuple(self.labels),
            tuple(self.opaque),
            tuple(self.info.items()),
            tuple(self.descriptor.items()),
            tuple(self.metadata.items()),
            self.line,
        )


def parse_amdgcn(text: str) -> AmdgcnModule:
    """Read an AMDGCN text. Never raises: a line of a function that it does not know becomes an OpaqueLine of it."""
    reader = _Reader()
    for number, line in enumerate(text.split("\n"), 1):
        reader.read(line, number)
    return AmdgcnModule(reader.arch, tuple(draft.finished() for draft in reader.drafts.values()))


class _Reader:
    """Reads a text line by line."""

    def __init__(self) -> None:
        self.arch = ""
        self.drafts: dict[str, _Draft] = {}
        self.open: _Draft | None = None
        """The function whose code is being read."""
        self.last: _Draft | None = None
        """The function whose code was read last: the info comments behind it are its own."""
        self.described: _Draft | None = None
        self.entry: dict[str, str] | None = None
        """The entry of the metadata that is being read; None outside of the metadata."""
        self.inside_assembly = False

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
        if comment.strip() in ("APP", "NO_APP"):  # `;APP` and `;NO_APP` stand around inline assembly
            self.inside_assembly = comment.strip() == "APP"
        info = _INFO.match(f";{comment}")
        if info is not None and self.open is None and self.last is not None and info["name"] in _INFO_NAMES:
            self.last.info[info["name"]] = int(info["value"])

    def _read_code(self, code: str, number: int) -> None:
        label = _LABEL.match(code)
        if label is not None:
            self._read_label(label["name"], number)
            return
        if code.lstrip().startswith("."):
            self._read_directive(code)
            return
        if self.open is None:
            return
        match = _INSTRUCTION.match(code)
        if match is None:
            self.open.opaque.append(OpaqueLine(code.strip(), len(self.open.instructions), number))
            return
        self.open.instructions.append(
            Instruction(
                match["opcode"],
                split_operands(match["operands"] or ""),
                line=number,
                inline_assembly=self.inside_assembly,
            )
        )

    def _read_label(self, name: str, number: int) -> None:
        draft = self.drafts.get(name)
        if draft is not None and not draft.line:
            draft.line = number
            self.open = self.last = draft
        elif name.startswith(".Lfunc_end"):
            self.open = None
        elif self.open is not None and not name.startswith((".Ltmp", ".Lfunc_begin")):  # those only serve debuggers
            self.open.labels.append(Label(name, len(self.open.instructions), number))

    def _read_directive(self, code: str) -> None:
        function = _FUNCTION_TYPE.match(code)
        if function is not None:
            self.drafts.setdefault(function["name"], _Draft(function["name"]))
            return
        target = _TARGET.match(code)
        if target is not None:
            self.arch = target["arch"]
            return
        words = code.split()
        if words[0] in (".section", ".size"):
            self.open = None
        elif words[0] == ".amdhsa_kernel" and len(words) > 1:
            self.described = self.drafts.setdefault(words[1], _Draft(words[1]))
        elif words[0] == ".end_amdhsa_kernel":
            self.described = None
        elif words[0] == ".amdgpu_metadata":
            self.entry = {}
        elif words[0] == ".set":
            self._read_set(code)
        descriptor = _DESCRIPTOR.match(code) if self.described is not None else None
        if descriptor is not None and self.described is not None:
            self.described.descriptor[descriptor["name"]] = descriptor["value"]

    def _read_set(self, code: str) -> None:
        match = _SET.match(code)
        if match is None:
            return
        name = match["function"].removeprefix("L")
        draft = self.drafts.get(match["function"]) or self.drafts.get(name)
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
