"""Reads the locations of PTX: `.file`, and `.loc` with the call site it was inlined at."""

from __future__ import annotations

import re

from irscope.ir.locations_asm import file_table
from irscope.ir.locations_llvm import DebugChains, honest
from irscope.ir.locations_model import MAX_FRAMES, Chain, ChainTable, Frame, TextLocations, count, text_lines

# 	.loc	3 196 12, function_name $L__info_string0, inlined_at 3 216 16 // standard.py:196:12
_LOC = re.compile(
    r"\s*\.loc\s+(?P<file>\d+)\s+(?P<line>\d+)(?:\s+(?P<column>\d+))?"
    r"(?:\s*,\s*function_name\s+(?P<function>[\w.$]+)(?:\s*\+\s*(?P<offset>\d+))?"
    r"\s*,?\s*inlined_at\s+(?P<at_file>\d+)\s+(?P<at_line>\d+)(?:\s+(?P<at_column>\d+))?)?"
)
# .visible .entry chains(      .func  (.param .b32 func_retval0) helper(      .entry kernel
_FUNCTION = re.compile(
    r"\s*(?:\.(?:visible|weak|extern|noreturn)\s+)*\.(?:entry|func)\b(?:\s*\([^)]*\))?\s*(?P<name>[\w.$]*)"
)
# $L__info_string0:
_STRING = re.compile(r"(?P<name>\$L__info_string\d+):")
# .b8 99                                  // string offset=0 ; chains        .b8 104,105,0
_BYTES = re.compile(r"\.b8\s+(?P<values>[\d, ]+)")
# $L__tmp0:   }   )   {   .reg .b32 %r<3>;   // %bb.0:   (an instruction may stand behind a brace)
_NO_INSTRUCTION = re.compile(r"\s*(?:[\w.$]+:\s*(?://.*)?$|[{}]?\s*(?://.*)?$|\{?\s*\.\w|\)\s*$)")

_Place = tuple[str, int, int]


def read_ptx(text: str, llir: str | None = None) -> TextLocations:
    """The locations of each line of PTX.

    A `.loc` names its call site by place alone, and that is where an earlier `.loc` of the function says that it is
    inlined itself: the nearest one before. Where `llir` (the LLVM IR that the PTX was made from) is given, a chain
    that it does not know gives way to the only one that it does know with the same two innermost places.
    """
    lines = text_lines(text)
    files, strings = file_table(lines), _info_strings(lines)
    sites = _CallSites(llir)
    table = ChainTable()
    by_line: list[int] = []
    index = -1
    name = ""
    for line in lines:
        by_line.append(-1)
        loc = _LOC.match(line) if ".loc" in line else None
        if loc is not None:
            index = table.add(sites.chain(loc, files, strings, name))
        elif line[:1] == "}" or line.lstrip().startswith((".visible", ".func", ".entry", ".weak", ".section")):
            function = _FUNCTION.match(line)
            name = function["name"] if function else name
            sites.begin()
            index = -1
        elif index >= 0 and not _NO_INSTRUCTION.match(line):
            by_line[-1] = index
    return table.locations(by_line)


class _CallSites:
    """Remembers, within one function, what each place was last inlined at."""

    def __init__(self, llir: str | None) -> None:
        self.parents: dict[_Place, Chain] = {}
        self.known: set[tuple[_Place, ...]] = set()
        self.by_start: dict[tuple[_Place, ...], list[Chain]] = {}
        for chain in DebugChains(text_lines(llir)).chains().values() if llir else ():
            places = _places(chain)
            if places not in self.known:
                self.known.add(places)
                self.by_start.setdefault(places[:2], []).append(chain)

    def begin(self) -> None:
        """Forget what was seen: another function begins."""
        self.parents = {}

    def chain(self, loc: re.Match[str], files: dict[str, str], strings: dict[str, str], function: str) -> Chain:
        """The chain of one `.loc`."""
        file, line, column = files.get(loc["file"], ""), count(loc["line"]), count(loc["column"] or "0")
        if not loc["at_file"]:
            chain = (Frame(file, line, column),) if line else ()
        else:
            at = (files.get(loc["at_file"], ""), count(loc["at_line"]), count(loc["at_column"] or "0"))
            parent = self.parents.get(at) or ((Frame(*at),) if at[1] else ())
            inner = Frame(file, line, column, strings.get(loc["function"], ""))
            outer = Frame("", 1, 0, function)  # Triton names the function it was inlined into, which is not true
            chain = self._checked((*(honest((inner, outer))[:1] if line else ()), *parent)[:MAX_FRAMES])
        self.parents[file, line, column] = chain
        return chain

    def _checked(self, chain: Chain) -> Chain:
        places = _places(chain)
        if not self.known or places in self.known:
            return chain
        others = self.by_start.get(places[:2], [])
        return others[0] if len(others) == 1 else chain


def _places(chain: Chain) -> tuple[_Place, ...]:
    return tuple((frame.file, frame.line, frame.column) for frame in chain)


def _info_strings(lines: list[str]) -> dict[str, str]:
    """The strings of `.debug_str` by their labels."""
    raw: dict[str, bytearray] = {}
    into: bytearray | None = None
    for line in lines:
        label = _STRING.match(line)
        if label is not None:
            into = raw.setdefault(label["name"], bytearray())
            continue
        data = _BYTES.match(line) if into is not None else None
        if data is None or into is None:
            into = None
            continue
        for value in data["values"].replace(",", " ").split():
            into.append(min(count(value), 255))
    return {name: bytes(value).split(b"\0")[0].decode("utf-8", "replace") for name, value in raw.items()}
