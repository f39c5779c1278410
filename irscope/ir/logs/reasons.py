"""Reads decisions out of the entries of a log: one reader for each part of the compiler that states them.

The wording is that of Triton 3.6 to 3.9. An entry that no reader knows is no decision, and stays what it is: text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from irscope.ir.locations.mlir import read_location
from irscope.ir.locations.model import Chain, Frame, count, cut
from irscope.ir.logs.decisions import (
    AsyncDot,
    LoadPipelining,
    LogDecision,
    LoggedOperation,
    Partition,
    PartitionMerge,
    PlacedBuffer,
    PtxasAdvice,
    Refusal,
    Remark,
    Rematerialisation,
    ThreadWidth,
    VectorWidth,
)
from irscope.ir.mlir.tokens import location_spans
from irscope.model.evidence import PassLog

# ── The entries of a compiler's log: each with who printed it, and the Python line that it is about ─────────────────
# Four writers share it. Triton's own debug output begins with the name of its part, MLIR's diagnostics with a place,
# LLVM's remarks and ptxas with their own words; what begins otherwise goes on with the entry before.

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
_BUFFER_OWNER = re.compile(r"^-- (?P<type>buffer) (?P<text>\d.*)")
_FORMS: tuple[tuple[_EntryKind, re.Pattern[str]], ...] = (
    ("debug", _DEBUG),
    ("debug", _BUFFER_OWNER),
    ("diagnostic", _DIAGNOSTIC),
    ("llvm", _LLVM),
    ("ptxas", _PTXAS),
)


@dataclass(frozen=True, slots=True)
class LogEntry:
    """The text that was printed at once."""

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
        return self.text.partition("\n")[0]


def read_entries(text: str) -> tuple[LogEntry, ...]:
    """The entries of what a pass printed; every line of it is in one. Of hostile text too, in linear time."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    entries: list[_OpenEntry] = []
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
            entries.append(_OpenEntry(kind, match["type"], [said], chain if kind == "debug" else _place(match), number))
        elif entries:
            said, chain = _without_locations(line, known)
            entries[-1].texts.append(said)
            if line.startswith("}") and not entries[-1].chain:
                # An operation with regions has its location behind them.
                entries[-1].chain = chain
        else:
            said, chain = _without_locations(line, known)
            entries.append(_OpenEntry("text", "", [said], chain, number))
    return tuple(entry.closed() for entry in entries)


def _form_of(line: str) -> tuple[_EntryKind, re.Match[str] | None]:
    for kind, pattern in _FORMS:
        if match := pattern.match(line):
            return kind, match
    return "text", None


@dataclass(slots=True)
class _OpenEntry:
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
    chains: list[Chain] = []
    parts: list[str] = []
    done = 0
    for start, end in location_spans(line) if " loc(" in line else ():
        if line[start - 1] == " ":
            parts.append(line[done : start - 1])
            location, done = line[start + 4 : end - 1], end
            if location not in known:
                known[location] = read_location(location)
            chains.append(known[location])
    return "".join((*parts, line[done:])), chains[0] if chains else ()


_Reader = Callable[[PassLog, Sequence[LogEntry]], Iterator[LogDecision]]

_LIST = r"\[(?P<{0}>[\d, -]*)\]"
# axis info of pointer: contiguity = [1, 64], divisibility = [2, 16], constancy = [1, 1], constant_value = <none>
_AXIS_INFO = re.compile(
    "axis info of pointer: contiguity = " + _LIST.format("contiguity") + ", divisibility = "
    + _LIST.format("divisibility") + ", constancy = " + _LIST.format("constancy")
)  # fmt: skip
# elemNumBytes: 2, divisibility: 16, contig: 64, maximum: 8, alignment: 8
_ELEMENT_BYTES = re.compile(r"elemNumBytes: (\d{1,9})")
# order=[1, 0]    perThread for op: 8    perThread for opSameOrder: 1    perThread: 8
_NUMBERS = re.compile(r"(?P<name>order|perThread(?: for op(?:SameOrder)?)?)(?:: |=\[)(?P<values>\d[\d, ]*)\]?$")

# Load %x = tt.load %p : tensor<…> has width 16
_LOAD = re.compile(
    r"Load (?P<operation>.*?)(?: has width (?P<width>\d{1,9})"
    r"| considered for pipelining with distance (?P<distance>\d{1,9})"
    r"| (?P<reason>is too small for pipelining|cannot have shared encoding|has multiple uses at different distances.*"
    r"|will not be pipelined because .*))$"
)
_REASONS = {
    "is too small for pipelining": "a thread copies less than 32 bits at once",
    "cannot have shared encoding": "its users need different layouts in shared memory",
}

_CONSIDERED_DOT = "Considering whether to make MMAv3 dot properly async: "
_NOT_ASYNC = "Can't make dot async because "

_CHECKED = "check backward remat with source "
# convert layout cost: 128    rematerialisation cost: 0
_COST = re.compile(r"\s*(?P<which>convert layout|rematerialisation) cost: (?P<cost>\d{1,18})$")
_KEPT = {
    "getRematerializableSlice failed": "its source cannot be computed in the other layout",
    "skipped rematerialization due to higher cost": "computing its source again costs more",
    "skipped rematerialization because it is not beneficial": "computing its source again costs more",
    "skipped rematerialization because it would split the slice": "the source would be computed in both layouts",
    "skipped rematerialization due to non-associative reduce in the slice": "a reduction would be in another order",
}

# -- 3 8192 0 interval 188 189
_BUFFER = re.compile(
    r"^-- (?P<number>\d{1,9}) (?P<size>\d{1,15}) (?P<offset>\d{1,15}) interval (?P<first>\d{1,20}) (?P<last>\d{1,20})$",
    re.MULTILINE,
)
_BUFFERS = "Dump bufferRange"
# 0; value: %left = ttg.local_alloc %1 : …
_OWNER = re.compile(r"(?P<number>\d{1,9}); value: (?P<operation>.*)")

# Warning: vectorization fails vec = 1 origin vec = 1 numElems = 32 mask is 64
_VECTOR = re.compile(
    r"(?:Warning: )?vectorization fails vec = (\d{1,9}) origin vec = (\d{1,9}) numElems = (\d{1,9}) mask is (-?\d{1,9})"
)

# (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to … in the function 'f'
_ADVICE = re.compile(r"(?:\((?P<code>[A-Z]\d+)\) )?(?P<text>.*)")
# … in the function 'f' in line 355
_FUNCTION = re.compile(r" in the function '(?P<name>[\w$.]+)'(?: in line (?P<line>\d{1,9}))?$")

# (part, what it says, how to say it); what is in the first group is said, and an operation read of the second
_REFUSALS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("tritonamdgpu-convert-buffer-ops", re.compile("Failed to convert: ()(.*)"), "no buffer operation"),
    (
        "tritonamdgpu-block-pingpong",
        re.compile("Unable to (?:match|apply) ping pong (?:scheduling|slicing)(?: pattern)?. Details: (.*)()"),
        "no ping-pong schedule",
    ),
    ("tritonamdgpu-block-pingpong", re.compile("Skipping pingpong for (.*)()"), "no ping-pong schedule"),
    ("tritonamdgpu-block-pingpong", re.compile("(Reached known register spilling case).*()"), "no ping-pong schedule"),
    (
        "tritonamdgpu-in-thread-transpose",
        re.compile("Failed to match InThreadTranspose pattern()()"),
        "no transposition",
    ),
    ("triton-loop-pipeline", re.compile("Not pipelining TMA load because (.*)()"), "TMA load not pipelined"),
)

# Partition@0x55b40d181ba0 {
#   id=1
#   size=15
#   cost=64
#   flags=STORE|TMEM
# }
_PARTITION = (
    r"Partition@0x[\da-f]{1,16} \{\n  id=(None|\d{1,9})\n  size=(\d{1,9})\n  cost=(\d{1,15})\n"
    r"  flags=([A-Z|]{1,99})\n\}\n?"
)
_PARTITIONS = re.compile(_PARTITION)
# apply heuristic "load_local_alloc"
# tt.descriptor_load -> ttg.local_alloc
_RULE = re.compile(
    r'^apply heuristic "(?P<rule>\w{1,80})"\n(?P<first>[^\n]{1,200}?) -> (?P<second>[^\n]{1,200})$', re.M
)
# merge "load" ----, and two partitions
_MERGE = re.compile(rf'^merge "(?P<rule>\w{{1,80}})" ----\n{_PARTITION}{_PARTITION}', re.M)
_FINAL = "final partitions:\n"


def read_decisions(log: PassLog) -> tuple[LogDecision, ...]:
    """The decisions in what one pass printed, in its order."""
    entries = read_entries(log.text)
    found = [decision for reader in _READERS for decision in reader(log, entries)]
    return tuple(sorted(found, key=lambda decision: decision.line))


def _thread_widths(log: PassLog, entries: Sequence[LogEntry]) -> Iterator[LogDecision]:
    under_way: tuple[LogEntry, LoggedOperation] | None = None
    info: re.Match[str] | None = None
    order: tuple[int, ...] = ()
    element_bytes = own = 0
    others: list[int] = []
    for entry in entries:
        if entry.type == "ttg-utility" and (size := _ELEMENT_BYTES.match(entry.first)) and not own:
            element_bytes = int(size[1])
        if entry.type != "tritongpu-coalesce":
            continue
        if entry.first.startswith("Considering op: "):
            under_way = entry, _operation(entry, entry.text.removeprefix("Considering op: "))
            info, order, element_bytes, own, others = None, (), 0, 0, []
        elif match := _AXIS_INFO.match(entry.first):
            info = match
        elif (match := _NUMBERS.match(entry.first)) and under_way is not None:
            values = _integers(match["values"])
            if match["name"] == "order":
                order = values
            elif match["name"] == "perThread for op":
                own = values[0]
            elif match["name"] == "perThread for opSameOrder":
                others.append(values[0])
            elif info is not None and order:
                begun, operation = under_way
                # A store has no more than its own: it would leave gaps in what the warp writes at once.
                chosen = values[0] if operation.name == "tt.load" else min(values[0], own)
                yield ThreadWidth(
                    log.stage, log.index, begun.line, operation, _integers(info["contiguity"]),
                    _integers(info["divisibility"]), _integers(info["constancy"]), order, element_bytes, own,
                    tuple(others), chosen,
                )  # fmt: skip
                under_way = None


def _loads(log: PassLog, entries: Sequence[LogEntry]) -> Iterator[LogDecision]:
    widths: dict[str, int] = {}
    for entry in entries:
        if entry.type != "triton-loop-pipeline" or not (match := _LOAD.match(entry.first)):
            continue
        operation = _operation(entry, match["operation"])
        if match["width"]:
            widths[operation.text] = int(match["width"])
            continue
        said = match["reason"] or ""
        reason = _REASONS.get(said, said)
        distance = int(match["distance"]) if match["distance"] else None
        yield LoadPipelining(
            log.stage, log.index, entry.line, operation, widths.get(operation.text), distance, reason
        )  # fmt: skip


def _dots(log: PassLog, entries: Sequence[LogEntry]) -> Iterator[LogDecision]:
    considered: tuple[LogEntry, LoggedOperation] | None = None
    reason = ""
    for entry in entries:
        if entry.type != "triton-wgmma-pipeline":
            continue
        if entry.first.startswith(_NOT_ASYNC):
            reason = entry.first.removeprefix(_NOT_ASYNC).rstrip(".")
        elif entry.first.startswith(_CONSIDERED_DOT):
            if considered is not None:
                yield AsyncDot(log.stage, log.index, considered[0].line, considered[1], reason)
            considered = entry, _operation(entry, entry.first.removeprefix(_CONSIDERED_DOT))
            reason = ""
    if considered is not None:
        yield AsyncDot(log.stage, log.index, considered[0].line, considered[1], reason)


def _conversions(log: PassLog, entries: Sequence[LogEntry]) -> Iterator[LogDecision]:
    begun: LogEntry | None = None
    costs: dict[str, int] = {}
    for entry in entries:
        if entry.type != "tritongpu-remove-layout-conversions":
            continue
        said = entry.first.strip()
        if said.startswith(_CHECKED):
            begun, costs = entry, {}
        elif match := _COST.match(entry.first):
            costs[match["which"]] = int(match["cost"])
        elif begun is not None and (said in _KEPT or said.startswith("remat convert op ")):
            source, _, encoding = begun.text.removeprefix(_CHECKED).rpartition(" encoding ")
            yield Rematerialisation(
                log.stage, log.index, begun.line, _operation(begun, source), encoding, costs.get("convert layout"),
                costs.get("rematerialisation"), _KEPT.get(said, ""),
            )  # fmt: skip
            begun = None


def _buffers(log: PassLog, entries: Sequence[LogEntry]) -> Iterator[LogDecision]:
    owners: dict[int, LoggedOperation] = {}
    for entry in entries:
        if entry.type == "buffer" and (owner := _OWNER.match(entry.first)):
            owners[int(owner["number"])] = _operation(entry, owner["operation"])
        elif entry.type == "allocation-shared-memory" and entry.first.startswith(_BUFFERS):
            for match in _BUFFER.finditer(entry.text):
                line = entry.line + entry.text.count("\n", 0, match.start())
                numbers = tuple(map(int, match.groups()))
                yield PlacedBuffer(log.stage, log.index, line, owners.get(numbers[0]), *numbers)


def _remarks(log: PassLog, entries: Sequence[LogEntry]) -> Iterator[LogDecision]:
    known: set[tuple[str, object]] = set()
    for entry in entries:
        if entry.kind != "diagnostic":
            continue
        if match := _VECTOR.match(entry.first):
            yield VectorWidth(log.stage, log.index, entry.line, _operation(entry, ""), *map(int, match.groups()))
        elif entry.type in ("remark", "warning") and (entry.first, entry.chain) not in known:
            # A pattern that is tried again says it again.
            known.add((entry.first, entry.chain))
            yield Remark(log.stage, log.index, entry.line, _operation(entry, ""), entry.first)


def _advice(log: PassLog, entries: Sequence[LogEntry]) -> Iterator[LogDecision]:
    for entry in entries:
        match = _ADVICE.match(entry.first) if entry.kind == "ptxas" else None
        if match is None or not (match["code"] or entry.type == "warning"):
            continue
        function = _FUNCTION.search(match["text"])
        named, line = (function["name"], function["line"]) if function is not None else ("", None)
        yield PtxasAdvice(
            log.stage,
            log.index,
            entry.line,
            None,
            match["code"] or "",
            match["text"],
            named,
            int(line) if line else None,
        )


def _refusals(log: PassLog, entries: Sequence[LogEntry]) -> Iterator[LogDecision]:
    for entry in entries:
        for part, pattern, what in _REFUSALS:
            if entry.type == part and (match := pattern.match(entry.first)):
                reason = f"{what}: {match[1]}" if match[1] else what
                operation = _operation(entry, match[2]) if match[2] else None
                yield Refusal(log.stage, log.index, entry.line, operation, part, reason)


def _partitions(log: PassLog, entries: Sequence[LogEntry]) -> Iterator[LogDecision]:
    for entry in entries:
        text = entry.text
        if _FINAL not in text and 'apply heuristic "' not in text:
            continue
        breaks = [index for index, letter in enumerate(text) if letter == "\n"]

        def begun(match: re.Match[str], first: int = entry.line, breaks: Sequence[int] = breaks) -> int:
            return first + bisect_left(breaks, match.start())

        for one in _RULE.finditer(text):
            yield PartitionMerge(log.stage, log.index, begun(one), None, one["rule"], one["first"], one["second"])
        for one in _MERGE.finditer(text):
            sides = (f"{one[at + 3]} ({one[at + 1]} operations)" for at in (2, 6))
            yield PartitionMerge(log.stage, log.index, begun(one), None, one["rule"], *sides)
        at = text.find(_FINAL) + len(_FINAL) if _FINAL in text else len(text)
        # One follows the other.
        while one := _PARTITIONS.match(text, at):
            number = None if one[1] == "None" else int(one[1])
            flags = tuple(flag for flag in one[4].split("|") if flag != "NONE")
            yield Partition(log.stage, log.index, begun(one), None, number, int(one[2]), int(one[3]), flags)
            at = one.end()


_READERS: tuple[_Reader, ...] = (
    _thread_widths, _loads, _dots, _conversions, _buffers, _remarks, _advice, _refusals, _partitions,
)  # fmt: skip


def _operation(entry: LogEntry, text: str) -> LoggedOperation:
    return LoggedOperation(text, entry.chain)


def _integers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.replace(",", " ").split() if len(part) < 19)
