"""Runs one program and notes its steps.

Scalars are evaluated with the launch's arguments, so that slots, predicates and the number of turns are those of the
compiled loop, whatever the pipeliner made of it. Tensors are not evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irscope.analysis.in_flight.log import Buffer, Doing, Log
from irscope.analysis.in_flight.model import DOTS, Slot, StepKind, kind_of_step
from irscope.ir.mlir.model import MlirModule, Operation, Value
from irscope.memory.addresses.evaluate import Runner
from irscope.memory.addresses.held import Held, Opaque, Place, Programs
from irscope.memory.addresses.kinds import kinds_of_results
from irscope.memory.addresses.numbers import Number, Source, add, atom, constant, multiply
from irscope.memory.programs.runner import predicate_of

_MOST_TURNS = 512
"""Turns that are followed one by one."""
UNKNOWN_TURNS = 6
"""Turns that are followed where their number is not known."""
_SAME_MEMORY = ("ttg.memdesc_", "ttng.tmem_subslice")
_SAME_DATA = ("amdg.in_thread_transpose", "arith.truncf", "arith.extf", "tt.trans", "tt.reshape")
_SAME_CONDITION = ("tt.splat", "tt.broadcast", "tt.expand_dims", "ttg.convert_layout")
_COMMIT = "ttg.async_commit_group"


class Follower(Runner):
    """Follows a loop of one program, or a program without a loop."""

    most_work = 200_000

    def __init__(
        self,
        module: MlirModule,
        held: dict[Value, Held],
        programs: Programs,
        loop: Operation | None,
        place_at: Callable[[int], str],
    ) -> None:
        super().__init__(module, dict(held), programs)
        self.module = module
        self.loop = loop
        self.inside = {id(one) for one in loop.walk()} if loop is not None else set[int]()
        self.log = Log(place_at)
        self.turns: int | None = None
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

    def _run(self, operation: Operation, place: Place) -> None:
        name = operation.name
        kind = kind_of_step(operation)
        if name in ("ttg.local_alloc", "ttng.tmem_alloc"):
            return self._alloc(operation)
        if name == "ttg.memdesc_index":
            return self._index(operation)
        if name.startswith(_SAME_MEMORY) or (name == "arith.select" and not kinds_of_results(operation)[0].bits):
            self._use(operation)
            return self._same(operation)
        if name == _COMMIT:
            keys = self._keys(operation)
            return self.do(Doing(operation, None, keys, self._result_key(operation)))
        if kind is not None and self.is_ended:
            self._use(operation)
            return self._lose(operation)
        if kind is not None:
            return self._step(operation, kind)
        if name != "scf.yield":
            self._use(operation)
        if name in _SAME_DATA and operation.operands:
            return self._pass_on(operation)
        if operation.results and not operation.regions and any(one.shape for one in kinds_of_results(operation)):
            return self._lose(operation)
        return super()._run(operation, place)

    def _pass_on(self, operation: Operation) -> None:
        """What was made of one load or tile alone is still its data."""
        source = self.key(operation.operands[0])
        self.made_of[self._result_key(operation)] = source

    def key(self, value: Value) -> int:
        """What tells a value that is not computed from others; -1 of one that is."""
        held = self._held.get(value)
        key = held.key if isinstance(held, Opaque) else -1
        return self.made_of.get(key, key)

    def _keys(self, operation: Operation) -> tuple[int, ...]:
        return tuple(key for value in operation.operands if (key := self.key(value)) >= 0)

    def _result_key(self, operation: Operation) -> int:
        self._lose(operation)
        return self.key(operation.results[0]) if operation.results else -1

    def _use(self, operation: Operation) -> None:
        """What an operation reads of loads has to be there."""
        if keys := self._keys(operation):
            self.do(Doing(operation, None, keys, -1))

    def _alloc(self, operation: Operation) -> None:
        number = self.numbers.get(id(operation))
        if number is None:
            number = self.numbers[id(operation)] = len(self.log.buffers)
            self.log.buffers.append(Buffer(operation, self.log.place_at(operation.first_line)))
            self.log.buffers[-1].is_ring = id(operation) in self.inside
        if operation.operands and operation.name == "ttg.local_alloc" and not self.is_ended:
            self._step(operation, "write", target=(number, 0))
        else:
            self._use(operation)
            self._lose(operation)
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
                return self._lose(operation)
            chosen = operation.operands[1 if condition else 2]
        self._held[operation.results[0]] = self.value(chosen)
        return None

    def _step(self, operation: Operation, kind: StepKind, target: Slot | None = None) -> None:
        keys, is_off = self._keys(operation), self.is_off(operation)
        used = [self.views[key] for key in keys if key in self.views]
        barriers = tuple(one for one in used if self.log.buffers[one[0]].is_barrier)
        views = tuple(one for one in used if one not in barriers)
        self.do(Doing(operation, kind, keys, self._result_key(operation), views, barriers, target, is_off=is_off))
        if operation.name == "ttng.warp_group_dot_wait":
            # Its results are its operands, behind it.
            for result, operand in zip(operation.results, operation.operands, strict=False):
                self._held[result] = self.value(operand)

    # Masks

    def is_off(self, operation: Operation) -> bool:
        """Whether a mask or predicate lets nothing happen."""
        wanted = predicate_of(operation)
        if wanted is not None:
            return self._truth(wanted) is False
        if operation.name.startswith(DOTS):
            return False
        conditions = [value for value in operation.operands if self._bits(value) == 1]
        return any(self._truth(value) is False for value in conditions[-1:])

    def _bits(self, value: Value) -> int:
        held = self._held.get(value)
        if isinstance(held, Number):
            return held.bits
        return held.kind.bits if isinstance(held, Opaque) else 0

    def _truth(self, value: Value) -> bool | None:
        """Whether a condition holds for all elements, or for none; None if that is not known."""
        held = self._held.get(value)
        if isinstance(held, Number) and held.value is not None:
            return bool(held.value)
        made = self.module.definition(value)
        if made is None or value not in made.results:
            return None
        if made.name in _SAME_CONDITION:
            return self._truth(made.operands[0])
        if made.name == "arith.andi":
            sides = [self._truth(one) for one in made.operands]
            return False if False in sides else True if None not in sides else None
        return None

    # Loops

    def run_for(self, operation: Operation, place: Place) -> None:
        self._lose(operation)
        first = [self.value(value) for value in operation.operands[3:]]
        if operation is self.loop and not self.is_done:
            self._give(operation.results, self._followed(operation, first, place))
        elif self.loop is not None and not self.is_done and any(one is self.loop for one in operation.walk()):
            self.is_nested = True
            self.body(operation, [self.number(operation.operands[0]), *first], place)

    def _followed(self, loop: Operation, first: Sequence[Held], place: Place) -> Sequence[Held]:
        start, step = self.number(loop.operands[0]), self.number(loop.operands[2])
        turns = number_of_turns(start.value, self.number(loop.operands[1]).value, step.value)
        carried = first
        for turn in range(min(turns, _MOST_TURNS) if turns is not None else UNKNOWN_TURNS):
            self.log.turn = turn
            given = add(start, multiply(constant(turn, start.bits), step))
            if turns is None:
                given = atom(Source("turn", f"turn {turn}"), start.bits)
            after = self.body(loop, [given, *carried], place)
            carried = after if len(after) == len(carried) else first
        if turns is not None and turns > _MOST_TURNS:
            self.note(f"the first {_MOST_TURNS} of {turns} turns were followed")
        # Behind a loop whose end is not known nothing is known of what is in flight.
        self.turns, self.is_done, self.is_ended = turns, True, turns is None
        self.log.turn += 1
        return carried


def number_of_turns(start: int | None, stop: int | None, step: int | None) -> int | None:
    """How often an `scf.for` turns; None if that is not known."""
    if start is None or stop is None or step is None or step <= 0:
        return None
    return max(0, -((start - stop) // step))
