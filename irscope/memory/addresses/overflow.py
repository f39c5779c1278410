"""Offsets of 32 bits that overflow: where an access reaches another address than exact arithmetic would give.

The kernel is evaluated twice for one program: as it is, where 32-bit sums and products wrap around, and exactly. Where
an element that is accessed has two addresses, or is masked off in one of them only, an overflow is to blame. A number
that is meant to wrap around (a hash, a random number) changes no address so, since what a remainder, a mask of bits or
an unsigned operation makes of it is the same in both.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from irscope.ir.mlir.model import MlirModule, Operation, Value
from irscope.ir.reach import reached
from irscope.machine.control import Step
from irscope.machine.loops import Runner, evaluate
from irscope.machine.noted import AccessExecution, Held
from irscope.machine.numbers import EXACT_BITS, FAR, Number, as_number, bits_of, truncated
from irscope.machine.programs import Programs
from irscope.machine.values import Array
from irscope.memory.addresses.parts import MOST_PROGRAMS, program_at, spread_evenly

_BITS = 32
_LIMIT = 1 << (_BITS - 1)
_SUMS = ("arith.addi", "arith.subi", "arith.muli", "arith.shli")
_PASSED_ON = (
    *_SUMS, "arith.extsi", "arith.index_cast", "splat", "unsplat", "expand_dims", "broadcast", "reshape", "trans",
    "join", "cat", "addptr", "convert_layout", "set_auto_layout", "arith.minsi", "arith.maxsi", "arith.select",
)  # fmt: skip
"""Opcodes of what is done with exact operands; the others get what the kernel has."""
_SAMPLE = 16
"""Programs that are evaluated beside those at the corners of the grid."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """One sum or product of 32 bits that overflows, and an access that it leads astray."""

    operation: Operation
    value: int
    """What it would be: of the element that is farthest off."""
    operands: tuple[int, ...]
    """Of that element."""
    program: tuple[int, int, int]
    access: Operation

    @property
    def wrapped(self) -> int:
        """What it is."""
        return (self.value + _LIMIT) % (2 * _LIMIT) - _LIMIT


def overflows_of(module: MlirModule, held: Mapping[Value, Held], grid: tuple[int, int, int]) -> tuple[Overflow, ...]:
    """The overflows of a module's kernel that change an address: of each operation the first that is found.

    The last programs of the grid are evaluated; if others may overflow, some of them too.
    """
    if module.kernel is None or min(grid) < 1:
        return ()
    last = (grid[0] - 1, grid[1] - 1, grid[2] - 1)
    found: dict[int, Overflow] = {}
    for program in (last, *_others(grid, last)) if _may_overflow(module, held, grid) else (last,):
        for one in _of_program(module, held, grid, program):
            found.setdefault(one.operation.first_line, one)
        if found:
            break
    return tuple(found.values())


def _may_overflow(module: MlirModule, held: Mapping[Value, Held], grid: tuple[int, int, int]) -> bool:
    if prod(grid) > MOST_PROGRAMS:
        return True
    runner = _Exact(module, held, Programs.all(grid))
    runner.evaluation()
    return bool(runner.overflowed)


def _others(grid: tuple[int, int, int], last: tuple[int, int, int]) -> Iterator[tuple[int, int, int]]:
    x, y, z = ((size - 1, 0) for size in grid)
    corners = product(x, y, z)
    sampled = (program_at(number, grid) for number in reversed(spread_evenly(prod(grid), _SAMPLE)))
    yield from (one for one in dict.fromkeys((*corners, *sampled)) if one != last)


def _of_program(
    module: MlirModule, held: Mapping[Value, Held], grid: tuple[int, int, int], program: tuple[int, int, int]
) -> Iterator[Overflow]:
    programs = Programs.at(program, grid)
    exact = _Exact(module, held, programs)
    exact.evaluation()
    if not exact.overflowed:
        return
    for one, other in zip(evaluate(module, held, programs).executions, exact.executions, strict=False):
        if one.operation is not other.operation:
            return
        if not _is_astray(one, other):
            continue
        reached = _reached_from(module, one.operation)
        notes = [note for line, note in exact.overflowed.items() if line in reached]
        # What is beyond the range already when an iteration of a loop begins has no sum that it begins with.
        for note in sorted(notes, key=lambda note: not note.begins)[:1]:
            yield Overflow(note.operation, note.value, note.operands, program, one.operation)


@dataclass(frozen=True, slots=True)
class _Note:
    """A sum or product of 32 bits whose exact value is beyond them."""

    operation: Operation
    value: int
    operands: tuple[int, ...]
    """Empty if they are not known."""
    begins: bool
    """Whether its operands are not beyond them yet."""


class _Exact(Runner):
    """Evaluates sums and products of 32 bits without wrapping around, and notes which would have."""

    def __init__(self, module: MlirModule, held: Mapping[Value, Held], programs: Programs) -> None:
        super().__init__(module, held, programs)
        self.overflowed: dict[int, _Note] = {}
        """By the line of the operation, in the order of the evaluation."""

    def value(self, value: Value) -> Held:
        found = super().value(value)
        return replace(found, bits=EXACT_BITS) if isinstance(found, Number) and found.bits >= _BITS else found

    def number(self, value: Value) -> Number:
        found = super().number(value)
        return replace(found, bits=EXACT_BITS) if found.bits >= _BITS else found

    def operands(self, step: Step) -> list[Array | Number]:
        is_exact = step.opcode in _PASSED_ON
        is_exact |= step.opcode == "arith.cmpi" and str(step.attribute("predicate"))[0] != "u"
        change = _exact if is_exact else _narrow
        operands = zip(super().operands(step), step.operand_types, strict=True)
        return [change(one) if bits_of(kind) == _BITS else one for one, kind in operands]

    def computed(self, step: Step) -> Sequence[Held]:
        found = super().computed(step)
        if step.opcode in _SUMS and bits_of(step.type) == _BITS:
            self._note(step.operation, [as_number(one) for one in self.operands(step)], as_number(found[0]))
        return found

    def _note(self, operation: Operation, operands: Sequence[Number], found: Number) -> None:
        known = found.tokens is None
        if _fits(found) or (not known and (found.low <= -FAR or found.high >= FAR)):
            return
        begins = all(map(_fits, operands))
        if not known:
            note = _Note(operation, max(found.bounds, key=abs), (), begins)
        else:
            value = max(int(found.known.min()), int(found.known.max()), key=abs)
            at = np.argmax(np.broadcast_to(found.known, found.shape) == value)
            given = [int(np.broadcast_to(one.known, found.shape).flat[at]) for one in operands if one.tokens is None]
            note = _Note(operation, value, tuple(given), begins)
        held = self.overflowed.get(operation.first_line)
        if held is None or (known and not held.operands):
            self.overflowed[operation.first_line] = note


def _fits(number: Number) -> bool:
    if number.tokens is not None and (number.low <= -FAR or number.high >= FAR):
        return True
    least, most = number.bounds
    return least >= -_LIMIT and most < _LIMIT


def _exact(one: Array | Number) -> Array | Number:
    return replace(one, bits=EXACT_BITS) if isinstance(one, Number) else one.astype(np.int64)


def _narrow(one: Array | Number) -> Array | Number:
    """What the kernel has in place of an exact number."""
    if isinstance(one, np.ndarray):
        return one.astype(np.int32)
    return truncated(one, _BITS) if one.bits == EXACT_BITS else one


def _is_astray(plain: AccessExecution, exact: AccessExecution) -> bool:
    """Whether an element is accessed at an address that it would not be accessed at, but for overflows."""
    one, other = plain.addresses, exact.addresses
    if not _is_same(one.tokens, other.tokens):
        return False
    ons: list[NDArray[np.bool_]] = []
    for mask in (plain.mask, exact.mask):
        if mask is not None and mask.tokens is not None:
            return False
        ons.append(mask.known != 0 if mask is not None else np.array(True))
    differ = (one.known != other.known) | (ons[0] != ons[1])
    return bool(((ons[0] | ons[1]) & differ).any())


def _is_same(one: NDArray[np.uint64] | None, other: NDArray[np.uint64] | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.shape == other.shape and bool((one == other).all())


def _reached_from(module: MlirModule, access: Operation) -> set[int]:
    """The lines of the operations that the operands of an access are made from; of regions, all that they yield."""
    # Its own value is no address.
    stored = access.operand_group("value") if access.kind == "store" else ()

    def given(value: Value) -> list[Value]:
        maker = module.definition(value)
        blocks = [block for region in maker.regions for block in region.blocks] if maker is not None else []
        ends = [block.operations[-1] for block in blocks if block.operations]
        return [each for one in (maker, *ends) if one is not None for each in one.operands]

    values = reached([value for value in access.operands if value not in stored], given)
    return {maker.first_line for value in values if (maker := module.definition(value)) is not None}
