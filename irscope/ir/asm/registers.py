"""What an instruction of SASS or AMD GPU assembly reads and writes, register by register.

A register operand in text stands for one register or for several in a row: `R4` of an `LDG.E.128` for R4 to R7,
`s[20:23]` for four. `Access` says for each operand of a template how many registers it covers and whether they are
read or written, and which registers an instruction uses that its text does not name. `irscope.ir.asm.register_sass` and
`irscope.ir.asm.register_amdgcn` know the instructions, `irscope.ir.asm.register_flow` joins reads and writes to values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Mode = Literal["r", "w", "m"]
"""Read, written, or both: modified in place, or written in part."""
Flow = Literal["next", "branch", "jump", "end", "call", "return", "anywhere"]
"""Where control goes: on, to a label or on, to a label, nowhere, into a function, back from one, to any label."""

ExecChange = Literal["", "shrinks", "grows", "fills", "any"]

# R12   UR4   v5   s[20:23]   a[0:15]   P0   vcc_lo
_NAME = re.compile(r"(?P<file>[A-Za-z_]+?)(?:(?P<one>\d{1,4})|\[(?P<first>\d{1,4}):(?P<last>\d{1,4})\])$")


@dataclass(frozen=True, slots=True)
class Access:
    """What all lines with one template do with registers."""

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
