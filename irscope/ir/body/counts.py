"""Counts the operations of a text by name."""

from __future__ import annotations

from collections import Counter

from irscope.ir.body.reader import read_body
from irscope.model.capture import StageKind

# Lines of LLVM IR that begin with a word and are no instruction.
_LLVM_TOP_LEVEL = frozenset({"source_filename", "target", "attributes", "declare", "define", "module"})


def operation_counts(text: str, kind: StageKind) -> Counter[str]:
    """How often each operation or instruction occurs: `tt.load`, `add` (LLVM IR), `ld.global.b32`, `HMMA.16816.F32`.

    Names are whole tokens, so `add` never counts `addrspacecast`. Labels, ends of regions, alias definitions and, in
    assembly, directives do not count. Never raises.
    """
    body = read_body(text, kind, frozenset({"locations"}))
    counts = Counter(shape.name for shape in body.shapes)
    for name in list(counts):
        if not name[:1].isalpha() or (kind == "llvm" and name in _LLVM_TOP_LEVEL):
            del counts[name]
    return counts
