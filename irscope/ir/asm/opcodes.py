"""Which family an opcode belongs to (matrix multiply, global load by width, shuffle, …) and what that does to memory.

The families have the same names on every target; the tables are those of each language's own module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from irscope.ir.asm.amdgcn_opcodes import amdgcn_family
from irscope.ir.asm.ptx_opcodes import ptx_family
from irscope.ir.asm.sass_opcodes import sass_family
from irscope.model.capture import StageKind

__all__ = [
    "FAMILIES", "Effect", "Space", "classify", "effect_of", "family_of", "is_compare_and_swap", "is_packed_sum",
    "rounds_to_tf32",
]  # fmt: skip

Space = Literal["global", "shared", "local", "constant", "param", "generic", "tensor"]
"""A memory space; `generic` may be any of global, shared and local, `tensor` is Blackwell's tensor memory."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What an instruction does to memory."""

    reads: tuple[Space, ...] = ()
    writes: tuple[Space, ...] = ()
    is_ordering: bool = False
    """Whether it waits for accesses, or orders them among threads: barriers, fences, waits."""
    is_unknown: bool = False
    """Whether no table knows the opcode: it may read and write anything."""


_READS: dict[str, tuple[Space, ...]] = {
    "ld.global": ("global",), "ld.shared": ("shared",), "ld.local": ("local",), "ld.constant": ("constant",),
    "ld.param": ("param",), "ld.generic": ("generic",), "ldmatrix": ("shared",), "cp.async": ("global",),
    "tma.load": ("global",), "tma.store": ("shared",), "tma.reduce": ("shared", "global"),
    "tma.copy": ("global", "shared"), "wgmma": ("shared",), "tcgen05.mma": ("shared", "tensor"),
    "tcgen05.ld": ("tensor",), "tcgen05.cp": ("shared",), "atomic.global": ("global",), "atomic.shared": ("shared",),
    "mbarrier": ("shared",),
}  # fmt: skip
_WRITES: dict[str, tuple[Space, ...]] = {
    "st.global": ("global",), "st.shared": ("shared",), "st.local": ("local",), "st.param": ("param",),
    "st.generic": ("generic",), "stmatrix": ("shared",), "cp.async": ("shared",), "tma.load": ("shared",),
    "tma.store": ("global",), "tma.reduce": ("global", "shared"), "tma.copy": ("global", "shared"),
    "tcgen05.mma": ("tensor",), "tcgen05.st": ("tensor",), "tcgen05.cp": ("tensor",), "atomic.global": ("global",),
    "atomic.shared": ("shared",), "mbarrier": ("shared",),
}  # fmt: skip
_ORDERING = frozenset((
    "barrier", "mbarrier", "fence", "wait", "cp.async.wait", "wgmma.control", "tcgen05.control", "tma.control",
))  # fmt: skip
_WITHOUT_MEMORY = frozenset((
    "mma", "mfma", "wmma", "shuffle", "readlane", "warp.reduce", "warp.vote", "special", "convert", "move", "control",
    "fp64", "fp32", "fp16", "integer", "tma.prefetch",
))  # fmt: skip

FAMILIES = tuple(sorted({"ld.global.tr", "ld.shared.tr", *_READS, *_WRITES, *_ORDERING, *_WITHOUT_MEMORY}))
"""Every family, without the widths."""


def family_of(kind: StageKind, opcode: str, operands: Sequence[str] = ()) -> str | None:
    """The family of an opcode of one language; None for one that belongs to no family, or that no table knows.

    Args:
        kind: `ptx`, `sass` or `amdgcn`.
        opcode: with its suffixes: `LDG.E.128`, `ld.global.v4.b32`, `buffer_load_dwordx4`.
        operands: read if the opcode does not state the width: `cp.async` of PTX, loads to LDS of AMD GPU assembly.

    Returns a family such as `mma`, `wgmma`, `shuffle`, or with the bits that one thread moves `ld.global.128`. Loads
    and stores of a thread's own memory are `ld.local` and `st.local`: with Triton, these are spills.
    """
    if kind == "sass":
        return sass_family(opcode)
    if kind == "amdgcn":
        return amdgcn_family(opcode, operands)
    return ptx_family(opcode, operands) if kind == "ptx" else None


def classify(opcode: str, operands: Sequence[str] = ()) -> str | None:
    """The family of an opcode whose language its spelling tells: `LDG.E`, `buffer_load_dword`, `ld.global.b32`."""
    if opcode[:1].isupper():
        return sass_family(opcode)
    if "_" in opcode and "." not in opcode:
        return amdgcn_family(opcode, operands)
    return ptx_family(opcode, operands)


def is_compare_and_swap(kind: StageKind, opcode: str) -> bool:
    """Whether an opcode compares and swaps a word of global memory: `ATOMG.E.CAS`, which loops of atomics have."""
    if kind == "amdgcn":
        return opcode.startswith(("global_atomic_cmpswap", "buffer_atomic_cmpswap", "flat_atomic_cmpswap"))
    name, *modifiers = opcode.lower().split(".")
    return name in ("atom", "atomg", "atoms") and "cas" in modifiers


def is_packed_sum(opcode: str) -> bool:
    """Whether an opcode adds two adjacent small numbers at once: `global_atomic_pk_add_f16`."""
    return "_atomic_pk_add_" in opcode


def rounds_to_tf32(kind: StageKind, opcode: str) -> bool:
    """Whether an opcode multiplies matrices of TF32, to which its operands are rounded."""
    if family_of(kind, opcode) not in ("mma", "wgmma", "tcgen05.mma", "mfma"):
        return False
    words = opcode.replace("::", ".").split(".") if kind == "ptx" else opcode.split("_")
    return "tf32" in words or "xf32" in words


@lru_cache(512)
def effect_of(family: str | None) -> Effect:
    """What instructions of a family do to memory; of none it is unknown."""
    if family is None:
        return Effect(is_unknown=True)
    name, _, width = family.rpartition(".")
    plain = (name if width.isdecimal() else family).removesuffix(".tr")
    return Effect(_READS.get(plain, ()), _WRITES.get(plain, ()), plain in _ORDERING)
