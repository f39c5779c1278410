"""Which instructions of a PTX kernel are executed to know its shared accesses and waits, ready for that."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from irscope.errors import NotRun
from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.operands import Operand
from irscope.ir.asm.readers import PtxFunction


@dataclass(slots=True, eq=False)
class PtxStep:
    """An instruction that is executed."""

    item: Instruction
    name: str
    suffixes: list[str]
    operands: tuple[Operand, ...]
    run: Callable[..., None] | None
    """Gets the threads that the predicate leaves on; None for a computation."""
    target: int = -1
    targets: tuple[int, ...] = ()
    """Of a jump by a table."""


_EFFECTS = {
    "stmatrix": "do_access", "ldmatrix": "do_access", "cp.async.wait": "do_copy_group", "cp.async": "do_copy",
    "tma.load": "do_bulk", "tma.store": "do_bulk", "tma.reduce": "do_bulk", "tma.control": "do_bulk_group",
    "wgmma": "do_matrix", "tcgen05.mma": "do_matrix", "wgmma.control": "do_matrix_group", "tcgen05.ld": "do_tensor",
    "tcgen05.st": "do_tensor", "tcgen05.cp": "do_tensor", "tcgen05.control": "do_tensor", "mbarrier": "do_mbarrier",
    "barrier": "do_barrier", "fence": "do_fence", "ld.shared": "do_access", "st.shared": "do_access",
    "atomic.shared": "do_access", "atomic.global": "do_atomic",
}  # fmt: skip


def _effect(item: Instruction) -> str:
    """The method that executes an instruction for what it does to shared memory or to other threads."""
    if item.opcode.startswith("brx"):
        return "do_switch"
    if item.opcode.startswith("call"):
        return "do_call"
    if item.opcode.startswith("tensormap"):
        return ""
    family = item.family or ""
    name, _, width = family.rpartition(".")
    if family.startswith("cp.async") and family != "cp.async.wait":
        family = "cp.async"
    elif width.isdecimal():
        family = name
    if family in _EFFECTS:
        return _EFFECTS[family]
    if family == "tma.copy" or item.effect.is_unknown or "shared" in (*item.effect.reads, *item.effect.writes):
        raise NotRun(f"line {item.line} of the PTX: {item.opcode} is not followed")
    return ""


def prepared(function: PtxFunction, methods: object) -> list[PtxStep]:
    """The instructions that are executed: those with an effect, branches, and what these need.

    `methods`: has the method for each effect.
    """
    code = function.instructions
    effects = {index: method for index, item in enumerate(code) if (method := _effect(item))}
    makers: dict[str, list[int]] = {}
    for index, item in enumerate(code):
        for name in item.writes:
            makers.setdefault(name, []).append(index)
    needed = {name for index, method in effects.items() for one in _decisive(code[index], method) for name in one.names}
    deciding = [item for index, item in enumerate(code) if index in effects or item.branch is not None]
    needed.update(item.predicate.lstrip("@!") for item in deciding)
    chosen = _sources(code, needed, makers, effects)
    kept = sorted(chosen | {*effects} | {index for index, item in enumerate(code) if item.branch is not None})
    tables = dict(function.tables)
    steps: list[PtxStep] = []
    for index in kept:
        item = code[index]
        name, *suffixes = item.opcode.split(".")
        method = effects.get(index, "")
        target, targets = -1, ()
        branch = item.branch
        if method == "do_switch":
            targets = tuple(_place_of(function, label, index, kept) for label in tables.get(item.operands[-1], ()))
            if not targets or item.predicate:
                raise NotRun(f"line {item.line} of the PTX goes where a register says")
        elif branch is not None and branch.targets and not method:
            target = _place_of(function, branch.targets[0][0], index, kept)
        steps.append(
            PtxStep(item, name, suffixes, item.arguments, getattr(methods, method) if method else None, target, targets)
        )
    return steps


def _place_of(function: PtxFunction, label: str, index: int, kept: Sequence[int]) -> int:
    """The first step at or behind a label that an instruction names."""
    for one in function.labels:
        if one.name == label and (one.scope is None or one.scope[0] <= index < one.scope[1]):
            return bisect_left(kept, one.index)
    raise NotRun(f"line {function.instructions[index].line} of the PTX goes to a label that is not there")


def _decisive(item: Instruction, method: str) -> Sequence[Operand]:
    """The operands that decide what an effect is, without the elements that it moves."""
    operands = item.arguments
    if method == "do_access":
        return [one for one in operands if one.kind == "address"]
    if method == "do_matrix":
        return [one for one in operands if one.kind != "vector"]
    if method == "do_tensor":
        return [one for one in operands if one.kind in ("address", "name")]
    return [one for one in operands if one.kind in ("address", "name", "number")]


def _sources(
    code: Sequence[Instruction], needed: set[str], makers: Mapping[str, Sequence[int]], effects: Mapping[int, str]
) -> set[int]:
    """The instructions that needed registers come from."""
    waiting, seen, chosen = list(needed), set(needed), set[int]()
    reads_shared = False
    while waiting:
        for index in makers.get(waiting.pop(), ()):
            if index in chosen:
                continue
            chosen.add(index)
            item = code[index]
            names = {item.predicate.lstrip("@!")} | set(item.reads)
            if effects.get(index) == "do_access" and item.opcode.startswith("ld") and not reads_shared:
                reads_shared = True
                stores = [one for one in code if one.opcode.startswith("st.shared")]
                names |= {name for one in stores for name in one.reads}
            fresh = names - seen
            seen |= fresh
            waiting += fresh
    return chosen
