"""Operands of PTX, SASS and AMD GPU assembly: lists, addresses, registers, and the access of an instruction to each.

A register operand in text stands for one register or for several in a row: `R4` of an `LDG.E.128` for R4 to R7,
`s[20:23]` for four. `Access` says for each register of a line's template how many it covers and whether they are read
or written, and which registers an instruction uses that its text does not name. The tables of opcodes
(`irscope.ir.asm.sass_opcodes` and its siblings) know the instructions, `irscope.ir.registers` joins reads and
writes to values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

from irscope.model.capture import StageKind

Mode = Literal["r", "w", "m"]
"""Read, written, or both: modified in place, or written in part."""
Flow = Literal["next", "branch", "jump", "end", "call", "return", "anywhere"]
"""Where control goes: on, to a label or on, to a label, nowhere, into a function, back from one, to any label."""
ExecChange = Literal["", "shrinks", "grows", "fills", "any"]

# R12   UR4   v5   s[20:23]   a[0:15]   P0   vcc_lo
_NAME = re.compile(r"(?P<file>[A-Za-z_]+?)(?:(?P<one>\d{1,4})|\[(?P<first>\d{1,4}):(?P<last>\d{1,4})\])$")
# R12   UR4   B0
_SASS_REGISTER = re.compile(r"\b(U?[RP]|B)\d+\b")
# c[0x0][0x210]   c[0x0][UR4+0x210]
SASS_CONSTANT = re.compile(r"c\[0x(?P<bank>[0-9a-f]+)\]\[0x(?P<offset>[0-9a-f]+)\]")
# desc[UR14][R2.64+0x80]   [R159+URZ+0x34000]   [R4.X4+UR6+0x10]   desc[UR6][R2.U32+UR4+-0x10]
SASS_ADDRESS = re.compile(r"\[(?P<inside>[^\[\]]*)\]$")
# R7.H1_H1   -R8   |R9|   ~R3   R11.reuse   R4.X16
SASS_OPERAND = re.compile(
    r"^(?P<sign>-?)(?P<bar>\|?)(?P<inverted>~?)(?P<name>U?R(?:\d+|Z)|SRZ)(?P<rest>(?:\.\w+)*)\|?$"
)
# v12   s[4:7]
_AMD_REGISTER = re.compile(r"\b([vas])(?:\d+\b|\[(\d+):(\d+)\])")
_OPENING, _CLOSING = "([{", ")]}"


@cache
def opcode_rows(table: str) -> tuple[tuple[str, ...], ...]:
    """The rows of a table of `opcodes.txt`, in their order: the columns behind its name."""
    text = Path(__file__).with_name("opcodes.txt").read_text("utf-8").replace("\n    ", " ")
    rows = (tuple(part.strip() for part in line.split("|")) for line in text.splitlines())
    return tuple([tuple(columns) for name, *columns in rows if name == table])


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def split_operands(text: str) -> tuple[str, ...]:
    """Split an operand list at the commas that stand in no bracket: `{%r1, %r2}, [%rd1 + 0]` has two operands."""
    text = " ".join(text.split())
    if not text:
        return ()
    if not any(bracket in text for bracket in _OPENING):
        return tuple([part.strip() for part in text.split(",")])
    parts: list[str] = []
    depth = start = 0
    for position, character in enumerate(text):
        if character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character == "," and depth <= 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return (*parts, text[start:].strip())


@dataclass(frozen=True, slots=True)
class Operand:
    kind: Literal["name", "number", "vector", "pair", "address", "group"]
    """A register, label or symbol; a number; `{…}`; `d|p`; `[…]`; `(…)`."""
    name: str = ""
    """Of a name, without `!`; of an address the register or symbol that its offset is counted from."""
    value: int = 0
    """Of a number; of a floating point number (`0f3F800000`) its bits. Of an address the offset, in bytes."""
    is_negated: bool = False
    """`!%p1`, `-%r1`."""
    parts: tuple[Operand, ...] = ()
    """Of a vector, pair or group; of an address what stands behind its first comma: the coordinates of a tensor."""

    @property
    def names(self) -> tuple[str, ...]:
        own = (self.name,) if self.name else ()
        return own + tuple([name for part in self.parts for name in part.names])


@lru_cache(maxsize=1 << 14)
def parse_operand(text: str) -> Operand:
    """Take an operand of PTX apart; what is of no known form is a name."""
    inner = text[1:-1].strip()
    if text[:1] == "[" and text[-1:] == "]":
        first, *others = split_operands(inner) or ("",)
        terms = [parse_operand(term.strip()) for term in first.split("+")]
        bases = [term.name for term in terms if term.kind == "name"]
        offset = sum(term.value for term in terms if term.kind == "number")
        return Operand("address", "+".join(bases), offset, parts=tuple(map(parse_operand, others)))
    if text[:1] in "{(" and text[-1:] in "})":
        return Operand("vector" if text[0] == "{" else "group", parts=tuple(map(parse_operand, split_operands(inner))))
    if "|" in text:
        return Operand("pair", parts=tuple([parse_operand(part.strip()) for part in text.split("|")]))
    number = _number(text)
    if number is not None:
        return Operand("number", value=number)
    name = text.lstrip("!-")
    return Operand("name", name, is_negated=name != text)


def _number(text: str) -> int | None:
    """12, -4, 0x1f, 0fFF800000 (the bits of a float), 16U."""
    digits = text.removeprefix("-").removesuffix("U")
    if not digits[:1].isdigit() or len(digits) > 20:
        return None
    kind = digits[:2].lower()
    try:
        value = int(digits[2:], 16) if kind in ("0x", "0f", "0d") else int(digits)
    except ValueError:
        return None
    return -value if text[0] == "-" else value


@dataclass(frozen=True, slots=True)
class RegisterAccess:
    """The register accesses of all lines with one template."""

    holes: tuple[tuple[int, Mode], ...] = ()
    """(registers, mode) of each register that the text names, in its order; a label has (0, "r")."""
    implicit: tuple[tuple[str, Mode], ...] = ()
    """(register, mode) of those that are used without a hole: `scc`, `exec_lo`, `P3`."""
    is_partial: bool = False
    """Whether what stood in a written register may remain: under a guard, or in the lanes that are off."""
    is_vector: bool = False
    """Whether it writes only the lanes that are on (AMD's EXEC mask)."""
    exec_change: ExecChange = ""
    """What it does to the set of lanes that are on."""
    flow: Flow = "next"
    is_unknown: bool = False
    """No rule knows it: it is taken to read every register of the text, and its registers count by name."""

    @property
    def spans(self) -> tuple[int, ...]:
        """How many values each hole stands for; a label is one."""
        return tuple([width or 1 for width, _ in self.holes])

    @property
    def defines(self) -> tuple[int, ...]:
        """Which of the line's values it writes: those of its holes, old values of what it modifies, implicit ones."""
        found: list[int] = []
        place = 0
        for width, mode in self.holes:
            found += range(place, place + width) if mode != "r" else ()
            place += width or 1
        place += sum(width for width, mode in self.holes if mode == "m")
        for _, mode in self.implicit:
            found += (place,) if mode != "r" else ()
            place += 2 if mode == "m" else 1
        return tuple(found)


def register_templates(text: str, kind: StageKind) -> str:
    """The text with each register replaced by a hole, its register file, and its width if it is a range."""
    if kind == "sass":
        return _SASS_REGISTER.sub("\x01\\1", text)
    return _AMD_REGISTER.sub(_amd_hole, text)


def register_names(text: str, kind: StageKind) -> tuple[str, ...]:
    """The registers that a text names, in its order: what stands in the holes of its template."""
    pattern = _SASS_REGISTER if kind == "sass" else _AMD_REGISTER
    return tuple([match[0] for match in pattern.finditer(text)])


def _amd_hole(match: re.Match[str]) -> str:
    # More digits than a register number has: no width.
    if match[2] is None or len(match[2]) > 4 or len(match[3]) > 4:
        return f"\x01{match[1]}"
    return f"\x01{match[1]}{max(int(match[3]) - int(match[2]) + 1, 1)}"


@lru_cache(maxsize=1 << 14)
def registers_of(name: str, width: int) -> tuple[str, ...]:
    """The single registers that a name covers: `R4` with width 2 is R4 and R5, `s[4:7]` is s4 to s7."""
    match = _NAME.match(name)
    if match is None:
        return (name,) * width
    first = int(match["one"] or match["first"])
    return tuple([f"{match['file']}{number}" for number in range(first, first + width)])


def joined_name(registers: tuple[str, ...], written: str) -> str:
    """How several registers are written, in the manner of `written`; `written` itself if they are not consecutive."""
    match = _NAME.match(registers[0]) if registers else None
    if match is None or match["one"] is None:
        return registers[0] if len(registers) == 1 else written
    if registers != registers_of(registers[0], len(registers)):
        return written
    first = int(match["one"])
    return f"{match['file']}[{first}:{first + len(registers) - 1}]" if "[" in written else registers[0]
