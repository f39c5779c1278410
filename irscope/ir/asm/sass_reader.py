"""Reads SASS: what nvdisasm prints, or the normal form of `irscope.ir.asm.sass`."""

from __future__ import annotations

import re
from dataclasses import replace

from irscope.ir.asm.control import CONTROL, ControlInfo
from irscope.ir.asm.instructions import Label, split_operands
from irscope.ir.asm.sass import LiveRegisters, OpaqueLine, SassFunction, SassInstruction
from irscope.ir.locations.model import Chain, Frame
from irscope.ir.quoted import without_padding

#         .target	sm_90a
_TARGET = re.compile(r"\s*\.target\s+(?P<target>sm_\w+)")
# 	.headerflags	@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM80 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM80)"
_HEADER_FLAGS = re.compile(r"\s*\.headerflags.*?\bEF_CUDA_SM(?P<arch>\d+)")
# 	.section	.text.add_kernel,"ax",@progbits        .section .text.add_kernel  // 42 instructions
_SECTION = re.compile(r"\s*\.section\s+(?P<name>[^\s,]+)")
# 	//## File "kernel.py", line 216 inlined at "kernel.py", line 20
_MARK = re.compile(
    r'\s*//## File "(?P<file>[^"]*)", line (?P<line>\d{1,9})'
    r'(?: inlined at "(?P<at_file>[^"]*)", line (?P<at_line>\d{1,9}))?\s*$'
)
# .L_x_0:
_LABEL = re.compile(r"\s*(?P<name>[^\s:/;]+):\s*$")
#         /*0a30*/              @!P1 BRA `(.L_x_0);               /* 0xfffffffc00fc7947 */
_RAW = re.compile(r"\s*/\*(?P<offset>[0-9a-f]{4,16})\*/(?P<text>[^;]*);(?P<rest>.*)$")
# (the second line of an instruction's encoding)          /* 0x000fc0000383ffff */
_WORD = re.compile(r"/\*\s*0x(?P<word>[0-9a-f]{16})\s*\*/")
#         0010  B------:R-:W0:-:S07  G002:P0:U00  S2R R0, SR_TID.X
_NORMAL = re.compile(
    r"\s*(?P<offset>[0-9a-f]{4,16})  (?P<control>" + CONTROL.pattern + r"|-)  "
    r"(?:(?P<live>G\d{1,9}(?::[PUQ]\d{1,9})*)  )?(?P<text>\S.*)$"
)
# @!UP0 BRA.U `(.L_x_1)
_INSTRUCTION = re.compile(r"(?:(?P<predicate>@!?U?P(?:\d+|T))\s+)?(?P<opcode>\S+)(?:\s+(?P<operands>.*))?$")
# // |  13   |   2    |   2    |
_LIFE_RANGE = re.compile(r"// (?P<cells>[|+].*)$")

_LIVE_COLUMNS = {"GPR": "general", "PRED": "predicate", "UGPR": "uniform", "UPRED": "uniform_predicate"}


def parse_sass(text: str) -> tuple[SassFunction, ...]:
    """Read the output of `nvdisasm -c -g -gi -hex`, of `nvdisasm -c -lrm count`, or irscope's normal form.

    Never raises: a line it does not know becomes an OpaqueLine of its function, or is passed over outside of one.
    """
    return _Reader().read(text)


class _Reader:
    """Reads a text line by line; the fields are what it has seen of the function it is in."""

    def __init__(self) -> None:
        self.functions: list[SassFunction] = []
        self.target = ""
        self.columns: list[str] = []
        self._open(None)

    def _open(self, name: str | None) -> None:
        self.name = name
        self.instructions: list[SassInstruction] = []
        self.words: list[int] = []
        self.labels: list[Label] = []
        self.opaque: list[OpaqueLine] = []
        self.location: Chain = ()
        self.awaited: Frame | None = None

    def read(self, text: str) -> tuple[SassFunction, ...]:
        for number, line in enumerate(text.split("\n"), 1):
            life_range = _LIFE_RANGE.search(line)
            code = line[: life_range.start()] if life_range else line
            if code.strip():
                self._read_line(code, number)
            if life_range is not None:
                self._read_life_range(life_range["cells"])
        self._close()
        return tuple(self.functions)

    def _read_line(self, line: str, number: int) -> None:
        if self._read_header(line) or self.name is None:
            return
        if self._read_mark(line) or self._read_raw(line, number) or self._read_normal(line, number):
            return
        label = _LABEL.match(line)
        if label is not None:
            if label["name"] not in (self.name, f".text.{self.name}"):
                self.labels.append(Label(label["name"], len(self.instructions)))
            return
        text = line.strip()
        if _WORD.match(text):
            self._take_words(text)
        elif not text.startswith((".", "//")):
            self.opaque.append(OpaqueLine(text, len(self.instructions)))

    def _read_header(self, line: str) -> bool:
        target = _TARGET.match(line)
        if target is not None:
            self._close()
            self.target = "" if target["target"] == "sm_unknown" else target["target"]
            return True
        flags = _HEADER_FLAGS.match(line)
        if flags is not None:
            self.target = f"sm_{flags['arch']}"
            return True
        section = _SECTION.match(line)
        if section is None:
            return False
        self._close()
        if section["name"].startswith(".text."):
            self._open(section["name"].removeprefix(".text."))
        return True

    def _read_mark(self, line: str) -> bool:
        mark = _MARK.match(line)
        if mark is None:
            return False
        frame = Frame(without_padding(mark["file"]), int(mark["line"]), 0)
        continues = self.awaited == frame
        self.location = (*self.location, frame) if continues else (frame,)
        if frame == Frame("", 0, 0):
            self.location = ()
        self.awaited = Frame(mark["at_file"], int(mark["at_line"]), 0) if mark["at_line"] else None
        return True

    def _read_raw(self, line: str, number: int) -> bool:
        match = _RAW.match(line)
        if match is None or not self._add(match["offset"], match["text"], number):
            return False
        self.words = []
        self._take_words(match["rest"])
        return True

    def _read_normal(self, line: str, number: int) -> bool:
        match = _NORMAL.match(line)
        if match is None or not self._add(match["offset"], match["text"], number):
            return False
        self.instructions[-1] = replace(
            self.instructions[-1],
            control=ControlInfo.parse(match["control"]),
            live=LiveRegisters.parse(match["live"]) if match["live"] else None,
        )
        return True

    def _add(self, offset: str, text: str, number: int) -> bool:
        match = _INSTRUCTION.match(text.strip())
        if match is None:
            return False
        if self.awaited is not None:  # the chain was cut short: its last frame is known from the one before
            self.location, self.awaited = (*self.location, self.awaited), None
        self.instructions.append(
            SassInstruction(
                match["opcode"],
                split_operands(match["operands"] or ""),
                match["predicate"] or "",
                number,
                int(offset, 16),
                location=self.location,
            )
        )
        return True

    def _take_words(self, text: str) -> None:
        self.words += [int(word, 16) for word in _WORD.findall(text)]
        if len(self.words) < 2 or not self.instructions:
            return
        encoding = (self.words[0], self.words[1])
        self.instructions[-1] = replace(self.instructions[-1], encoding=encoding, control=ControlInfo.decode(encoding))

    def _read_life_range(self, text: str) -> None:
        cells = [cell.split() for cell in text.strip("|").split("|")]
        names = [cell[0][:9] if cell else "" for cell in cells]
        if any(name in _LIVE_COLUMNS for name in names):
            self.columns = [_LIVE_COLUMNS.get(name, "") for name in names]
        if not any(name.isdecimal() for name in names) or not self.instructions:
            return
        cells = zip(self.columns, names, strict=False)
        counts = {column: int(name) for column, name in cells if column and name.isdecimal()}
        self.instructions[-1] = replace(self.instructions[-1], live=LiveRegisters(**counts))

    def _close(self) -> None:
        if self.name is not None:
            self.functions.append(
                SassFunction(self.name, tuple(self.instructions), tuple(self.labels), tuple(self.opaque), self.target)
            )
        self._open(None)
