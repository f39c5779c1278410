"""Gives loads that LLVM split back to the operations that read the memory.

Where the elements of a vector are used one by one, LLVM may load them one by one, at the places of their uses
(VectorCombine, `scalarizeLoadExtract`): the shared load of a conversion then stands at the store of its result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from irscope.ir.asm.opcodes import classify
from irscope.ir.mlir.reader import MlirModule, Operation, parse_mlir

__all__ = ["with_loads_of_readers"]

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
    """The operation of each line of assembly, each load at the one operation that its operation's operands come from.

    Args:
        by_line: the first line in the TTGIR of each line's operation; 0 for none.
        text: the assembly.
        ttgir: the TTGIR.
    """
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
    waiting, seen, found = [user], set[int](), set[int]()
    while waiting:
        for value in waiting.pop().operands:
            maker = module.definition(value)
            if maker is None or value not in maker.results or maker.first_line in seen:
                continue
            seen.add(maker.first_line)
            if maker.name in readers:
                found.add(maker.first_line)
            elif _only_uses(maker):
                waiting.append(maker)
    return found.pop() if len(found) == 1 else 0
