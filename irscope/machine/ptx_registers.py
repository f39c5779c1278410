"""What the execution of one CTA of PTX is made of: the instructions, the registers of all threads, who is told.

Executed is what must be to know the shared accesses and waits. Registers are integers, with which of them are known.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irscope.errors import NeverEnds, NotComputed, NotRun
from irscope.ir.asm.instructions import Instruction
from irscope.ir.asm.opcodes import ptx_opcode
from irscope.ir.asm.operands import Operand
from irscope.ir.asm.readers import PtxFunction
from irscope.ir.reach import reached

_Integers = NDArray[np.int64]


class StuckThreads(NeverEnds):
    """Threads that wait for what never comes: `items` are the instructions that they wait at, with one thread each."""

    def __init__(self, message: str, items: Sequence[tuple[Instruction, int]]) -> None:
        super().__init__(message)
        self.items = tuple(items)


class DivergentBarrier(StuckThreads):
    """A barrier of whole warps that only some threads of a warp reach."""


@dataclass(slots=True, eq=False)
class PtxStep:
    item: Instruction
    name: str
    suffixes: list[str]
    operands: tuple[Operand, ...]
    run: Callable[..., None] | None
    """Gets the threads that the predicate leaves on; None for a computation."""
    target: int = -1
    targets: tuple[int, ...] = ()
    """Of a jump by a table."""
    in_flight: bool = False
    """Whether it accesses registers that wgmma may still write."""
    is_needed: bool = True
    """Whether it is executed; else it is only looked at."""


@dataclass(slots=True, eq=False)
class CtaGroup:
    at: int
    threads: _Integers
    blocked: Callable[[], bool] | None = None
    """Whether it still waits."""


_EFFECTS = {
    "stmatrix": "do_access", "ldmatrix": "do_access", "cp.async.wait": "do_copy_group", "cp.async": "do_copy",
    "tma.load": "do_bulk", "tma.store": "do_bulk", "tma.reduce": "do_bulk", "tma.control": "do_bulk_group",
    "wgmma": "do_matrix", "tcgen05.mma": "do_matrix", "wgmma.control": "do_matrix_group", "tcgen05.ld": "do_tensor",
    "tcgen05.st": "do_tensor", "tcgen05.cp": "do_tensor", "tcgen05.control": "do_tensor", "mbarrier": "do_mbarrier",
    "barrier": "do_barrier", "fence": "do_fence", "ld.shared": "do_access", "st.shared": "do_access",
    "atomic.shared": "do_access", "atomic.global": "do_atomic",
}  # fmt: skip


def effect_of(item: Instruction) -> str:
    """The method that executes an instruction for what it does to shared memory or to other threads."""
    if item.opcode.startswith("brx"):
        return "do_switch"
    if item.opcode.startswith("call"):
        return "do_call"
    if item.opcode.startswith("tensormap"):
        return "do_descriptor"
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


def prepared(function: PtxFunction, methods: object, effect: Callable[[Instruction], str]) -> list[PtxStep]:
    """The instructions that are executed: those whose effect names one of `methods`, branches, and what these need."""
    code = function.instructions
    effects = {index: method for index, item in enumerate(code) if (method := effect(item))}
    makers: dict[str, list[int]] = {}
    for index, item in enumerate(code):
        for name in item.writes:
            makers.setdefault(name, []).append(index)
    needed = {name for index, method in effects.items() for one in _decisive(code[index], method) for name in one.names}
    deciding = [item for index, item in enumerate(code) if index in effects or item.branch is not None]
    needed.update(item.predicate.lstrip("@!") for item in deciding)
    chosen = _sources(code, needed, makers, effects)
    chosen |= {*effects} | {index for index, item in enumerate(code) if item.branch is not None}
    flying = _in_flight(code)
    kept = sorted(chosen | flying)
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
                raise NotRun(f"line {item.line} of the PTX branches to an address in a register")
        elif branch is not None and branch.targets and not method:
            target = _place_of(function, branch.targets[0][0], index, kept)
        run = getattr(methods, method) if method else None
        flies, is_needed = index in flying, index in chosen
        steps.append(PtxStep(item, name, suffixes, item.arguments, run, target, targets, flies, is_needed))
    return steps


def _in_flight(code: Sequence[Instruction]) -> set[int]:
    """The instructions that access what wgmma leaves in registers, copies of these included."""
    names = {name for item in code if item.family == "wgmma" for name in item.arguments[0].names}
    moves = [item for item in code if names and item.opcode.startswith("mov.")]
    count = 0
    while count < len(names):
        count = len(names)
        names.update(name for item in moves if names.intersection(item.reads) for name in item.writes)
    return {index for index, item in enumerate(code) if names and names.intersection((*item.reads, *item.writes))}


def meeting(steps: Sequence[PtxStep], ways: tuple[int, int]) -> tuple[int, list[PtxStep]] | None:
    """Where both ways of a branch meet, and what they compute until then; None if they do more than compute."""
    both = _reached(steps, ways[0], set()) & _reached(steps, ways[1], set())
    # One way may begin where both meet; else both lead there.
    for end in dict.fromkeys([ways[1], ways[0], min(both, default=ways[1])]):
        passed = set[int]().union(*(_reached(steps, way, {end}) for way in ways)) - {end}
        if all(_following(steps, at) is not None for at in passed):
            return end, [steps[at] for at in passed]
    return None


def _reached(steps: Sequence[PtxStep], begin: int, ends: set[int]) -> set[int]:
    """The places of what follows a step, until `ends` and what does more than compute, both included."""
    return set(reached([begin], lambda at: (_following(steps, at) or ()) if at not in ends else ()))


def _following(steps: Sequence[PtxStep], at: int) -> list[int] | None:
    """The places of the steps that may follow one; None if it does more than compute."""
    step = steps[at] if at < len(steps) else None
    if step is None or step.run is not None or step.name in ("ret", "exit", "trap"):
        return None
    jumps = [step.target] if step.target >= 0 else []
    return jumps if jumps and not step.item.predicate else [*jumps, at + 1]


def _place_of(function: PtxFunction, label: str, index: int, kept: Sequence[int]) -> int:
    for one in function.labels:
        if one.name == label and (one.scope is None or one.scope[0] <= index < one.scope[1]):
            return bisect_left(kept, one.index)
    raise NotRun(f"line {function.instructions[index].line} of the PTX branches to a missing label")


def _decisive(item: Instruction, method: str) -> Sequence[Operand]:
    """The operands that decide what an effect is, without the elements that it moves."""
    operands = item.arguments
    if method == "do_access":
        return [one for one in operands if one.kind == "address"]
    if method in ("do_store", "do_put", "do_update", "do_product"):
        return operands
    if method == "do_matrix":
        return [one for one in operands if one.kind != "vector"]
    if method == "do_tensor":
        return [one for one in operands if one.kind in ("address", "name")]
    return [one for one in operands if one.kind in ("address", "name", "number")]


def _sources(
    code: Sequence[Instruction], needed: set[str], makers: Mapping[str, Sequence[int]], effects: Mapping[int, str]
) -> set[int]:
    def made(names: Iterable[str]) -> list[int]:
        return [index for name in names for index in makers.get(name, ())]

    def before(index: int) -> list[int]:
        return made((code[index].predicate.lstrip("@!"), *code[index].reads))

    chosen = set(reached(made(needed), before))
    if any(index in effects and code[index].opcode.startswith(("ld", "wgmma.mma_async")) for index in chosen):
        stores = [one for one in code if one.opcode.startswith(("st.shared", "stmatrix"))]
        chosen |= set(reached(made(name for one in stores for name in one.reads), before))
    return chosen


Spans = Sequence[tuple[int, int]]
"""(first byte, number of bytes) of each part that one instruction accesses."""


class CtaMemory:
    """What a CTA reads of global memory while it runs alone; here nothing is known."""

    def load(self, addresses: _Integers, size: int) -> tuple[_Integers, NDArray[np.bool_]]:
        """Integers of so many bytes, and which of them are known."""
        return np.zeros(len(addresses), np.int64), np.zeros(len(addresses), np.bool_)

    def store(self, address: int, size: int, value: int | None) -> None:
        """Note what an atomic operation leaves at an address; None for what is not known."""


class CtaListener:
    """Takes what a CTA does; each method does nothing here. `threads`: their numbers in the CTA."""

    def access(
        self, item: Instruction, threads: _Integers, addresses: _Integers, size: int, writes: bool, space: str
    ) -> None:
        """Take an access by threads themselves, each of `size` units; `space`: `shared` or `tensor`."""

    def copy(self, item: Instruction, threads: _Integers, addresses: _Integers, size: int) -> None:
        """Take a `cp.async`."""

    def queue(
        self, item: Instruction, queue: str, threads: _Integers, reads: Spans, writes: Spans, tensor: Any
    ) -> None:
        """Take what a unit (`matrix`, `tensor matrix`, `bulk store`) begins to do for threads."""

    def commit(self, queue: str, threads: _Integers) -> None:
        """Take the end of a group."""

    def wait(self, queue: str, threads: _Integers, pending: int) -> None:
        """Take a wait for all groups but the last ones."""

    def wait_tensor(self, threads: _Integers, stores: bool) -> None:
        """Take the end of the loads, or the stores, of tensor memory that threads began."""

    def bulk_load(self, item: Instruction, thread: int, spans: Spans, barrier: int, phase: int) -> None:
        """Take a copy that an mbarrier's phase waits for."""

    def passed(self, item: Instruction, barrier: int, parity: int, phase: int) -> None:
        """Take a wait for another phase than that of the copies that are under way."""

    def initialise(self, item: Instruction, thread: int, barrier: int) -> None:
        """Take the beginning of an mbarrier at an address."""

    def invalidate(self, barrier: int) -> None:
        """Take the end of the mbarrier at an address, whose memory is free again."""

    def arrive(self, threads: _Integers, barrier: int, queue: str = "") -> None:
        """Take arrivals at an mbarrier; with a queue, those that come when the unit has done what was begun so far."""

    def complete(self, barrier: int, phase: int) -> None:
        """Take the end of an mbarrier's phase."""

    def waited(self, threads: _Integers, barrier: int) -> None:
        """Take the end of a wait at an mbarrier."""

    def barrier(self, threads: _Integers) -> None:
        """Take a barrier among threads."""

    def fence(self, threads: _Integers) -> None:
        """Take a fence between the generic and the asynchronous proxy."""

    def registers(self, item: Instruction, threads: _Integers) -> None:
        """Take an instruction that accesses registers which wgmma may still write, before it is executed."""

    def end(self, item: Instruction, threads: _Integers) -> None:
        """Take the end of threads."""


_WARP = 32


class CtaRegisters:
    """The values of registers, by name, and what is unknown of each."""

    def __init__(self, threads: int, program: tuple[int, int, int], grid: tuple[int, int, int]) -> None:
        """`program`, `grid`: which CTA of how many."""
        self.threads = threads
        self._everyone = np.arange(threads, dtype=np.int64)
        one = np.ones(threads, np.int64)
        self._values: dict[str, _Integers] = {
            "%tid.x": self._everyone, "%laneid": self._everyone % _WARP, "%warpid": self._everyone // _WARP,
            "%ntid.x": one * threads, "%tid.y": one * 0, "%tid.z": one * 0, "%ntid.y": one, "%ntid.z": one,
            "%cluster_ctarank": one * 0, "%cluster_nctarank": one, "%cluster_ctaid.x": one * 0,
            **{f"%ctaid.{axis}": one * program[place] for place, axis in enumerate("xyz")},
            **{f"%nctaid.{axis}": one * grid[place] for place, axis in enumerate("xyz")},
            **{f"%clusterid.{axis}": one * program[place] for place, axis in enumerate("xyz")},
        }  # fmt: skip
        self._unknown: dict[str, NDArray[np.bool_]] = {}

    def _value(self, operand: Operand) -> _Integers:
        if operand.kind == "number":
            # The bits of a number: 0dFFF0000000000000 is one of f64.
            return np.full(self.threads, operand.value & (1 << 64) - 1, np.uint64).view(np.int64)
        if not operand.name.startswith("%") and operand.name not in self._values:
            # The beginning of the CTA's shared memory, or a register of inline assembly that was not written.
            return np.zeros(self.threads, np.int64)
        found = self._values.get(operand.name)
        if found is None:
            return np.zeros(self.threads, np.int64)
        return -found if operand.is_negated and not operand.name.startswith("%p") else found

    def _is_unknown(self, name: str, threads: _Integers) -> bool:
        mask = self._unknown.get(name)
        if mask is not None:
            return bool(mask[threads].any())
        return name.startswith("%") and name not in self._values

    def _known(self, operand: Operand, threads: _Integers, step: PtxStep) -> _Integers:
        """The values in threads; raises NotRun where one is unknown."""
        if operand.name and self._is_unknown(operand.name, threads):
            raise NotComputed(
                f"line {step.item.line} of the PTX ({step.item.opcode}) depends on a value that is not computed"
            )
        return self._value(operand)[threads] + (operand.value if operand.kind == "address" else 0)

    def _uniform(self, operand: Operand, threads: _Integers, step: PtxStep) -> int:
        values = self._known(operand, threads, step)
        if (values != values[0]).any():
            raise NotRun(f"line {step.item.line} of the PTX ({step.item.opcode}): threads differ in {operand.name}")
        return int(values[0])

    def _assign(self, name: str, values: _Integers, unknown: NDArray[np.bool_] | None, on: _Integers) -> None:
        whole = len(on) == self.threads
        if whole:
            self._values[name] = values
        else:
            merged = self._values.get(name)
            merged = np.zeros(self.threads, np.int64) if merged is None else merged.copy()
            merged[on] = values[on]
            self._values[name] = merged
        mask = self._unknown.get(name)
        if unknown is None and mask is None:
            return
        mask = np.zeros(self.threads, np.bool_) if mask is None else mask.copy()
        mask[on] = False if unknown is None else unknown[on]
        if mask.any():
            self._unknown[name] = mask
        else:
            self._unknown.pop(name, None)

    def _forget(self, operands: Sequence[Operand], on: _Integers) -> None:
        unknown = np.ones(self.threads, np.bool_)
        for operand in operands:
            for name in operand.names:
                self._assign(name, np.zeros(self.threads, np.int64), unknown, on)

    def _repacked(self, step: PtxStep, on: _Integers) -> None:
        """mov.b32 %r1, {%rs1, %rs2} and mov.b64 {%r1, %r2}, %rd1."""
        target, source = step.operands
        vector = target if target.kind == "vector" else source
        bits = ptx_opcode(step.item.opcode).bits // max(len(vector.parts), 1)
        if any(self._is_unknown(name, on) for name in source.names):
            self._forget((target,), on)
        elif vector is target:
            whole = self._value(source)
            for place, part in enumerate(target.parts):
                self._assign(part.name, (whole >> place * bits) & ((1 << bits) - 1), None, on)
        else:
            parts = [self._value(part) & ((1 << bits) - 1) for part in source.parts]
            whole = np.zeros(self.threads, np.int64)
            for place, part in enumerate(parts):
                whole = whole | (part << place * bits)
            self._assign(target.name, whole, None, on)
