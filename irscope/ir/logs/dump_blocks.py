"""The blocks of an MLIR dump: a header that names a pass, and the IR printed under it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

# // -----// IR Dump Before Inliner (inline) ('builtin.module' operation) //----- //
# // -----// IR Dump After CSEPass: cse Failed ('tt.func' operation: @matmul) //----- //
# // -----// SoftwarePipeliner internal IR Dump After: LowerLoops
_HEADER = re.compile(r"// -----// (?P<inner>[^\n]{1,80}? internal )?IR Dump (?P<when>Before|After):? (?P<rest>[^\n]*)")
# ('tt.func' operation: @matmul) //----- //  |  ('builtin.module' operation)  |  //----- //
_TAIL = re.compile(
    r"(?:(?<!\s)\s*\('(?P<operation>[\w.]+)' operation(?:: @(?P<symbol>[^']*))?\))?"
    r"(?P<ends>(?<!\s)\s*//----- //)?(?<!\s)\s*$"
)
# InlinerPass: inline{default-pipeline=canonicalize max-iterations=4 }
_WITH_OPTIONS = re.compile(r"^(?P<name>[^{]*?): (?P<argument>[\w.-]+)(?:\{(?P<options>.*)\})?$")
# Inliner Failed (inline)  |  InlinerPass Failed: inline{…}  |  Inliner Failed
_FAILED = re.compile(r" Failed(?=$|: | \()")
# Inliner (inline)
_WITH_ARGUMENT = re.compile(r"^(?P<name>(?:.*\S)?)\s*\((?P<argument>[\w.-]+)\)$")
# module attributes {"ttg.num-warps" = 4 : i32} {  |  tt.func public @add(  |  "builtin.module"() ({
_OPENING = re.compile(r'^(?:module\b|"?builtin\.module"?|"?(?:tt|llvm|func)\.func\b)', re.MULTILINE)
# a line that may stand before or after the module: #loc1 = loc(unknown)   !t = i32
_ALIAS_LINES = re.compile(r"(?:[#!][^\n]*(?:\n|\Z))*")
_CLOSING = re.compile(r"^\}[^\n]*(?:\n|\Z)", re.MULTILINE)

_MAX_HEADER = 10_000


@dataclass(frozen=True, slots=True)
class DumpBlock:
    """One header, and the IR under it."""

    when: Literal["before", "after"]
    name: str
    """The name of the pass's C++ class, as MLIR prints it."""
    argument: str
    options: str
    operation: str
    """The kind of operation the pass ran on: `builtin.module`, `tt.func`; empty if the header has none."""
    symbol: str
    """The name of that operation, for a function."""
    failed: bool
    text: str | None
    """The IR; None if the log was cut within it."""
    between: str
    """The text between the IR and the next header: output of other programs, and MLIR's diagnostics."""
    start: int
    """Where the header begins in the log."""
    end: int
    """Where the IR ends in the log."""

    @property
    def is_module(self) -> bool:
        """Whether the IR is a whole module, as every Triton since 3.0 prints it."""
        return self.text is None or self.text.lstrip().startswith(("#", "!", "module", "builtin.", '"builtin.'))


def read_blocks(log: str) -> Iterator[DumpBlock]:
    """The blocks of a log, in order, without those that passes print of their inner steps.

    Never raises: a header that cannot be read is a block with an empty name; text that is not IR is in no block.
    """
    headers = list(_HEADER.finditer(log))
    for number, header in enumerate(headers):
        if header["inner"] or header.end() == len(log):
            # A header that ends the log may be cut itself.
            continue
        limit = headers[number + 1].start() if number + 1 < len(headers) else len(log)
        # The inner dumps of the pass are skipped, but the text behind them may be a diagnostic.
        last = number + 1
        while last < len(headers) and headers[last]["inner"]:
            last += 1
        behind = headers[last].start() if last < len(headers) else len(log)
        text, end = _module_within(log, header.end(), limit)
        said_from = end if last == number + 1 else _module_within(log, headers[last - 1].end(), behind)[1]
        name, argument, options, operation, symbol, failed = _read_header(header["rest"])
        yield DumpBlock(
            "before" if header["when"] == "Before" else "after",
            name,
            argument,
            options,
            operation,
            symbol,
            failed,
            text,
            log[said_from:behind].strip(),
            header.start(),
            end,
        )


def _read_header(rest: str) -> tuple[str, str, str, str, str, bool]:
    rest = rest[:_MAX_HEADER]
    tail = _TAIL.search(rest)
    operation, symbol = (tail["operation"] or "", tail["symbol"] or "") if tail else ("", "")
    head = (rest[: tail.start()] if tail else rest).strip()
    failed = _FAILED.search(head) is not None
    head = _FAILED.sub("", head, count=1).partition(": unknown<")[0]
    match = _WITH_OPTIONS.match(head) or _WITH_ARGUMENT.match(head)
    if match is None:
        return head, "", "", operation, symbol, failed
    options = match.groupdict().get("options") or ""
    return match["name"], match["argument"], " ".join(options.split()), operation, symbol, failed


def _module_within(log: str, start: int, limit: int) -> tuple[str | None, int]:
    """The IR between two positions of a log and its end; None if it was cut."""
    opening = _OPENING.search(log, start, limit)
    if opening is None:
        return None, start
    line = log.find("\n", opening.start(), limit)
    first_line = log[opening.start() : line if line >= 0 else limit].rstrip()
    # An empty module, or a declaration, may end on the line it begins on.
    if line >= 0 and first_line.endswith("{}"):
        closed = line + 1
    else:
        closing = _CLOSING.search(log, opening.end(), limit)
        if closing is None:
            return None, limit
        closed = closing.end()
    aliases = _ALIAS_LINES.match(log, closed, limit)
    end = aliases.end() if aliases is not None else closed
    head = _start_of_aliases(log, start, opening.start())
    text = log[head:end]
    if limit == len(log) and not log.startswith("\n", end):
        # MLIR prints a blank line behind a module: if it is missing, lines of the module may be missing too.
        return None, limit
    return text, end


def _start_of_aliases(log: str, start: int, opening: int) -> int:
    head = opening
    while True:
        line = log.rfind("\n", start, head - 1) + 1
        if line <= start and log[start : start + 1] == "\n":
            line = start + 1
        if line >= head or line <= start or log[line] not in "#!":
            return head
        head = line
