"""Reads the locations of AMDGCN: `.loc`, with the call sites in its comment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from irscope.ir.locations.known import KnownChains
from irscope.ir.locations.llvm import joined
from irscope.ir.locations.model import ChainTable, Frame, TextLocations, count, cut, text_lines
from irscope.ir.quoted import unescape_assembly

# 	.file	1 "/home/me" "kernel.py"        .file 3 "standard.py"
FILE = re.compile(r'\s*\.file\s+(?P<id>\d+)\s+"(?P<first>(?:[^"\\]|\\.)*)"(?:\s+"(?P<second>(?:[^"\\]|\\.)*)")?')
# 	.loc	3 196 12 is_stmt 1              ; standard.py:196:12 @[ standard.py:216:16 @[ kernel.py:25:15 ] ]
_LOC = re.compile(r"\s*\.loc\s+(?P<file>\d+)\s+(?P<line>\d+)(?:\s+(?P<column>\d+))?[^;]*(?:;(?P<comment>.*))?$")
# @[ standard.py:216:16 @[ kernel.py:25:15 ] ]
_CALLER = re.compile(r"@\[ (?P<file>(?:(?!@\[ ).)*?):(?P<line>\d+)(?::(?P<column>\d+))?(?=[ \]])")
# 	v_add_f32_e32 v0, v1, v2
_AMD_INSTRUCTION = re.compile(r"\s+[a-z]")
_AMD_END = re.compile(r"\.Lfunc_end\d+:|\s*\.(?:section|end_amdhsa_kernel|cfi_endproc)\b|.*-- Begin function")


@lru_cache(maxsize=2)
def read_amdgcn(text: str, llir: str | None = None) -> TextLocations:
    """The locations of each line of AMDGCN assembly.

    The comment of a `.loc` holds the call sites, with file names without folders, which the `.file` table provides. If
    the table is ambiguous or there are no comments, `llir` (the LLVM IR that the assembly was compiled from) decides;
    if that has several matching chains, the frames stay as in the assembly.
    """
    lines = text_lines(text)
    files = file_table(lines)
    paths = paths_by_name(files)
    known = KnownChains(llir)
    table = ChainTable()
    by_line: list[int] = []
    index = -1
    for line in lines:
        loc = _LOC.match(line) if ".loc" in line else None
        if loc is not None:
            frame = Frame(files.get(loc["file"], ""), count(loc["line"]), count(loc["column"] or "0"))
            index = table.add(known.settle(cut((frame, *callers(loc["comment"] or "", paths)))))
        elif _AMD_END.match(line):
            index = -1
        by_line.append(index if loc is None and _AMD_INSTRUCTION.match(line) else -1)
    return table.locations(by_line)


def file_table(lines: Iterable[str]) -> dict[str, str]:
    """File number of `.file` → path."""
    return {number: unescape_assembly(path) for number, path in written_paths(lines).items()}


def written_paths(lines: Iterable[str]) -> dict[str, str]:
    """File number of `.file` → path as written, with its escapes."""
    table: dict[str, str] = {}
    for line in lines:
        match = FILE.match(line) if ".file" in line else None
        if match is not None:
            first, second = match["first"], match["second"]
            table[match["id"]] = first if second is None else joined(first, second)
    return table


def paths_by_name(files: Mapping[str, str]) -> dict[str, str]:
    """File name → path, for the names that only one path has."""
    paths: dict[str, set[str]] = {}
    for path in files.values():
        paths.setdefault(path.rpartition("/")[2], set()).add(path)
    return {name: next(iter(found)) for name, found in paths.items() if len(found) == 1}


def callers(comment: str, paths: Mapping[str, str]) -> Iterator[Frame]:
    """The call sites in the comment of a `.loc`; an ambiguous file name stays without a folder."""
    for site in _CALLER.finditer(comment):
        path = paths.get(site["file"].rpartition("/")[2], site["file"])
        yield Frame(path, count(site["line"]), count(site["column"] or "0"))
