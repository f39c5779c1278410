"""Evaluates an `scf.for`: a few turns one by one; of many the first and last ones, and those between all at once.

The turns between are evaluated once, with an unknown number of the turn. That stands for all of them if each carried
value is its first one plus that number times its growth (which is checked: the turn must hand on just that, plus the
growth), and if nothing but the place that an access begins at depends on the turn. Where it begins at several places
within a line, the turns of each place are evaluated once. If not, every turn is evaluated, or, of very many, a sample.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import gcd
from typing import Protocol

from irscope.ir.mlir.model import Operation, Value
from irscope.memory.addresses.accesses import Execution
from irscope.memory.addresses.held import Held, Opaque, Place, kind_of_held
from irscope.memory.addresses.numbers import FAR, Number, Source, add, atom, constant, merged, multiply

__all__ = ["Host", "grew", "grown", "growth_of", "run_loop"]

_MOST_TURNS = 512
"""Turns that are evaluated one after another."""
_LAST_TURNS = 4
"""Turns at the end of a loop that a pipeline treats differently."""
_FEW_TURNS = 8
_SAMPLED_TURNS = 16
_MOST_PERIOD = 32
_LINE_BYTES = 128
"""The largest unit that accesses are counted in."""


class Host(Protocol):
    """What evaluates the operations of the loop's body."""

    executions: list[Execution]

    def number(self, value: Value) -> Number:
        """A value as a number."""
        ...

    def body(self, operation: Operation, given: Sequence[Held], place: Place) -> list[Held]:
        """Run the body with values for its arguments; returns what it hands on."""
        ...

    def value(self, value: Value) -> Held:
        """A value."""
        ...

    def fresh(self) -> int:
        """A number that no other call gives."""
        ...

    def note(self, text: str) -> None:
        """Say why the evaluation is incomplete."""
        ...


def run_loop(host: Host, operation: Operation, place: Place) -> list[Held]:
    """Run an `scf.for`; returns its results."""
    return _Loop(host, operation, place).run()


class _Loop:
    def __init__(self, host: Host, operation: Operation, place: Place) -> None:
        self.host = host
        self.operation = operation
        self.place = place
        self.start, self.stop, self.step = (host.number(value) for value in operation.operands[:3])
        self.first: list[Held] = [host.value(value) for value in operation.operands[3:]]
        self.source = Source("turn", f"the turn of the loop, line {operation.first_line} ({host.fresh()})")

    def run(self) -> list[Held]:
        fewest, most = self._turns()
        if fewest == most <= _FEW_TURNS:
            return self._one_by_one(range(most), self.place)
        return self._many(fewest, most) if most else self.first

    def _turns(self) -> tuple[int, int]:
        """The fewest and the most turns."""
        step = self.step.value
        way = add(replace(self.stop, bits=64), replace(self.start, bits=64), -1)
        if step is None or step <= 0:
            return 0, FAR
        low, high = (-(-bound // step) if abs(bound) < FAR >> 1 else bound for bound in way.bounds)
        return max(low, 0), max(min(high, FAR), 0)

    def _turn(self, index: Number, carried: Sequence[Held], place: Place) -> list[Held]:
        induction = add(self.start, multiply(replace(index, bits=self.start.bits), self.step))
        after = self.host.body(self.operation, [induction, *carried], place)
        return after if len(after) == len(carried) else self._lost()

    def _one_by_one(self, turns: Iterable[int], place: Place) -> list[Held]:
        carried = self.first
        for turn in turns:
            carried = self._turn(constant(turn, 64), carried, place)
        return carried

    def _many(self, fewest: int, most: int) -> list[Held]:
        executions = self.host.executions
        known = fewest == most
        begun = len(executions)
        second = self._turn(constant(0, 64), self.first, self.place)
        third = self._turn(constant(1, 64), second, self.place)
        growths = [growth_of(*values) for values in zip(self.first, second, third, strict=True)]
        if known:
            index = atom(self.source, 64, low=2, high=most - _LAST_TURNS - 1)
            count = most - _LAST_TURNS - 2
            place = self.place.often((count, count))
        else:
            # The first two turns only showed how the carried values grow.
            del executions[begun:]
            index = atom(self.source, 64, low=0, high=min(most - 1, FAR))
            place = self.place.often((fewest, most), merged((self.start, self.stop, self.step)))
        between = len(executions)
        growths = self._between(growths, index, place)
        if not known:
            return self._lost()
        if not self._alike(between, growths, most - _LAST_TURNS - 2):
            del executions[begun:]
            return self._each(most, growths)
        after: list[Held] = []
        for turn in range(most - _LAST_TURNS, most):
            after = self._turn(constant(turn, 64), self._at(growths, constant(turn, 64)), self.place)
        return [
            held if growth is not None else lost
            for held, growth, lost in zip(after, growths, self._lost(), strict=True)
        ]

    def _alike(self, begun: int, growths: list[Number | None], turns: int) -> bool:
        """Whether the turns between touch memory alike; if need be, those that begin at one place within a line."""
        executions = self.host.executions
        if any(self._varies(one) for one in executions[begun:]):
            return False
        period = max((self._period(one) for one in executions[begun:]), default=1)
        if period == 1:
            return True
        if period > min(_MOST_PERIOD, turns):
            return False
        del executions[begun:]
        for rest in range(period):
            count = len(range(rest, turns, period))
            index = multiply(atom(self.source, 64, low=0, high=count - 1), constant(period, 64))
            index = add(index, constant(2 + rest, 64))
            self._turn(index, self._at(growths, index), self.place.often((count, count)))
        return all(self._period(one) == 1 for one in executions[begun:])

    def _between(self, growths: list[Number | None], index: Number, place: Place) -> list[Number | None]:
        """Run the turns between; a carried value that does not grow so in them has no growth, and is unknown there."""
        executions = self.host.executions
        begun = len(executions)
        while True:
            before = self._at(growths, index)
            after = self._turn(index, before, place)
            kept = [
                growth if growth is not None and grew(one, other, growth) else None
                for growth, one, other in zip(growths, before, after, strict=True)
            ]
            if [growth is None for growth in kept] == [growth is None for growth in growths]:
                return growths
            growths = kept
            del executions[begun:]

    def _each(self, most: int, growths: list[Number | None]) -> list[Held]:
        """Run every turn; some of very many."""
        irregular = any(
            growth is None and isinstance(value, Number) for value, growth in zip(self.first, growths, strict=True)
        )
        if most <= _MOST_TURNS // 4 or (irregular and most <= _MOST_TURNS):
            return self._one_by_one(range(most), self.place)
        if irregular:
            turns = list(range(_MOST_TURNS))
        else:
            turns = sorted({(most - 1) * number // (_SAMPLED_TURNS - 1) for number in range(_SAMPLED_TURNS)})
        self.host.note(f"{len(turns)} of {most} turns of the loop of line {self.operation.first_line} were evaluated")
        place = replace(self.place, share=self.place.share * len(turns) / most)
        if irregular:
            self._one_by_one(turns, place)
            return self._lost()
        for turn in turns:
            self._turn(constant(turn, 64), self._at(growths, constant(turn, 64)), place)
        return self._at(growths, constant(most, 64))

    def _period(self, execution: Execution) -> int:
        """After how many turns an access begins at the same place within a line again."""
        if self.source not in execution.addresses.sources:
            return 1
        return _LINE_BYTES // gcd(execution.addresses.step, _LINE_BYTES)

    def _varies(self, execution: Execution) -> bool:
        """Whether turns differ in more than the place that an access begins at."""
        mask, addresses = execution.mask, execution.addresses
        if self.source in execution.sources or (mask is not None and self.source in mask.sources):
            return True
        return self.source in addresses.sources and not addresses.is_rigid

    def _at(self, growths: Sequence[Number | None], index: Number) -> list[Held]:
        """The carried values at the beginning of a turn."""
        return [
            grown(value, growth, index) if growth is not None and isinstance(value, Number) else lost
            for value, growth, lost in zip(self.first, growths, self._lost(), strict=True)
        ]

    def _lost(self) -> list[Held]:
        return [Opaque(kind_of_held(value), self.source, self.host.fresh()) for value in self.first]


def grown(value: Number, growth: Number, index: Number) -> Number:
    """A carried value at the beginning of a turn."""
    rank = len(value.shape)
    times = replace(index.shaped(lambda array: array.reshape((1,) * rank), (1,) * rank), bits=value.bits)
    return add(value, multiply(growth, times))


def growth_of(first: Held, second: Held, third: Held) -> Number | None:
    """By what a carried value grows from turn to turn; None if the first two turns do not agree."""
    if not isinstance(first, Number) or not isinstance(second, Number) or first.bits == 1:
        return None
    if first.shape != second.shape or first.bits != second.bits:
        return None
    growth = replace(add(second, first, -1), argument="")
    return growth if grew(second, third, growth) else None


def grew(before: Held, after: Held, growth: Number) -> bool:
    """Whether a turn added just that."""
    if not isinstance(before, Number) or not isinstance(after, Number) or before.shape != after.shape:
        return False
    rest = add(add(after, before, -1), growth, -1)
    return rest.tokens is None and not rest.known.any()
