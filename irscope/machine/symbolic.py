"""The machine on values of which some are not known, for one program or for many at once.

Scalars that depend on the program alone are known for every one of them, so that branches and trip counts that differ
between programs are exact. Tensors of integers are the machine's arrays, or a `Number` where something of them is not
known; floats, and what cannot be computed, are opaque. An access to global memory is noted, with its addresses, in
place of being made.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from math import prod
from typing import TypeVar, cast

import numpy as np

from irscope.errors import MissingTool, NotRun
from irscope.ir.mlir.model import Block, MlirModule, Operation, Region, Value
from irscope.ir.mlir.types import Type
from irscope.machine.control import Bindings, Executor, Machine, Step
from irscope.machine.launch import EXECUTORS
from irscope.machine.noted import (
    ACCESSES,
    LOST,
    MOST_ELEMENTS,
    NONE,
    AccessExecution,
    Held,
    NotedMemory,
    Opaque,
    Place,
)
from irscope.machine.numbers import RULES, Integers, Number, Source, as_array, as_number, select
from irscope.machine.programs import Programs, Weight
from irscope.machine.values import Array, Descriptor, bits_of
from irscope.machine.values import Held as Concrete

_Side = TypeVar("_Side")


_PREDICATED = ("tc_gen5_mma", "tc_gen5_mma_scaled")
"""Opcodes of dots of tensor memory, which a predicate may switch off."""


def predicate_of(operation: Operation) -> Value | None:
    """The operand that says whether a dot of tensor memory is done; None of other operations, or if there is none."""
    return operation.operand("pred") if operation.opcode in _PREDICATED else None


def _is_undefined(step: Step, operands: Sequence[Array | Number]) -> bool:
    """Whether it divides by zero, which gives anything."""
    return step.opcode in _DIVISIONS and isinstance(operands[1], np.ndarray) and not operands[1].all()


_DIVISIONS = tuple(name for name in RULES if name.startswith(("arith.div", "arith.ceildiv", "arith.rem")))
_STORED = ("value", "val", "cmp", "src", "falseVal")
"""Operands of an access that may be what is stored, of which nothing is asked."""
_OBJECTS = (
    "make_tensor_descriptor", "reinterpret_tensor_descriptor", "tensormap_create", "global_scratch_alloc",
    "make_tensor_ptr", "advance",
)  # fmt: skip
_SHAPES = (
    "arith.constant", "make_range", "splat", "unsplat", "expand_dims", "broadcast", "reshape", "trans", "join", "cat",
    "split", "convert_layout", "set_auto_layout", "ptr_to_int", "int_to_ptr", "reduce", "scan",
)  # fmt: skip
"""Opcodes that the machine executes on numbers as on arrays."""


_DEEPEST = 24
"""Calls and branches within one another."""


_FAULTS = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)


class TooMuch(Exception):
    """A bound of the evaluation's work is reached."""


class _Values(Bindings):
    """The values of a run; what nothing defined is opaque."""

    def __init__(self, runner: Interpreter) -> None:
        super().__init__(np.zeros(1, np.int64))
        self._runner = runner

    def held(self, value: Value) -> Concrete:
        held = self.values.get(value)
        if held is not None:
            return held
        return cast(Concrete, self._runner.opaque(self._runner.module.type_of(value), LOST))


_Lost = tuple[Source, tuple[Type, ...]]


@lru_cache(maxsize=8)
def _prepared(module: MlirModule) -> tuple[dict[int, tuple[Step, ...]], dict[Operation, _Lost]]:
    """What all evaluations of a module share: its operations, prepared, and what their results are if lost."""
    return {}, {}


class Interpreter(Machine):
    """Runs a kernel for some programs; what is unknown of them is held as such."""

    most_work = 100_000
    """Operations of one evaluation, an access as four; a thousand elements count as one more."""

    def __init__(self, module: MlirModule, arguments: Mapping[Value, Held], programs: Programs) -> None:
        super().__init__(module, EXECUTORS, NotedMemory(), np.zeros(1, np.int64), programs.grid or (1, 1, 1))
        self.programs = programs
        self.weight = Weight.once(programs.count)
        self.iterations: tuple[tuple[int, int], ...] = ()
        self.visits: list[tuple[Operation, Weight]] = []
        self.noted = cast(NotedMemory, self.memory)
        self.notes: dict[str, None] = {}
        self.unread: dict[int, str] = {}
        self.frame: Bindings = _Values(self)
        self._steps, self._lost = _prepared(module)
        self._give(arguments.keys(), arguments.values())

    @property
    def executions(self) -> list[AccessExecution]:
        return self.noted.executions

    def mark(self) -> tuple[int, int]:
        return len(self.visits), len(self.executions)

    def forget(self, mark: tuple[int, int]) -> None:
        """Drop what was noted since."""
        del self.visits[mark[0] :], self.executions[mark[1] :]

    def note(self, text: str) -> None:
        self.notes[text] = None

    # Bindings

    def held(self, value: Value) -> Held:
        """A value as it is held, integers that are known as an array."""
        return cast(Held, self.frame.held(value))

    def value(self, value: Value) -> Held:
        held = self.held(value)
        return as_number(held) if isinstance(held, np.ndarray) else held

    def integers(self, value: Value) -> Array | Number:
        """A value's integers, an array or a number; raises ValueError if it cannot be one."""
        held = self.held(value)
        if isinstance(held, Opaque):
            held = held.number()
            self._give((value,), (held,))
        if not isinstance(held, (np.ndarray, Number)):
            raise ValueError(f"{value.name} is not a number")
        return held

    def number(self, value: Value) -> Number:
        """A value as a number; raises ValueError if it cannot be one."""
        return as_number(self.integers(value))

    def _give(self, values: Iterable[Value], held: Iterable[Held]) -> None:
        rows = zip(values, held, strict=False)
        self.frame.values.update(
            (value, cast(Concrete, as_array(one) if isinstance(one, Number) else one)) for value, one in rows
        )

    def opaque(self, kind: Type, source: Source) -> Opaque:
        """Something of which nothing is known."""
        return Opaque(kind, source, self.noted.fresh(), self.frame.count)

    def lose(self, operation: Operation, source: Source | None = None) -> None:
        if not operation.results:
            return
        known = self._lost.get(operation)
        if known is None:
            own = Source("operation", f"{operation.name}, line {operation.first_line}")
            known = self._lost[operation] = own, operation.result_types
        self._give(operation.results, [self.opaque(kind, source or known[0]) for kind in known[1]])

    # Control

    def body(self, operation: Operation, given: Sequence[Held], place: Place) -> list[Held]:
        block = operation.regions[0].blocks[0]
        self._give(block.arguments, given)
        return self._ended(self._block(block, place))

    @contextmanager
    def weighted(self, weight: Weight) -> Generator[None]:
        """Within it runs what each program does so often."""
        before, self.weight = self.weight, weight
        try:
            yield
        finally:
            self.weight = before

    def _sides(self, condition: Number, sides: Iterable[_Side]) -> Iterator[_Side]:
        """What is done where a condition, whose value differs or is unknown, holds, and where it does not."""
        values = self.programs.values(condition)
        for side, holds in zip(sides, (True, False), strict=False):
            weight = self.weight
            weight = weight.perhaps(condition.sources) if values is None else weight.where((values != 0) == holds)
            with self.weighted(weight):
                yield side

    def run_function(self, function: Operation, given: Sequence[Held], place: Place) -> list[Held]:
        blocks = function.regions[0].blocks if function.regions else ()
        if not blocks:
            return []
        self._give(blocks[0].arguments, given)
        return self._from(blocks[0], {block.label: block for block in blocks}, place)

    def _from(self, block: Block, blocks: Mapping[str, Block], place: Place) -> list[Held]:
        """Run the blocks of a function from one on; returns the operands of its return."""
        while True:
            end = self._block(block, place)
            if end is None or not end.operation.successors:
                return self._ended(end)
            targets = [blocks[label] for label in end.operation.successors if label in blocks]
            values = list(end.operands)
            condition = self._decision(values.pop(0)) if end.operation.name == "cf.cond_br" and values else None
            for target in targets:
                self._give(target.arguments, [self.value(values.pop(0)) for _ in target.arguments if values])
            if not targets:
                return []
            if condition is None or condition.value is not None:
                block = targets[-1 if condition is not None and not condition.value else 0]
                continue
            deeper = self._deeper(place)
            found = [self._from(target, blocks, deeper) for target in self._sides(condition, targets)]
            source = next(iter(condition.sources), LOST)
            return [self.opaque(NONE, source) for _ in found[0]]

    def _decision(self, value: Value) -> Number:
        try:
            return self.number(value)
        except ValueError:
            return Opaque(Type("integer", "i1", 1), LOST, self.noted.fresh()).number()

    def _block(self, block: Block, place: Place) -> Step | None:
        """Run the operations of a block; returns its last one."""
        step = None
        for step in self.steps_of(block, keeps=True):
            self.noted.work += 1
            if self.noted.work > self.most_work:
                raise TooMuch(f"the evaluation ended after {self.most_work} operations")
            try:
                self._run(step, place)
            except (NotRun, MissingTool, *_FAULTS):
                # What another version writes, or a damaged text: its results are unknown.
                self.lose(step.operation)
        return step

    def block(self, block: Block, frame: Bindings, arguments: Sequence[Concrete], keeps: bool = False) -> Step | None:
        """Run a block that combines elements."""
        outer, self.frame = self.frame, frame
        mark = self.mark()
        try:
            self._give(block.arguments, cast("Sequence[Held]", arguments))
            return self._block(block, Place())
        finally:
            self.frame = outer
            # How often elements are combined is no matter of the launch.
            self.forget(mark)

    def yields(self, end: Step | None, frame: Bindings) -> Sequence[Concrete]:
        outer, self.frame = self.frame, frame
        try:
            return cast("list[Concrete]", [self.integers(value) for value in end.operands]) if end is not None else ()
        finally:
            self.frame = outer

    def _run(self, step: Step, place: Place) -> None:
        operation, opcode = step.operation, step.opcode
        self.visits.append((operation, self._predicated(operation)))
        if opcode in ACCESSES:
            self._access(step, place)
        elif opcode in _CONTROL:
            getattr(self, _CONTROL[opcode])(operation, place)
        elif opcode in _OBJECTS and step.execute is not None:
            self._make_integers(step)
            self._give(step.results, cast("Sequence[Held]", step.execute(self, step, self.frame)))
        elif opcode in RULES or opcode in _SHAPES:
            self._give(step.results, self.computed(step))
        elif operation.regions:
            self._regions(operation, place)
        else:
            self.lose(operation)

    def _predicated(self, operation: Operation) -> Weight:
        """How often each program does what a predicate may switch off."""
        value = predicate_of(operation)
        if value is None:
            return self.weight.perhaps(frozenset({LOST})) if operation.opcode in _PREDICATED else self.weight
        condition = self.number(value)
        holds = self.programs.values(condition)
        return self.weight.perhaps(condition.sources) if holds is None else self.weight.where(holds != 0)

    def operands(self, step: Step) -> list[Array | Number]:
        return [self.integers(value) for value in step.operands]

    def computed(self, step: Step) -> Sequence[Held]:
        """What an operation makes of integers; raises ValueError where that is not computed."""
        if not step.is_of_integers or (step.types and prod(step.shape) > MOST_ELEMENTS):
            raise ValueError("no integers")
        operands, rule = self.operands(step), RULES.get(step.opcode)
        if rule is not None and (any(isinstance(one, Number) for one in operands) or _is_undefined(step, operands)):
            found: Sequence[Held] = (rule(step, [as_number(one) for one in operands]),)
        elif step.execute is None or (step.attribute("allow_reorder") is not None and step.opcode == "reshape"):
            raise ValueError("not executed")
        else:
            frame = Bindings(self.frame.rows, self.frame)
            frame.assign(step.operands, cast("list[Concrete]", operands))
            found = cast("Sequence[Held]", step.execute(self, step, frame))
        self.noted.work += (
            sum(one.known.size if isinstance(one, Number) else cast(Array, one).size for one in found) >> 10
        )
        one = found[0]
        if isinstance(one, Number) and one.shape == (1,) and step.opcode.startswith("arith."):
            return (self._settled(step, one, operands),)
        return found

    def _settled(self, step: Step, number: Number, operands: Sequence[Array | Number]) -> Number:
        """A scalar with the values that it has in the programs in place of what is unknown of it."""
        frame = Bindings(self.frame.rows, self.frame)
        for value, operand in zip(step.operands, map(as_number, operands), strict=True):
            values = self.programs.values(operand)
            if values is None:
                return number
            frame.assign((value,), (cast(Array, as_array(Number(values, operand.bits))),))
        if _is_undefined(step, [frame.array(value) for value in step.operands]):
            return number
        self.noted.work += self.programs.count >> 13
        return self._tightened(number, as_number(cast(Executor, step.execute)(self, step, frame)[0]).known)

    def tightened(self, number: Number) -> Number:
        """A scalar with the values that it has in the programs, where these are known."""
        values = self.programs.values(number)
        return number if values is None else self._tightened(number, values)

    def _tightened(self, held: Number, values: Integers) -> Number:
        linear, named = self.programs.values(held), self.programs.named(values, held.bits)
        if named.tokens is None or linear is None or not np.array_equal(linear, values):
            return named
        base = int(held.known[0])
        return replace(held, low=int(values.min()) - base, high=int(values.max()) - base)

    def _ended(self, end: Step | None) -> list[Held]:
        return [self.value(value) for value in end.operands] if end is not None else []

    def _deeper(self, place: Place) -> Place:
        if place.depth >= _DEEPEST:
            raise TooMuch(f"calls and branches more than {_DEEPEST} deep were not evaluated")
        return replace(place, depth=place.depth + 1)

    def _access(self, step: Step, place: Place) -> None:
        source = Source("data", f"data of {step.operation.name}, line {step.operation.first_line}")
        self.lose(step.operation, source)
        self.noted.begin(step, self.frame, place.warps, self.weight, self.iterations, source)
        try:
            self._make_integers(step)
            if any(not isinstance(self.held(value), Descriptor) for value in step.group("desc")):
                raise ValueError("an unknown descriptor")
            found = ACCESSES[step.opcode](self, step, self.frame)
        except (NotRun, *_FAULTS) as error:
            self.unread[step.operation.first_line] = str(error)
            return
        self._give(step.results, cast("Sequence[Held]", found))

    def _make_integers(self, step: Step) -> None:
        """Make numbers of what decides addresses."""
        stored = [value for name in _STORED for value in step.group(name)]
        for value, kind in zip(step.operands, step.operand_types, strict=True):
            is_pointer = kind.form == "pointer" or (kind.element is not None and kind.element.form == "pointer")
            if isinstance(self.held(value), Opaque) and bits_of(kind) and (is_pointer or value not in stored):
                self.integers(value)

    def run_if(self, operation: Operation, place: Place) -> None:
        condition = self.number(operation.operands[0])
        regions = operation.regions
        if condition.value is not None:
            taken = regions[0] if condition.value else next(iter(regions[1:]), None)
            self._give(operation.results, self._region(taken, place))
            return
        deeper = self._deeper(place)
        found = [self._region(region, deeper) for region in self._sides(condition, regions)]
        self.lose(operation, next(iter(condition.sources), LOST))
        for number, result in enumerate(operation.results):
            sides = [side[number] for side in found if number < len(side)]
            if (chosen := self._either(condition, sides)) is not None:
                self._give((result,), (chosen,))

    def _either(self, condition: Number, sides: Sequence[Held]) -> Held | None:
        """What one of two branches gives; None if that is not computed."""
        if len(sides) != 2:
            return None
        one, other = sides
        if isinstance(one, Descriptor) or isinstance(other, Descriptor):
            return one if one is other else None
        if not isinstance(one, Number) or not isinstance(other, Number) or one.ndim != other.ndim:
            return None
        known = [self.programs.values(side) for side in (condition, one, other)]
        values = [row for row in known if row is not None]
        if len(values) < len(known) or one.shape != (1,):
            return select(condition, one, other)
        return self.programs.named(np.where(values[0] != 0, *values[1:]), one.bits)

    def _region(self, region: Region | None, place: Place) -> list[Held]:
        """Run a region of one block; returns what it yields."""
        return self._ended(self._block(region.blocks[0], place)) if region is not None and region.blocks else []

    def _regions(self, operation: Operation, place: Place) -> None:
        """Run every region of an operation once; what its blocks are given are its operands."""
        self.lose(operation)
        given = [self.value(value) for value in operation.operands]
        for region, warps in zip(operation.regions, operation.partition_warps, strict=True):
            for block in region.blocks[:1]:
                if len(block.arguments) == len(given):
                    self._give(block.arguments, given)
                self._block(block, place if warps is None else replace(place, warps=warps))

    def run_call(self, operation: Operation, place: Place) -> None:
        callee = self.functions.get(operation.symbol)
        self.lose(operation)
        if callee is None:
            return
        given = [self.value(value) for value in operation.operands]
        found = self.run_function(callee, given, self._deeper(place))
        types = operation.result_types
        self._give(
            operation.results,
            [
                replace(one, type=kind) if isinstance(one, Opaque) and one.type is NONE else one
                for one, kind in zip(found, types, strict=False)
            ],
        )

    def run_program(self, operation: Operation, _: Place) -> None:
        read = self.programs.index if operation.opcode == "get_program_id" else self.programs.total
        self._give(operation.results, (read("xyz".index(str(operation.attribute("axis")))),))


_CONTROL: dict[str, str] = {
    "scf.for": "run_for", "scf.while": "run_while", "scf.if": "run_if", "call": "run_call", "func.call": "run_call",
    "get_program_id": "run_program", "get_num_programs": "run_program",
}  # fmt: skip
"""Opcode → the method that runs the operation."""
