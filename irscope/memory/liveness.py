"""Where the buffers of a function are live, in the compiler's own program order.

Operations are numbered in post-order, so that one with regions comes after those inside. The rule for a value is that
of MLIR's `Liveness`, block by block; a buffer lives while any value that may stand for it does. Source: Triton's
lib/Analysis/Allocation.cpp and Alias.cpp; MLIR's lib/Analysis/Liveness.cpp.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from irscope.ir.mlir.reader import Operation, Region, Value
from irscope.ir.reach import reached


@dataclass(eq=False, slots=True)
class _Block:
    operations: tuple[Operation, ...]
    arguments: tuple[Value, ...]
    around: Operation
    """The operation whose region it is in."""
    siblings: dict[str, _Block]
    successors: list[_Block] = field(default_factory=list["_Block"])
    predecessors: list[_Block] = field(default_factory=list["_Block"])


class Liveness:
    """The program order of one function, and where its values are live."""

    def __init__(self, function: Operation) -> None:
        self._function = function
        self._numbers: dict[int, int] = {}
        self._homes: dict[int, tuple[_Block, int]] = {}
        """id of an operation → its block, and its place there."""
        self._users: dict[Value, list[Operation]] = {}
        self._defined: dict[Value, _Block] = {}
        self._blocks: list[_Block] = []
        self._number(function)
        for block in self._blocks:
            self._connect(block)
        self._next = self._flows()

    def _number(self, function: Operation) -> None:
        waiting: list[tuple[Operation, bool]] = [(function, False)]
        count = 0
        while waiting:
            operation, done = waiting.pop()
            if done:
                # The partitions stand in an operation of their own, which is not printed.
                count += operation.opcode == "warp_specialize"
                self._numbers[id(operation)] = count
                count += 1
                continue
            for value in operation.operands:
                self._users.setdefault(value, []).append(operation)
            waiting.append((operation, True))
            inner: list[Operation] = []
            for region in operation.regions:
                for block in self._blocks_of(region, operation):
                    inner.extend(block.operations)
            waiting.extend((one, False) for one in reversed(inner))

    def _blocks_of(self, region: Region, around: Operation) -> Iterator[_Block]:
        siblings: dict[str, _Block] = {}
        for read in region.blocks:
            block = _Block(read.operations, read.arguments, around, siblings)
            siblings[read.label] = block
            self._blocks.append(block)
            self._defined.update(dict.fromkeys(read.arguments, block))
            for place, operation in enumerate(read.operations):
                self._homes[id(operation)] = block, place
                self._defined.update(dict.fromkeys(operation.results, block))
            yield block

    @staticmethod
    def _connect(block: _Block) -> None:
        for label in block.operations[-1].successors if block.operations else ():
            if (successor := block.siblings.get(label)) is not None:
                block.successors.append(successor)
                successor.predecessors.append(block)

    def _flows(self) -> dict[Value, list[Value]]:
        """Value → the values that may stand for the same memory next."""
        found: dict[Value, list[Value]] = {}

        def add(source: Value, target: Value) -> None:
            found.setdefault(source, []).append(target)

        for block in self._blocks:
            for operation in block.operations:
                is_view = operation.kind == "memory_view" or operation.name == "arith.select"
                if is_view and "memdesc<" in operation.types:
                    # Its result is its operand's memory, seen otherwise.
                    for operand in operation.operands:
                        add(operand, operation.results[0])
                for argument, first in operation.carried:
                    add(first, argument)
                for label, values in operation.branches:
                    target = block.siblings.get(label)
                    for value, argument in zip(values, target.arguments if target else (), strict=False):
                        add(value, argument)
            if block.around.kind == "specialization":
                for operand, argument in zip(block.around.operands, block.arguments, strict=False):
                    add(operand, argument)
        return found

    @property
    def steps(self) -> int:
        return self._numbers[id(self._function)] + 1

    def number_of(self, operation: Operation) -> int:
        """The 0-based place of an operation in program order."""
        return self._numbers[id(operation)]

    def buffer_interval(self, value: Value) -> tuple[int, int]:
        """The half-open interval in which the memory that a value names is live, through everything that aliases it."""
        names = reached([value], lambda one: self._next.get(one, ()))
        parts = [self._interval(one) for one in names if one == value or one in self._users or self._is_result(one)]
        return min(start for start, _ in parts), max(end for _, end in parts)

    def _is_result(self, value: Value) -> bool:
        return value not in self._defined[value].arguments

    def _interval(self, value: Value) -> tuple[int, int]:
        """The interval of one value: from its first to its last operation in each block that it reaches."""
        home = self._defined[value]
        users = self._users.get(value, [])
        places = {id(home): [place] for place, one in enumerate(home.operations) if value in one.results}
        for user in users:
            for block, place in self._ancestors(user):
                places.setdefault(id(block), []).append(place)
        entered = self._entered(home, users)
        start, end = self.steps, 0
        for block in reached(
            {home, *(self._homes[id(user)][0] for user in users)},
            lambda block: [one for one in block.successors if id(one) in entered],
        ):
            own = places.get(id(block), [])
            first = 0 if id(block) in entered or not self._is_result(value) else min(own)
            leaves = any(id(one) in entered for one in block.successors)
            last = len(block.operations) - 1 if leaves else max([first, *own])
            if block.operations:
                start = min(start, self.number_of(block.operations[first]))
                end = max(end, self.number_of(block.operations[last]) + 1)
        return start, end

    def _ancestors(self, operation: Operation) -> Iterator[tuple[_Block, int]]:
        """(block, place in it) of an operation, and of each one around it, up to the function."""
        while (home := self._homes.get(id(operation))) is not None:
            yield home
            operation = home[0].around

    def _entered(self, home: _Block, users: Iterable[Operation]) -> set[int]:
        inside = {id(home), *(id(block) for block, _ in self._ancestors(home.around))}
        starts = {block for user in users for block, _ in self._ancestors(user) if id(block) not in inside}
        found = reached(starts, lambda block: [one for one in block.predecessors if id(one) not in inside])
        return {id(block) for block in found}

    def loops(self) -> list[tuple[int, int]]:
        """The half-open interval of each loop: a block that branches to itself or to one before it."""
        places = {id(block): place for place, block in enumerate(self._blocks)}
        found: dict[int, int] = {}
        for place, block in enumerate(self._blocks):
            for successor in block.successors:
                if places[id(successor)] <= place and successor.operations:
                    start = self.number_of(successor.operations[0])
                    end = self.number_of(block.operations[-1]) + 1
                    found[start] = max(found.get(start, 0), end)
        return sorted(found.items())
