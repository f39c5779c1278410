"""Follows the partitions of specialised warps side by side, as far as their barriers let each of them run.

Each partition is run by itself first, which gives its steps in its own order; then barriers decide the order of all:
the partition with the loop makes one step at a time, and before each of them all others run until they have to wait.
So at each moment as much is in flight as the barriers allow. Copies and dots arrive at their barriers at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from irscope.analysis.flow.partitions import WarpSpecialization
from irscope.analysis.in_flight.follower import UNKNOWN_TURNS, Follower, number_of_turns
from irscope.analysis.in_flight.log import Doing
from irscope.analysis.in_flight.model import Slot, StepKind, kind_of_step
from irscope.ir.mlir.model import MlirModule, Operation, Value
from irscope.memory.addresses.evaluate import TooMuch
from irscope.memory.addresses.held import Held, Place, Programs
from irscope.memory.addresses.numbers import Number, Source, add, atom, constant, multiply

_MOST_TURNS = 96
"""Turns of its innermost loops that a partition is followed through."""
_UNKNOWN_OUTER_TURNS = 2
_LOOPS = ("scf.for", "scf.while")
_ARRIVALS = ("ttng.arrive_barrier", "ttng.barrier_expect", "ttng.tc_gen5_commit", "ttng.async_copy_mbarrier_arrive")
_Item = Doing | None
"""What a partition does; None where a turn of the loop begins."""


class _Cut(Exception):
    """A partition is followed no further."""


class _NotKnown(Exception):
    """What a partition does depends on what is not known."""


class SpecialisedFollower(Follower):
    """Follows the partitions of one `ttg.warp_specialize`."""

    most_work = 400_000

    def __init__(
        self,
        module: MlirModule,
        held: dict[Value, Held],
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
        self.unknown_turns = _UNKNOWN_OUTER_TURNS if is_nested else UNKNOWN_TURNS
        """Of an outermost loop, if it is not known how often it turns: all partitions have one that turns as often."""
        self.depth = 0
        self.inside = {id(inner) for one in loops for inner in one.walk()}
        self.log.is_specialised = True
        self.items: list[_Item] | None = None
        """Of the partition that runs by itself; None outside of them."""
        self.turns_left = _MOST_TURNS
        self.loop_end = 0
        """The items up to the end of the loop, of the partition that has it."""
        self.is_followed = self.is_unknown = False
        """Whether the partitions were followed; whether it is not known how often the loop turns."""

    def do(self, one: Doing) -> None:
        if self.items is not None:
            self.items.append(one)
        elif not self.is_ended:
            self._note_held(one)
            self.log.do(one)

    def _note_held(self, one: Doing) -> None:
        if self.log.is_held(one):
            self._stop(f"nothing is known to arrive for the wait in line {one.operation.first_line} of the TTGIR")

    def _stop(self, why: str) -> None:
        """Follow nothing more, and show nothing of it."""
        self.note(why)
        self.log.steps.clear()
        self.log.buffers.clear()
        self.is_ended = True

    # Operations

    def _run(self, operation: Operation, place: Place) -> None:
        if self.is_ended:
            return self._lose(operation)
        if operation.name == "ttng.init_barrier":
            at = self.views.get(self.key(operation.operands[0]))
            if at is not None:
                self.log.barrier(at).initialise(operation)
            return None
        if operation.name in _ARRIVALS:
            keys = self._keys(operation)
            barriers = self._barriers(operation)
            is_off = self.is_off(operation)
            return self.do(Doing(operation, None, keys, self._result_key(operation), barriers=barriers, is_off=is_off))
        if operation.name == "ttng.wait_barrier":
            return self._wait(operation)
        return super()._run(operation, place)

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
            if following is None or self._bits(following) != 1 or self._truth(following) is not False:
                yield view

    # Control

    def run_if(self, operation: Operation, place: Place) -> None:
        condition = self.number(operation.operands[0]).value
        if condition is None and self.items is not None and _has_steps(operation):
            raise _NotKnown(f"whether the branch in line {operation.first_line} of the TTGIR is taken is not known")
        super().run_if(operation, place)

    def run_while(self, operation: Operation, place: Place) -> None:
        if self.items is not None and _has_steps(operation):
            raise _NotKnown(f"how often the loop in line {operation.first_line} of the TTGIR turns is not known")
        super().run_while(operation, place)

    def run_for(self, operation: Operation, place: Place) -> None:
        if self.items is None:
            return super().run_for(operation, place)
        self._lose(operation)
        carried = first = [self.value(value) for value in operation.operands[3:]]
        start, stop, step = (self.number(value) for value in operation.operands[:3])
        turns = number_of_turns(start.value, stop.value, step.value)
        is_innermost = not any(one.name in _LOOPS for one in operation.walk() if one is not operation)
        unknown = UNKNOWN_TURNS if self.depth else self.unknown_turns
        self.depth += 1
        for turn in range(turns if turns is not None else unknown):
            if is_innermost and _has_steps(operation):
                self._count_turn()
            if operation is self.loop:
                self.items.append(None)
            after = self.body(operation, [_variable(start, step, turn), *carried], place)
            carried = after if len(after) == len(carried) else first
            if operation is self.loop:
                self.loop_end = len(self.items)
        self.depth -= 1
        self._give(operation.results, carried)
        self.is_unknown |= turns is None and _has_steps(operation)
        return None

    def _count_turn(self) -> None:
        if not self.turns_left:
            raise _Cut
        self.turns_left -= 1

    # Partitions

    def _regions(self, operation: Operation, place: Place) -> None:
        if operation.name != "ttg.warp_specialize" or operation.first_line != self.line or self.is_followed:
            return super()._regions(operation, place)
        self.is_followed = True
        self._lose(operation)
        given = [self.value(value) for value in operation.operands]
        queues: dict[str, list[_Item]] = {}
        for name, region in zip(self.names, operation.regions, strict=False):
            self.items, self.turns_left, self.depth = queues.setdefault(name, []), _MOST_TURNS, 0
            block, self.work = region.blocks[0], 0
            if len(block.arguments) == len(given):
                self._give(block.arguments, given)
            try:
                end = self._block(block, place)
                if end is not None and end.name == "ttg.warp_yield":
                    self._give(operation.results, self._ended(end))
            except (_Cut, TooMuch):
                self.is_unknown = True
            except _NotKnown as reason:
                self.items = None
                return self._stop(str(reason))
        self.items = None
        return self._play(queues)

    def _play(self, queues: dict[str, list[_Item]]) -> None:
        """Bring what the partitions do into one order."""
        log, places = self.log, dict.fromkeys(queues, 0)
        first = next((name for name, items in queues.items() if None in items), "")
        if first and self.is_unknown:
            del queues[first][self.loop_end :]

        def advance(name: str, most: int | None) -> bool:
            """Do what a partition can do; returns whether it did anything."""
            items, begin = queues[name], places[name]
            log.partition = name
            while places[name] < len(items) and (most is None or places[name] < begin + most):
                item = items[places[name]]
                if item is None:
                    log.turn += 1
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
        self.turns = None if self.is_unknown else log.turn + 1
        self.is_ended = self.is_unknown
        log.turn += 1
        return None


def _variable(start: Number, step: Number, turn: int) -> Number:
    if start.value is None or step.value is None:
        return atom(Source("turn", f"turn {turn}"), start.bits)
    return add(start, multiply(constant(turn, start.bits), step))


def _has_steps(operation: Operation) -> bool:
    return any(one.name in _ARRIVALS or kind_of_step(one) is not None for one in operation.walk())
