"""Evaluates a kernel for one program, or for many that are alike, and lists the accesses it executes.

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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from math import gcd
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from irscope.ir.mlir.model import Block, MlirModule, Operation, Region, Value
from irscope.memory.addresses.accesses import Evaluation, Execution, described, made_descriptor, tensormap
from irscope.memory.addresses.arguments import Contents, loaded_data
from irscope.memory.addresses.held import (
    LOST,
    Held,
    Opaque,
    Place,
    Programs,
    either,
    grew,
    grown,
    growth_of,
    kind_of_held,
    made_number,
)
from irscope.memory.addresses.kinds import Kind, kinds_of_results
from irscope.memory.addresses.numbers import FAR, Number, Source, add, atom, constant, merged, multiply, select
from irscope.memory.addresses.rules import RULES, Rule, attribute, reduced, scanned
from irscope.memory.machine import ACCESSES

__all__ = ["Loop", "Runner", "TooMuch", "evaluate", "run_kernel"]

_MOST_TURNS = 512
"""Turns that are evaluated one after another."""
_LAST_TURNS = 4
"""Turns at the end of a loop that a pipeline treats differently."""
_FEW_TURNS = 8
_SAMPLED_TURNS = 16
_MOST_PERIOD = 32
_LINE_BYTES = 128
"""The largest unit that accesses are counted in."""


@dataclass(frozen=True, slots=True)
class Loop:
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
    def of(runner: Runner, operation: Operation, place: Place) -> Loop:
        """The loop of an operation that a runner comes to; raises ValueError if a bound is no number."""
        start, stop, step = (runner.number(value) for value in operation.operands[:3])
        source = Source("turn", f"the iteration of the loop, line {operation.first_line} ({runner.fresh()})")
        return Loop(operation, place, start, stop, step, list(map(runner.value, operation.operands[3:])), source)

    def lost(self, runner: Runner) -> list[Held]:
        """Nothing known for each carried value."""
        return [Opaque(kind_of_held(value), self.source, runner.fresh()) for value in self.first]

    def iteration(self, runner: Runner, index: Number, carried: Sequence[Held], place: Place) -> list[Held]:
        """Run an iteration; returns what it hands on."""
        induction = add(self.start, multiply(replace(index, bits=self.start.bits), self.step))
        after = runner.body(self.operation, [runner.tightened(induction), *carried], place)
        return after if len(after) == len(carried) else self.lost(runner)

    def carried(self, runner: Runner, growths: Sequence[Number | None], index: Number) -> list[Held]:
        """The carried values at the beginning of an iteration, by what they grow in each."""
        return [
            grown(value, growth, index) if growth is not None and isinstance(value, Number) else lost
            for value, growth, lost in zip(self.first, growths, self.lost(runner), strict=True)
        ]

    def settled(self, runner: Runner, growths: list[Number | None], index: Number, place: Place) -> list[Number | None]:
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
    def __init__(self, runner: Runner, loop: Loop) -> None:
        self.runner, self.loop, self.place = runner, loop, loop.place

    def run(self) -> list[Held]:
        """Run the loop; returns its results."""
        fewest, most = self.loop.iterations
        if fewest == most <= _FEW_TURNS:
            return self._one_by_one(range(most), self.place)
        return self._many(fewest, most) if most else self.loop.first

    def _one_by_one(self, turns: Iterable[int], place: Place) -> list[Held]:
        carried = self.loop.first
        for turn in turns:
            carried = self.loop.iteration(self.runner, constant(turn, 64), carried, place)
        return carried

    def _many(self, fewest: int, most: int) -> list[Held]:
        executions, known = self.runner.executions, fewest == most
        begun = len(executions)
        second = self.loop.iteration(self.runner, constant(0, 64), self.loop.first, self.place)
        third = self.loop.iteration(self.runner, constant(1, 64), second, self.place)
        growths = [growth_of(*values) for values in zip(self.loop.first, second, third, strict=True)]
        if known:
            index = atom(self.loop.source, 64, low=2, high=most - _LAST_TURNS - 1)
            count = most - _LAST_TURNS - 2
            place = self.place.often((count, count))
        else:
            # The first two turns only showed how the carried values grow.
            del executions[begun:]
            index = atom(self.loop.source, 64, low=0, high=min(most - 1, FAR))
            place = self.place.often((fewest, most), merged((self.loop.start, self.loop.stop, self.loop.step)))
        between = len(executions)
        growths = self.loop.settled(self.runner, growths, index, place)
        if not known:
            return self.loop.lost(self.runner)
        if not self._alike(between, growths, most - _LAST_TURNS - 2):
            del executions[begun:]
            return self._each(most, growths)
        after: list[Held] = []
        for turn in range(most - _LAST_TURNS, most):
            after = self._at(growths, constant(turn, 64), self.place)
        return [
            held if growth is not None else lost
            for held, growth, lost in zip(after, growths, self.loop.lost(self.runner), strict=True)
        ]

    def _alike(self, begun: int, growths: list[Number | None], turns: int) -> bool:
        """Whether the turns between touch memory alike; if need be, those that begin at one place within a line."""
        executions = self.runner.executions
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
            index = multiply(atom(self.loop.source, 64, low=0, high=count - 1), constant(period, 64))
            index = add(index, constant(2 + rest, 64))
            self._at(growths, index, self.place.often((count, count)))
        return all(self._period(one) == 1 for one in executions[begun:])

    def _at(self, growths: Sequence[Number | None], index: Number, place: Place) -> list[Held]:
        """Run one turn, with the carried values that it begins with."""
        return self.loop.iteration(self.runner, index, self.loop.carried(self.runner, growths, index), place)

    def _each(self, most: int, growths: list[Number | None]) -> list[Held]:
        """Run every turn; some of very many."""
        irregular = any(
            growth is None and isinstance(value, Number) for value, growth in zip(self.loop.first, growths, strict=True)
        )
        if most <= _MOST_TURNS // 4 or (irregular and most <= _MOST_TURNS):
            return self._one_by_one(range(most), self.place)
        if irregular:
            turns = list(range(_MOST_TURNS))
        else:
            turns = sorted({(most - 1) * number // (_SAMPLED_TURNS - 1) for number in range(_SAMPLED_TURNS)})
        self.runner.note(
            f"{len(turns)} of {most} iterations of the loop of line {self.loop.operation.first_line} were evaluated"
        )
        place = replace(self.place, share=self.place.share * len(turns) / most)
        if irregular:
            self._one_by_one(turns, place)
            return self.loop.lost(self.runner)
        for turn in turns:
            self._at(growths, constant(turn, 64), place)
        return self.loop.carried(self.runner, growths, constant(most, 64))

    def _period(self, execution: Execution) -> int:
        """After how many turns an access begins at the same place within a line again."""
        if self.loop.source not in execution.addresses.sources:
            return 1
        return _LINE_BYTES // gcd(execution.addresses.step, _LINE_BYTES)

    def _varies(self, execution: Execution) -> bool:
        """Whether turns differ in more than the place that an access begins at."""
        mask, addresses = execution.mask, execution.addresses
        if self.loop.source in execution.sources or (mask is not None and self.loop.source in mask.sources):
            return True
        return self.loop.source in addresses.sources and not addresses.is_rigid


_Side = TypeVar("_Side")
_DEEPEST = 24
"""Calls and branches within one another."""
_MOST_WHILE_TURNS = 256
"""Turns of an `scf.while` that are evaluated."""


class TooMuch(Exception):
    """A bound of the evaluation's work is reached."""


def evaluate(
    module: MlirModule,
    arguments: Mapping[Value, Held],
    programs: Programs,
    rules: Mapping[str, Rule] = RULES,
    contents: Mapping[str, Contents] | None = None,
) -> Evaluation:
    """Evaluate a module's kernel.

    Args:
        arguments: its parameters; one that is not among them is unknown.

    Never raises for what the module holds: what cannot be evaluated is unknown.
    """
    runner = Runner(module, dict(arguments), programs)
    runner.rules = rules
    runner.contents = contents or {}
    ended = run_kernel(runner, module)
    return Evaluation(tuple(runner.executions), tuple(runner.notes), ended, runner.work, tuple(runner.unread.items()))


def run_kernel(runner: Runner, module: MlirModule) -> bool:
    """Run a module's kernel; returns whether it came not to its end."""
    kernel = module.kernel
    if kernel is None or not kernel.regions:
        return False
    stated = [one.attribute("ttg.num-warps") for one in module.operations]
    warps = next((one for one in stated if isinstance(one, int)), 4)
    with np.errstate(all="ignore"):
        try:
            given = [runner.value(value) for block in kernel.regions[0].blocks[:1] for value in block.arguments]
            runner.function(kernel, given, Place(warps=warps))
        except (TooMuch, RecursionError) as end:
            runner.note(str(end))
            return True
    return False


class Runner:
    """Runs a kernel for some programs; what is unknown of them is held as such."""

    most_work = 20_000
    """Operations of one evaluation, an access as four; a thousand elements count as one more."""
    rules: Mapping[str, Rule] = RULES
    contents: Mapping[str, Contents] = MappingProxyType({})

    def __init__(self, module: MlirModule, held: dict[Value, Held], programs: Programs) -> None:
        self.executions: list[Execution] = []
        self.notes: dict[str, None] = {}
        self.unread: dict[int, str] = {}
        self._programs = programs
        self._held = held
        self._functions: dict[str, Operation] = {}
        self.work = self._fresh = 0
        for one in module.walk():
            if one.kind == "function":
                self._functions[one.symbol] = one

    def fresh(self) -> int:
        self._fresh += 1
        return self._fresh

    def mark(self) -> tuple[int, ...]:
        """How much was noted so far."""
        return (len(self.executions),)

    def forget(self, mark: tuple[int, ...]) -> None:
        """Drop what was noted since."""
        del self.executions[mark[0] :]

    def tightened(self, number: Number) -> Number:
        """A scalar with all that is known of its values."""
        return number

    def note(self, text: str) -> None:
        self.notes[text] = None

    def value(self, value: Value) -> Held:
        held = self._held.get(value)
        return held if held is not None else Opaque(Kind((), ""), LOST, self.fresh())

    def number(self, value: Value) -> Number:
        """A value as a number; raises ValueError if it cannot be one."""
        held = self.value(value)
        if isinstance(held, Opaque):
            held = self._held[value] = made_number(held)
        if not isinstance(held, Number):
            raise ValueError(f"{value.name} is no number")
        return held

    def body(self, operation: Operation, given: Sequence[Held], place: Place) -> list[Held]:
        block = operation.regions[0].blocks[0]
        self._give(block.arguments, given)
        return self._ended(self._block(block, place))

    def where(self, condition: Number, side: bool) -> AbstractContextManager[None]:
        """Within it runs what is done where a condition, whose value differs or is unknown, holds or does not."""
        return nullcontext()

    def _sides(self, condition: Number, sides: Iterable[_Side]) -> Iterator[_Side]:
        for side, holds in zip(sides, (True, False), strict=False):
            with self.where(condition, holds):
                yield side

    def function(self, function: Operation, given: Sequence[Held], place: Place) -> list[Held]:
        """Run a function; returns what it returns."""
        blocks = function.regions[0].blocks if function.regions else ()
        if not blocks:
            return []
        self._give(blocks[0].arguments, given)
        return self._from(blocks[0], {block.label: block for block in blocks}, place)

    def _from(self, block: Block, blocks: Mapping[str, Block], place: Place) -> list[Held]:
        """Run the blocks of a function from one on; returns the operands of its return."""
        while True:
            end = self._block(block, place)
            if end is None or not end.successors:
                return self._ended(end)
            targets = [blocks[label] for label in end.successors if label in blocks]
            values = list(end.operands)
            condition = self._decision(values.pop(0)) if end.name == "cf.cond_br" and values else None
            for target in targets:
                self._give(target.arguments, [self.value(values.pop(0)) for _ in target.arguments if values])
            if not targets:
                return []
            if condition is None or condition.value is not None:
                block = targets[-1 if condition is not None and not condition.value else 0]
                continue
            perhaps = self._perhaps(place, condition.sources)
            found = [self._from(target, blocks, perhaps) for target in self._sides(condition, targets)]
            return [Opaque(kind_of_held(one), next(iter(condition.sources), LOST), self.fresh()) for one in found[0]]

    def _decision(self, value: Value) -> Number:
        try:
            return self.number(value)
        except ValueError:
            return made_number(Opaque(Kind((), "i1"), LOST, self.fresh()))

    def _block(self, block: Block, place: Place) -> Operation | None:
        """Run the operations of a block; returns its last one."""
        operation = None
        for operation in block.operations:
            self.work += 1
            if self.work > self.most_work:
                raise TooMuch(f"the evaluation ended after {self.most_work} operations")
            try:
                self._run(operation, place)
            except (ValueError, IndexError, KeyError, TypeError, OverflowError, AttributeError, MemoryError):
                # What another version writes, or a damaged text: its results are unknown.
                self._lose(operation)
        return operation

    def _run(self, operation: Operation, place: Place) -> None:
        rule, name = self.rules.get(operation.name), operation.name
        if rule is not None:
            kind = kinds_of_results(operation)[0]
            if not kind.bits:
                self._lose(operation)
                return
            found = rule(operation, [self.number(value) for value in operation.operands], kind)
            self.work += found.known.size >> 10
            self._held[operation.results[0]] = found
        elif name in ACCESSES:
            self._access(operation, place)
        elif name in _CONTROL:
            getattr(self, _CONTROL[name])(operation, place)
        elif operation.regions:
            self._regions(operation, place)
        else:
            self._lose(operation)

    def _lose(self, operation: Operation, source: Source | None = None) -> None:
        """Leave the results of an operation unknown."""
        if operation.results:
            source = source or Source("operation", f"{operation.name}, line {operation.first_line}")
            for result, kind in zip(operation.results, kinds_of_results(operation), strict=True):
                self._held[result] = Opaque(kind, source, self.fresh())

    def _give(self, values: Sequence[Value], held: Sequence[Held]) -> None:
        self._held.update(zip(values, held, strict=False))

    def _ended(self, end: Operation | None) -> list[Held]:
        return [self.value(value) for value in end.operands] if end is not None else []

    def _perhaps(self, place: Place, sources: frozenset[Source]) -> Place:
        return self._deeper(place.often((0, 1), sources))

    def _deeper(self, place: Place) -> Place:
        if place.depth >= _DEEPEST:
            raise TooMuch(f"calls and branches more than {_DEEPEST} deep were not evaluated")
        return replace(place, depth=place.depth + 1)

    def _access(self, operation: Operation, place: Place) -> None:
        source = Source("data", f"data of {operation.name}, line {operation.first_line}")
        self._lose(operation, source)
        try:
            found = described(operation, self.number, self._held)
        except (ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
            self.unread[operation.first_line] = str(error)
            return
        self.work += 3 + (found.addresses.known.size >> 8)
        self.executions.append(
            Execution(
                operation, found.addresses, found.mask, found.element_bits, place.times, place.share, place.sources,
                place.warps, found.is_box,
            )
        )  # fmt: skip
        if found.loaded is None or not found.loaded.bits:
            return
        contents = self.contents.get(found.addresses.argument)
        data = loaded_data(found.addresses, found.loaded.bits, source, self.fresh(), contents)
        if found.mask is not None and found.other is not None:
            data = select(found.mask, data, found.other)
        self._held[operation.results[0]] = data

    def run_if(self, operation: Operation, place: Place) -> None:
        condition = self.number(operation.operands[0])
        regions = operation.regions
        if condition.value is not None:
            taken = regions[0] if condition.value else next(iter(regions[1:]), None)
            self._give(operation.results, self._region(taken, place))
            return
        perhaps = self._perhaps(place, condition.sources)
        found = [self._region(region, perhaps) for region in self._sides(condition, regions)]
        self._lose(operation, next(iter(condition.sources), LOST))
        for number, result in enumerate(operation.results):
            sides = [side[number] for side in found if number < len(side)]
            if (chosen := either(condition, sides)) is not None:
                self._held[result] = chosen

    def _region(self, region: Region | None, place: Place) -> list[Held]:
        """Run a region of one block; returns what it yields."""
        return self._ended(self._block(region.blocks[0], place)) if region is not None and region.blocks else []

    def _regions(self, operation: Operation, place: Place) -> None:
        """Run every region of an operation once; what its blocks are given are its operands."""
        self._lose(operation)
        given = [self.value(value) for value in operation.operands]
        for region, warps in zip(operation.regions, operation.partition_warps, strict=True):
            for block in region.blocks[:1]:
                if len(block.arguments) == len(given):
                    self._give(block.arguments, given)
                self._block(block, place if warps is None else replace(place, warps=warps))

    def run_call(self, operation: Operation, place: Place) -> None:
        callee = self._functions.get(operation.symbol)
        self._lose(operation)
        if callee is None:
            return
        given = [self.value(value) for value in operation.operands]
        self._give(operation.results, self.function(callee, given, self._deeper(place)))

    def run_reduce(self, operation: Operation, place: Place) -> None:
        parts = [self.number(value) for value in operation.operands]
        axis = attribute(operation, "axis")

        def combine(both: Sequence[Number]) -> list[Number]:
            block = operation.regions[0].blocks[0]
            self._give(block.arguments, both)
            end = self._block(block, place)
            return [self.number(value) for value in end.operands] if end is not None else []

        if operation.name == "tt.scan":
            self._give(operation.results, scanned(parts, axis, "reverse = true" in operation.text, combine))
        else:
            self._give(operation.results, reduced(parts, axis, combine))

    def program_axis(self, operation: Operation) -> int:
        return "xyz".index(str(operation.attribute("axis")))

    def run_program_id(self, operation: Operation, _: Place) -> None:
        self._held[operation.results[0]] = self._programs.index(self.program_axis(operation))

    def run_num_programs(self, operation: Operation, _: Place) -> None:
        self._held[operation.results[0]] = self._programs.total(self.program_axis(operation))

    def run_split(self, operation: Operation, _: Place) -> None:
        whole = self.number(operation.operands[0]).full()
        for number, result in enumerate(operation.results):
            self._held[result] = whole.shaped(lambda array: array[..., number], whole.shape[:-1])  # noqa: B023

    def run_descriptor(self, operation: Operation, _: Place) -> None:
        self._lose(operation)
        made = made_descriptor(operation, self.number, self._held)
        if made is not None:
            self._held[operation.results[0]] = made

    def run_tensormap(self, operation: Operation, _: Place) -> None:
        # It is written to the memory of its first operand, which the descriptor is made of.
        self._held[operation.operands[0]] = tensormap(operation, self.number)

    def run_for(self, operation: Operation, place: Place) -> None:
        self._lose(operation)
        self._give(operation.results, _LoopRun(self, Loop.of(self, operation, place)).run())

    def run_while(self, operation: Operation, place: Place) -> None:
        before, after = (region.blocks[0] for region in operation.regions[:2])
        carried = [self.value(value) for value in operation.operands]
        unknown = Source("data", f"the number of iterations of the scf.while of line {operation.first_line}")
        executions = len(self.executions)
        for _ in range(_MOST_WHILE_TURNS):
            self._give(before.arguments, carried)
            condition, *handed = self._ended(self._block(before, place)) or [Opaque(Kind((), ""), LOST, 0)]
            holds = condition.value if isinstance(condition, Number) else None
            if holds == 0:
                self._give(operation.results, handed)
                return
            if holds is None:
                break
            self._give(after.arguments, handed)
            carried = self._ended(self._block(after, place))
        # One turn stands for all, whose number is not known.
        del self.executions[executions:]
        self._give(before.arguments, [Opaque(kind_of_held(value), unknown, self.fresh()) for value in carried])
        place = place.often((0, FAR), frozenset({unknown}))
        _, *handed = self._ended(self._block(before, place)) or [Opaque(Kind((), ""), LOST, 0)]
        self._give(after.arguments, handed)
        self._block(after, place)
        self._lose(operation, unknown)


_CONTROL: dict[str, str] = {
    "scf.for": "run_for",
    "scf.while": "run_while",
    "scf.if": "run_if",
    "tt.call": "run_call",
    "func.call": "run_call",
    "tt.reduce": "run_reduce",
    "tt.scan": "run_reduce",
    "tt.get_program_id": "run_program_id",
    "tt.get_num_programs": "run_num_programs",
    "tt.split": "run_split",
    "tt.make_tensor_descriptor": "run_descriptor",
    "ttng.reinterpret_tensor_descriptor": "run_descriptor",
    "ttng.tensormap_create": "run_tensormap",
}
"""Operation → the method that runs it: what it does to control, programs or descriptors."""
