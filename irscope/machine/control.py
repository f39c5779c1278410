"""The interpreter: operations prepared once, values by program, blocks run for all programs or for groups of them."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, cast

import numpy as np

from irscope.errors import LimitExceeded, NeverEnds, NotRun, WaitsForOthers
from irscope.ir.mlir.attributes import AttributeValue
from irscope.ir.mlir.model import Block, MlirModule, Operation, Region, Value
from irscope.ir.mlir.types import Type
from irscope.machine.arithmetic import Arithmetic
from irscope.machine.memory import GlobalMemory
from irscope.machine.partitions import Partitions
from irscope.machine.shared import SharedMemory
from irscope.machine.values import Array, Descriptor, Held, MemoryView, bits_of, dtype_of, full, merge, take

Executor = Callable[["Machine", "Step", "Bindings"], Sequence[Held]]
"""Executes an operation for the programs of a frame; returns its results."""


class Bindings:
    """The values of programs that run together, in one function or one region of it."""

    __slots__ = ("count", "index", "parent", "rows", "values")

    def __init__(self, rows: Array, parent: Bindings | None = None, index: Array | None = None) -> None:
        """`rows`: the places of its programs in the launch's part that runs; `index`: their places in `parent`."""
        self.rows = rows
        self.count = len(rows)
        self.parent = parent
        self.index = index
        self.values: dict[Value, Held] = {}

    def part(self, index: Array) -> Bindings:
        """A frame for some of the programs, which sees the values of this one."""
        return Bindings(self.rows[index], self, index)

    def held(self, value: Value) -> Held:
        """The contents of a value; raises NotRun if nothing defined it."""
        found = self.values.get(value)
        if found is not None:
            return found
        if self.parent is None:
            raise NotRun(f"{value.name} is used, but no executed operation defines it")
        found = self.parent.held(value)
        if self.index is not None:
            found = take(found, self.index)
        self.values[value] = found
        return found

    def array(self, value: Value) -> Array:
        return cast(Array, self.held(value))

    def assign(self, values: Iterable[Value], held: Iterable[Held]) -> None:
        self.values.update(zip(values, held, strict=True))


class Step:
    """One operation, ready to be executed: what its text states is read once."""

    __slots__ = (
        "_attributes", "_groups", "_operand_types", "drops", "execute", "is_of_integers", "opcode", "operands",
        "operation", "results", "types",
    )  # fmt: skip

    def __init__(self, operation: Operation, execute: Executor | None) -> None:
        self.operation = operation
        self.opcode = operation.opcode
        self.execute = execute
        """None for one that ends a block."""
        self.operands = operation.operands
        self.results = operation.results
        self.types = operation.result_types
        self.drops: tuple[Value, ...] = ()
        """The values without a later use."""
        self.is_of_integers = all(map(bits_of, self.types))
        """Whether its results are integers or pointers."""
        self._operand_types: tuple[Type, ...] | None = None
        self._attributes: dict[str, AttributeValue | None] = {}
        self._groups: dict[str, tuple[Value, ...]] = {}

    @property
    def type(self) -> Type:
        """Of its first result."""
        return self.types[0]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.types[0].shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return dtype_of(self.types[0])

    @property
    def operand_types(self) -> tuple[Type, ...]:
        if self._operand_types is None:
            self._operand_types = self.operation.operand_types
        return self._operand_types

    def attribute(self, name: str) -> AttributeValue | None:
        """The value of an attribute; None if the operation has none such."""
        if name not in self._attributes:
            self._attributes[name] = self.operation.attribute(name)
        return self._attributes[name]

    def number(self, name: str, default: int | None = None) -> int:
        """An integer attribute; raises NotRun if there is none, and no default."""
        value = self.attribute(name)
        if isinstance(value, int):
            return value
        if default is None:
            raise self.not_run(f"its attribute {name!r} is not read")
        return default

    def numbers(self, name: str) -> tuple[int, ...]:
        value = self.attribute(name)
        listed = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else ()
        return tuple(int(one) for one in listed)

    def group(self, name: str) -> tuple[Value, ...]:
        """The operands of a name of the operation table."""
        if name not in self._groups:
            self._groups[name] = self.operation.operand_group(name)
        return self._groups[name]

    def arrays(self, frame: Bindings, name: str) -> tuple[Array, ...]:
        return tuple(frame.array(value) for value in self.group(name))

    def dtype_of(self, name: str) -> np.dtype[Any]:
        return dtype_of(self.operand_types[self.operands.index(self.group(name)[0])])

    def array(self, frame: Bindings, name: str) -> Array:
        """The array of an operand; raises NotRun if the operation has none such."""
        found = self.optional(frame, name)
        if found is None:
            raise self.not_run(f"its operand {name!r} is missing")
        return found

    def optional(self, frame: Bindings, name: str) -> Array | None:
        group = self.group(name)
        return frame.array(group[0]) if group else None

    def view(self, frame: Bindings, name: str) -> MemoryView:
        found = frame.held(self.group(name)[0]) if self.group(name) else None
        if not isinstance(found, MemoryView):
            raise self.not_run(f"its operand {name!r} is not a view of shared or tensor memory")
        return found

    def descriptor(self, frame: Bindings, name: str) -> Descriptor:
        found = frame.held(self.group(name)[0]) if self.group(name) else None
        if not isinstance(found, Descriptor):
            raise self.not_run(f"its operand {name!r} is not a tensor descriptor")
        return found

    def full(self, frame: Bindings, place: int, programs: int = 1) -> Array:
        """An operand with every axis at its size."""
        return full(frame.array(self.operands[place]), self.operand_types[place].shape, programs)

    def not_run(self, why: str) -> NotRun:
        return NotRun(f"{self.operation.name}, line {self.operation.first_line}: {why}")


def pure(function: Callable[..., Array]) -> Executor:
    """The executor of an operation whose result is a function of its operands' elements."""

    def execute(machine: Machine, step: Step, frame: Bindings) -> Sequence[Held]:
        return (function(*[frame.array(value) for value in step.operands]),)

    return execute


def _steps_of(block: Block, executors: Mapping[str, Executor], keeps: bool) -> tuple[Step, ...]:
    """The operations of a block, prepared. `keeps`: other blocks use its values, so that none is dropped."""
    steps = tuple(Step(one, executors.get(one.opcode)) for one in block.operations)
    if keeps:
        return steps
    last: dict[Value, int] = {}
    for place, step in enumerate(steps):
        last.update(dict.fromkeys(step.results, place))
        last.update((value, place) for one in step.operation.walk() for value in one.operands if value in last)
    for value, place in last.items():
        steps[place].drops += (value,)
    return steps


_FAULTS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What NumPy or irscope itself raises for operands that it does not expect."""
Observer = Callable[["Machine", Step, Bindings, Sequence[Held]], None]
"""Is called with each operation that was executed, the programs that executed it, and its results."""


_LEAST_WORK = 1024
"""As how many elements an operation counts beside those that it computes: a scalar one takes time, too."""


class ElementBudget:
    """How many elements a run may still compute; an operation, however small, counts as some."""

    def __init__(self, elements: int) -> None:
        self.elements = elements

    def spend(self, steps: Sequence[Step], programs: int) -> None:
        """Take what the operations of a block compute; raises LimitExceeded if nothing is left."""
        self.elements -= _LEAST_WORK * len(steps)
        self.elements -= programs * sum(prod(one.shape) for step in steps for one in step.types)
        if self.elements < 0:
            raise LimitExceeded("not run: more work than the limit of this run")


class Machine:
    """Executes a kernel for the programs of a part of a launch."""

    def __init__(
        self,
        module: MlirModule,
        executors: Mapping[str, Executor],
        memory: GlobalMemory,
        programs: Array,
        grid: tuple[int, int, int],
        observer: Observer | None = None,
        lands_late: bool = True,
        arithmetic: Arithmetic | None = None,
        budget: ElementBudget | None = None,
    ) -> None:
        """`programs`: the numbers of the programs, the first axis of the grid fastest; `lands_late`: of copies."""
        self.arithmetic = arithmetic or Arithmetic()
        self.module = module
        self.memory = memory
        self.shared = SharedMemory(len(programs), lands_late, self.arithmetic)
        self.grid = grid
        self.partitions = Partitions()
        self.partition_threads: tuple[int, ...] = ()
        """Of each partition of the specialised warps that run."""
        self.named_barriers: dict[int, tuple[Array, Array]] = {}
        """Number → by program: the threads that arrived, and how often all did."""
        self.tensormaps: dict[int, tuple[Array, tuple[Array, ...], tuple[Array, ...]]] = {}
        """Address → what the tensor map there says: base, sizes and strides, the strides in bytes."""
        self.printed: list[str] = []
        self.turns: tuple[Partitions, int] | None = None
        """Of the programs that run with this one, and its number among them."""
        self.is_alone = False
        """Whether programs of the launch are left out."""
        self._spun: dict[int, tuple[int, Sequence[Held]]] = {}
        """Loop → how often memory had changed before its last iteration, and what was carried into that."""
        self.program_ids = (programs % grid[0], programs // grid[0] % grid[1], programs // (grid[0] * grid[1]))
        self._budget = budget
        self._executors = executors
        self._observer = observer
        self._steps: dict[int, tuple[Step, ...]] = {}
        self.functions = {one.symbol: one for one in module.walk() if one.kind == "function"}
        self._used: set[Value] | None = None

    def program_at(self, frame: Bindings, place: int) -> tuple[int, int, int]:
        return self.program_of(frame.rows[place])

    def program_of(self, row: int) -> tuple[int, int, int]:
        """The program at a place of the launch's part."""
        x, y, z = (int(axis[row]) for axis in self.program_ids)
        return x, y, z

    def is_used(self, value: Value) -> bool:
        if self._used is None:
            self._used = {value for one in self.module.walk() for value in one.operands}
        return value in self._used

    def run(self, arguments: Sequence[Held]) -> None:
        kernel = self.module.kernel
        if kernel is None:
            raise NotRun("the module has no function")
        with np.errstate(all="ignore"):
            self.call(kernel, arguments, np.arange(len(self.program_ids[0])))

    def spin(self, step: Step, carried: Sequence[Held]) -> None:
        """Take an iteration of a loop that may wait for others; these go on first. Raises NeverEnds, WaitsForOthers."""
        changes, before = self._spun.get(id(step), (-1, ()))
        is_idle = changes == self.memory.changes and all(
            isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and np.array_equal(one, other)
            for one, other in zip(carried, before, strict=True)
        )
        self._spun[id(step)] = (self.memory.changes, carried)
        own = self.partitions.number
        if own is not None:
            goes_on = self.partitions.pause(own, is_idle)
        elif self.turns is not None:
            goes_on = self.turns[0].pause(self.turns[1], is_idle)
        else:
            goes_on = not is_idle
        if not goes_on:
            what = f"{step.operation.name}, line {step.operation.first_line}"
            if self.is_alone or own is not None:
                raise WaitsForOthers(f"{what}: a program waits for programs that are not executed with it")
            raise NeverEnds(f"{what}: the wait never completes")

    # ── functions ─────────────────────────────────────────────────────────────────────────────────────────────

    def function(self, symbol: str) -> Operation:
        """The function of a name; raises NotRun if the module has none."""
        found = self.functions.get(symbol)
        if found is None or not found.regions:
            raise NotRun(f"the function {symbol!r} has no body in this module")
        return found

    def call(self, function: Operation, arguments: Sequence[Held], rows: Array) -> Sequence[Held]:
        return self.region(function.regions[0], Bindings(rows), arguments)

    def region(self, region: Region, frame: Bindings, arguments: Sequence[Held]) -> Sequence[Held]:
        """Run a region in a frame; returns what it yields or returns."""
        blocks = region.blocks
        if len(blocks) > 1:
            return _Blocks(self, blocks, frame).run(arguments)
        if not blocks:
            return ()
        return self.yields(self.block(blocks[0], frame, arguments), frame)

    def yields(self, end: Step | None, frame: Bindings) -> Sequence[Held]:
        """The operands of the operation that ended a block."""
        return [frame.held(value) for value in end.operands] if end is not None else ()

    def steps_of(self, block: Block, keeps: bool = False) -> tuple[Step, ...]:
        """The operations of a block, prepared. `keeps`: of values that nothing uses after it none is dropped."""
        steps = self._steps.get(id(block))
        if steps is None:
            steps = self._steps[id(block)] = _steps_of(block, self._executors, keeps)
        return steps

    def block(self, block: Block, frame: Bindings, arguments: Sequence[Held], keeps: bool = False) -> Step | None:
        """Run a block; returns the operation that ends it."""
        frame.assign(block.arguments, arguments)
        steps = self.steps_of(block, keeps)
        if self._budget is not None:
            self._budget.spend(steps, frame.count)
        for step in steps:
            if step.operation.kind in ("yield", "return", "branch"):
                return step
            if step.execute is None:
                raise step.not_run("irscope does not execute this operation")
            try:
                results = step.execute(self, step, frame)
            except _FAULTS as error:
                raise step.not_run(f"irscope could not execute it ({type(error).__name__}: {error})") from error
            frame.assign(step.results, results)
            if self._observer is not None:
                self._observer(self, step, frame, results)
            for value in step.drops:
                frame.values.pop(value, None)
        return None

    # ── structured control flow ───────────────────────────────────────────────────────────────────────────────

    def choose(self, frame: Bindings, sides: Iterable[tuple[Array, Region]]) -> Sequence[Held]:
        """Run each region for the programs for which it is chosen; returns what they yield."""
        found: list[tuple[Sequence[Held], Array]] = []
        for holds, side in sides:
            if holds.all():
                return self.region(side, frame, ())
            if holds.any():
                index = np.flatnonzero(holds)
                found.append((self.region(side, frame.part(index), ()), index))
        places = range(len(found[0][0]) if found else 0)
        return [merge([(values[place], index) for values, index in found], frame.count) for place in places]


class _Blocks:
    """A region of several blocks: each runs for all programs that wait for it, the first in the text first."""

    def __init__(self, machine: Machine, blocks: Sequence[Block], frame: Bindings) -> None:
        self.machine, self.blocks, self.frame = machine, blocks, frame
        self.places = {block.label: place for place, block in enumerate(blocks)}
        self.waiting: dict[int, list[tuple[Array, Sequence[Held]]]] = {}
        self.ended: list[tuple[Sequence[Held], Array]] = []

    def run(self, arguments: Sequence[Held]) -> Sequence[Held]:
        """Run from the first block on; returns what the region yields or returns."""
        self.waiting[0] = [(np.arange(self.frame.count), arguments)]
        for _ in range(self.machine.arithmetic.most_iterations):
            if not self.waiting:
                break
            self._run(min(self.waiting))
        else:
            raise NeverEnds(f"no end after {self.machine.arithmetic.most_iterations} blocks")
        places = range(len(self.ended[0][0]) if self.ended else 0)
        return [merge([(values[place], index) for values, index in self.ended], self.frame.count) for place in places]

    def _run(self, place: int) -> None:
        groups = self.waiting.pop(place)
        index = np.concatenate([own for own, _ in groups])
        # Each group's places within the merged one.
        ends = np.cumsum([len(own) for own, _ in groups])
        spans = [np.arange(end - len(own), end) for (own, _), end in zip(groups, ends, strict=True)]
        count = len(groups[0][1])
        given = [
            merge([(values[at], span) for (_, values), span in zip(groups, spans, strict=True)], len(index))
            for at in range(count)
        ]
        frame = self.frame.part(index)
        end = self.machine.block(self.blocks[place], frame, given, keeps=True)
        if end is None or end.operation.kind != "branch":
            self.ended.append((self.machine.yields(end, frame), index))
            return
        self._store(self.blocks[place], frame, index)
        self._branch(end, frame, index)

    def _store(self, block: Block, frame: Bindings, index: Array) -> None:
        """Other blocks use what this one defined."""
        whole = self.frame.values
        for value in (*block.arguments, *(one for operation in block.operations for one in operation.results)):
            if not self.machine.is_used(value):
                continue
            others = np.setdiff1d(np.arange(self.frame.count), index)
            parts = [(frame.values[value], index)]
            if len(others) and value in whole:
                parts.insert(0, (take(whole[value], others), others))
            whole[value] = merge(parts, self.frame.count)

    def _branch(self, end: Step, frame: Bindings, index: Array) -> None:
        branches = end.operation.branches
        taken = [np.ones(frame.count, np.bool_)]
        if len(branches) > 1:
            if end.operation.opcode != "cf.cond_br":
                raise end.not_run("irscope does not execute this branch")
            holds = np.broadcast_to(frame.array(end.operands[0]), frame.count)
            taken = [holds, ~holds]
        for (label, passed), goes in zip(branches, taken, strict=True):
            chosen = np.flatnonzero(goes)
            if len(chosen):
                values = [take(frame.held(value), chosen) for value in passed]
                self.waiting.setdefault(self.places[label], []).append((index[chosen], values))


def may_spin(loop: Operation) -> bool:
    """Whether a loop without a bound reads memory that other programs write."""
    return len(loop.regions) > 1 and any(map(touches_others, loop.walk()))


def touches_others(operation: Operation) -> bool:
    """Whether an operation reads what other programs write while it runs: it is atomic, or volatile."""
    info = operation.info
    is_volatile = operation.attribute_texts.get("isVolatile") == "true"
    return operation.kind == "atomic" or (is_volatile and info is not None and info.has_effect("reads", "global"))
