"""Gives every operation of a TTGIR text a location of its own, and reads from assembly which operation it is from.

Locations of Python cannot tell two operations of one line apart. A text whose locations are the operations' own
compiles to the same code, and the locations of that code name the operation of each instruction.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from irscope.ir.locations.model import MAX_FRAMES
from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.reader import Operation, parse_mlir
from irscope.ir.mlir.tokens import STRING, closing, location_spans, split_commas
from irscope.model.capture import StageKind

# callsite(#loc3 at #loc5)   "x_ptr"(#loc3)
_AROUND = re.compile(rf"callsite\(|{STRING}\(")
# #loc12
_ALIAS = re.compile(r"#[\w.$-]+")
# fused[#loc3, #loc4]   fused<#di_subprogram>[#loc3]
_FUSED = re.compile(r"fused(?:<[^\[\]]*>)?\[")
# "/kernels/matmul.py":31:20   "matmul.py":31:20 to :35   unknown
_FRAME = re.compile(rf"{STRING}:\d+:\d+(?: to \d*:\d+)?|unknown\b")

_FILE = "ttgir"
# LLVM counts the lines of inline assembly on from its statement's: no operation reaches the next one's number.
_STRIDE = 1000
# The failing line of Python is a constant of the code that is made of them.
_MEANT_FOR_USERS = frozenset({"tt.assert"})


def with_operation_locations(text: str) -> str:
    """The text with locations that stand for each operation's first line.

    All locations are replaced, in whatever form, those of block arguments by their operation's; only the innermost
    frame is, since ptxas schedules code otherwise where inlined code begins. What an assertion has stays, for it is
    part of the code.
    """
    module = parse_mlir(text)
    owners: dict[int, Operation] = {}
    headers: dict[int, Operation] = {}
    for operation in module.walk():
        owners |= dict.fromkeys(operation.lines, operation)
        headers |= {block.line: operation for region in operation.regions for block in region.blocks if block.line}
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        operation = owners.get(number) or headers.get(number)
        if operation is None or operation.name in _MEANT_FOR_USERS:
            continue
        own = f'"{_FILE}":{operation.first_line * _STRIDE}:0'
        if number == operation.lines[-1] and not operation.location:
            line += " loc(unknown)"
        if "loc(" in line:
            lines[number - 1] = _relocated(line, own, module.aliases)
    # MLIR reads an alias within a location only if it stands before.
    return "\n".join(sorted(lines, key=lambda line: not line.startswith("#loc")))


def _relocated(line: str, own: str, aliases: Mapping[str, str]) -> str:
    parts: list[str] = []
    done = 0
    for start, end in location_spans(line):
        parts += [line[done:start], "loc(", _with_innermost(line[start + 4 : end - 1], own, aliases), ")"]
        done = end
    return "".join([*parts, line[done:]])


def _with_innermost(location: str, own: str, aliases: Mapping[str, str]) -> str:
    """A location with another innermost frame, which is the first one in its text; of fused ones, the first is kept."""
    at = 0
    for _ in range(MAX_FRAMES):
        if (around := _AROUND.match(location, at)) is not None:
            at = around.end()
        elif (alias := _ALIAS.match(location, at)) is not None and alias[0] in aliases:
            location = f"{location[:at]}{aliases[alias[0]][4:-1]}{location[alias.end() :]}"
        elif (fused := _FUSED.match(location, at)) is not None:
            end = closing(location, fused.end() - 1)
            location = f"{location[:at]}{split_commas(location[fused.end() : end])[0]}{location[end + 1 :]}"
        elif (frame := _FRAME.match(location, at)) is not None:
            return f"{location[:at]}{own}{location[frame.end() :]}"
        else:
            break
    return own


def read_operation_lines(text: str, kind: StageKind, *, ptx: str | None = None) -> tuple[int, ...]:
    """For each line of assembly made of such a text, the line of its operation, 1-based; 0 for none.

    An instruction that several operations share has none.

    Args:
        text: PTX, SASS or AMDGCN.
        kind: which of them.
        ptx: for SASS, the PTX that it was assembled from.
    """
    locations = read_locations(text, kind, ptx=ptx)
    numbers = [
        (chain[0].line + _STRIDE // 2) // _STRIDE if chain[0].file.rpartition("/")[2] == _FILE else 0
        for chain in locations.chains
    ]
    return tuple(numbers[index] if index >= 0 else 0 for index in locations.by_line)
