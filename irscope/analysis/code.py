"""Whether two compiles give the same code, and the parts that decide results: arithmetic and memory order."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from functools import lru_cache
from itertools import pairwise
from typing import Any

from irscope.analysis.diff.texts import Ignored, diff_texts
from irscope.analysis.passes.effects import count_text
from irscope.analysis.resources import assembly_of
from irscope.errors import ParseError
from irscope.ir.asm.control_flow import read_instructions
from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.opcodes import ptx_opcode
from irscope.ir.asm.resources import parse_elf
from irscope.ir.locations.strip import strip_locations
from irscope.model.capture import Capture, stage_named

STRICT: frozenset[Ignored] = frozenset({"locations"})
"""The differences ignored between compiles of one version, which print alike."""

_RETAINED = 64
_LAUNCH = (
    "num_warps", "num_ctas", "cluster_dims", "shared", "tmem_size", "global_scratch_size", "global_scratch_align",
    "profile_scratch_size", "profile_scratch_align", "launch_cooperative_grid", "launch_cluster", "launch_pdl",
    "tensordesc_meta",
)  # fmt: skip
"""The metadata that Triton's launcher reads, of all versions."""

_ARITHMETIC = (
    "fp64", "fp32", "fp16", "special", "convert", "mma", "wgmma", "tcgen05.mma", "mfma", "wmma", "warp.reduce",
    "atomic.global", "atomic.shared",
)  # fmt: skip
"""Families of instructions whose number and modifiers decide what floating point operations give."""
# HFMA2 R4, -RZ, RZ, 1.5, 0 loads a constant
_CONSTANT = "-RZ, RZ,"
_BUTTERFLY = {"SHFL.BFLY": -2, "shfl.sync.bfly.b32": -3}
"""Exchanges of a reduction, and which operand says with which lane."""

_SYNCHRONISATION = (
    "barrier", "mbarrier", "fence", "cp.async.wait", "wgmma.control", "tcgen05.control", "tma.control",
)  # fmt: skip
_ACCESSES = (
    "ld.shared", "st.shared", "ldmatrix", "stmatrix", "atomic", "cp.async", "st.global", "tma.load", "tma.store",
    "tma.reduce", "wgmma", "tcgen05", "mbarrier",
)  # fmt: skip
"""The effects that synchronisation orders, without loads of global memory, which compilers move past it."""

# %acc_12, %0, ^bb1, #blocked3; not the number of a result, as in %0#1
_NAME = re.compile(r"[%^][\w$.-]{1,200}|#[A-Za-z_]\w{0,200}")


def code_of(capture: Capture) -> str:
    """A digest that is equal for captures whose kernels run the same machine code the same way.

    Of a binary it is the sections that the device loads, so that line numbers and other notes make no difference, and
    what is needed to launch it (shared memory, warps, scratch). Without a binary it is the lowest assembly without its
    locations; without that too, empty.
    """
    binary = next((artifact.data for artifact in capture.artifacts if isinstance(artifact.data, bytes)), None)
    assembly = assembly_of(capture)
    if binary is None and not assembly:
        return ""
    digest = hashlib.sha256(json.dumps([launched(capture), asdict(capture.resources)], default=str).encode())
    if binary is None:
        digest.update(_comparable(capture.text(assembly), assembly).encode("utf-8", "replace"))
    else:
        for part in _loaded(binary):
            digest.update(part)
    return digest.hexdigest()


def launched(capture: Capture) -> list[tuple[str, Any]]:
    """The launch settings of Triton's metadata, without unused ones, in which versions differ."""
    known = dict(capture.metadata)
    return [(name, known[name]) for name in _LAUNCH if known.get(name)]


def _loaded(binary: bytes) -> Iterator[bytes]:
    """The names, sizes and bytes of a binary's loaded sections; the whole of one that is no ELF file."""
    try:
        elf = parse_elf(binary)
    except ParseError:
        yield binary
        return
    for section in elf.sections:
        if "A" in section.flag_letters:
            yield f"{section.name} {section.size_bytes}".encode()
            yield elf.contents(section)


def arithmetic_and_order(capture: Capture) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The code that decides a kernel's floating-point results, and that orders its accesses to memory.

    Both are read from the lowest assembly of the capture.

    Returns:
        The opcodes with their modifiers and numbers: `FFMA ×64`, `FMNMX.NAN ×8`; of the exchanges of a reduction each
        distance. And each synchronisation in the order of the text, with the accesses before it:
        `st.shared | BAR.SYNC`.
    """
    stage = assembly_of(capture)
    if not stage:
        return (), ()
    counts: Counter[str] = Counter()
    order: list[str] = []
    accesses: set[str] = set()
    for item in read_instructions(capture.text(stage), stage_named(stage).kind):
        family, opcode = item.family or "", item.opcode
        if family in _ARITHMETIC:
            counts[opcode] += _is_arithmetic(item)
        elif opcode in _BUTTERFLY:
            place = _BUTTERFLY[opcode]
            distance = item.operands[place] if len(item.operands) >= -place else ""
            counts[f"{opcode} {distance}"] += 1
        if family in _SYNCHRONISATION:
            order.append(" ".join([*sorted(accesses), "|", opcode]))
            accesses.clear()
        else:
            accesses.update(access for access in _ACCESSES if family.startswith(access))
    return tuple(f"{name} ×{count}" for name, count in sorted(counts.items()) if count), tuple(order)


def _is_arithmetic(item: Instruction) -> bool:
    """Whether it is arithmetic of floating point numbers; FSEL chooses, and some conversions are of integers alone."""
    if item.kind == "ptx" and item.family == "convert":
        return not all(kind[0] in "us" for kind in ptx_opcode(item.opcode).types[-2:])
    if item.kind == "amdgcn" and item.family == "convert":
        integers = [word[:1] in "iu" and word[1:].isdecimal() for word in item.opcode.split("_")[2:]]
        return not any(left and right for left, right in pairwise(integers))
    if item.opcode.startswith("HFMA2") and _CONSTANT in item.text:
        return False
    return not item.opcode.startswith(("FSEL", "UFSEL", "I2I"))


@lru_cache(maxsize=_RETAINED)
def _comparable(text: str, stage: str) -> str:
    """A text without its locations; of MLIR with values, labels and aliases numbered as they first appear."""
    kind = stage_named(stage).kind
    stripped = strip_locations(text, kind)
    if kind != "mlir":
        return stripped
    lines = stripped.splitlines()
    aliases = [line for line in lines if line.startswith("#")]
    numbers: dict[str, str] = {}

    def numbered(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0], f"{match[0][0]}{len(numbers)}")

    body = [_NAME.sub(numbered, line).rstrip() for line in lines if line and not line.startswith("#")]
    # After the body, which decides their numbers; those that it does not name are sorted by their text.
    aliases.sort(key=lambda line: _NAME.sub(lambda match: numbers.get(match[0], "?"), line.partition(" = ")[2]))
    return "\n".join([*body, *sorted(_NAME.sub(numbered, line) for line in aliases)])


def same_text(left: str, right: str, stage: str) -> bool:
    """Whether a compiler that reads them makes the same of both: they differ in names and locations alone."""
    return left == right or _comparable(left, stage) == _comparable(right, stage)


def alike(left: str, right: str, ignore: frozenset[Ignored]) -> bool:
    """Whether the structural diff finds no difference of two texts of MLIR; `ignore`: as of `diff_texts`.

    Operations may stand in another order, so a compiler may make something else of the two.
    """
    if left == right:
        return True
    # Far cheaper than to align two texts that are not alike.
    if count_text(left).operations != count_text(right).operations:
        return False
    return same_text(left, right, "ttgir") or diff_texts(left, right, "mlir", ignore=ignore).is_empty
