"""Follows one program through the TTGIR: which copies, dots and waits run, in which slots, and what waits for what.

Scalars are evaluated with the launch's arguments, so that slots, predicates and the number of turns are those of the
compiled loop, whatever the pipeliner made of it. Tensors are not evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from irscope.analysis.in_flight.buffers import Buffer
from irscope.analysis.in_flight.kinds import DOTS, kind_of_step
from irscope.analysis.in_flight.model import BEFORE, InFlight, Ring, Step, StepKind
from irscope.ir.mlir.model import MlirModule, Operation, Value
from irscope.memory.addresses.arguments import read_arguments
from irscope.memory.addresses.evaluate import Runner, run_kernel
from irscope.memory.addresses.held import Held, Opaque, Place, Programs
from irscope.memory.addresses.kinds import kinds_of_results
from irscope.memory.addresses.numbers import Number, Source, add, atom, constant, multiply
from irscope.memory.programs.runner import predicate_of
from irscope.model.capture import Launch

__all__ = ["follow"]

_MOST_TURNS = 512
"""Turns that are followed one by one."""
_UNKNOWN_TURNS = 6
"""Turns that are followed where their number is not known."""
_SAME_MEMORY = ("ttg.memdesc_", "ttng.tmem_subslice")
_SAME_DATA = ("amdg.in_thread_transpose", "arith.truncf", "arith.extf", "tt.trans", "tt.reshape")
_SAME_CONDITION = ("tt.splat", "tt.broadcast", "tt.expand_dims", "ttg.convert_layout")
# ttg.async_wait %a, %b {num = 2 : i32}      ttng.warp_group_dot_wait %acc {pendings = 1 : i32}
_LEFT = re.compile(r"\b(?:num|pendings) = (\d{1,6}) : i32")


def follow(
    module: MlirModule,
    loop: Operation | None,
    launch: Launch | None,
    place_at: Callable[[int], str],
    *,
    is_first: bool = False,
) -> InFlight:
    """Follow the last program of a launch, or the first, through a loop, or through the whole kernel.

    Args:
        module: a TTGIR module with a kernel.
        loop: an `scf.for` of it; of others nothing is followed.
        launch: what it was given; None for any launch: all that its arguments decide is unknown.
        place_at: line of the TTGIR -> `file:line` of the Python source.
    """
    kernel = module.kernel
    assert kernel is not None
    grid = launch.grid if launch is not None else None
    program = None
    if grid is not None and min(grid) > 0:
        program = (0, 0, 0) if is_first else (grid[0] - 1, grid[1] - 1, grid[2] - 1)
    programs = Programs(program, (1, 1, 1), grid) if program is not None else Programs()
    held = read_arguments(kernel, launch).held if launch is not None else {}
    follower = _Follower(module, held, programs, loop, place_at)
    run_kernel(follower, module)
    line = loop.first_line if loop is not None else 0
    return InFlight(
        line,
        "" if loop is None else _title(loop),
        place_at(line) if line else "",
        follower.turns,
        follower.turns,
        program,
        0 if loop is None else 1,
        follower.is_nested,
        tuple(follower.steps),
        follower.rings(),
        "; ".join(follower.notes),
    )


def _title(loop: Operation) -> str:
    """`for %k = %c0 to %n step %c64`."""
    return loop.text.partition("scf.")[2].partition(" iter_args")[0].partition(" {")[0].partition(" : ")[0].strip()


class _Follower(Runner):
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
        self.place_at = place_at
        self.inside = {id(one) for one in loop.walk()} if loop is not None else set[int]()
        self.steps: list[Step] = []
        self.turn = BEFORE
        self.turns: int | None = None
        self.is_done = self.is_nested = self.is_ended = False
        self.buffers: list[Buffer] = []
        self.numbers: dict[int, int] = {}
        """id of an allocation -> its buffer."""
        self.views: dict[int, tuple[int, int]] = {}
        """Key of a value -> (buffer, slot) that it is a view of."""
        self.tiles: dict[int, int] = {}
        """Key of a value -> the tile that it was read from."""
        self.loads: dict[int, int] = {}
        """Key of a value -> the load that it is the data of, as a step."""
        self.tokens: dict[int, int] = {}
        """Key of a token -> the copy, or the number of the group, that it is of."""
        self.open_copies: list[int] = []
        self.groups: list[list[int]] = []
        """The copies of each committed group that is not waited for; a group that is waited for is empty."""
        self.open_dots: list[int] = []
        self.at_barrier: dict[tuple[int, int], list[int]] = {}
        """(buffer, slot) of a barrier -> the steps that arrive at it."""

    # Operations

    def _run(self, operation: Operation, place: Place) -> None:
        name = operation.name
        if name not in ("scf.yield", "ttg.async_commit_group"):
            self._use(operation)
        if name in ("ttg.local_alloc", "ttng.tmem_alloc"):
            return self._alloc(operation)
        if name == "ttg.memdesc_index":
            return self._index(operation)
        if name.startswith(_SAME_MEMORY) or (name == "arith.select" and not kinds_of_results(operation)[0].bits):
            return self._same(operation)
        if name == "ttg.async_commit_group":
            return self._commit(operation)
        kind = kind_of_step(operation)
        if kind is not None and self.is_ended:
            return self._lose(operation)
        if kind is not None:
            return self._step(operation, kind)
        if name in _SAME_DATA and operation.operands:
            return self._pass_on(operation)
        if operation.results and not operation.regions and any(one.shape for one in kinds_of_results(operation)):
            return self._lose(operation)
        return super()._run(operation, place)

    def _pass_on(self, operation: Operation) -> None:
        """What was made of one load or tile alone is still its data."""
        source = self._key(operation.operands[0])
        key = self._result_key(operation)
        for known in (self.loads, self.tiles):
            if source in known:
                known[key] = known[source]

    def _key(self, value: Value) -> int:
        held = self._held.get(value)
        return held.key if isinstance(held, Opaque) else -1

    def _result_key(self, operation: Operation) -> int:
        self._lose(operation)
        return self._key(operation.results[0]) if operation.results else -1

    def _use(self, operation: Operation) -> None:
        """What an operation reads of loads has to be there."""
        for value in operation.operands:
            load = self.loads.get(self._key(value))
            if load is not None:
                self._land([load], len(self.steps))

    def _land(self, steps: Sequence[int], at: int) -> None:
        for one in steps:
            if self.steps[one].until is None:
                self.steps[one] = replace(self.steps[one], until=at)

    def _alloc(self, operation: Operation) -> None:
        number = self.numbers.get(id(operation))
        if number is None:
            number = self.numbers[id(operation)] = len(self.buffers)
            self.buffers.append(Buffer(operation, self.place_at(operation.first_line)))
            self.buffers[-1].is_ring = id(operation) in self.inside
        if operation.operands and operation.name == "ttg.local_alloc" and not self.is_ended:
            self._step(operation, "write", at=(number, 0))
        else:
            self._lose(operation)
        self.views[self._key(operation.results[0])] = (number, 0)

    def _index(self, operation: Operation) -> None:
        source = self.views.get(self._key(operation.operands[0]))
        index = self.number(operation.operands[1]).value if len(operation.operands) > 1 else None
        key = self._result_key(operation)
        if source is None or index is None:
            return
        self.buffers[source[0]].index()
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

    def _commit(self, operation: Operation) -> None:
        copies = [self.tokens[key] for key in map(self._key, operation.operands) if key in self.tokens]
        self.groups.append(copies or self.open_copies)
        self.open_copies = [one for one in self.open_copies if one not in self.groups[-1]]
        self.tokens[self._result_key(operation)] = len(self.groups) - 1

    # Steps

    def _step(self, operation: Operation, kind: StepKind, at: tuple[int, int] | None = None) -> None:
        used = [self.views[key] for key in map(self._key, operation.operands) if key in self.views]
        barriers = [one for one in used if self.buffers[one[0]].is_barrier]
        used = [one for one in used if one not in barriers]
        tiles = [self.tiles[key] for key in map(self._key, operation.operands) if key in self.tiles]
        tokens = [self.tokens[key] for key in map(self._key, operation.operands) if key in self.tokens]
        is_off = self._is_off(operation)
        number = len(self.steps)
        loads = [self.loads[key] for key in map(self._key, operation.operands) if key in self.loads]
        key = self._result_key(operation)
        target = at or (used[0] if used else None)
        tile = None
        if kind in ("copy", "write") and target is not None and not is_off:
            tile = self.buffers[target[0]].write(target[1], number, lands=kind == "write")
            for one in loads:
                self.steps[one] = replace(self.steps[one], tile=tile)
        elif (used or tiles) and kind != "wait" and not is_off:
            # What is multiplied are the tiles of this turn: the newest.
            tile = max(
                [
                    *tiles,
                    *(one for buffer, slot in used if (one := self.buffers[buffer].read(slot, number)) is not None),
                ],
                default=None,
            )
            if kind in ("read", "convert") and tile is not None:
                self.tiles[key] = tile
        shown = target if target is not None and kind in ("copy", "write", "read") else None
        value = self._name(operation, shown)
        self.steps.append(
            Step(
                self.turn, kind, operation.name, value, operation.first_line, self.place_at(operation.first_line),
                tile, shown[0] if shown else None, shown[1] if shown else None, is_off, None,
            )
        )  # fmt: skip
        self._follow(operation, kind, number, key, barriers, tokens)

    def _follow(
        self,
        operation: Operation,
        kind: StepKind,
        number: int,
        key: int,
        barriers: Sequence[tuple[int, int]],
        tokens: Sequence[int],
    ) -> None:
        """Note what a step leaves in flight, or waits for."""
        if kind == "wait":
            self._land([number], number)
            return self._wait(operation, number, barriers, tokens)
        if self.steps[number].is_off:
            # It keeps its place in a group, but nothing is on its way.
            self._land([number], number)
        if kind == "load":
            self.loads[key] = number
        elif barriers:
            for one in barriers:
                self.at_barrier.setdefault(one, []).append(number)
        elif kind == "copy":
            self.open_copies.append(number)
            self.tokens[key] = number
        elif kind == "dot" and ("isAsync = true" in operation.text or "is_async" in operation.text):
            self.open_dots.append(number)
        else:
            self._land([number], number)
        return None

    def _wait(
        self, operation: Operation, number: int, barriers: Sequence[tuple[int, int]], tokens: Sequence[int]
    ) -> None:
        left = int(match[1]) if (match := _LEFT.search(operation.text)) else None
        if operation.name == "ttng.wait_barrier":
            if not self.steps[number].is_off:
                for one in barriers:
                    self._arrived(self.at_barrier.pop(one, []), number)
        elif operation.name == "ttng.warp_group_dot_wait":
            done = self.open_dots[: len(self.open_dots) - (left or 0)]
            self.open_dots = self.open_dots[len(done) :]
            self._arrived(done, number)
            self._hand_on(operation)
        elif operation.name == "ttg.async_wait" and left is not None:
            self._committed(len(self.groups) - left, number)
        elif tokens:
            self._committed(max(tokens) + 1, number)

    def _committed(self, groups: int, number: int) -> None:
        """The first groups are there; those before them too, as they end in order."""
        count = min(max(groups, 0), len(self.groups))
        self._arrived([one for group in self.groups[:count] for one in group], number)
        self.groups[:count] = [[] for _ in range(count)]

    def _arrived(self, steps: Sequence[int], number: int) -> None:
        self._land(steps, number)
        tiles = [tile for one in steps if (tile := self.steps[one].tile) is not None and not self.steps[one].is_off]
        self.steps[number] = replace(self.steps[number], tile=max(tiles, default=None))
        for one in steps:
            step = self.steps[one]
            if step.kind == "copy" and step.buffer is not None:
                self.buffers[step.buffer].land(one, number)

    def _hand_on(self, operation: Operation) -> None:
        """The results of a wait are its operands, behind it."""
        for result, operand in zip(operation.results, operation.operands, strict=False):
            self._held[result] = self.value(operand)

    def _name(self, operation: Operation, shown: tuple[int, int] | None) -> str:
        if shown is not None:
            return self.buffers[shown[0]].made.results[0].name
        return operation.results[0].name if operation.results else ""

    # Masks

    def _is_off(self, operation: Operation) -> bool:
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

    def _followed(self, loop: Operation, first: list[Held], place: Place) -> list[Held]:
        start, stop, step = (self.number(value) for value in loop.operands[:3])
        bounds = start.value, stop.value, step.value
        turns = _turns(bounds)
        carried = first
        for turn in range(min(turns, _MOST_TURNS) if turns is not None else _UNKNOWN_TURNS):
            self.turn = turn
            given = add(start, multiply(constant(turn, start.bits), step))
            if turns is None:
                given = atom(Source("turn", f"turn {turn}"), start.bits)
            after = self.body(loop, [given, *carried], place)
            carried = after if len(after) == len(carried) else first
        if turns is not None and turns > _MOST_TURNS:
            self.note(f"the first {_MOST_TURNS} of {turns} turns were followed")
        # Behind a loop whose end is not known nothing is known of what is in flight.
        self.turns, self.turn, self.is_done, self.is_ended = turns, self.turn + 1, True, turns is None
        return carried

    def rings(self) -> tuple[Ring, ...]:
        """The buffers in shared memory that steps write, without barriers; steps then tell theirs among these."""
        kept = [number for number, one in enumerate(self.buffers) if one.stays and one.is_shared]
        for at, step in enumerate(self.steps):
            ring = kept.index(step.buffer) if step.buffer in kept else None
            self.steps[at] = replace(step, buffer=ring, slot=step.slot if ring is not None else None)
        return tuple(self.buffers[number].ring(self.steps) for number in kept)


def _turns(bounds: tuple[int | None, int | None, int | None]) -> int | None:
    start, stop, step = bounds
    if start is None or stop is None or step is None or step <= 0:
        return None
    return max(0, -((start - stop) // step))
