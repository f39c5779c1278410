"""Gives every operation of a TTGIR text a location of its own, and reads from assembly which operation it is from.

Locations of Python cannot tell two operations of one line apart. A text whose locations are the operations' own
compiles to the same code, and the locations of that code name the operation of each instruction.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from irscope.ir.asm.opcodes import classify
from irscope.ir.locations.model import MAX_FRAMES
from irscope.ir.locations.stages import read_locations
from irscope.ir.mlir.reader import MlirModule, Operation, parse_mlir
from irscope.ir.mlir.tokens import STRING, closing, location_spans, split_commas
from irscope.ir.reach import reached
from irscope.model.capture import StageKind

# What a location begins with: callsite(#loc3 at #loc5)   "x_ptr"(#loc3)   #loc12   fused[#loc3, #loc4]
# fused<#di_subprogram>[#loc3]   "/kernels/matmul.py":31:20   "matmul.py":31:20 to :35   unknown
_BEGINNING = re.compile(
    rf"(?P<around>callsite\(|{STRING}\()|(?P<alias>#[\w.$-]+)|(?P<fused>fused(?:<[^\[\]]*>)?\[)"
    rf"|(?P<frame>{STRING}:\d+:\d+(?: to \d*:\d+)?|unknown\b)"
)

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
        match = _BEGINNING.match(location, at)
        if match is None or (match["alias"] and match["alias"] not in aliases):
            break
        if match["around"]:
            at = match.end()
        elif match["alias"]:
            location = f"{location[:at]}{aliases[match['alias']][4:-1]}{location[match.end() :]}"
        elif match["fused"]:
            end = closing(location, match.end() - 1)
            location = f"{location[:at]}{split_commas(location[match.end() : end])[0]}{location[end + 1 :]}"
        else:
            return f"{location[:at]}{own}{location[match.end() :]}"
    return own


def read_operation_lines(text: str, kind: StageKind, *, ptx: str | None = None) -> tuple[int, ...]:
    """For each line of assembly made of such a text, the line of its operation, 1-based; 0 for none, or for several.

    `ptx`: for SASS, the PTX that it was assembled from.
    """
    locations = read_locations(text, kind, ptx=ptx)
    numbers = [
        (chain[0].line + _STRIDE // 2) // _STRIDE if chain[0].file.rpartition("/")[2] == _FILE else 0
        for chain in locations.chains
    ]
    return tuple(numbers[index] if index >= 0 else 0 for index in locations.by_line)


# ── Gives loads that LLVM split back to the operations that read the memory ─────────────────────────────────────────
# Where the elements of a vector are used one by one, LLVM may load them one by one, at the places of their uses
# (VectorCombine, `scalarizeLoadExtract`): the shared load of a conversion then stands at the store of its result.

# @%p1 ld.shared.v4.b32 	{%r1, …    04c0  B------:R-:W1:-:S02  G020:P0  LDS.128 R4, [R2]    ds_read_b128 v[0:3], v4
_OPCODE = re.compile(r"\s*(?:[0-9a-f]{4,}  \S+(?:  G\S+)?\s+)?(?:@!?%?\w+\s+)?(?P<opcode>[A-Za-z][\w.:]*)")
_READERS = {
    "ld.shared": frozenset({"ttg.local_load", "ttg.convert_layout", "tt.reduce", "tt.scan", "tt.gather"}),
    "ld.global": frozenset({"tt.load", "amdg.buffer_load", "amdgpu.buffer_load"}),
}
"""Operations that load, by the family of what they load with."""
_USERS = frozenset({
    "tt.store", "amdg.buffer_store", "amdgpu.buffer_store", "ttg.local_store", "ttg.local_alloc", "tt.dot", "tt.addptr",
    "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "tt.bitcast", "tt.join", "tt.split", "tt.fp_to_fp",
})  # fmt: skip
"""Operations that load nothing, beside arithmetic."""


def with_loads_of_readers(by_line: Sequence[int], text: str, ttgir: str) -> tuple[int, ...]:
    """The operation of each line of assembly, each load at the one operation that its own one's operands come from."""
    module = parse_mlir(ttgir)
    users = {operation.first_line: operation for operation in module.walk() if _only_uses(operation)}
    readers: dict[tuple[int, str], int] = {}
    moved = list(by_line)
    for index, (line, at) in enumerate(zip(text.split("\n"), by_line, strict=False)):
        opcode = _OPCODE.match(line) if at in users else None
        family = (classify(opcode["opcode"]) or "")[:9] if opcode is not None else ""
        if family in _READERS:
            if (at, family) not in readers:
                readers[at, family] = _reader(users[at], module, _READERS[family]) or at
            moved[index] = readers[at, family]
    return tuple(moved)


def _only_uses(operation: Operation) -> bool:
    return operation.name in _USERS or operation.name.startswith(("arith.", "math."))


def _reader(user: Operation, module: MlirModule, readers: frozenset[str]) -> int:
    """The line of the one operation whose loaded values reach another through arithmetic; 0 if there are several."""

    def before(one: Operation) -> list[Operation]:
        is_followed = one.name not in readers and _only_uses(one)
        return [made for value in one.operands if (made := module.maker_of(value)) is not None] if is_followed else []

    found = {one.first_line for one in reached([user], before) if one.name in readers}
    return found.pop() if len(found) == 1 else 0
