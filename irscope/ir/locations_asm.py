"""Reads the locations of SASS and AMDGCN: marker comments, and `.loc` with the call sites in its comment."""

from __future__ import annotations

import re
from collections.abc import Iterable

from irscope.ir.locations_llvm import DebugChains, joined
from irscope.ir.locations_model import Chain, ChainTable, Frame, TextLocations, count, cut, text_lines

# 	//## File "kernel.py", line 216 inlined at "kernel.py", line 25
_MARKER = re.compile(r'\s*//## File "(?P<file>[^"]*)", line (?P<line>\d+)')
_INLINED = re.compile(r'\s+inlined at "(?P<file>[^"]*)", line (?P<line>\d+)')
# .L_x_0:      $kernel$helper:      .section .text.kernel      .type kernel,@function      //------- .text.kernel -----
_SASS_PLAIN = re.compile(r"\s*(?:\S+:\s*$|\.\w|//|$)")
_SASS_FUNCTION = re.compile(r"\s*(?:\.section\s|\.type\s+[^\s,]+,@function|//-{5})")

# 	.file	1 "/home/me" "kernel.py"        .file 3 "standard.py"
FILE = re.compile(r'\s*\.file\s+(?P<id>\d+)\s+"(?P<first>(?:[^"\\]|\\.)*)"(?:\s+"(?P<second>(?:[^"\\]|\\.)*)")?')
# 	.loc	3 196 12 is_stmt 1              ; standard.py:196:12 @[ standard.py:216:16 @[ kernel.py:25:15 ] ]
_LOC = re.compile(r"\s*\.loc\s+(?P<file>\d+)\s+(?P<line>\d+)(?:\s+(?P<column>\d+))?[^;]*(?:;(?P<comment>.*))?$")
# @[ standard.py:216:16 @[ kernel.py:25:15 ] ]
_CALLER = re.compile(r"@\[ (?P<file>.*?):(?P<line>\d+)(?::(?P<column>\d+))?(?=[ \]])")
# 	v_add_f32_e32 v0, v1, v2
_AMD_INSTRUCTION = re.compile(r"\s+[a-z]")
_AMD_END = re.compile(r"\.Lfunc_end\d+:|\s*\.(?:section|end_amdhsa_kernel|cfi_endproc)\b|.*-- Begin function")


def read_sass(text: str) -> TextLocations:
    """The locations of each line of a disassembly by `nvdisasm -g -gi`; SASS has no columns."""
    table = ChainTable()
    by_line: list[int] = []
    current: list[Frame] = []
    awaited: Frame | None = None  # where the next marker must stand, if it continues the chain
    index = -1
    for line in text_lines(text):
        marker = _MARKER.match(line) if "//## File" in line else None
        if marker is not None:
            sites = [marker, *_INLINED.finditer(line, marker.end())]
            frames = [Frame(site["file"], count(site["line"]), 0) for site in sites]
            current = [*current[:-1], *frames] if awaited == frames[0] else frames
            awaited = frames[-1] if len(frames) > 1 else None
            index = table.add(cut(current))
            by_line.append(-1)
            continue
        if _SASS_FUNCTION.match(line):
            current, awaited, index = [], None, -1
        plain = _SASS_PLAIN.match(line) is not None
        awaited = awaited if plain else None
        by_line.append(-1 if plain else index)
    return table.locations(by_line)


def read_amdgcn(text: str, llir: str | None = None) -> TextLocations:
    """The locations of each line of AMDGCN assembly.

    The comment beside a `.loc` holds the call sites, with file names that lack their folders; these come from the
    `.file` table. Where that does not tell two files apart, or where there are no comments, `llir` (the LLVM IR that
    the assembly was made from) is asked; where that knows several chains, the frames stay as the assembly has them.
    """
    lines = text_lines(text)
    files = file_table(lines)
    chains = _Callers(files, llir)
    table = ChainTable()
    by_line: list[int] = []
    index = -1
    for line in lines:
        loc = _LOC.match(line) if ".loc" in line else None
        if loc is not None:
            frame = Frame(files.get(loc["file"], ""), count(loc["line"]), count(loc["column"] or "0"))
            index = table.add(chains.of(frame, loc["comment"]))
        elif _AMD_END.match(line):
            index = -1
        by_line.append(index if loc is None and _AMD_INSTRUCTION.match(line) else -1)
    return table.locations(by_line)


def file_table(lines: Iterable[str]) -> dict[str, str]:
    """The paths that `.file` gives numbers."""
    table: dict[str, str] = {}
    for line in lines:
        match = FILE.match(line) if ".file" in line else None
        if match is not None:
            first, second = match["first"], match["second"]
            table[match["id"]] = first if second is None else joined(first, second)
    return table


class _Callers:
    """Finds the call sites of a place in AMDGCN assembly."""

    def __init__(self, files: dict[str, str], llir: str | None) -> None:
        self.paths: dict[str, set[str]] = {}
        for path in files.values():
            self.paths.setdefault(path.rpartition("/")[2], set()).add(path)
        self.known: dict[Frame, set[Chain]] = {}
        chains = DebugChains(text_lines(llir)).chains().values() if llir else ()
        for chain in chains:
            places = tuple(Frame(frame.file, frame.line, frame.column) for frame in chain)
            if places:
                self.known.setdefault(places[0], set()).add(places)

    def of(self, frame: Frame, comment: str | None) -> Chain:
        """The whole chain of a place, given the comment beside its `.loc`, if there is one."""
        if comment is None:
            candidates = self.known.get(frame, set())
            return next(iter(candidates)) if len(candidates) == 1 else cut((frame,))
        chain = [frame]
        for site in _CALLER.finditer(comment):
            paths = self.paths.get(site["file"].rpartition("/")[2], set())
            path = next(iter(paths)) if len(paths) == 1 else site["file"]
            chain.append(Frame(path, count(site["line"]), count(site["column"] or "0")))
        candidates = {other for other in self.known.get(frame, set()) if _agree(chain, other)}
        return next(iter(candidates)) if len(candidates) == 1 else cut(chain)


def _agree(chain: list[Frame], other: Chain) -> bool:
    """Whether two chains are the same but for the folders of their files."""
    return len(chain) == len(other) and all(
        (a.line, a.column, a.file.rpartition("/")[2]) == (b.line, b.column, b.file.rpartition("/")[2])
        for a, b in zip(chain, other, strict=True)
    )
