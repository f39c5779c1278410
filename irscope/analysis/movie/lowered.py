"""Counts the instructions of a kernel in the dialects of LLVM, by what they do: there Triton's operations are gone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from irscope.ir.asm.opcodes import classify

__all__ = ["DOTS", "GLOBAL", "SYNCS", "families_of", "is_lowered", "syncs_in_assembly"]

GLOBAL = ("ld.global", "st.global", "cp.async", "tma.load", "tma.store", "tma.copy", "tma.reduce")
"""Families that load from global memory or store to it."""
DOTS = ("wgmma", "mma", "tcgen05.mma", "mfma", "wmma")
"""Families of matrix instructions."""
SYNCS = frozenset({"barrier", "wait"})
"""A part of the name of what waits or is a barrier."""
_TOLD = (
    *DOTS, "ldmatrix", "stmatrix", "tcgen05.ld", "tcgen05.st", "tcgen05.cp", *GLOBAL, "cp.async.wait", "ld.shared",
    "st.shared", "atomic.global", "atomic.shared", "shuffle", "warp.reduce", "warp.vote", "mbarrier", "barrier", "wait",
    "fence",
)  # fmt: skip
"""Families that are told, in their order; arithmetic and moves are not, nor functions, which LLVM chooses later."""
# %5 = llvm.inline_asm has_side_effects …      nvvm.barrier      "rocdl.s.barrier"
_OPERATION = re.compile(r'^ *(?:%[\w:#, %]+ = )?"?((?:llvm|nvvm|rocdl|nvg)\.[\w.]+)"?(?= |\(|$)(.*)', re.MULTILINE)
# "cp.async.cg.shared.global [ $0 + 0 ], [ $1 + 0 ], 0x10, $2;", "r,l,r"
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
# @$5 st.global.v4.b32 [ $4 + 0 ], …      @!p bra
_OPCODE = re.compile(r"(?:@!?[$%\w]+\s+)?([a-z][\w.:]*)")
# !llvm.ptr<3>
_SPACE = re.compile(r"!llvm\.ptr(?:<(\d{1,3})>)?")
# ld.global.128
_WIDTH = re.compile(r"\.\d+$")
_SPACES = {"1": "global", "3": "shared", "7": "global", "8": "global"}
"""Number of an address space -> its name in families. Source: LLVM's user guides for NVPTX and AMDGPU back-ends."""
# \0A\09 in a string of MLIR
_LINES, _TABS = re.compile(r"\\0A|\\n"), re.compile(r"\\09|\\t")
_DOTTED = re.compile(r"[._]")
_AMD_SHUFFLES = ("update_dpp", "permlane", "ds_bpermute", "ds_permute", "ds_swizzle", "mov_dpp")


def is_lowered(text: str) -> bool:
    """Whether an MLIR text is in the dialects of LLVM."""
    return "llvm.func" in text


def families_of(text: str) -> Mapping[str, int]:
    """Family -> how many instructions of it the code of one thread has, in the order of the families.

    Args:
        text: in the dialects of LLVM. What it holds as inline assembly is counted by its opcodes.
    """
    found: Counter[str] = Counter()
    for match in _OPERATION.finditer(text):
        found.update(_WIDTH.sub("", family) for family in _families(match[1], match[2]) if family)
    return {name: found[name] for name in _TOLD if found[name]}


def syncs_in_assembly(text: str) -> int:
    """The barriers and waits in the inline assembly of a text."""
    opcodes = (
        one for match in _OPERATION.finditer(text) if match[1] == "llvm.inline_asm" for one in _opcodes(match[2])
    )
    return sum(bool(SYNCS.union({"bar"}).intersection(_DOTTED.split(one))) for one in opcodes)


def _families(name: str, rest: str) -> Iterator[str | None]:
    if name == "llvm.inline_asm":
        yield from (classify(one) for one in _opcodes(rest))
    elif name in ("llvm.load", "llvm.store", "llvm.atomicrmw", "llvm.cmpxchg"):
        space = _SPACE.search(rest)
        where = _SPACES.get(space[1] or "", "generic") if space is not None else "generic"
        yield f"{'ld' if name == 'llvm.load' else 'st' if name == 'llvm.store' else 'atomic'}.{where}"
    elif name == "llvm.call_intrinsic" and (called := _STRING.search(rest)) is not None:
        # llvm.call_intrinsic "llvm.nvvm.barrier0"() …
        dialect, _, own = called[1].removeprefix("llvm.").partition(".")
        yield _of_nvidia(own) if dialect == "nvvm" else _of_amd(own) if dialect == "amdgcn" else None
    elif name == "nvg.wgmma":
        # Of Triton's own dialect, between the two.
        yield "wgmma"
    elif name.startswith("nvvm."):
        yield _of_nvidia(name.removeprefix("nvvm."))
    elif name.startswith("rocdl."):
        yield _of_amd(name.removeprefix("rocdl."))


def _opcodes(rest: str) -> Iterator[str]:
    """`cp.async.cg.shared.global` of each statement of inline assembly."""
    found = _STRING.search(rest)
    for line in _LINES.split(_TABS.sub(" ", found[1])) if found is not None else ():
        for statement in line.partition("//")[0].split(";"):
            if (match := _OPCODE.match(statement.strip(" {}\t"))) is not None:
                yield match[1]


def _of_nvidia(name: str) -> str | None:
    """`shfl.sync`, `cp.async.wait.group`: named as the instructions of PTX, with dots."""
    name = name.replace(".group", "_group")
    return None if name.startswith("read.") else classify(f"{name}.")


def _of_amd(name: str) -> str | None:
    """`raw.ptr.buffer.load`, `mfma.f32.32x32x8f16`: named as the instructions, some without what stands before."""
    plain = _DOTTED.sub("_", name).removeprefix("raw_ptr_").removeprefix("raw_")
    if plain.startswith(_AMD_SHUFFLES):
        return "shuffle"
    if plain.startswith(("buffer_load_lds", "buffer_load_async_lds", "global_load_lds", "global_load_async_lds")):
        return "cp.async"
    if plain == "barrier":
        return "barrier"
    return classify(
        f"v_{plain}" if plain.startswith(("mfma", "wmma", "smfma", "swmma", "exp2", "rcp", "rsq")) else plain
    )
