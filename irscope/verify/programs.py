"""A proof by z3 that no program of one launch is out of bounds or meets another one, with its arguments as they are.

It decides launches of more programs than are executed: an address is a term over the program, the iterations of loops
and the index of the element. What cannot be proved names programs to execute.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false, reportMissingParameterType=false
# z3 states no types.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irscope.ir.mlir.model import MlirModule, Operation
from irscope.machine.values import Array
from irscope.memory.addresses.parts import spread_evenly
from irscope.model.capture import Capture
from irscope.model.launch_record import Argument, LaunchRecord
from irscope.verify.terms import AccessTerm, NamedTerm, Term, Terms, Unread, accesses, ask, element_of
from irscope.verify.texts import ExecutedText
from irscope.verify.threads import Owners
from irscope.verify.trace import is_of_cta

_EFFORT = 20_000_000
_MOST_ACCESSES = 48
_MOST_REASONS = 4


@dataclass(frozen=True, slots=True)
class _ProgramsProof:
    """What is proved of the programs of a launch."""

    reason: str = ""
    """Why it is not proved; empty where it is."""
    suspects: tuple[int, ...] = ()
    """Programs that may do what the proof could not rule out, or that read what they write."""


@dataclass(slots=True)
class _Access:
    operation: Operation
    terms: Terms
    found: AccessTerm
    conditions: list[Term]
    """Of the regions that it stands in, and of its mask."""
    repeats: bool

    @property
    def facts(self) -> list[Term]:
        return [*self.terms.facts, *self.conditions]


@dataclass(slots=True)
class _Prover:
    z3: Any
    module: MlirModule
    grid: tuple[int, int, int]
    tensors: Mapping[str, Argument]
    scalars: Mapping[str, Term]
    place_of: Callable[[Operation], str]
    share_threads: Callable[[Operation, Operation], bool]
    wrapping: frozenset[int] = frozenset()
    """Lines of operations that may wrap: a proof takes their results as any number."""
    reasons: list[str] = field(default_factory=list)
    suspects: set[int] = field(default_factory=set)
    wraps: set[int] = field(default_factory=set)
    """Lines of operations that were not proved to stay in their range."""

    def prove(self) -> _ProgramsProof:
        """Ask all questions; those that the solver leaves open stay so."""
        first, second = self._all("first "), self._all("second ")
        for one in first:
            is_read = one.operation.kind not in ("store", "descriptor")
            if self.tensors[one.found.path].is_unwritten and is_read:
                self.reasons.append(f"whether the memory of torch.empty that {self._named(one)} reads was written")
            self._bounds(one)
        for number, one in enumerate(first):
            for other in second[number:]:
                self._pair(one, other)
        return _ProgramsProof(self.reasons[0] if self.reasons else "", tuple(sorted(self.suspects)))

    def _all(self, name: str) -> list[_Access]:
        kernel = self.module.kernel
        grid = tuple(NamedTerm(str(size), self.z3.IntVal(size)) for size in self.grid)
        rows: list[_Access] = []
        for operation, path in accesses(kernel.regions[0].blocks if kernel is not None else ()):
            # Anew for each: that another loop has an iteration is no fact here.
            terms = Terms(self.z3, self.scalars, self.tensors, self.module, grid, f"{name}{len(rows)} ", self.tensors,
                          self.wrapping)  # fmt: skip
            terms.facts += [
                own == self.z3.Int(f"{name}program {axis}") for own, axis in zip(terms.programs, "xyz", strict=True)
            ]
            conditions = [terms.holds(step) for step in path]
            found = terms.access(operation)
            if found is None:
                raise Unread(f"{operation.name} is not followed")
            repeats = any(step.opcode == "scf.for" for step, _ in path)
            rows.append(_Access(operation, terms, found, [*conditions, found.condition], repeats))
            if len(rows) > _MOST_ACCESSES:
                raise Unread("it has too many accesses")
        return rows

    def _named(self, one: _Access) -> str:
        return f"{one.operation.name} at {self.place_of(one.operation)}"

    def _bytes(self, one: _Access) -> tuple[Term, int]:
        """The first byte in the storage, and the size of what is accessed."""
        size = _element_bytes(self.module, one.operation)
        return (one.found.offset + (self.tensors[one.found.path].storage_offset or 0)) * size, size

    def _bounds(self, one: _Access) -> None:
        begin, size = self._bytes(one)
        end = self.tensors[one.found.path].storage_bytes or 0
        self._ask([*one.facts, self.z3.Or(begin < 0, begin + size > end)], f"whether {self._named(one)} is in bounds")
        for operation, named, wraps in one.terms.wraps():
            if operation.first_line not in self.wraps:
                # Whatever the mask is: it may be of what wraps.
                before = len(self.reasons)
                what = f"whether {named} at {self.place_of(operation)} wraps"
                self._ask([*one.terms.facts, *one.conditions[:-1], wraps], what)
                if len(self.reasons) > before:
                    self.wraps.add(operation.first_line)

    def _pair(self, one: _Access, other: _Access) -> None:
        kinds = {"store" if is_of_cta(each.operation) else each.operation.kind for each in (one, other)}
        # Making a descriptor accesses nothing.
        if kinds in ({"load"}, {"atomic"}) or "descriptor" in kinds:
            return
        stored = (self.tensors[each.found.path] for each in (one, other))
        if len({tensor.shares or tensor.path for tensor in stored}) > 1:
            return
        (begin, size), (other_begin, other_size) = self._bytes(one), self._bytes(other)
        z3 = self.z3
        aligned = size == other_size
        meet = begin == other_begin if aligned else z3.And(begin < other_begin + other_size, other_begin < begin + size)
        places = [left == right for left, right in zip(one.terms.programs, other.terms.programs, strict=True)]
        where = " and ".join(dict.fromkeys((self._named(one), self._named(other))))
        facts = [*one.facts, *other.facts, meet]
        self._ask([*facts, z3.Not(z3.And(*places))], f"whether two programs access the same place by {where}")
        if one.operation is other.operation and not (one.repeats and one.found.index):
            return
        if one.operation is other.operation or self.share_threads(one.operation, other.operation):
            # An element is always the same thread's; whether a pass moved one behind the other, a program shows.
            self._suspect(ask(z3, [*facts, *places], _EFFORT) if one.operation is not other.operation else None)
            pairs = zip(one.found.index, other.found.index, strict=True)
            facts.append(z3.Or(*[left != right for left, right in pairs]))
        self._ask([*facts, *places], f"which threads of a program access the same place by {where}")

    def _ask(self, conditions: list[Term], what: str) -> None:
        if len(self.reasons) >= _MOST_REASONS:
            return
        model = ask(self.z3, conditions, _EFFORT)
        if model is None:
            return
        self.reasons.append(what if model else f"{what}, which is too hard for the solver")
        self._suspect(model)

    def _suspect(self, model: Any) -> None:
        """Take the programs of a model, if there is one."""
        for name in ("first ", "second ") if model else ():
            x, y, z = (
                model.eval(self.z3.Int(f"{name}program {axis}"), model_completion=True).as_long() for axis in "xyz"
            )
            if 0 <= x < self.grid[0] and 0 <= y < self.grid[1] and 0 <= z < self.grid[2]:
                self.suspects.add(x + self.grid[0] * (y + self.grid[1] * z))


class SameThreads:
    """Whether one thread alone accesses each element of two operations' tensors, by the layouts of the TTGIR."""

    def __init__(self, capture: Capture, text: ExecutedText) -> None:
        """`text`: the TTIR."""
        self._text = text
        final = ExecutedText(capture, capture.texts.get("ttgir", ""))
        self._owners = Owners(capture, final.module)
        self._counterparts: dict[object, list[Operation]] = {}
        for operation in final.module.walk():
            if operation.kind in ("load", "store"):
                self._counterparts.setdefault((final.origin(operation), operation.kind), []).append(operation)

    def __call__(self, first: Operation, second: Operation) -> bool:
        rows = [row for row in (self._threads(first), self._threads(second)) if row is not None]
        return len(rows) == 2 and np.array_equal(rows[0], rows[1])

    def _threads(self, operation: Operation) -> Array | None:
        shape = self._text.module.type_of(operation.operands[0]).shape
        found = self._counterparts.get((self._text.origin(operation), operation.kind), ())
        rows = [self._owners.of(one, shape) for one in found]
        plain = [row[0] for row in rows if row is not None and not row[1]]
        same = plain and len(plain) == len(rows) and all(np.array_equal(one, plain[0]) for one in plain)
        return plain[0] if same else None


def prove_programs(
    module: MlirModule, grid: tuple[int, int, int], record: LaunchRecord, place_of: Callable[[Operation], str],
    share_threads: Callable[[Operation, Operation], bool],
) -> _ProgramsProof | None:  # fmt: skip
    """Prove that the programs of a launch stay in bounds, and that no two of their threads meet; None without z3.

    `place_of`: an operation → its line of Python. `share_threads`: whether one thread alone accesses each element of
    two operations' tensors.
    """
    try:
        import z3
    except ImportError:
        return None
    for operation in module.walk():
        if operation.kind in ("call", "debug") or operation.opcode in ("scf.while", "cf.br", "cf.cond_br"):
            return _ProgramsProof(f"{operation.name} is not followed")
    if module.unknown:
        return _ProgramsProof("operations of unknown form")
    numbers = {
        one.path: z3.IntVal(one.value)
        for one in record.arguments
        if one.kind == "scalar" and isinstance(one.value, int) and not isinstance(one.value, bool)
    }
    tensors = {one.path: one for one in record.arguments if one.kind != "scalar"}
    wrapping: frozenset[int] = frozenset()
    proofs: list[_ProgramsProof] = []
    while True:
        prover = _Prover(z3, module, grid, tensors, numbers, place_of, share_threads, wrapping)
        try:
            proofs.append(prover.prove())
        except Unread as unread:
            proofs.append(_ProgramsProof(str(unread)))
        if not proofs[-1].reason:
            return proofs[-1]
        if prover.wraps <= wrapping:
            return proofs[0]
        # What wraps may be masked, or clamped, all the same.
        wrapping |= prover.wraps


def _element_bytes(module: MlirModule, operation: Operation) -> int:
    names = {effect.operand for effect in operation.effects if effect.space == "global"}
    described = operation.results[:1] if operation.kind == "descriptor" else operation.operand_group("desc")
    for value in (*described, *(value for name in names for value in operation.operand_group(name))):
        pointed = element_of(module.type_of(value)).element
        if pointed is not None:
            return max(pointed.bits // 8, 1)
    raise Unread(f"the size of the access of {operation.name} is unknown")


def chosen_programs(count: int, each: int, most: int | None) -> Sequence[int]:
    """The programs to execute: all, or the first ones, the last ones and others evenly between."""
    if most is None or count * each <= most:
        return range(count)
    wanted = max(most // each, 2)
    return sorted({*spread_evenly(count, wanted), *range(min(wanted // 2, count))})
