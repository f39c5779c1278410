"""Loops of which some values are not known.

The iterations of an `scf.for` that touch memory alike are run at once, with an unknown number of the iteration: each
carried value is then its first one plus that number times its growth (which is checked: the iteration must hand on just
that, plus the growth), and nothing but the place that an access begins at depends on the iteration. The last
iterations, and those of other loops, are run one after another.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from irscope.ir.mlir.model import MlirModule, Operation, Value
from irscope.machine.noted import LOST, NONE, AccessExecution, Contents, Evaluation, Held, Place
from irscope.machine.numbers import FAR, Integers, Number, Source, add, atom, constant, merged, multiply
from irscope.machine.programs import Programs, times_of
from irscope.machine.symbolic import Interpreter, TooMuch

_MOST_ITERATIONS = 1024
"""Iterations that are run one after another."""
_LAST_ITERATIONS = 4
"""Iterations at the end of a loop that masks and pipelines treat differently."""
_FEW_ITERATIONS = 4


def _grown(value: Number, growth: Number, index: Number) -> Number:
    """A carried value at the beginning of an iteration."""
    return add(value, multiply(growth, replace(index, bits=value.bits)))


def _growth_of(first: Held, second: Held, third: Held | None = None) -> Number | None:
    """By what a carried value grows with each iteration; None if it is not known, or the next one does not agree."""
    if not isinstance(first, Number) or not isinstance(second, Number) or first.bits == 1:
        return None
    if first.ndim != second.ndim or first.bits != second.bits:
        return None
    growth = replace(add(second, first, -1), argument="")
    return growth if third is None or _grew(second, third, growth) else None


def _grew(before: Held, after: Held, growth: Number) -> bool:
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
            _grown(value, growth, index) if growth is not None and isinstance(value, Number) else lost
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
                growth if growth is not None and _grew(one, other, growth) else None
                for growth, one, other in zip(growths, before, after, strict=True)
            ]
            if [growth is None for growth in confirmed] == [growth is None for growth in growths]:
                return growths
            growths = confirmed
            runner.forget(mark)

    @property
    def iterations(self) -> tuple[int, int]:
        step = self.step.value
        way = add(replace(self.stop, bits=64), replace(self.start, bits=64), -1)
        if step is None or step <= 0:
            return 0, FAR
        low, high = (-(-bound // step) if abs(bound) < FAR >> 1 else bound for bound in way.bounds)
        return max(low, 0), max(min(high, FAR), 0)

    @property
    def trip_count(self) -> int | None:
        """How many iterations it has; None if that is not known."""
        fewest, most = self.iterations
        return most if fewest == most else None


class Runner(Interpreter):
    """Runs a kernel for some programs, its loops included; what is unknown of them is held as such."""

    def evaluation(self) -> Evaluation:
        is_ended = run_kernel(self, self.module)
        return Evaluation(
            self.programs, tuple(self.executions), tuple(self.visits), tuple(self.notes), is_ended, self.noted.work,
            tuple(self.unread.items()),
        )  # fmt: skip

    def run_for(self, operation: Operation, place: Place) -> None:
        self.lose(operation)
        loop = FollowedLoop.of(self, operation, place)
        iterations = self._iterations(loop)
        if iterations is None:
            low, high = times_of(loop.iterations)
            with self.weighted(self.weight.often(low, high, merged((loop.start, loop.stop, loop.step)))):
                self._at_once(loop, None)
            return
        self._give(operation.results, self._counted(loop, np.where(self.weight.high > 0, iterations, 0)))

    def _iterations(self, loop: FollowedLoop) -> Integers | None:
        """The iterations in each program; None if they depend on more than the program."""
        known = [self.programs.values(number) for number in (loop.start, loop.stop, loop.step)]
        values = [value for value in known if value is not None]
        if len(values) < len(known) or int(values[2].min()) <= 0:
            return None
        return np.maximum(-((values[0] - values[1]) // values[2]), 0)

    def _counted(self, loop: FollowedLoop, iterations: Integers) -> Sequence[Held]:
        """Run a loop whose iterations are known in each program; returns what it gives."""
        reached = iterations[np.broadcast_to(self.weight.high > 0, iterations.shape)]
        if not reached.size or not reached.max():
            return loop.first
        least, most = int(reached.min()), int(reached.max())
        head = least - _LAST_ITERATIONS
        carried = self._head(loop, head) if head > _FEW_ITERATIONS else None
        head = head if carried is not None else 0
        if most - head > _MOST_ITERATIONS:
            self.note(f"one of {most} iterations of the loop in line {loop.operation.first_line} was evaluated")
            mark = self.mark()
            with self.weighted(self.weight.often(iterations, iterations)):
                rates, _ = self._at_once(loop, None)
            is_known = all(
                rate is not None for rate, first in zip(rates, loop.first, strict=True) if isinstance(first, Number)
            )
            if least < most or not is_known:
                return loop.lost(self)
            self.forget(mark)
            head = most - _LAST_ITERATIONS
            times = np.array([head])
            with self.weighted(self.weight.often(times, times)):
                self._at_once(loop, None)
            carried = loop.carried(self, rates, constant(head, 64))
        carried = carried if carried is not None else loop.first
        growths: list[Number | None] = [None] * len(carried)
        after = [self._scalar(value) for value in carried]
        for iteration in range(head, most):
            runs = iterations > iteration
            with self.weighted(self.weight.where(runs)):
                handed = loop.iteration(self, constant(iteration, 64), carried, loop.place)
            after = [_merged_values(runs, self._scalar(new), old) for new, old in zip(handed, after, strict=True)]
            if iteration == head:
                growths = [_growth_of(*both) for both in zip(carried, handed, strict=True)]
            growths = [
                growth if growth is not None and _grew(old, new, growth) else None
                for growth, old, new in zip(growths, carried, handed, strict=True)
            ]
            carried = handed
        if least == most:
            return carried
        # Programs that end earlier hand on what they had then.
        count = self.programs.named(iterations, 64)
        return [
            self.programs.named(values, value.bits)
            if values is not None and isinstance(value, Number)
            else _grown(value, growth, count)
            if growth is not None and isinstance(value, Number) and not head
            else lost
            for value, values, growth, lost in zip(loop.first, after, growths, loop.lost(self), strict=True)
        ]

    def _scalar(self, value: Held) -> Integers | None:
        return self.programs.values(value) if isinstance(value, Number) and value.shape == (1,) else None

    def _head(self, loop: FollowedLoop, iterations: int) -> list[Held] | None:
        """Run the first iterations at once; returns what is carried on, or None if they do not touch memory alike."""
        mark = self.mark()
        times = np.array([iterations])
        with self.weighted(self.weight.often(times, times)):
            growths, unknown = self._at_once(loop, iterations)
        if any(self._depends(one, loop.source, unknown) for one in self.executions[mark[1] :]) or any(
            loop.source in weight.sources for _, weight in self.visits[mark[0] :]
        ):
            self.forget(mark)
            return None
        return loop.carried(self, growths, constant(iterations, 64))

    def _depends(self, execution: AccessExecution, source: Source, unknown: Set[int]) -> bool:
        """Whether iterations differ in more than the place at which an access begins."""
        addresses, mask = execution.addresses, execution.mask
        if mask is not None and source in mask.sources:
            return True
        if source not in addresses.sources or self.programs.split(addresses) is not None:
            return False
        # Where one iteration by itself does not tell either, iterations one by one would not.
        return execution.operation.first_line not in unknown

    def _at_once(self, loop: FollowedLoop, iterations: int | None) -> tuple[list[Number | None], Set[int]]:
        """Run one iteration with an unknown number for all.

        Returns by what the carried values grow, and the lines whose places are not known in one iteration by itself.
        """
        mark, outer = self.mark(), self.iterations
        try:
            second = loop.iteration(self, constant(0, 64), loop.first, loop.place)
            third = loop.iteration(self, constant(1, 64), second, loop.place)
            growths = [_growth_of(*values) for values in zip(loop.first, second, third, strict=True)]
            tried = self.executions[mark[1] :]
            unknown = {one.operation.first_line for one in tried if self.programs.split(one.addresses) is None}
            most = loop.iterations[1] if iterations is None else iterations
            index = atom(loop.source, 64, low=0, high=FAR if most >= FAR else most - 1)
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
            with self.weighted(weight.where(runs)):
                self._give(before.arguments, carried)
                condition, *handed = self._ended(self._block(before, place)) or [self.opaque(NONE, LOST)]
            holds = self.programs.values(condition) if isinstance(condition, Number) else None
            if holds is None:
                break
            given = [_merged_values(runs, self._scalar(new), old) for new, old in zip(handed, given, strict=True)]
            runs = runs & (holds != 0)
            if not (runs & (weight.high > 0)).any():
                for result, values, held in zip(operation.results, given, handed, strict=True):
                    if values is not None and isinstance(held, Number):
                        self._give((result,), (self.programs.named(values, held.bits),))
                    elif self.programs.count == 1:
                        self._give((result,), (held,))
                return
            with self.weighted(weight.where(runs)):
                self._give(after.arguments, handed)
                carried = self._ended(self._block(after, place))
        # One iteration stands for all, whose number is not known.
        self.forget(mark)
        with self.weighted(weight.often(*times_of((0, FAR)), frozenset({source}))):
            self._give(
                before.arguments, [self.opaque(self.module.type_of(value), source) for value in before.arguments]
            )
            _, *last = self._ended(self._block(before, place)) or [self.opaque(NONE, LOST)]
            self._give(after.arguments, last)
            self._block(after, place)


def _merged_values(runs: NDArray[np.bool_], new: Integers | None, old: Integers | None) -> Integers | None:
    """The values of a scalar after an iteration that only some programs make; None if they are not known."""
    return None if new is None or old is None else np.where(runs, new, old)


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
    """Evaluate a TTGIR module's kernel for some programs; what is not among the arguments is unknown.

    `contents`: what tensors held, by argument. Never raises for what the module holds: what cannot be evaluated is
    unknown.
    """
    found = Runner(module, arguments, programs)
    found.noted.known_contents = contents or {}
    return found.evaluation()
