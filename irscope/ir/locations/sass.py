"""Reads the locations of SASS: the comments that nvdisasm puts before the instructions of a line."""

from __future__ import annotations

import re
from functools import lru_cache

from irscope.ir.locations.amdgcn import written_paths
from irscope.ir.locations.known import KnownChains
from irscope.ir.locations.model import Chain, ChainTable, Frame, TextLocations, count, cut, text_lines
from irscope.ir.locations.ptx import CountedLines
from irscope.ir.quoted import SassPaths

# 	//## File "kernel.py", line 216 inlined at "kernel.py", line 25
_MARKER = re.compile(r'\s*//## File "(?P<file>[^"]*)", line (?P<line>\d+)')
_INLINED = re.compile(r'(?<!\s)\s+inlined at "(?P<file>[^"]*)", line (?P<line>\d+)')
# .L_x_0:      $kernel$helper:      .section .text.kernel      .type kernel,@function   //----- .text.kernel -----
_NO_INSTRUCTION = re.compile(r"\s*(?:\S+:\s*$|\.\w|//|$)")
_FUNCTION = re.compile(r"\s*(?:\.section\s|\.type\s+[^\s,]+,@function|//-{5})")
# /*0140*/  @!P0 LDG.E R6, desc[UR6][R4.64] ;        0140  B------:R-:W2:-:S04  LDG.E R6, desc[UR6][R4.64]
_OPCODE = re.compile(
    r"\s*(?:/\*[0-9a-f]+\*/|[0-9a-f]{4,} .*?\bS\d\d\b(?:  G[\w:]+)?)\s+(?:@!?\w+\s+)?(?P<opcode>[A-Z]\w*)"
    r"(?P<suffix>[\w.]*)(?:\s+(?P<into>R\d+))?"
)
# .64x128x16.F32
_SHAPE = re.compile(r"\.(?P<m>\d+)x(?P<n>\d+)x(?P<k>\d+)\b")
# What an instruction is made from, for those that Triton writes as inline assembly.
_MADE_FROM = {
    "LDG": "ld.global",
    "STG": "st.global",
    "LDGSTS": "cp.async",
    "HGMMA": "wgmma.mma_async",
    "QGMMA": "wgmma.mma_async",
    "IGMMA": "wgmma.mma_async",
    "WARPGROUP": "wgmma.",
    "LDGDEPBAR": "cp.async.commit_group",
    "DEPBAR": "cp.async.wait",
    "BAR": "bar",
}


@lru_cache(maxsize=2)
def read_sass(text: str, llir: str | None = None, ptx: str | None = None) -> TextLocations:
    """The locations of each line of a disassembly by `nvdisasm -g -gi`, or of irscope's normal form of one.

    SASS has lines and no columns. Before Triton 3.8 it has only the innermost frame, which is completed if `llir` (the
    LLVM IR that it was compiled from) has exactly one chain that begins with it. From Triton 3.8 on, LLVM adds one line
    per instruction of inline assembly, which points at unrelated statements, and ptxas gives some matrix
    multiplications the line of their neighbours: these are corrected if `ptx` shows the true line (`CountedLines`).
    """
    known = KnownChains(llir, columns=False)
    counted = CountedLines(ptx)
    paths = SassPaths(written_paths(text_lines(ptx)).values() if ptx is not None else ())
    table = ChainTable()
    by_line: list[int] = []
    answers: dict[tuple[int, str, str], Chain | None] = {}
    current: list[Frame] = []
    awaited: Frame | None = None  # the frame that the next marker must have to continue the chain
    chain: Chain | None = None  # computed at the next instruction, since more markers may follow
    index = latest = -1
    group = -1  # the chain of the dot of the last WARPGROUP.ARRIVE or HGMMA
    into: str | None = None  # the accumulators of the last HGMMA since then
    for line in text_lines(text):
        marker = _MARKER.match(line) if "//## File" in line else None
        if marker is not None:
            sites = [marker, *_INLINED.finditer(line, marker.end())]
            frames = [Frame(paths.true(site["file"]), count(site["line"]), 0) for site in sites]
            current = [*current[:-1], *frames] if awaited == frames[0] else frames
            awaited = frames[-1] if len(frames) > 1 else None
            chain = None
            by_line.append(-1)
            continue
        if _FUNCTION.match(line):
            current, awaited, chain, group, into = [], None, None, -1, None
        if _NO_INSTRUCTION.match(line):
            by_line.append(-1)
            continue
        if chain is None:
            awaited, chain = None, known.settle(cut(current))
            index = latest = table.add(chain)
        opcode = _OPCODE.match(line) if counted and chain else None
        if opcode is not None:  # otherwise it is the second line of an encoding
            made_from = _MADE_FROM.get(opcode["opcode"], "")
            asked = (index, opcode["opcode"], opcode["suffix"])
            if asked not in answers:
                answers[asked] = counted.meant(chain, made_from, _shape(asked[2]), asked[1] + asked[2])
            meant = answers[asked]
            latest = index if meant is None else table.add(meant)
            if opcode["opcode"].endswith("GMMA") or opcode["suffix"] == ".ARRIVE":
                # The HGMMAs of one dot follow one arrival and have the same accumulators, so they have one chain; it
                # also decides for an instruction that matches two chains.
                same = into is not None and opcode["into"] == into
                if group >= 0 and (same or (meant is None and not counted.has(chain, made_from))):
                    latest = group
                group, into = latest, opcode["into"]
        by_line.append(latest)
    return table.locations(by_line)


def _shape(suffix: str) -> str:
    """The shape of a matrix multiplication as in PTX; empty for any other opcode."""
    match = _SHAPE.search(suffix)
    return f"m{match['m']}n{match['n']}k{match['k']}" if match is not None else ""
