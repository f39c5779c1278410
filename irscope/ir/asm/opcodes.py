"""Which family an opcode belongs to (matrix multiply, global load by width, shuffle, …) and what that does to memory.

The families have the same names on every target; the tables are those of each language's own module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from irscope.ir.asm.amdgcn_opcodes import amdgcn_family
from irscope.ir.asm.operands import Flow, Mode, Operand, opcode_rows, word_set
from irscope.ir.asm.sass_opcodes import sass_family
from irscope.model.capture import StageKind

# ── The table of PTX: what each opcode is, its types and its memory space, whether it writes its first operand ──────
# Source: NVIDIA's "PTX ISA", chapter 9: the forms of the instructions.

_CONTROL = word_set("bra brx call ret exit trap brkpt nanosleep griddepcontrol setmaxnreg")
_MOVES = frozenset(["mov", "selp", "prmt", "cvta", "mapa", "getctarank", "isspacep"])
_FLOWS: dict[str, Flow] = {
    "bra": "jump", "brx": "anywhere", "ret": "return", "exit": "end", "trap": "end", "call": "call",
}  # fmt: skip
_SPACES = {"global": "global", "shared": "shared", "local": "local", "param": "param", "const": "constant"}
_NO_RESULT = word_set(
    "st red bra brx ret exit trap brkpt bar barrier membar fence cp prefetch prefetchu call stmatrix "
    "setmaxnreg griddepcontrol nanosleep pragma discard applypriority tensormap createpolicy_range mbarrier wgmma"
)
_NUMBERS = {"b": "integer", "s": "integer", "u": "integer", "f": "float", "bf": "float", "tf": "float"}


@dataclass(frozen=True, slots=True)
class _PtxOpcode:
    """An opcode taken apart: `ld.global.L1::evict_last.v4.b32`."""

    name: str
    modifiers: tuple[str, ...] = ()
    """All that stands behind the name, in its order."""
    types: tuple[str, ...] = ()
    """Those of the modifiers that are types, such as `f32`, `b32`, `pred`: of a conversion what it makes first."""
    vector: int = 1
    """How many elements one operand holds: 4 for `.v4`."""
    space: str = ""
    """`global`, `shared`, `local`, `param`, `constant`; empty for none, or for generic addresses."""
    family: str | None = None
    """With `{}` for the width in bits; None if it belongs to none, or if the table does not know it."""

    @property
    def bits(self) -> int:
        """The bits that one thread moves: of the last type, for all elements; 32 without a type."""
        sizes = [_bits(name) for name in self.types if _bits(name)]
        return self.vector * (sizes[-1] if sizes else 32)

    @property
    def flow(self) -> Flow:
        """Where it goes on, if no predicate switches it off."""
        return _FLOWS.get(self.name, "next")

    def mode(self, index: int, operand: Operand) -> Mode:
        """How it uses its operand at an index: an address is read, whatever is done to the memory."""
        if index or operand.kind in ("address", "group"):
            return "r"
        if self.name == "wgmma" and self.modifiers[:1] == ("mma_async",):
            return "m"
        return "w" if self.has_result or self.name == "mbarrier" else "r"

    @property
    def has_result(self) -> bool:
        """Whether it writes its first operand, unless that is an address; the phase of a barrier is no result."""
        is_stored = self.name in ("tcgen05", "multimem") and self.modifiers[:1] not in (("ld",), ("ld_reduce",))
        return self.name not in _NO_RESULT and not is_stored


def _type_of(part: str) -> str:
    """`integer` or `float` for a type such as `u32`, `bf16x2`; `pred`; empty for any other modifier."""
    kind = part.rstrip("0123456789x") if part[-1:].isdecimal() else ""
    return "pred" if part == "pred" else _NUMBERS.get(kind, "")


def _bits(name: str) -> int:
    """The bits of a type: 32 of `b32` and `f16x2`."""
    size, _, many = name.lstrip("bsuf").partition("x")
    if not size.isdecimal() or len(size) > 4 or (many and not many.isdecimal()):
        return 0
    return int(size) * int(many[:1] or 1)


@lru_cache(4096)
def ptx_opcode(opcode: str) -> _PtxOpcode:
    name, *modifiers = opcode.split(".")
    types = tuple([part for part in modifiers if _type_of(part)])
    vectors = [int(part[1:]) for part in modifiers if part in ("v2", "v4", "v8")]
    spaces = [_SPACES[part.partition("::")[0]] for part in modifiers if part.partition("::")[0] in _SPACES]
    # cp.async.bulk.tensor.2d.shared::cluster.global: the first is where it writes
    space = spaces[0] if spaces else ""
    return _PtxOpcode(name, tuple(modifiers), types, (vectors or [1])[-1], space, _family(opcode, name, space, types))


def _family(opcode: str, name: str, space: str, types: tuple[str, ...]) -> str | None:
    for family, beginnings in opcode_rows("ptx"):
        if opcode.startswith(tuple(beginnings.split())):
            return family
    if name in ("ld", "ldu", "st") and "." in opcode:
        return f"{name[:2]}.{space or 'generic'}.{{}}"
    if name in ("atom", "red", "multimem"):
        return "atomic.shared" if space == "shared" else "atomic.global"
    if name in _CONTROL:
        return "control"
    if name in _MOVES or opcode.startswith(f"{name}.pred"):
        return "move"
    for family, kinds in (("fp64", ("f64",)), ("fp16", ("f16", "bf16", "f16x2", "bf16x2")), ("fp32", ("f32", "f32x2"))):
        if any(kind in types for kind in kinds):
            return family
    return "integer" if any(_type_of(kind) == "integer" for kind in types) else None


def _ptx_family(opcode: str, operands: Sequence[str] = ()) -> str | None:
    """The family of an opcode; of `cp.async` the operands tell the width."""
    row = ptx_opcode(opcode)
    if row.family == "cp.async.{}":
        return _copy(operands)
    return row.family.format(row.bits) if row.family is not None and "{}" in row.family else row.family


def _copy(operands: Sequence[str]) -> str:
    """`cp.async.cg.shared.global [%r1], [%rd1], 16` moves 128 bits."""
    size = operands[2] if len(operands) > 2 else ""
    try:
        count = int(size, 0)
    except ValueError:
        count = 0
    return f"cp.async.{8 * count}" if 0 < count < 256 else "cp.async"


Space = Literal["global", "shared", "local", "constant", "param", "generic", "tensor"]
"""A memory space; `generic` may be any of global, shared and local, `tensor` is Blackwell's tensor memory."""


@dataclass(frozen=True, slots=True)
class MemoryEffect:
    """The memory accesses of an instruction."""

    reads: tuple[Space, ...] = ()
    writes: tuple[Space, ...] = ()
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
_WITHOUT_MEMORY = frozenset((
    "mma", "mfma", "wmma", "shuffle", "readlane", "warp.reduce", "warp.vote", "special", "convert", "move", "control",
    "fp64", "fp32", "fp16", "integer", "tma.prefetch", "barrier", "fence", "wait", "cp.async.wait", "wgmma.control",
    "tcgen05.control", "tma.control",
))  # fmt: skip

FAMILIES = tuple(sorted({"ld.global.tr", "ld.shared.tr", *_READS, *_WRITES, *_WITHOUT_MEMORY}))
"""Every family, without the widths."""


def family_of(kind: StageKind, opcode: str, operands: Sequence[str] = ()) -> str | None:
    """The family of an opcode of PTX, SASS or AMDGCN; None for one of no family, or that no table knows.

    It is `mma`, `wgmma`, `shuffle` or the like, or with the bits that one thread moves `ld.global.128`. Loads and
    stores of a thread's own memory are `ld.local` and `st.local`: with Triton, these are spills. Operands are read if
    the opcode does not state the width: `cp.async` of PTX, loads to LDS of AMD GPU assembly.
    """
    if kind == "sass":
        return sass_family(opcode)
    if kind == "amdgcn":
        return amdgcn_family(opcode, operands)
    return _ptx_family(opcode, operands) if kind == "ptx" else None


def classify(opcode: str, operands: Sequence[str] = ()) -> str | None:
    """The family of an opcode whose language its spelling tells: `LDG.E`, `buffer_load_dword`, `ld.global.b32`."""
    if opcode[:1].isupper():
        return sass_family(opcode)
    if "_" in opcode and "." not in opcode:
        return amdgcn_family(opcode, operands)
    return _ptx_family(opcode, operands)


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
def effect_of(family: str | None) -> MemoryEffect:
    """The memory accesses of a family of instructions; unknown without a family."""
    if family is None:
        return MemoryEffect(is_unknown=True)
    name, _, width = family.rpartition(".")
    plain = (name if width.isdecimal() else family).removesuffix(".tr")
    return MemoryEffect(_READS.get(plain, ()), _WRITES.get(plain, ()))
