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
from functools import partial
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from irscope.ir.mlir.model import MlirModule, Operation, Value
from irscope.memory.addresses.accesses import Execution
from irscope.memory.addresses.evaluate import Runner, run_kernel
from irscope.memory.addresses.held import Held, Programs
from irscope.memory.addresses.kinds import Kind
from irscope.memory.addresses.numbers import FAR, Number
from irscope.memory.addresses.rules import RULES, Rule

__all__ = ["Overflow", "overflows_of"]

_BITS = 32
_EXACT_BITS = 65
"""Marks an integer of 32 bits whose value is exact. More than 64, at which nothing wraps around."""
_LIMIT = 1 << (_BITS - 1)
_SUMS = ("arith.addi", "arith.subi", "arith.muli", "arith.shli")
_PASSED_ON = (
    *_SUMS, "arith.extsi", "arith.index_cast", "tt.splat", "tt.unsplat", "tt.expand_dims", "tt.broadcast", "tt.reshape",
    "tt.trans", "tt.join", "tt.cat", "tt.addptr", "ttg.convert_layout", "gluon.set_auto_layout", "arith.minsi",
    "arith.maxsi", "arith.select",
)  # fmt: skip
"""Operations that are done with exact operands; the others get what the kernel has."""
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

    Args:
        grid: the programs of the launch. Its last ones are evaluated; if others may overflow, some of them too.
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
    runner = _Exact(module, held, Programs((0, 0, 0), grid, grid))
    runner.run()
    return bool(runner.overflowed)


def _others(grid: tuple[int, int, int], last: tuple[int, int, int]) -> Iterator[tuple[int, int, int]]:
    """The other corners of a grid, and some of its programs."""
    x, y, z = ((size - 1, 0) for size in grid)
    corners = product(x, y, z)
    count = prod(grid)
    places = sorted({(count - 1) * number // (_SAMPLE - 1) for number in range(_SAMPLE)}, reverse=True)
    sampled = ((at % grid[0], at // grid[0] % grid[1], at // grid[0] // grid[1]) for at in places)
    yield from (one for one in dict.fromkeys((*corners, *sampled)) if one != last)


def _of_program(
    module: MlirModule, held: Mapping[Value, Held], grid: tuple[int, int, int], program: tuple[int, int, int]
) -> Iterator[Overflow]:
    programs = Programs(program, (1, 1, 1), grid)
    exact = _Exact(module, held, programs)
    exact.run()
    if not exact.overflowed:
        return
    plain = Runner(module, dict(held), programs)
    run_kernel(plain, module)
    for one, other in zip(plain.executions, exact.executions, strict=False):
        if one.operation is not other.operation:
            return
        if not _is_astray(one, other):
            continue
        reached = _reached_from(module, one.operation)
        notes = [note for line, note in exact.overflowed.items() if line in reached]
        # What is beyond the range already when a turn of a loop begins has no sum that it begins with.
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
        super().__init__(module, dict(held), programs)
        self._module = module
        self.rules = {name: partial(self._with_exact, rule) for name, rule in RULES.items()}
        self.overflowed: dict[int, _Note] = {}
        """By the line of the operation, in the order of the evaluation."""

    def run(self) -> None:
        run_kernel(self, self._module)

    def value(self, value: Value) -> Held:
        found = super().value(value)
        return replace(found, bits=_EXACT_BITS) if isinstance(found, Number) and found.bits == _BITS else found

    def number(self, value: Value) -> Number:
        found = super().number(value)
        return replace(found, bits=_EXACT_BITS) if found.bits == _BITS else found

    def _with_exact(self, rule: Rule, operation: Operation, operands: Sequence[Number], kind: Kind) -> Number:
        if operation.name not in _PASSED_ON and not _is_signed_comparison(operation):
            operands = [_narrow(operation, one) for one in operands]
        is_sum = kind.bits == _BITS and operation.name in _SUMS
        if is_sum:
            operands = [replace(one, bits=_EXACT_BITS) for one in operands]
        found = rule(operation, operands, kind)
        if is_sum:
            self._note(operation, operands, found)
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


def _is_signed_comparison(operation: Operation) -> bool:
    return operation.name == "arith.cmpi" and " u" not in operation.text.partition(",")[0]


def _narrow(operation: Operation, number: Number) -> Number:
    """What the kernel has in place of an exact number."""
    if number.bits != _EXACT_BITS:
        return number
    return RULES["arith.trunci"](operation, (number,), Kind(number.shape, f"i{_BITS}"))


def _is_astray(plain: Execution, exact: Execution) -> bool:
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
    makers: dict[Value, Operation] = {}
    around: dict[Value, Operation] = {}
    for one in module.walk():
        makers |= dict.fromkeys(one.results, one)
        for region in one.regions:
            around |= {value: one for block in region.blocks for value in block.arguments}
    # Its own value, which `tt.store` has second and a store to a buffer first, is no address.
    stored = {"tt.store": 1, "amdg.buffer_store": 0, "amdgpu.buffer_store": 0}.get(access.name)
    open_ = [value for number, value in enumerate(access.operands) if number != stored]
    seen, lines = set(open_), set[int]()
    while open_:
        value = open_.pop()
        maker = makers.get(value) or around.get(value)
        if maker is None:
            continue
        lines.add(maker.first_line)
        given = list(maker.operands)
        for region in maker.regions:
            given += [each for block in region.blocks for each in block.operations[-1].operands if block.operations]
        fresh = [each for each in given if each not in seen]
        seen.update(fresh)
        open_ += fresh
    return lines
