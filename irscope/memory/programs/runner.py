"""Runs a kernel for many programs at once: what each operation is executed, and the accesses, by their addresses.

Scalars that depend on the program alone are known for every one of them, so that trip counts and branches that differ
between programs are exact. Of a loop the iterations that touch memory alike are run once, with an unknown number of the
iteration; the others one after another.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import cast

import numpy as np
from numpy.typing import NDArray

from irscope.ir.mlir.model import Block, MlirModule, Operation, Value
from irscope.machine.control import Bindings, Executor, Step
from irscope.machine.loops import FollowedLoop, Runner, grew, grown, growth_of, run_kernel
from irscope.machine.noted import LOST, NONE, AccessExecution, Held, Place
from irscope.machine.numbers import (
    FAR,
    Integers,
    Number,
    Source,
    as_array,
    as_number,
    atom,
    constant,
    merged,
    token_of,
    wrapped,
)
from irscope.machine.symbolic import Programs, TooMuch, is_undefined
from irscope.machine.values import Array
from irscope.machine.values import Held as Concrete
from irscope.memory.access import MOST, Span


class Vectors:
    """The programs, and each scalar that differs between them: an atom whose value is known for every program."""

    def __init__(self, programs: Integers, grid: tuple[int, int, int]) -> None:
        self.programs = programs
        """The programs, each as x + width * (y + height * z)."""
        self.grid = grid
        self._of: dict[int, Integers] = {}

    @property
    def count(self) -> int:
        """How many programs there are."""
        return self.programs.size

    def program_id(self, axis: int) -> Number:
        """The program id along an axis."""
        return self.named(self.programs // prod(self.grid[:axis]) % self.grid[axis], 32)

    def named(self, values: Integers, bits: int) -> Number:
        """The scalar that has these values: a constant if all are equal."""
        low, high = int(values.min()), int(values.max())
        if low == high:
            return constant(low, bits)
        apart = values - low
        token = token_of(apart.tobytes())
        self._of[token] = apart
        return Number(
            np.array([low], np.int64), bits, np.array([token], np.uint64), int(np.gcd.reduce(apart)), 0, high - low,
            frozenset({Source("program", str(token))}), terms=((token, 1),),
        )  # fmt: skip

    def of_token(self, token: int) -> Integers | None:
        """The values of an atom; None if it is none that differs between the programs alone."""
        return self._of.get(token)

    def of_source(self, source: Source) -> Integers | None:
        """The values, less the least, of the scalar that something depends on; None if it is no such scalar."""
        return self._of.get(int(source.text)) if source.kind == "program" and source.text.isdigit() else None

    def split(self, number: Number) -> tuple[Integers, dict[int, int]] | None:
        """What a scalar, or the one unknown part of a tensor, adds in each program, and (token → factor) of the rest.

        None if it is no linear combination of atoms.
        """
        total = np.zeros(1, np.int64)
        if number.tokens is None:
            return total, {}
        if not number.is_rigid or not number.terms:
            return None
        check, rest = 0, dict[int, int]()
        for token, factor in number.terms:
            check += token * factor
            if token in self._of:
                total = total + self._of[token] * np.int64(factor)
            else:
                rest[token] = factor
        return (total, rest) if check % (1 << 64) == int(number.tokens.flat[0]) else None

    def values(self, number: Number) -> Integers | None:
        """The values of a scalar, one or one for each program; None if it depends on more than the program."""
        found = self.split(number)
        if found is None or found[1] or number.known.size != 1:
            return None
        return wrapped(number.known.reshape(1) + found[0], number.bits)


_ENDLESS = 1 << 40
"""As often as this or more often: without a bound."""


@dataclass(frozen=True)
class Weight:
    """How often each program comes somewhere."""

    low: Integers
    """One for each program, or one for all."""
    high: Integers
    count: int
    """How many programs there are."""
    sources: frozenset[Source] = frozenset()
    """What decides how often, where that is not known."""

    @staticmethod
    def once(count: int) -> Weight:
        """Each program once."""
        one = np.ones(1, np.int64)
        return Weight(one, one, count)

    def often(self, low: Integers, high: Integers) -> Weight:
        """Each time between two numbers of times."""
        least = _times(self.low, low)
        return replace(self, low=least, high=least if low is high and self.is_known else _times(self.high, high))

    def where(self, holds: NDArray[np.bool_]) -> Weight:
        """Only in the programs in which something holds."""
        times = holds.astype(np.int64)
        return self.often(times, times)

    def perhaps(self, sources: frozenset[Source]) -> Weight:
        """At most as often: what decides it is not known."""
        return Weight(np.zeros(1, np.int64), self.high, self.count, self.sources | sources)

    @property
    def is_known(self) -> bool:
        """Whether both bounds are the same."""
        return self.low is self.high

    @cached_property
    def span(self) -> Span:
        """How often all programs together come there."""
        return self._sum(self.low), self._sum(self.high)

    def _sum(self, times: Integers) -> int:
        if int(times.max()) >= _ENDLESS:
            return MOST
        return int(times.sum()) * (self.count if times.size == 1 else 1)


def _times(one: Integers, other: Integers) -> Integers:
    return np.where((other > 0) & (one > _ENDLESS // np.maximum(other, 1)), _ENDLESS, one * other)


def _merged_values(runs: NDArray[np.bool_], new: Integers | None, old: Integers | None) -> Integers | None:
    """The values of a scalar after an iteration that only some programs make; None if they are not known."""
    return None if new is None or old is None else np.where(runs, new, old)


_MOST_ITERATIONS = 1024
"""Iterations that are run one after another."""
_LAST_ITERATIONS = 4
"""Iterations at the end of a loop that masks and pipelines treat differently."""
_FEW_ITERATIONS = 4
_PREDICATED = ("tc_gen5_mma", "tc_gen5_mma_scaled")
"""Opcodes of dots of tensor memory, which a predicate may switch off."""


@dataclass(frozen=True, slots=True)
class _Visit:
    """An operation that is executed."""

    operation: Operation
    weight: Weight


@dataclass(frozen=True, slots=True)
class Touch:
    """An access that is executed."""

    execution: AccessExecution
    weight: Weight
    iterations: tuple[tuple[int, int], ...]
    """(token of the iteration's number, iterations) of the loops around it whose iterations are run at once."""


@dataclass(frozen=True, slots=True)
class ProgramsRun:
    """What some programs of a launch do."""

    vectors: Vectors
    visits: tuple[_Visit, ...]
    touches: tuple[Touch, ...]
    notes: tuple[str, ...]
    """Why it is incomplete; empty if it is not."""
    unread: tuple[tuple[int, str], ...]
    """(line, why) of accesses whose addresses could not be read."""
    work: int
    is_ended: bool
    """Whether it was ended before the kernel's end: nothing bounds what it would have done."""


def run_programs(module: MlirModule, arguments: Mapping[Value, Held], vectors: Vectors) -> ProgramsRun:
    """Run a module's kernel for some programs; never raises for what the module holds."""
    runner = _Runner(module, arguments, vectors)
    is_ended = run_kernel(runner, module)
    return ProgramsRun(
        vectors, tuple(runner.visits), tuple(runner.touches), tuple(runner.notes), tuple(runner.unread.items()),
        runner.noted.work, is_ended,
    )  # fmt: skip


def predicate_of(operation: Operation) -> Value | None:
    """The operand that says whether a dot of tensor memory is done; None of other operations, or if there is none."""
    return operation.operand("pred") if operation.opcode in _PREDICATED else None


class _Runner(Runner):
    most_work = 100_000

    def __init__(self, module: MlirModule, held: Mapping[Value, Held], vectors: Vectors) -> None:
        super().__init__(module, held, Programs(grid=vectors.grid))
        self.vectors = vectors
        self.visits: list[_Visit] = []
        self.touches: list[Touch] = []
        self.weight = Weight.once(vectors.count)
        self.iterations: tuple[tuple[int, int], ...] = ()

    def _run(self, step: Step, place: Place) -> None:
        weight = self._predicated(step.operation) if step.opcode in _PREDICATED else self.weight
        self.visits.append(_Visit(step.operation, weight))
        super()._run(step, place)

    def computed(self, step: Step) -> Sequence[Held]:
        found = super().computed(step)
        one = found[0]
        if not isinstance(one, Number) or one.shape != (1,) or not step.opcode.startswith("arith."):
            return found
        return (self._settled(step, one),)

    def _predicated(self, operation: Operation) -> Weight:
        """How often each program does what a predicate may switch off."""
        value = predicate_of(operation)
        if value is None:
            return self.weight.perhaps(frozenset({LOST}))
        condition = self.number(value)
        holds = self.vectors.values(condition)
        return self.weight.perhaps(condition.sources) if holds is None else self.weight.where(holds != 0)

    def _settled(self, step: Step, number: Number) -> Number:
        """A scalar with the values that it has in the programs in place of what is unknown of it."""
        frame = Bindings(self.frame.rows, self.frame)
        for value in step.operands:
            operand = self.number(value)
            values = self.vectors.values(operand)
            if values is None:
                return number
            frame.assign((value,), (cast(Array, as_array(Number(values, operand.bits))),))
        if is_undefined(step, [frame.array(value) for value in step.operands]):
            return number
        self.noted.work += self.vectors.count >> 13
        values = as_number(cast(Executor, step.execute)(self, step, frame)[0]).known
        return self._tightened(number, np.broadcast_to(values, (self.vectors.count,)))

    def block(self, block: Block, frame: Bindings, arguments: Sequence[Concrete], keeps: bool = False) -> Step | None:
        # How often elements are combined is no matter of the launch.
        mark = self.mark()
        end = super().block(block, frame, arguments, keeps)
        self.forget(mark)
        return end

    def mark(self) -> tuple[int, ...]:
        return len(self.visits), len(self.touches)

    def forget(self, mark: tuple[int, ...]) -> None:
        del self.visits[mark[0] :], self.touches[mark[1] :]

    def tightened(self, number: Number) -> Number:
        """A scalar with the values that it has in the programs, where these are known."""
        values = self.vectors.values(number)
        return number if values is None else self._tightened(number, np.broadcast_to(values, (self.vectors.count,)))

    def _tightened(self, held: Number, values: Integers) -> Number:
        linear, named = self.vectors.values(held), self.vectors.named(values, held.bits)
        if named.tokens is None or linear is None or not np.array_equal(linear, values):
            return named
        base = int(held.known[0])
        return replace(held, low=int(values.min()) - base, high=int(values.max()) - base)

    def _access(self, step: Step, place: Place) -> None:
        super()._access(step, place)
        if self.executions:
            self.touches.append(Touch(self.executions.pop(), self.weight, self.iterations))

    def run_program_id(self, operation: Operation, _: Place) -> None:
        self._give(operation.results, (self.vectors.program_id(self.program_axis(operation)),))

    # Branches

    @contextmanager
    def where(self, condition: Number, side: bool) -> Generator[None]:
        values = self.vectors.values(condition)
        before = self.weight
        weight = before.perhaps(condition.sources) if values is None else before.where((values != 0) == side)
        with self._weighted(weight):
            yield

    @contextmanager
    def _weighted(self, weight: Weight) -> Generator[None]:
        before = self.weight
        self.weight = weight
        try:
            yield
        finally:
            self.weight = before

    def run_if(self, operation: Operation, place: Place) -> None:
        condition = self.number(operation.operands[0])
        super().run_if(operation, place)
        holds = self.vectors.values(condition)
        if condition.value is not None or holds is None or len(operation.regions) != 2:
            return
        ends = [region.blocks[0].operations[-1].operands for region in operation.regions if region.blocks]
        for result, *sides in zip(operation.results, *ends, strict=False):
            self._choose(result, holds != 0, [self.value(side) for side in sides])

    def _choose(self, result: Value, holds: Integers, sides: Sequence[Held]) -> None:
        known = [self.vectors.values(side) for side in sides if isinstance(side, Number) and side.shape == (1,)]
        values = [value for value in known if value is not None]
        if len(values) == 2 and isinstance(sides[0], Number):
            chosen = np.broadcast_to(np.where(holds, *values), (self.vectors.count,))
            self._give((result,), (self.vectors.named(chosen, sides[0].bits),))

    # Loops

    def run_for(self, operation: Operation, place: Place) -> None:
        self.lose(operation)
        loop = FollowedLoop.of(self, operation, place)
        bounds = loop.start, loop.stop, loop.step
        iterations = self._iterations(*bounds)
        if iterations is None:
            low, high = (np.array([min(count, _ENDLESS)]) for count in loop.iterations)
            with self._weighted(self.weight.often(low, high).perhaps(merged(bounds)) if not low.any() else
                                self._unsure(low, high, merged(bounds))):  # fmt: skip
                self._at_once(loop, None)
            return
        iterations = np.where(self.weight.high > 0, iterations, 0)
        self._give(operation.results, self._counted(loop, iterations))

    def _unsure(self, low: Integers, high: Integers, sources: frozenset[Source]) -> Weight:
        weight = self.weight.often(low, high)
        return replace(weight, sources=weight.sources | sources)

    def _iterations(self, start: Number, stop: Number, step: Number) -> Integers | None:
        """The iterations in each program; None if they depend on more than the program."""
        values = [self.vectors.values(number) for number in (start, stop, step)]
        first, last, by = (np.zeros(1, np.int64) if value is None else value for value in values)
        if any(value is None for value in values) or int(by.min()) <= 0:
            return None
        return np.maximum(-((first - last) // by), 0)

    def _counted(self, loop: FollowedLoop, iterations: Integers) -> list[Held]:
        """Run a loop whose iterations are known in each program; returns what it gives."""
        reached = iterations[np.broadcast_to(self.weight.high > 0, iterations.shape)]
        if not reached.size or not reached.max():
            return loop.first
        least, most = int(reached.min()), int(reached.max())
        head = least - _LAST_ITERATIONS
        carried: list[Held] | None = None
        if head > _FEW_ITERATIONS:
            carried = self._head(loop, head)
        head = head if carried is not None else 0
        if most - head > _MOST_ITERATIONS:
            self.note(f"of the loop of line {loop.operation.first_line} one of {most} iterations was evaluated")
            with self._weighted(self.weight.often(iterations, iterations)):
                self._at_once(loop, None)
            return loop.lost(self)
        carried = carried if carried is not None else loop.first
        growths: list[Number | None] = [None] * len(carried)
        after = [self._scalar(value) for value in carried]
        for iteration in range(head, most):
            runs = iterations > iteration
            with self._weighted(self.weight.where(runs)):
                handed = loop.iteration(self, constant(iteration, 64), carried, loop.place)
            after = [_merged_values(runs, self._scalar(new), old) for new, old in zip(handed, after, strict=True)]
            if iteration == head:
                growths = [growth_of(*both) for both in zip(carried, handed, strict=True)]
            growths = [
                growth if growth is not None and grew(old, new, growth) else None
                for growth, old, new in zip(growths, carried, handed, strict=True)
            ]
            carried = handed
        if least == most:
            return carried
        # Programs that end earlier hand on what they had then.
        count = self.vectors.named(np.broadcast_to(iterations, (self.vectors.count,)), 64)
        return [
            self.vectors.named(np.broadcast_to(values, (self.vectors.count,)), value.bits)
            if values is not None and isinstance(value, Number)
            else grown(value, growth, count)
            if growth is not None and isinstance(value, Number) and not head
            else lost
            for value, values, growth, lost in zip(loop.first, after, growths, loop.lost(self), strict=True)
        ]

    def _scalar(self, value: Held) -> Integers | None:
        return self.vectors.values(value) if isinstance(value, Number) and value.shape == (1,) else None

    def _head(self, loop: FollowedLoop, iterations: int) -> list[Held] | None:
        """Run the first iterations at once; returns what is carried on, or None if they do not touch memory alike."""
        mark = self.mark()
        weight = self.weight.often(*[np.array([iterations])] * 2)
        with self._weighted(weight):
            growths, unknown = self._at_once(loop, iterations)
        if any(self._depends(touch, loop.source, unknown) for touch in self.touches[mark[1] :]) or any(
            loop.source in visit.weight.sources for visit in self.visits[mark[0] :]
        ):
            self.forget(mark)
            return None
        return loop.carried(self, growths, constant(iterations, 64))

    def _depends(self, touch: Touch, source: Source, unknown: Set[int]) -> bool:
        """Whether iterations differ in more than the place at which an access begins."""
        addresses, mask = touch.execution.addresses, touch.execution.mask
        if mask is not None and source in mask.sources:
            return True
        if source not in addresses.sources or self.vectors.split(addresses) is not None:
            return False
        # Where one iteration by itself does not tell either, iterations one by one would not.
        return touch.execution.operation.first_line not in unknown

    def _at_once(self, loop: FollowedLoop, iterations: int | None) -> tuple[list[Number | None], Set[int]]:
        """Run one iteration with an unknown number for all.

        Returns by what the carried values grow, and the lines whose places are not known in one iteration by itself.
        """
        mark, outer = self.mark(), self.iterations
        try:
            second = loop.iteration(self, constant(0, 64), loop.first, loop.place)
            third = loop.iteration(self, constant(1, 64), second, loop.place)
            growths = [growth_of(*values) for values in zip(loop.first, second, third, strict=True)]
            tried = [touch.execution for touch in self.touches[mark[1] :]]
            unknown = {one.operation.first_line for one in tried if self.vectors.split(one.addresses) is None}
            index = atom(loop.source, 64, low=0, high=FAR if iterations is None else iterations - 1)
            if iterations is not None:
                self.iterations = (*outer, (index.terms[0][0], iterations))
            self.forget(mark)
            return loop.settled(self, growths, index, loop.place), unknown
        except (TooMuch, RecursionError):
            # What was tried is not what is done.
            self.forget(mark)
            raise
        finally:
            self.iterations = outer

    def run_while(self, operation: Operation, place: Place) -> None:
        before, after = (region.blocks[0] for region in operation.regions[:2])
        carried = [self.value(value) for value in operation.operands]
        source = Source("data", f"the number of iterations of the {operation.name} of line {operation.first_line}")
        given: list[Integers | None] = [np.zeros(1, np.int64) for _ in operation.results]
        self.lose(operation, source)
        weight, runs = self.weight, np.ones(1, np.bool_)
        mark = self.mark()
        for _ in range(_MOST_ITERATIONS):
            with self._weighted(weight.where(runs)):
                self._give(before.arguments, carried)
                condition, *handed = self._ended(self._block(before, place)) or [self.opaque(NONE, LOST)]
            holds = self.vectors.values(condition) if isinstance(condition, Number) else None
            if holds is None:
                break
            given = [_merged_values(runs, self._scalar(new), old) for new, old in zip(handed, given, strict=True)]
            runs = runs & (holds != 0)
            if not (runs & (weight.high > 0)).any():
                for result, values, held in zip(operation.results, given, handed, strict=True):
                    if values is not None and isinstance(held, Number):
                        whole = np.broadcast_to(values, (self.vectors.count,))
                        self._give((result,), (self.vectors.named(whole, held.bits),))
                return
            with self._weighted(weight.where(runs)):
                self._give(after.arguments, handed)
                carried = self._ended(self._block(after, place))
        # One iteration stands for all, whose number is not known.
        self.forget(mark)
        endless = np.array([_ENDLESS])
        with self._weighted(weight.often(endless, endless).perhaps(frozenset({source}))):
            self._give(
                before.arguments, [self.opaque(self.module.type_of(value), source) for value in before.arguments]
            )
            _, *last = self._ended(self._block(before, place)) or [self.opaque(NONE, LOST)]
            self._give(after.arguments, last)
            self._block(after, place)
