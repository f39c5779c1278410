"""Loops of which some values are not known.

Of an `scf.for` a few iterations are evaluated one by one; of many the first and last ones, and those between at once,
with an unknown number of the iteration. That stands for all of them if each carried value is its first one plus that
number times its growth (which is checked: the iteration must hand on just that, plus the growth), and if nothing but
the place that an access begins at depends on the iteration. Where it begins at several places within a line, the
iterations of each place are evaluated once. If not, every iteration is evaluated, or, of very many, a sample.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from irscope.ir.mlir.model import MlirModule, Operation, Value
from irscope.machine.noted import LOST, NONE, AccessExecution, Contents, Evaluation, Held, Place
from irscope.machine.numbers import FAR, Number, Source, add, atom, constant, merged, multiply
from irscope.machine.symbolic import Interpreter, Programs, TooMuch

_MOST_ITERATIONS = 512
"""Iterations that are evaluated one after another."""
_LAST_ITERATIONS = 4
"""Iterations at the end of a loop that a pipeline treats differently."""
_FEW_ITERATIONS = 8
_SAMPLED_ITERATIONS = 16
_MOST_PERIOD = 32
_LINE_BYTES = 128
"""The largest unit that accesses are counted in."""


def grown(value: Number, growth: Number, index: Number) -> Number:
    """A carried value at the beginning of an iteration."""
    return add(value, multiply(growth, replace(index, bits=value.bits)))


def growth_of(first: Held, second: Held, third: Held | None = None) -> Number | None:
    """By what a carried value grows with each iteration; None if it is not known, or the next one does not agree."""
    if not isinstance(first, Number) or not isinstance(second, Number) or first.bits == 1:
        return None
    if first.ndim != second.ndim or first.bits != second.bits:
        return None
    growth = replace(add(second, first, -1), argument="")
    return growth if third is None or grew(second, third, growth) else None


def grew(before: Held, after: Held, growth: Number) -> bool:
    """Whether an iteration added just that."""
    if not isinstance(before, Number) or not isinstance(after, Number) or before.ndim != after.ndim:
        return False
    rest = add(add(after, before, -1), growth, -1)
    return rest.tokens is None and not rest.known.any()


@dataclass(frozen=True, slots=True)
class FollowedLoop:
    """An `scf.for`, what it begins with, and where it is run."""

    operation: Operation
    place: Place
    start: Number
    stop: Number
    step: Number
    first: list[Held]
    source: Source
    """Of the number of the iteration."""

    @staticmethod
    def of(runner: Interpreter, operation: Operation, place: Place) -> FollowedLoop:
        """The loop of an operation that a runner comes to; raises ValueError if a bound is no number."""
        start, stop, step = (runner.number(value) for value in operation.operands[:3])
        source = Source("iteration", f"the iteration of the loop, line {operation.first_line} ({runner.noted.fresh()})")
        return FollowedLoop(
            operation, place, start, stop, step, list(map(runner.value, operation.operands[3:])), source
        )

    def lost(self, runner: Interpreter) -> list[Held]:
        """Nothing known for each carried value."""
        return [runner.opaque(kind, self.source) for kind in self.operation.result_types]

    def iteration(self, runner: Interpreter, index: Number, carried: Sequence[Held], place: Place) -> list[Held]:
        """Run an iteration; returns what it hands on."""
        induction = add(self.start, multiply(replace(index, bits=self.start.bits), self.step))
        after = runner.body(self.operation, [runner.tightened(induction), *carried], place)
        return after if len(after) == len(carried) else self.lost(runner)

    def carried(self, runner: Interpreter, growths: Sequence[Number | None], index: Number) -> list[Held]:
        """The carried values at the beginning of an iteration, by what they grow in each."""
        return [
            grown(value, growth, index) if growth is not None and isinstance(value, Number) else lost
            for value, growth, lost in zip(self.first, growths, self.lost(runner), strict=True)
        ]

    def settled(
        self, runner: Interpreter, growths: list[Number | None], index: Number, place: Place
    ) -> list[Number | None]:
        """Run one iteration for many, until what is supposed of the carried values is what it hands on.

        Returns the growths; None for a value that does not grow so, and is unknown in the iteration.
        """
        mark = runner.mark()
        while True:
            before = self.carried(runner, growths, index)
            after = self.iteration(runner, index, before, place)
            confirmed = [
                growth if growth is not None and grew(one, other, growth) else None
                for growth, one, other in zip(growths, before, after, strict=True)
            ]
            if [growth is None for growth in confirmed] == [growth is None for growth in growths]:
                return growths
            growths = confirmed
            runner.forget(mark)

    @property
    def iterations(self) -> tuple[int, int]:
        """The fewest and the most iterations."""
        step = self.step.value
        way = add(replace(self.stop, bits=64), replace(self.start, bits=64), -1)
        if step is None or step <= 0:
            return 0, FAR
        low, high = (-(-bound // step) if abs(bound) < FAR >> 1 else bound for bound in way.bounds)
        return max(low, 0), max(min(high, FAR), 0)


class _LoopRun:
    def __init__(self, runner: Interpreter, loop: FollowedLoop) -> None:
        self.runner, self.loop, self.place = runner, loop, loop.place

    def run(self) -> list[Held]:
        """Run the loop; returns its results."""
        fewest, most = self.loop.iterations
        if fewest == most <= _FEW_ITERATIONS:
            return self._one_by_one(range(most), self.place)
        return self._many(fewest, most) if most else self.loop.first

    def _one_by_one(self, iterations: Iterable[int], place: Place) -> list[Held]:
        carried = self.loop.first
        for iteration in iterations:
            carried = self.loop.iteration(self.runner, constant(iteration, 64), carried, place)
        return carried

    def _many(self, fewest: int, most: int) -> list[Held]:
        executions, known = self.runner.executions, fewest == most
        begun = len(executions)
        second = self.loop.iteration(self.runner, constant(0, 64), self.loop.first, self.place)
        third = self.loop.iteration(self.runner, constant(1, 64), second, self.place)
        growths = [growth_of(*values) for values in zip(self.loop.first, second, third, strict=True)]
        if known:
            index = atom(self.loop.source, 64, low=2, high=most - _LAST_ITERATIONS - 1)
            count = most - _LAST_ITERATIONS - 2
            place = self.place.often((count, count))
        else:
            # The first two iterations only showed how the carried values grow.
            del executions[begun:]
            index = atom(self.loop.source, 64, low=0, high=min(most - 1, FAR))
            place = self.place.often((fewest, most), merged((self.loop.start, self.loop.stop, self.loop.step)))
        between = len(executions)
        growths = self.loop.settled(self.runner, growths, index, place)
        if not known:
            return self.loop.lost(self.runner)
        if not self._alike(between, growths, most - _LAST_ITERATIONS - 2):
            del executions[begun:]
            return self._each(most, growths)
        after: list[Held] = []
        for iteration in range(most - _LAST_ITERATIONS, most):
            after = self._at(growths, constant(iteration, 64), self.place)
        return [
            held if growth is not None else lost
            for held, growth, lost in zip(after, growths, self.loop.lost(self.runner), strict=True)
        ]

    def _alike(self, begun: int, growths: list[Number | None], iterations: int) -> bool:
        """Whether the iterations between access memory alike; if need be, those that begin at one place in a line."""
        executions = self.runner.executions
        if any(self._varies(one) for one in executions[begun:]):
            return False
        period = max((self._period(one) for one in executions[begun:]), default=1)
        if period == 1:
            return True
        if period > min(_MOST_PERIOD, iterations):
            return False
        del executions[begun:]
        for rest in range(period):
            count = len(range(rest, iterations, period))
            index = multiply(atom(self.loop.source, 64, low=0, high=count - 1), constant(period, 64))
            index = add(index, constant(2 + rest, 64))
            self._at(growths, index, self.place.often((count, count)))
        return all(self._period(one) == 1 for one in executions[begun:])

    def _at(self, growths: Sequence[Number | None], index: Number, place: Place) -> list[Held]:
        """Run one iteration, with the carried values that it begins with."""
        return self.loop.iteration(self.runner, index, self.loop.carried(self.runner, growths, index), place)

    def _each(self, most: int, growths: list[Number | None]) -> list[Held]:
        """Run every iteration; some of very many."""
        irregular = any(
            growth is None and isinstance(value, Number) for value, growth in zip(self.loop.first, growths, strict=True)
        )
        if most <= _MOST_ITERATIONS // 4 or (irregular and most <= _MOST_ITERATIONS):
            return self._one_by_one(range(most), self.place)
        if irregular:
            iterations = list(range(_MOST_ITERATIONS))
        else:
            iterations = sorted(
                {(most - 1) * number // (_SAMPLED_ITERATIONS - 1) for number in range(_SAMPLED_ITERATIONS)}
            )
        self.runner.note(
            f"{len(iterations)} of {most} iterations of the loop of line {self.loop.operation.first_line} were "
            "evaluated"
        )
        place = replace(self.place, share=self.place.share * len(iterations) / most)
        if irregular:
            self._one_by_one(iterations, place)
            return self.loop.lost(self.runner)
        for iteration in iterations:
            self._at(growths, constant(iteration, 64), place)
        return self.loop.carried(self.runner, growths, constant(most, 64))

    def _period(self, execution: AccessExecution) -> int:
        """After how many iterations an access begins at the same place within a line again."""
        if self.loop.source not in execution.addresses.sources:
            return 1
        return _LINE_BYTES // gcd(execution.addresses.step, _LINE_BYTES)

    def _varies(self, execution: AccessExecution) -> bool:
        """Whether iterations differ in more than the place that an access begins at."""
        mask, addresses = execution.mask, execution.addresses
        if self.loop.source in execution.sources or (mask is not None and self.loop.source in mask.sources):
            return True
        return self.loop.source in addresses.sources and not addresses.is_rigid


_MOST_WHILE_ITERATIONS = 256
"""Iterations of an `scf.while` that are evaluated."""


class Runner(Interpreter):
    """Runs a kernel for some programs, its loops included; what is unknown of them is held as such."""

    def evaluation(self) -> Evaluation:
        """Run the kernel; returns what was noted."""
        is_ended = run_kernel(self, self.module)
        noted = self.noted
        return Evaluation(tuple(noted.executions), tuple(self.notes), is_ended, noted.work, tuple(self.unread.items()))

    def run_for(self, operation: Operation, place: Place) -> None:
        self.lose(operation)
        self._give(operation.results, _LoopRun(self, FollowedLoop.of(self, operation, place)).run())

    def run_while(self, operation: Operation, place: Place) -> None:
        before, after = (region.blocks[0] for region in operation.regions[:2])
        carried = [self.value(value) for value in operation.operands]
        unknown = Source("data", f"the number of iterations of the {operation.name} of line {operation.first_line}")
        executions = len(self.executions)
        for _ in range(_MOST_WHILE_ITERATIONS):
            self._give(before.arguments, carried)
            condition, *handed = self._ended(self._block(before, place)) or [self.opaque(NONE, LOST)]
            holds = condition.value if isinstance(condition, Number) else None
            if holds == 0:
                self._give(operation.results, handed)
                return
            if holds is None:
                break
            self._give(after.arguments, handed)
            carried = self._ended(self._block(after, place))
        # One iteration stands for all, whose number is not known.
        del self.executions[executions:]
        self._give(before.arguments, [self.opaque(self.module.type_of(value), unknown) for value in before.arguments])
        place = place.often((0, FAR), frozenset({unknown}))
        _, *handed = self._ended(self._block(before, place)) or [self.opaque(NONE, LOST)]
        self._give(after.arguments, handed)
        self._block(after, place)
        self.lose(operation, unknown)


def run_kernel(runner: Runner, module: MlirModule) -> bool:
    """Run a module's kernel; returns whether it came not to its end."""
    kernel = module.kernel
    if kernel is None or not kernel.regions:
        return False
    stated = module.option("num-warps")
    warps = stated if isinstance(stated, int) else 4
    with np.errstate(all="ignore"):
        try:
            given = [runner.value(value) for block in kernel.regions[0].blocks[:1] for value in block.arguments]
            runner.run_function(kernel, given, Place(warps=warps))
        except (TooMuch, RecursionError) as end:
            runner.note(str(end))
            return True
    return False


def evaluate(
    module: MlirModule,
    arguments: Mapping[Value, Held],
    programs: Programs,
    contents: Mapping[str, Contents] | None = None,
) -> Evaluation:
    """Evaluate a module's kernel.

    Args:
        module: a TTGIR module.
        arguments: its parameters; one that is not among them is unknown.
        programs: which programs.
        contents: what tensors held, by argument.

    Never raises for what the module holds: what cannot be evaluated is unknown.
    """
    found = Runner(module, arguments, programs)
    found.noted.known_contents = contents or {}
    return found.evaluation()
