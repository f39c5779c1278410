"""Runs one program and notes its steps; of specialised warps all partitions, as far as their barriers let each run.

Scalars are evaluated with the launch's arguments, so that slots, predicates and trip counts are those of the compiled
loop, whatever the pipeliner made of it. Tensors are not evaluated.

Each partition is run by itself first, which gives its steps in its own order; then barriers decide the order of all:
the partition with the loop makes one step at a time, and before each of them all others run until they have to wait.
So at each moment as much is in flight as the barriers allow. Copies and dots arrive at their barriers at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from irscope.analysis.flow.partitions import WarpSpecialization
from irscope.analysis.in_flight.model import Doing, Log, Slot, StepKind, TrackedBuffer, kind_of_step
from irscope.ir.mlir.model import MlirModule, Operation, Value
from irscope.machine.control import Step
from irscope.machine.loops import FollowedLoop, Runner
from irscope.machine.noted import Held, Opaque, Place
from irscope.machine.numbers import bits_of, constant
from irscope.machine.programs import Programs
from irscope.machine.symbolic import TooMuch, predicate_of

_MOST_ITERATIONS = 512
_UNKNOWN_ITERATIONS = 6
"""Iterations that are followed where their number is not known."""
_SAME_DATA = ("in_thread_transpose", "arith.truncf", "arith.extf", "trans", "reshape")
_SAME_CONDITION = ("splat", "broadcast", "expand_dims", "convert_layout")
_LOOPS = ("scf.for", "scf.while")


class Follower(Runner):
    """Follows a loop of one program, or a program without a loop."""

    most_work = 200_000

    def __init__(
        self,
        module: MlirModule,
        held: Mapping[Value, Held],
        programs: Programs,
        loop: Operation | None,
        place_at: Callable[[int], str],
    ) -> None:
        super().__init__(module, held, programs)
        self.loop = loop
        self.inside = {id(one) for one in loop.walk()} if loop is not None else set[int]()
        self.log = Log(place_at)
        self.iterations: int | None = None
        self.is_done = self.is_nested = self.is_ended = False
        self.numbers: dict[int, int] = {}
        """id of an allocation -> its buffer."""
        self.views: dict[int, Slot] = {}
        """Key of a value -> what it is a view of."""
        self.made_of: dict[int, int] = {}
        """Key of a value that was made of one other alone -> the key of that."""

    def do(self, one: Doing) -> None:
        self.log.do(one)

    # Operations

    def _run(self, step: Step, place: Place) -> None:
        operation, opcode = step.operation, step.opcode
        kind = kind_of_step(operation)
        if opcode in ("local_alloc", "tmem_alloc"):
            return self._alloc(operation)
        if opcode == "memdesc_index":
            return self._index(operation)
        if operation.kind == "memory_view" or (opcode == "arith.select" and not bits_of(step.type)):
            self._use(operation)
            return self._same(operation)
        if opcode == "async_commit_group":
            keys = self._keys(operation)
            return self.do(Doing(operation, None, keys, self._result_key(operation)))
        if kind is not None and self.is_ended:
            self._use(operation)
            return self.lose(operation)
        if kind is not None:
            return self._step(operation, kind)
        if opcode != "scf.yield":
            self._use(operation)
        if opcode in _SAME_DATA and operation.operands:
            # What was made of one load or tile alone is still its data.
            source = self.key(operation.operands[0])
            self.made_of[self._result_key(operation)] = source
            return None
        if operation.results and not operation.regions and any(one.shape for one in step.types if one.form == "tensor"):
            return self.lose(operation)
        return super()._run(step, place)

    def key(self, value: Value) -> int:
        """What tells a value that is not computed from others; -1 of one that is."""
        held = cast("Held | None", self.frame.values.get(value))
        key = held.key if isinstance(held, Opaque) else -1
        return self.made_of.get(key, key)

    def _keys(self, operation: Operation) -> tuple[int, ...]:
        return tuple(key for value in operation.operands if (key := self.key(value)) >= 0)

    def _result_key(self, operation: Operation) -> int:
        self.lose(operation)
        return self.key(operation.results[0]) if operation.results else -1

    def _use(self, operation: Operation) -> None:
        if keys := self._keys(operation):
            self.do(Doing(operation, None, keys, -1))

    def _alloc(self, operation: Operation) -> None:
        number = self.numbers.get(id(operation))
        if number is None:
            number = self.numbers[id(operation)] = len(self.log.buffers)
            self.log.buffers.append(TrackedBuffer(operation, self.log.place_at(operation.first_line)))
            self.log.buffers[-1].is_ring = id(operation) in self.inside
        if operation.operands and operation.opcode == "local_alloc" and not self.is_ended:
            self._step(operation, "write", target=(number, 0))
        else:
            self._use(operation)
            self.lose(operation)
        self.views[self.key(operation.results[0])] = (number, 0)

    def _index(self, operation: Operation) -> None:
        source = self.views.get(self.key(operation.operands[0]))
        index = self.number(operation.operands[1]).value if len(operation.operands) > 1 else None
        key = self._result_key(operation)
        if source is None or index is None:
            return
        self.log.buffers[source[0]].index()
        self.views[key] = (source[0], index)

    def _same(self, operation: Operation) -> None:
        """A view, or one of two views, of what is held already."""
        chosen = operation.operands[0]
        if operation.name == "arith.select":
            condition = self._truth(chosen)
            if condition is None:
                return self.lose(operation)
            chosen = operation.operands[1 if condition else 2]
        self._give(operation.results, (self.value(chosen),))
        return None

    def _step(self, operation: Operation, kind: StepKind, target: Slot | None = None) -> None:
        keys, is_off = self._keys(operation), self.is_off(operation)
        used = [self.views[key] for key in keys if key in self.views]
        barriers = tuple(one for one in used if self.log.buffers[one[0]].is_barrier)
        views = tuple(one for one in used if one not in barriers)
        self.do(Doing(operation, kind, keys, self._result_key(operation), views, barriers, target, is_off=is_off))
        if operation.opcode == "warp_group_dot_wait":
            # Its results are its operands, behind it.
            for result, operand in zip(operation.results, operation.operands, strict=False):
                self._give((result,), (self.value(operand),))

    # Masks

    def is_off(self, operation: Operation) -> bool:
        """Whether a mask or predicate lets nothing happen."""
        wanted = predicate_of(operation)
        if wanted is not None:
            return self._truth(wanted) is False
        if operation.kind == "dot":
            return False
        conditions = [value for value in operation.operands if bits_of(self.module.type_of(value)) == 1]
        return any(self._truth(value) is False for value in conditions[-1:])

    def _truth(self, value: Value) -> bool | None:
        """Whether a condition holds for all elements, or for none; None if that is not known."""
        held = self.frame.values.get(value)
        if isinstance(held, np.ndarray) and held.size == 1:
            return bool(held.any())
        made = self.module.definition(value)
        if made is None or value not in made.results:
            return None
        if made.opcode in _SAME_CONDITION:
            return self._truth(made.operands[0])
        if made.name == "arith.andi":
            sides = [self._truth(one) for one in made.operands]
            return False if False in sides else True if None not in sides else None
        return None

    # Loops

    def run_for(self, operation: Operation, place: Place) -> None:
        self.lose(operation)
        if self.is_done or self.loop is None:
            return
        if operation is self.loop:
            self._give(operation.results, self._followed(FollowedLoop.of(self, operation, place)))
        elif any(one is self.loop for one in operation.walk()):
            self.is_nested = True
            loop = FollowedLoop.of(self, operation, place)
            loop.iteration(self, constant(0, 64), loop.first, place)

    def _followed(self, loop: FollowedLoop) -> Sequence[Held]:
        count, carried = loop.trip_count, loop.first
        for number in range(min(count, _MOST_ITERATIONS) if count is not None else _UNKNOWN_ITERATIONS):
            self.log.iteration = number
            carried = loop.iteration(self, constant(number, 64), carried, loop.place)
        if count is not None and count > _MOST_ITERATIONS:
            self.note(f"the first {_MOST_ITERATIONS} of {count} iterations were followed")
        # Behind a loop whose end is not known nothing is known of what is in flight.
        self.iterations, self.is_done, self.is_ended = count, True, count is None
        self.log.iteration += 1
        return carried


_MOST_OF_PARTITION = 96
"""Iterations of its innermost loops that a partition is followed through."""
_UNKNOWN_OUTER_ITERATIONS = 2
_ARRIVALS = ("arrive_barrier", "barrier_expect", "tc_gen5_commit", "async_copy_mbarrier_arrive")
_Item = Doing | None
"""The steps of a partition; None where an iteration of the loop begins."""


class _Cut(Exception):
    """A partition is followed no further."""


class _NotKnown(Exception):
    """The steps of a partition depend on an unknown value."""


class SpecialisedFollower(Follower):
    """Follows the partitions of one `warp_specialize`."""

    most_work = 400_000

    def __init__(
        self,
        module: MlirModule,
        held: Mapping[Value, Held],
        programs: Programs,
        loop: Operation | None,
        place_at: Callable[[int], str],
        specialised: WarpSpecialization,
    ) -> None:
        super().__init__(module, held, programs, loop, place_at)
        self.names = [one.name for one in specialised.partitions]
        self.line = specialised.line
        loops = [one for one in module.walk() if one.name in _LOOPS]
        is_nested = any(one.name in _LOOPS for loop in loops for one in loop.walk() if one is not loop)
        self.unknown_iterations = _UNKNOWN_OUTER_ITERATIONS if is_nested else _UNKNOWN_ITERATIONS
        """Of an outermost loop whose trip count is not known: all partitions have one of the same trip count."""
        self.depth = 0
        self.inside = {id(inner) for one in loops for inner in one.walk()}
        self.log.is_specialised = True
        self.items: list[_Item] | None = None
        """Of the partition that runs by itself; None outside of them."""
        self.iterations_left = _MOST_OF_PARTITION
        self.loop_end = 0
        """The items up to the end of the loop, of the partition that has it."""
        self.is_followed = self.is_unknown = False
        """Whether the partitions were followed; whether the trip count of the loop is not known."""

    def do(self, one: Doing) -> None:
        if self.items is not None:
            self.items.append(one)
        elif not self.is_ended:
            if self.log.is_held(one):
                self._stop(f"nothing is known to arrive for the wait in line {one.operation.first_line} of the TTGIR")
            self.log.do(one)

    def _stop(self, why: str) -> None:
        self.note(why)
        self.log.steps.clear()
        self.log.buffers.clear()
        self.is_ended = True

    # Operations

    def _run(self, step: Step, place: Place) -> None:
        operation = step.operation
        if self.is_ended:
            return self.lose(operation)
        if step.opcode == "init_barrier":
            at = self.views.get(self.key(operation.operands[0]))
            if at is not None:
                self.log.barrier(at).initialise(operation)
            return None
        if step.opcode in _ARRIVALS:
            keys = self._keys(operation)
            barriers = self._barriers(operation)
            is_off = self.is_off(operation)
            return self.do(Doing(operation, None, keys, self._result_key(operation), barriers=barriers, is_off=is_off))
        if step.opcode == "wait_barrier":
            return self._wait(operation)
        return super()._run(step, place)

    def _barriers(self, operation: Operation) -> tuple[Slot, ...]:
        found = tuple(view for key in self._keys(operation) if (view := self.views.get(key)) is not None)
        own = tuple(one for one in found if self.log.buffers[one[0]].is_barrier)
        if not own and self.items is not None:
            raise _NotKnown(f"the barrier in line {operation.first_line} of the TTGIR is not known")
        return own

    def _wait(self, operation: Operation) -> None:
        is_off = self.is_off(operation)
        phase = None if is_off else self._phase(operation.operands[1])
        if phase is None and not is_off and self.items is not None:
            raise _NotKnown(f"the phase of the wait in line {operation.first_line} of the TTGIR is not known")
        barriers = self._barriers(operation)[:1]
        self.do(Doing(operation, "wait", self._keys(operation), -1, (), barriers, None, phase, is_off))

    def _phase(self, value: Value) -> int | None:
        try:
            return self.number(value).value
        except ValueError:
            return None

    def _step(self, operation: Operation, kind: StepKind, target: Slot | None = None) -> None:
        super()._step(operation, kind, target)
        if kind == "dot" and self.items and (last := self.items[-1]) is not None:
            self.items[-1] = replace(last, barriers=tuple(self._arrivals_of_dot(operation)))

    def _arrivals_of_dot(self, operation: Operation) -> Iterator[Slot]:
        """The barriers of a dot whose own predicate, which stands behind each, holds."""
        operands = operation.operands
        for value, following in zip(operands, [*operands[1:], None], strict=False):
            view = self.views.get(self.key(value))
            if view is None or not self.log.buffers[view[0]].is_barrier:
                continue
            if following is None or bits_of(self.module.type_of(following)) != 1 or self._truth(following) is not False:
                yield view

    # Control

    def run_if(self, operation: Operation, place: Place) -> None:
        condition = self.number(operation.operands[0]).value
        if condition is None and self.items is not None and _has_steps(operation):
            raise _NotKnown(f"whether the branch in line {operation.first_line} of the TTGIR is taken is not known")
        super().run_if(operation, place)

    def run_while(self, operation: Operation, place: Place) -> None:
        if self.items is not None and _has_steps(operation):
            raise _NotKnown(f"the trip count of the loop in line {operation.first_line} of the TTGIR is not known")
        super().run_while(operation, place)

    def run_for(self, operation: Operation, place: Place) -> None:
        if self.items is None:
            return super().run_for(operation, place)
        self.lose(operation)
        loop = FollowedLoop.of(self, operation, place)
        count, carried, has_steps = loop.trip_count, loop.first, _has_steps(operation)
        is_innermost = not any(one.name in _LOOPS for one in operation.walk() if one is not operation)
        unknown = _UNKNOWN_ITERATIONS if self.depth else self.unknown_iterations
        self.depth += 1
        for number in range(count if count is not None else unknown):
            if is_innermost and has_steps:
                if not self.iterations_left:
                    raise _Cut
                self.iterations_left -= 1
            if operation is self.loop:
                self.items.append(None)
            carried = loop.iteration(self, constant(number, 64), carried, place)
            if operation is self.loop:
                self.loop_end = len(self.items)
        self.depth -= 1
        self._give(operation.results, carried)
        self.is_unknown |= count is None and has_steps
        return None

    # Partitions

    def _regions(self, operation: Operation, place: Place) -> None:
        if operation.opcode != "warp_specialize" or operation.first_line != self.line or self.is_followed:
            return super()._regions(operation, place)
        self.is_followed = True
        self.lose(operation)
        given = [self.value(value) for value in operation.operands]
        queues: dict[str, list[_Item]] = {}
        for name, region in zip(self.names, operation.regions, strict=False):
            self.items, self.iterations_left, self.depth = queues.setdefault(name, []), _MOST_OF_PARTITION, 0
            block, self.noted.work = region.blocks[0], 0
            if len(block.arguments) == len(given):
                self._give(block.arguments, given)
            try:
                end = self._block(block, place)
                if end is not None and end.operation.opcode == "warp_yield":
                    self._give(operation.results, self._ended(end))
            except (_Cut, TooMuch):
                self.is_unknown = True
            except _NotKnown as reason:
                self.items = None
                return self._stop(str(reason))
        self.items = None
        return self._play(queues)

    def _play(self, queues: dict[str, list[_Item]]) -> None:
        log, places = self.log, dict.fromkeys(queues, 0)
        first = next((name for name, items in queues.items() if None in items), "")
        if first and self.is_unknown:
            del queues[first][self.loop_end :]

        def advance(name: str, most: int | None) -> bool:
            items, begin = queues[name], places[name]
            log.partition = name
            while places[name] < len(items) and (most is None or places[name] < begin + most):
                item = items[places[name]]
                if item is None:
                    log.iteration += 1
                elif log.is_held(item):
                    break
                else:
                    log.do(item)
                places[name] += 1
            return places[name] > begin

        others = [name for name in queues if name != first]
        while True:
            while sum(advance(name, None) for name in others):
                pass
            if not first or not advance(first, 1):
                break
        log.partition = ""
        left = {name: queues[name][at] for name, at in places.items() if at < len(queues[name])}
        if left and not self.is_unknown:
            lines = sorted(item.operation.first_line for item in left.values() if item is not None)
            return self._stop(f"nothing is known to arrive for the waits in lines {', '.join(map(str, lines))}")
        self.iterations = None if self.is_unknown else log.iteration + 1
        self.is_ended = self.is_unknown
        log.iteration += 1
        return None


def _has_steps(operation: Operation) -> bool:
    return any(one.opcode in _ARRIVALS or kind_of_step(one) is not None for one in operation.walk())
