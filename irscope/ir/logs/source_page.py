"""Reads the source page of Nsight Compute's CSV export: the counters of each SASS instruction of a launch.

`ncu -i REPORT --page source --csv --print-source sass` prints for each launch its kernel's name, a header and a row for
each instruction. Which columns there are differs between versions; what a column means is said by "Nsight Compute"
documentation, "Source Page" and "Metrics Reference".
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

# 7fb0a9c5d100    0x7fb0a9c5d100
_ADDRESS = re.compile(r"(?:0x)?[0-9a-fA-F]{1,16}$")
# 1,234    1234.5
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?$")
# stall_long_sb, but not: stall_long_sb (Not Issued)
_STALL = re.compile(r"stall_(\w+)$")
_LARGEST = 1 << 53


@dataclass(frozen=True, slots=True)
class Counters:
    """What was counted at one or more instructions, summed over the launch; None where the export does not have it."""

    executed: int | None = None
    """How often a warp executed them, with all lanes predicated off included."""
    threads: int | None = None
    """How often a thread did, with its predicate on."""
    samples: int | None = None
    """How often the sampler found a warp at one of them."""
    stalls: tuple[tuple[str, int], ...] = ()
    """(why the warp was not issued, samples), the most first: `long_sb`, `barrier`, …; at `selected` it was issued."""
    sectors: int | None = None
    """Distinct sectors of 32 bytes of global memory of each warp's access, summed."""
    ideal_sectors: int | None = None
    """What the bytes asked for would fill."""
    lines: int | None = None
    """Distinct cache lines of 128 bytes of global memory: requests to the tags of L1."""
    wavefronts: int | None = None
    """Of shared memory. Where the export has only their average per instruction, rounded down, that times those."""

    @property
    def stalled(self) -> int:
        """Samples of warps that were not issued."""
        return sum(count for reason, count in self.stalls if reason != _ISSUED)

    @staticmethod
    def sum(parts: Sequence[Counters]) -> Counters:
        stalls = Counter[str]()
        for part in parts:
            stalls.update(dict(part.stalls))
        values: dict[str, int | None] = {}
        for name in _COLUMNS:
            known = [value for part in parts if (value := getattr(part, name)) is not None]
            values[name] = sum(known) if known else None
        return Counters(**values, stalls=_most_first(stalls))


def _most_first(stalls: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    known = ((reason, count) for reason, count in stalls.items() if count)
    return tuple(sorted(known, key=lambda row: (-row[1], row[0])))


_ISSUED = "selected"
_COLUMNS = {
    "executed": "Instructions Executed",
    "threads": "Predicated-On Thread Instructions Executed",
    "samples": "# Samples",
    "sectors": "L2 Theoretical Sectors Global",
    "ideal_sectors": "L2 Theoretical Sectors Global Ideal",
    "lines": "L1 Tag Requests Global",
    "wavefronts": "L1 Wavefronts Shared",
}
"""The column of each counter."""


@dataclass(frozen=True, slots=True)
class CountedInstruction:
    offset: int
    text: str
    """As Nsight Compute writes it: `@!P0 LDG.E.128 R4, desc[UR4][R2.64]`."""
    access_bits: int
    """Bits per lane of a memory access; 0 for other instructions."""
    counters: Counters


@dataclass(frozen=True, slots=True)
class CountedKernel:
    name: str
    instructions: tuple[CountedInstruction, ...]
    page: str
    """Its part of the export, which alone reads as this launch."""


def read_source_page(text: str) -> tuple[CountedKernel, ...]:
    """The launches of an export, in its order; none if it is no source page. Never raises."""
    return tuple(_kernel(name, rows) for name, rows in _kernels(text))


def _kernels(text: str) -> Iterator[tuple[str, list[list[str]]]]:
    name, rows = "", list[list[str]]()
    for row in _rows(text):
        if row[:1] == ["Kernel Name"]:
            if rows:
                yield name, rows
            name, rows = row[1] if len(row) > 1 else "", []
        elif rows or {"Address", "Source"} <= set(row):
            rows.append(row)
    if rows:
        yield name, rows


def _rows(text: str) -> Iterator[list[str]]:
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff")))
    try:
        yield from (row for row in reader if row)
    except csv.Error:
        # A field without an end: what stands before it was read.
        return


def _kernel(name: str, rows: Sequence[Sequence[str]]) -> CountedKernel:
    header, *body = rows
    # A name may stand there twice, with the same figures.
    column = {title: index for index, title in reversed(list(enumerate(header)))}
    reasons = {match[1]: index for title, index in column.items() if (match := _STALL.match(title))}
    base: int | None = None
    instructions: list[CountedInstruction] = []
    kept: list[Sequence[str]] = []
    for row in body:
        text = _cell(row, column, "Source").strip()
        address = _cell(row, column, "Address").strip()
        if not text or not _ADDRESS.match(address):
            continue
        base = int(address, 16) if base is None else base
        kept.append(row)
        instructions.append(_instruction(int(address, 16) - base, text, row, column, reasons))
    page = io.StringIO()
    csv.writer(page, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([["Kernel Name", name], header, *kept])
    return CountedKernel(name, tuple(instructions), page.getvalue())


def _instruction(
    offset: int, text: str, row: Sequence[str], column: Mapping[str, int], reasons: Mapping[str, int]
) -> CountedInstruction:
    stalls = {reason: _number(row[index]) or 0 for reason, index in reasons.items() if index < len(row)}
    values = {name: _number(_cell(row, column, title)) for name, title in _COLUMNS.items()}
    ways = _number(_cell(row, column, "L1 Conflicts Shared N-Way"))
    if values["wavefronts"] is None and ways is not None and values["executed"] is not None:
        values["wavefronts"] = ways * values["executed"]
    bits = _number(_cell(row, column, "Access Size")) or 0
    counters = Counters(**values, stalls=_most_first(stalls))
    return CountedInstruction(offset, text, bits, counters)


def _cell(row: Sequence[str], column: Mapping[str, int], title: str) -> str:
    index = column.get(title)
    return row[index] if index is not None and index < len(row) else ""


def _number(cell: str) -> int | None:
    cell = cell.strip()
    return min(int(float(cell.replace(",", ""))), _LARGEST) if _NUMBER.match(cell) and len(cell) < 40 else None
