"""Reads and writes SASS: what nvdisasm prints, and the normal form that irscope writes.

nvdisasm spreads an instruction over two lines and 160 columns. The normal form has one line per instruction:

    .target sm_90a
    .section .text.add_kernel  // 42 instructions
    //## File "add.py", line 7
            0010  B------:R-:W0:-:S07  G002:P0:U00  S2R R0, SR_TID.X
    .L_x_0:
            0020  B------:R-:W-:Y:S00  G002:P0:U00  BRA `(.L_x_0)

that is: offset, control fields (see `irscope.ir.asm.instructions`), live registers where they were counted (general,
predicate, uniform, uniform predicate) and the instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from irscope.ir.asm.instructions import CONTROL, CodeLabel, ControlInfo, Function, Instruction, LiveRegisters
from irscope.ir.asm.operands import split_operands
from irscope.ir.locations.model import Chain, Frame
from irscope.ir.quoted import without_padding

#         .target	sm_90a
# 	.headerflags	@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM80 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM80)"
# 	.section	.text.add_kernel,"ax",@progbits        .section .text.add_kernel  // 42 instructions
_HEADER = re.compile(
    r"\s*\.(?:target\s+(?P<target>sm_\w+)|headerflags.*?\bEF_CUDA_SM(?P<arch>\d+)|section\s+(?P<section>[^\s,]+))"
)
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


@dataclass(frozen=True, slots=True)
class OpaqueLine:
    """A line of a function that the reader does not know, kept as it is."""

    text: str
    index: int
    """0-based index of the instruction it stands before."""


@dataclass(frozen=True, slots=True)
class SassFunction(Function):
    """The code of one section: a kernel, with the subroutines that were placed behind it."""

    opaque: tuple[OpaqueLine, ...] = ()
    target: str = ""
    """`sm_90a`, or an empty string."""

    @property
    def padding(self) -> int:
        """The number of instructions at the end that only fill: NOPs, and before them a branch to itself."""
        end = len(self.instructions)
        while end and self.instructions[end - 1].opcode == "NOP":
            end -= 1
        names = {label.name for label in self.labels if label.index == end - 1}
        if end and self.instructions[end - 1].text in {f"BRA `({name})" for name in names}:
            end -= 1
        return len(self.instructions) - end

    def without_padding(self) -> SassFunction:
        """The function without its padding, and without the labels that only the padding used."""
        end = len(self.instructions) - self.padding
        kept = self.instructions[:end]
        operands = "\n".join(operand for instruction in kept for operand in instruction.operands)
        labels = tuple(label for label in self.labels if label.index < end or f"({label.name})" in operands)
        labels = tuple(replace(label, index=min(label.index, end)) for label in labels)
        return replace(self, instructions=kept, labels=labels, opaque=tuple(o for o in self.opaque if o.index <= end))


def format_sass(functions: Iterable[SassFunction]) -> str:
    """Write the normal form, which `parse_sass` reads back to equal functions."""
    lines: list[str] = []
    target = ""
    for function in functions:
        if function.target != target:
            target = function.target
            lines.append(f".target {target or 'sm_unknown'}")
        lines.append(f".section .text.{function.name}  // {len(function.instructions)} instructions")
        lines.extend(_format_body(function))
    return "".join(f"{line}\n" for line in lines)


def with_live_registers(functions: Iterable[SassFunction], counted: Iterable[SassFunction]) -> tuple[SassFunction, ...]:
    """Add the live registers that a second run of nvdisasm counted: it does not print them along with locations."""
    counts = {(function.name, item.offset): item.live for function in counted for item in function.instructions}
    return tuple(
        replace(
            function,
            instructions=tuple(
                replace(item, live=counts.get((function.name, item.offset), item.live))
                for item in function.instructions
            ),
        )
        for function in functions
    )


def _format_body(function: SassFunction) -> Iterator[str]:
    labels, opaque = list(function.labels), list(function.opaque)
    location: Chain = ()
    for index in range(len(function.instructions) + 1):
        while labels and labels[0].index <= index:
            yield f"{labels.pop(0).name}:"
        while opaque and opaque[0].index <= index:
            yield opaque.pop(0).text
        if index == len(function.instructions):
            return
        item = function.instructions[index]
        if item.location != location:
            yield from _format_location(item.location)
            location = item.location
        live = f"  {item.live}" if item.live else ""
        yield f"        {item.offset:04x}  {item.control or '-'}{live}  {item.text}"


def _format_location(location: Chain) -> Iterator[str]:
    if not location:
        yield '//## File "", line 0'
        return
    for frame, caller in zip(location, (*location[1:], None), strict=True):
        at = f' inlined at "{caller.file}", line {caller.line}' if caller else ""
        yield f'//## File "{frame.file}", line {frame.line}{at}'


def parse_sass(text: str) -> tuple[SassFunction, ...]:
    """Read the output of `nvdisasm -c -g -gi -hex`, of `nvdisasm -c -lrm count`, or irscope's normal form.

    Never raises: a line it does not know becomes an OpaqueLine of its function, or is passed over outside of one.
    """
    return _SassReader().read(text)


def parse_sass_instruction(text: str) -> Instruction | None:
    """Read one instruction without what stands beside it: `@!P1 BRA `(.L_x_0)`; None if it has another form."""
    return _instruction(text.strip())


def _instruction(text: str, **place: Any) -> Instruction | None:
    match = _INSTRUCTION.match(text)
    if match is None:
        return None
    operands = split_operands(match["operands"] or "")
    return Instruction(match["opcode"], operands, match["predicate"] or "", kind="sass", **place)


class _SassReader:
    """Reads a text line by line; the fields are what it has seen of the function it is in."""

    def __init__(self) -> None:
        self.functions: list[SassFunction] = []
        self.target = ""
        self.start = 0
        """Where the line begins in the text."""
        self.columns: list[str] = []
        self._open(None)

    def _open(self, name: str | None) -> None:
        self.name = name
        self.instructions: list[Instruction] = []
        self.words: list[int] = []
        self.labels: list[CodeLabel] = []
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
            self.start += len(line) + 1
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
                self.labels.append(CodeLabel(label["name"], len(self.instructions)))
            return
        text = line.strip()
        if _WORD.match(text):
            self._take_words(text)
        elif not text.startswith((".", "//")):
            self.opaque.append(OpaqueLine(text, len(self.instructions)))

    def _read_header(self, line: str) -> bool:
        header = _HEADER.match(line)
        if header is None:
            return False
        if header["arch"]:
            self.target = f"sm_{header['arch']}"
            return True
        self._close()
        if header["target"]:
            self.target = "" if header["target"] == "sm_unknown" else header["target"]
        elif header["section"].startswith(".text."):
            self._open(header["section"].removeprefix(".text."))
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
        if match is None or not self._add(match, number):
            return False
        self.words = []
        self._take_words(match["rest"])
        return True

    def _read_normal(self, line: str, number: int) -> bool:
        match = _NORMAL.match(line)
        if match is None:
            return False
        control = ControlInfo.parse(match["control"])
        return self._add(match, number, control, LiveRegisters.parse(match["live"]) if match["live"] else None)

    def _add(
        self,
        match: re.Match[str],
        number: int,
        control: ControlInfo | None = None,
        live: LiveRegisters | None = None,
    ) -> bool:
        text = match["text"].strip()
        # Where the chain of locations was cut short, its last frame is known from the one before.
        location = self.location if self.awaited is None else (*self.location, self.awaited)
        start = self.start + match.start("text") + len(match["text"]) - len(match["text"].lstrip())
        place = {"line": number, "span": (start, start + len(text)), "offset": int(match["offset"], 16)}
        item = _instruction(text, **place, control=control, live=live, location=location)
        if item is None:
            return False
        self.location, self.awaited = location, None
        self.instructions.append(item)
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
