"""The entries of a compiler's log: each with who printed it, and the Python line that it is about.

Four writers share it. Triton's own debug output begins with the name of its part, MLIR's diagnostics with a place,
LLVM's remarks and ptxas with their own words; what begins otherwise goes on with the entry before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from irscope.ir.locations.mlir import read_location
from irscope.ir.locations.model import Chain, Frame, count, cut
from irscope.ir.mlir.tokens import STRING

__all__ = ["LogEntry", "read_entries"]

_EntryKind = Literal["debug", "diagnostic", "llvm", "ptxas", "text"]

# [triton-loop-pipeline]: Load %x = tt.load … has width 16
_DEBUG = re.compile(r"^\[(?P<type>[a-z][\w-]*)\]: ?(?P<text>.*)")
# /home/jo/kernel.py:11:13: remark: Warning: vectorization fails vec = 1 origin vec = 1 numElems = 32 mask is 64
_DIAGNOSTIC = re.compile(
    r"^(?P<file>[^\s:\[][^:]*):(?P<line>\d+):(?P<column>\d+): (?P<type>remark|warning|error|note): (?P<text>.*)"
)
# remark: kernel.py:16:5: load of type <4 x i32> not eliminated    remark: <unknown>:0:0: BasicBlock:
_LLVM = re.compile(r"^(?P<type>remark|warning): (?P<file>[^:]*):(?P<line>\d+):(?P<column>\d+): ?(?P<text>.*)")
# ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to …
_PTXAS = re.compile(r"^ptxas[\w-]* (?P<type>info|warning|error|fatal) *: (?P<text>.*)")
# -- buffer 0; value: %left = ttg.local_alloc %1 : …
_BUFFER = re.compile(r"^-- (?P<type>buffer) (?P<text>\d.*)")
_FORMS: tuple[tuple[_EntryKind, re.Pattern[str]], ...] = (
    ("debug", _DEBUG),
    ("debug", _BUFFER),
    ("diagnostic", _DIAGNOSTIC),
    ("llvm", _LLVM),
    ("ptxas", _PTXAS),
)
_STRING_OR_BRACKET = re.compile(rf"{STRING}|[()]")


@dataclass(frozen=True, slots=True)
class LogEntry:
    """What was printed at once."""

    kind: _EntryKind
    type: str
    """`debug`: the part of Triton, as `tritongpu-coalesce`, or `buffer` of the owner of one; otherwise `remark`, …"""
    text: str
    """Without what its form adds, and without the locations of operations."""
    chain: Chain
    """Where it is about: the place that it begins with, or the location of the first operation in its first line."""
    line: int
    """Its first line in the log of its pass, 1-based."""
    lines: int
    """How many lines it has there."""

    @property
    def first(self) -> str:
        """The first line of its text."""
        return self.text.partition("\n")[0]


def read_entries(text: str) -> tuple[LogEntry, ...]:
    """The entries of what a pass printed; every line of it is in one. Of hostile text too, in linear time."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    entries: list[_Open] = []
    known: dict[str, Chain] = {}
    for number, line in enumerate(lines, 1):
        kind, match = _form_of(line)
        if match is not None and match["type"] == "note" and entries:
            # The callers of the place of a diagnostic follow it.
            if match["text"] == "called from":
                entries[-1].chain = cut((*entries[-1].chain, *_place(match)))
            entries[-1].texts.append(line)
        elif match is not None:
            said, chain = _without_locations(match["text"], known)
            entries.append(_Open(kind, match["type"], [said], chain if kind == "debug" else _place(match), number))
        elif entries:
            said, chain = _without_locations(line, known)
            entries[-1].texts.append(said)
            if line.startswith("}") and not entries[-1].chain:
                # An operation with regions has its location behind them.
                entries[-1].chain = chain
        else:
            said, chain = _without_locations(line, known)
            entries.append(_Open("text", "", [said], chain, number))
    return tuple(entry.closed() for entry in entries)


def _form_of(line: str) -> tuple[_EntryKind, re.Match[str] | None]:
    for kind, pattern in _FORMS:
        if match := pattern.match(line):
            return kind, match
    return "text", None


@dataclass(slots=True)
class _Open:
    kind: _EntryKind
    type: str
    texts: list[str]
    chain: Chain
    line: int

    def closed(self) -> LogEntry:
        return LogEntry(self.kind, self.type, "\n".join(self.texts), self.chain, self.line, len(self.texts))


def _place(match: re.Match[str]) -> Chain:
    groups = match.groupdict()
    if "file" not in groups:
        return ()
    return cut((Frame(groups["file"], count(groups["line"]), count(groups["column"])),))


def _without_locations(line: str, known: dict[str, Chain]) -> tuple[str, Chain]:
    """A line without its `loc(...)`, and the chain of the first; `known` keeps those that were read."""
    kept: list[str] = []
    chain: Chain | None = None
    start = 0
    while (found := line.find(" loc(", start)) >= 0:
        end = _closing(line, found + 4)
        if end < 0:
            break
        kept.append(line[start:found])
        if chain is None:
            location = line[found + 5 : end]
            if location not in known:
                known[location] = read_location(location)
            chain = known[location]
        start = end + 1
    return "".join((*kept, line[start:])), chain or ()


def _closing(line: str, opening: int) -> int:
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(line, opening):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if not depth:
            return match.start()
    return -1
