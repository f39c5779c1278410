"""What stands out in a basic block: matrix multiplications, memory, exchanges between threads, waiting, spills."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.readers import llvm_role, operation_name
from irscope.model.capture import StageKind

Part = Literal["dot", "memory", "shared", "spill", "exchange", "sync"]

PARTS: dict[Part, str] = {
    "dot": "matrix multiplication",
    "memory": "global memory",
    "shared": "shared and tensor memory",
    "exchange": "between threads",
    "sync": "waits, barriers, fences",
    "spill": "local memory: spills",
}
"""Every part, in the order of a block's rows, and what it is."""

_FAMILIES: tuple[tuple[Part, tuple[str, ...]], ...] = (
    (
        "sync",
        ("barrier", "mbarrier", "fence", "wait", "cp.async.wait", "wgmma.control", "tcgen05.control", "tma.control"),
    ),
    ("dot", ("mma", "wgmma", "tcgen05.mma", "mfma", "wmma")),
    ("spill", ("ld.local", "st.local")),
    ("shared", ("ld.shared", "st.shared", "ldmatrix", "stmatrix", "atomic.shared", "tcgen05.")),
    ("memory", ("ld.global", "st.global", "ld.generic", "st.generic", "atomic.global", "cp.async", "tma.")),
    ("exchange", ("shuffle", "warp.", "readlane")),
)
_LLVM: dict[str, Part] = {"dot": "dot", "memory": "memory", "shared": "shared", "reduce": "exchange", "sync": "sync"}


@dataclass(frozen=True, slots=True)
class Row:
    """The instructions of one kind in a block."""

    part: Part
    name: str
    """`ld.global.128`; for LLVM IR the name of what is called."""
    count: int


def parts_of(instructions: Iterable[Instruction], kind: StageKind) -> tuple[Row, ...]:
    """The kinds of instructions that stand out, by part, the most frequent first."""
    counts: Counter[tuple[Part, str]] = Counter()
    for item in instructions:
        found = _llvm_part(item) if kind == "llvm" else _part(item.family or "")
        if found is not None:
            counts[found] += 1
    order = list(PARTS)
    rows = [Row(part, name, count) for (part, name), count in counts.items()]
    return tuple(sorted(rows, key=lambda row: (order.index(row.part), -row.count, row.name)))


def _part(family: str) -> tuple[Part, str] | None:
    for part, names in _FAMILIES:
        if family in names or (part not in ("sync", "dot") and family.startswith(names)):
            return part, family
    return None


def _llvm_part(item: Instruction) -> tuple[Part, str] | None:
    name = operation_name(item.opcode, item.text)
    shared = name in ("load", "store") and "addrspace(3)" in item.text
    part = _LLVM.get(llvm_role(f"{name} addrspace(3)" if shared else name))
    return None if part is None else (part, f"{name} (shared)" if shared else name)
