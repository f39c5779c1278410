"""The control fields of a SASS instruction (Volta and later): stall, yield, scoreboard barriers, operand reuse.

Since Volta, NVIDIA's 128-bit instructions carry their own scheduling. Counted from the lowest bit of the 128:

    105–108  stall: cycles before the warp's next instruction may issue
    109      yield: 0 lets the scheduler switch to another warp, 1 prefers to stay
    110–112  write barrier: the scoreboard set until the result is written, 7 for none
    113–115  read barrier: the scoreboard set until the operands are read, 7 for none
    116–121  wait mask: the scoreboards that must be clear before it issues
    122–125  reuse: source operands kept in the operand cache, `.reuse` in the text

Sources: Z. Jia, M. Maggioni, B. Staiger, D. P. Scarpazza, "Dissecting the NVIDIA Volta GPU Architecture via
Microbenchmarking" (arXiv:1804.06826), 2018, section 2.1; the notation is the one that maxas, turingas and CuAssembler
have established: `B01----:R2:W3:Y:S04`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NO_BARRIER = 7

# B------:R-:W0:-:S07    B01----:R2:W-:Y:S12
CONTROL = re.compile(r"B(?P<wait>[0-5-]{6}):R(?P<read>[0-6-]):W(?P<write>[0-6-]):(?P<yields>[Y-]):S(?P<stall>\d\d)")

# "        0010  B------:R-:W1:-:S01  G002:P0:U00:Q0  LDC R7, c[0x0][0x22c]": address, control, live registers
_COLUMNS = re.compile(
    r"^\s*[0-9a-f]{4,}\s+(?P<control>B[\d-]{6}:R[\d-]:W[\d-]:[Y-]:S\d\d)\s+(?P<live>G\d+:P\d+:U\d+:Q\d+)?\s*"
)
# G002:P0:U00:Q0
_LIVE = re.compile(r"G(\d+):P(\d+):U(\d+):Q\d+")


def without_columns(line: str) -> str:
    """A line of SASS without the columns before its instruction."""
    return _COLUMNS.sub("", line)


def columns_of(line: str) -> tuple[str, ...]:
    """The columns of control and of live registers before an instruction of SASS, those that are there."""
    found = _COLUMNS.match(line)
    return tuple([text for text in found.groups() if text]) if found else ()


def column_meaning(column: str) -> str:
    """One of `columns_of`, in words."""
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
        """The scoreboards it waits for."""
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
