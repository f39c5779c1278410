"""Walks the SASS of a kernel for some warps at once: the way that each takes, with its loops cut short.

Warps that take one way are one group; a branch that they take differently divides it. A loop is walked until two
iterations went the same way; how many more do so follows from the instructions that decide its branches alone, and that
many are skipped: a `Skip` in the trace says how many.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irscope.errors import UsageError
from irscope.ir.asm.instructions import Instruction
from irscope.timing.iterations import ENDLESS, MOST_ITERATIONS, same_iterations
from irscope.timing.program import UNKNOWN_ITERATIONS, Program
from irscope.timing.scalars import Registers, State, WordsForWorkers, predicate
from irscope.timing.trace import (
    Absence,
    Entry,
    Observed,
    Skip,
    Walked,
    bytes_read,
    index_of,
    is_regular,
    lines_accessed,
    path_of,
    turn_of,
    waits_of,
)

__all__ = ["NotFollowed", "Observed", "Skip", "Walked", "walk"]

Array = NDArray[Any]

_MOST_STEPS, _MOST_OF_LONG_LOOPS = 40_000, 200_000
"""Instructions of one group; where a loop is too long for its first iterations to be among so many."""
_MOST_GROUPS = 24
_PATIENCE, _TILES = 20, 6
"""Iterations, and tiles, after which a register that neither grows nor comes round is left."""


class NotFollowed(UsageError):
    """The control flow of a kernel depends on what is not known."""


_Observe = Callable[[int, Instruction, State, Array | None, int], Any]
"""(index, instruction, registers before it, active lanes, how often the group came there) → payload, or None."""


def walk(
    program: Program, state: State, observe: _Observe, stages: int = 1, passed: Callable[[float], None] | None = None
) -> list[Walked]:
    """The ways of all warps from the kernel's beginning; what is assumed is noted in the state.

    Args:
        program: the code.
        state: the warps, with what their registers hold.
        observe: called before each instruction that is observed.
        stages: of pipelined loops: as many iterations are in flight, and buffers go round.
        passed: called with the lines of L1 that skipped iterations access.
    """
    if program.is_specialized:
        state.workers = WordsForWorkers()
    groups = [_Group(program, state, observe, stages, np.arange(state.rows), passed)]
    done: list[Walked] = []
    while groups:
        group = groups.pop()
        more = group.run(allow_split=len(groups) + len(done) < _MOST_GROUPS)
        if more:
            groups += more
            if program.is_specialized:
                # The first warps tell the others what to run, so they come first.
                groups.sort(key=lambda each: -int(each.rows[0]))
        else:
            group._rejoined(len(program.code))
            done.append(Walked(group.rows, group.trace, group.absent))
    return done


@dataclass(slots=True)
class _Visit:
    place: int
    registers: Registers
    path: tuple[int, ...]
    """Of the iteration that it ends; empty for the first visit."""


def _equal(visits: Sequence[_Visit]) -> int:
    """How many of the last visits begin or end iterations of one path."""
    path = visits[-1].path
    return next((number for number, one in enumerate(reversed(visits), 1) if one.path != path), len(visits))


class _Group:
    def __init__(
        self, program: Program, state: State, observe: _Observe, stages: int, rows: Array,
        passed: Callable[[float], None] | None,
    ) -> None:  # fmt: skip
        self.program = program
        self.state = state
        self.observe = observe
        self.stages = stages
        self.rows = rows
        self.passed = passed
        self.trace: list[Entry] = []
        self.at = 0
        self.visits: dict[int, list[_Visit]] = {}
        self.tiles: dict[int, list[_Visit]] = {}
        """Of a loop, visits after an iteration that ends a tile; the first has that iteration's path."""
        self.counts: dict[int, int] = {}
        self.active: list[tuple[int, Array]] = []
        """(index up to which, lanes that are on)."""
        self.left: list[tuple[int, int, Array, Registers]] = []
        """Of rows that have left a loop before others: (index from which on they are back, trace until they left, rows,
        registers when they did)."""
        self.absent: list[Absence] = []
        self.returns: list[tuple[int, list[tuple[int, Array]]]] = []
        """Of each call: where it returns to, and the lanes that are on there."""
        self.iterated: dict[int, int] = {}
        """Head of a loop that data end → iterations so far."""
        self.bounds: dict[int, int] = {}
        """Likewise how often it runs; 0 where nothing says it."""
        self.begun: dict[int, tuple[int, dict[int, float]]] = {}
        """Likewise where its trace begins, and the bytes that were read of each argument before."""

    def run(self, allow_split: bool) -> list[_Group]:
        program, state = self.program, self.state
        code, steps, control, is_observed = program.code, program.steps, program.control, program.is_observed
        end, trace, append = len(code), self.trace, self.trace.append
        turns = max(4 * (self.stages + 2), 2 * _PATIENCE)
        most = max(_MOST_STEPS, min(turns * end, _MOST_OF_LONG_LOOPS))
        while self.at < end:
            at = self.at
            while self.active and at >= self.active[-1][0]:
                self.active.pop()
                self._rejoined(at)
            if at in control:
                append(at)
                outcome = self._branch(at, allow_split)
                if isinstance(outcome, list):
                    return outcome
                if outcome is None:
                    return []
                self.at = outcome
            else:
                if is_observed[at]:
                    count = self.counts.get(at, 0)
                    self.counts[at] = count + 1
                    active = self.active[-1][1] if self.active else None
                    append(Observed(at, self.observe(at, code[at], state, active, count)))
                else:
                    append(at)
                if (step := steps[at]) is not None:
                    step(state)
                    if at in program.shared_loads and state.shared is not None and state.shared.origins is not None:
                        state.data |= dict.fromkeys(program.writes[at], state.shared.origins)
                    elif state.data and at not in program.loads:
                        self._follow_data(at)
                self.at = at + 1
            if len(trace) > most:
                if program.is_specialized:
                    raise NotFollowed("which partitions its warps run is not known.")
                state.assumed.notes.add("only the first part of the kernel's control flow was followed")
                break
        return []

    def _branch(self, at: int, allow_split: bool) -> int | list[_Group] | None:
        """Where it goes on: an index, None at the end, or the groups that it divides into."""
        program, item, base = self.program, self.program.code[at], self.program.bases[at]
        conditions = [one for one in (item.predicate, *(item.operands[:-1] if base == "BRA" else ())) if one]
        conditions = [one for one in conditions if one.lstrip("@!").startswith(("P", "UP"))]
        target = program.targets.get(at, at + 1)
        if base == "CALL" and target > at + 1:
            self.returns.append((at + 1, self.active))
            self.active = [(len(program.code), self.active[-1][1])] if self.active else []
            return target
        if base == "CALL":
            self.state.assumed.notes.add(f"the call {item.text} is not followed")
            return at + 1
        if base == "RET" and self.returns:
            back, self.active = self.returns.pop()
            for every in (self.visits, self.tiles):
                for head in program.called & every.keys():
                    del every[head]
            return back
        if base in ("BRX", "BRXU", "JMP", "RET"):
            if table := program.tables.get(at):
                return self._by_table(at, table)
            if base != "RET":
                raise NotFollowed(f"the target of {item.text} is not known.")
            return None
        taken: Array | None = np.ones((1, 1), np.bool_)
        for one in conditions:
            value = predicate(one)(self.state) if not self.state.data.get(one.lstrip("@!")) else None
            taken = None if value is None or taken is None else taken & value
        if taken is None:
            return self._unknown(at, base, target)
        if self.state.lanes == 1 and self.active and (on := self.active[-1][1]).any():
            # Rows that are off take the way of those that are on.
            taken = np.where(on, taken, np.broadcast_to(taken, np.broadcast_shapes(on.shape, taken.shape))[on][0])
        whole: Array = np.asarray(taken.all(axis=1))
        some: Array = np.asarray(taken.any(axis=1))
        if base == "EXIT":
            if whole.all():
                return None
            if whole.any() and whole.size > 1 and allow_split:
                return self._split(whole, taken, at, end=True)
            if some.any():
                self._mask(len(program.code), ~taken)
            return at + 1
        # Warps of which some lanes go on: forwards they all do, backwards while any does.
        goes = some if target <= at else whole
        if goes.all():
            return self._went(at, target)
        if goes.any() and goes.size > 1:
            if target <= at and self.state.lanes == 1:
                self._leave(at, ~taken)
                return self._went(at, target)
            if allow_split:
                return self._split(goes, taken, at, end=False)
            return self._went(at, target) if goes.mean() > 0.5 else at + 1
        if target > at and some.any():
            self._mask(target, ~taken)
        return at + 1

    def _follow_data(self, at: int) -> None:
        data, writes = self.state.data, self.program.writes[at]
        if words := self.program.spills.get(at):
            for source, target in words:
                if source in data:
                    data[target] = data[source]
                elif not self.program.code[at].predicate:
                    data.pop(target, None)
            return
        if self.program.reads[at].isdisjoint(data):
            self._without_data(writes)
            return
        sources = data.keys() & self.program.reads[at]
        if not sources.isdisjoint(self.program.kept.get(at, ())):
            name = self.program.code[at].predicate
            holds = predicate(name)(self.state) if not data.get(name.lstrip("@!")) else None
            if holds is not None and not holds.any():
                return
            if holds is not None and holds.all():
                sources -= self.program.kept[at]
        if not sources:
            self._without_data(writes)
            return
        origins = frozenset().union(*(data[name] for name in sources))
        for name in writes:
            if self.state.registers.get(name) is not None:
                data[name] = origins

    def _without_data(self, writes: frozenset[str]) -> None:
        state = self.state
        for name in writes:
            # A comparison has marked what it guesses.
            if name in state.data and (name not in state.guesses or state.registers.get(name) is not None):
                del state.data[name]

    def _mask(self, until: int, lanes: Array) -> None:
        if self.active:
            lanes = lanes & self.active[-1][1]
        self.active.append((until, lanes))

    def _unknown(self, at: int, base: str, target: int) -> int | None:
        program, assumed = self.program, self.state.assumed
        line = program.code[at].location
        place = f"line {line[0].line}" if line else "the kernel"
        if target > at and base == "BRA" and not program.indexed_locals.isdisjoint(range(at + 1, target)):
            # Local arrays are those of the exact reduction of large arguments of sin and cos.
            assumed.notes.add(f"arguments of trigonometric functions at {place} are assumed small")
            return target
        skipped = [program.code[one] for one in program.control if at < one < target]
        is_slow_path = any("$__internal" in one.text for one in skipped) and not any(one.predicate for one in skipped)
        if base == "BRA" and is_slow_path:
            # CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div_rn_f64_full), for numbers that are not ordinary.
            assumed.notes.add(f"operands of divisions and roots at {place} are assumed to need no subroutine")
            return target
        left = program.left_loop(at, len(program.code) if base == "EXIT" else target)
        if left is None and (base == "EXIT" or target > at):
            # What the program goes on with is the greater part, as a rule; of an if with an else it may be the lesser.
            other = base == "BRA" and program.is_lesser_side(at, target)
            if base == "BRA" or line:
                side = "its longer side is assumed" if other else "assumed executed"
                assumed.notes.add(f"a branch at {place} depends on data: {side}")
            return target if other else at + 1
        head, latch = left or (target, at)
        if head not in self.iterated and at - head < latch - at:
            # At its beginning it is asked before the first iteration, too.
            self.iterated[head] = 0
            return at + 1
        done = self.iterated[head] = self.iterated.get(head, 0) + 1
        if done <= 3:
            self.bounds[head] = assumed.iterations.get(at) or self._iterations_for_all(head, done)
        count = self.bounds[head]
        if done < (count or UNKNOWN_ITERATIONS):
            return at + 1 if left else self._went(at, head)
        del self.iterated[head]
        assumed.iterations.setdefault(at, done)
        how = ", so many that all CTAs together read a tensor once" if count else ""
        assumed.notes.add(f"a loop at {place} has a data-dependent trip count: {done} iterations are assumed{how}")
        if left is None:
            return at + 1
        return None if base == "EXIT" else target

    def _iterations_for_all(self, head: int, done: int) -> int:
        """How often a loop runs if all CTAs together read the longest tensor once that it goes through in order.

        0 where it goes through none, or the tensor's size is not known.
        """
        assumed = self.state.assumed
        if done == 1:
            places = range(len(self.trace) - 1, -1, -1)
            begin = next((place for place in places if index_of(self.trace[place]) == head), 0)
            weights = Walked(self.rows, self.trace).weights()
            self.begun[head] = begin, bytes_read(self.trace[:begin], weights, len(self.rows))
        begin, before = self.begun[head]
        loop = [entry for entry in self.trace[begin:] if is_regular(entry, self.trace[begin:])]
        counts = [
            (assumed.array_bytes[array] / assumed.ctas - before.get(array, 0.0)) / amount * done
            for array, amount in bytes_read(loop, None, len(self.rows)).items()
            if amount and array in assumed.array_bytes
        ]
        return min(max(ceil(max(counts) - 0.01), 1), MOST_ITERATIONS) if counts else 0

    def _went(self, at: int, target: int) -> int:
        if target > at:
            return target
        for head in [head for head in self.visits if target < head <= at]:
            del self.visits[head]
            self.tiles.pop(head, None)
            self.iterated.pop(head, None)
        visits = self.visits.setdefault(target, [])
        path = path_of(self.trace[visits[-1].place :]) if visits else ()
        visits.append(_Visit(len(self.trace), dict(self.state.registers), path))
        # What other iterations, such as the last one of a tile, left in the registers says nothing of these.
        count = _equal(visits)
        if count >= 2 * self.stages + 3 and (count < 24 or count & count - 1 == 0):
            if self._skip(at, target, visits[-count:], _PATIENCE):
                visits.clear()
        elif count == 2 and len(visits) > 3 and visits[-2].path == visits[-3].path and target not in self.iterated:
            self._end_tile(at, target, path)
        return target

    def _end_tile(self, at: int, target: int, path: tuple[int, ...]) -> None:
        """An iteration unlike those before may end a tile, where one loop goes over tiles and over their parts.

        Tiles are skipped as iterations are.
        """
        tiles = self.tiles.setdefault(target, [])
        if tiles and tiles[0].path != path:
            return
        since = path_of(self.trace[tiles[-1].place :]) if tiles else path
        tiles.append(_Visit(len(self.trace), dict(self.state.registers), since))
        count = _equal(tiles)
        if count >= _TILES and self._skip(at, target, tiles[-count:], _TILES, self._tiles_left(target, tiles)):
            self.visits[target].clear()
            tiles.clear()

    def _tiles_left(self, head: int, tiles: list[_Visit]) -> int:
        """How many tiles are left before the last one: by what grows evenly over the iterations of several tiles."""
        before, last = tiles[-2:]
        tile = self.trace[before.place : last.place]
        size = sum(one.count * (one.head == head) if isinstance(one, Skip) else index_of(one) == head for one in tile)
        first, second = self.visits[head][-3:-1]
        growth: dict[str, Array | None] = {}
        for name, value in last.registers.items():
            earlier, low, high = (one.registers.get(name) for one in (before, first, second))
            if value is None or earlier is None or low is None or high is None:
                growth[name] = None
            elif value.dtype != np.bool_:
                grown = high - low & 0xFFFFFFFF
                is_even = np.array_equal(value - earlier & 0xFFFFFFFF, grown * size & 0xFFFFFFFF)
                growth[name] = grown if is_even else None
        on = np.ones(len(self.rows) if self.state.lanes == 1 else 1, np.bool_)
        even = {name: value for name, value in last.registers.items() if growth.get(name, 0) is not None}
        count, left = same_iterations(self.program, self.state, second.path, growth, even, head, on)
        count = int(min(count, left.min()))
        return 0 if count >= ENDLESS else count // size - 1

    def _by_table(self, at: int, table: Sequence[int]) -> int | list[_Group]:
        """Where each warp goes by the partition that it was told, or by the number of an entry."""
        item, state = self.program.code[at], self.state
        # BRX R2 -0x2280 (*"BRANCH_TARGETS .L_x_51,.L_x_52"*)
        register = item.operands[0].split()[0]
        chosen = state.partition
        if chosen is None and not self.program.is_specialized and not state.data.get(register):
            chosen = state.registers.get(register)
        if chosen is not None:
            return self._dispatch(at, table, chosen)
        if self.program.is_specialized:
            raise NotFollowed(f"the target of {item.text} is not known.")
        line = item.location[0].line if item.location else 0
        state.assumed.notes.add(f"a branch at line {line} depends on data: the first of its targets is assumed")
        return self._went(at, table[0])

    def _dispatch(self, at: int, table: Sequence[int], chosen: Array) -> int | list[_Group]:
        chosen = np.broadcast_to(chosen[:, 0], (self.state.rows,))
        numbers = np.unique(chosen).tolist()
        if numbers[-1] >= len(table):
            raise NotFollowed(f"the target of {self.program.code[at].text} is not known.")
        if len(numbers) == 1:
            return self._went(at, table[numbers[0]])
        groups: list[_Group] = []
        for number in numbers:
            group = self._subset(np.flatnonzero(chosen == number))
            group.at = group._went(at, table[number])
            groups.append(group)
        return groups

    def _subset(self, chosen: Array) -> _Group:
        """Some of the warps, as far as they have come."""
        group = _Group(self.program, self._part(chosen), self.observe, self.stages, self.rows[chosen], self.passed)
        group.trace = list(self.trace)
        group.counts = dict(self.counts)
        group.iterated = dict(self.iterated)
        group.bounds, group.begun = dict(self.bounds), dict(self.begun)
        group.visits, group.tiles = (
            {
                head: [_Visit(one.place, self._registers(one.registers, chosen), one.path) for one in visits]
                for head, visits in every.items()
            }
            for every in (self.visits, self.tiles)
        )
        group.active = self._lanes(self.active, chosen)
        group.left = [
            (until, begin, left[chosen], self._registers(registers, chosen))
            for until, begin, left, registers in self.left
        ]
        group.absent = [replace(one, parts=one.parts[chosen]) for one in self.absent]
        group.returns = [(back, self._lanes(active, chosen)) for back, active in self.returns]
        return group

    def _lanes(self, active: list[tuple[int, Array]], chosen: Array) -> list[tuple[int, Array]]:
        return [(until, self._chosen(lanes, chosen)) for until, lanes in active]

    def _leave(self, at: int, rows: Array) -> None:
        """Some rows leave a loop by the branch at its end, and wait behind it for the others.

        Rows are CTAs here, by one lane of each, and what they do is counted without following each alone.
        """
        if self.active:
            rows = rows & self.active[-1][1]
        left = np.broadcast_to(rows[:, 0], (self.state.rows,))
        self.left.append((at + 1, len(self.trace), left, dict(self.state.registers)))
        self._mask(at + 1, ~rows)

    def _rejoined(self, at: int) -> None:
        """Note which rows are back, for how long they were absent, and the registers that they left with."""
        registers = self.state.registers
        while self.left and at >= self.left[-1][0]:
            _, begin, rows, before = self.left.pop()
            self.absent.append(Absence(rows.astype(float), begin, len(self.trace)))
            for name, value in registers.items():
                own = before.get(name)
                if value is not own:
                    registers[name] = None if value is None or own is None else np.where(rows[:, None], own, value)

    def _split(self, goes: Array, taken: Array, at: int, end: bool) -> list[_Group]:
        goes = np.broadcast_to(goes, (self.state.rows,))
        groups: list[_Group] = []
        for side in (True, False):
            chosen = np.flatnonzero(goes == side)
            group = self._subset(chosen)
            if end:
                group.at = len(self.program.code) if side else at + 1
            else:
                group.at = group._went(at, self.program.targets[at]) if side else at + 1
            left = self._chosen(taken, chosen)
            target = len(self.program.code) if end else self.program.targets[at]
            if not side and target > at and left.any():
                group._mask(target, ~left)
            groups.append(group)
        return groups

    def _part(self, chosen: Array) -> State:
        state = self.state
        special = {name: self._chosen(value, chosen) for name, value in state.special.items()}
        registers = self._registers(state.registers, chosen)
        told = None if state.partition is None else self._chosen(state.partition, chosen)
        shared = None if state.shared is None else state.shared.chosen(lambda value: self._chosen(value, chosen))
        return State(
            len(chosen), state.lanes, registers, state.constants, special, state.assumed, dict(state.data),
            shared, state.workers, state.turn, told, self._registers(state.guesses, chosen),
            state.guessed,
        )  # fmt: skip

    def _registers(self, registers: Registers, chosen: Array) -> Registers:
        return {name: value if value is None else self._chosen(value, chosen) for name, value in registers.items()}

    def _chosen(self, value: Array, chosen: Array) -> Array:
        return value[chosen] if value.shape[0] == self.state.rows and self.state.rows > 1 else value

    # Skipping iterations

    def _skip(self, latch: int, head: int, visits: list[_Visit], patience: int, tiles: int | None = None) -> bool:
        """Skip iterations, where those between the visits, which take one path, tell how they go on.

        `patience`: visits from which registers that do not grow evenly are taken as they come. `tiles`: how many may be
        skipped, of tiles in place of iterations.
        """
        second, last = visits[-2:]
        path, state = last.path, self.state
        growth: dict[str, Array | None] = {}
        turns: dict[str, tuple[int, Array]] = {}
        is_regular = True
        for name, value in last.registers.items():
            values = [one.registers.get(name) for one in visits]
            if value is None or values[-2] is None or values[-3] is None or state.data.get(name):
                growth[name] = None
            elif (turn := turn_of(values)) is None:
                growth[name] = None
                # What is known to differ is taken as it comes, but for what switches instructions on and off.
                is_regular = is_regular and name in state.data and value.dtype != np.bool_
            else:
                turns[name] = turn
                if turn[0] == 1 and value.dtype != np.bool_:
                    growth[name] = turn[1]
        places = [one.place for one in visits]
        waits = [waits_of(self.trace[begin:end]) for begin, end in pairwise(places)]
        round_of_waits = next((one for one in range(1, len(waits)) if waits[one:] == waits[:-one]), None)
        is_regular = is_regular and round_of_waits is not None
        if not is_regular and len(visits) < patience:
            return False
        on = self.active[-1][1][:, 0] if self.active and state.lanes == 1 else np.ones(1, np.bool_)
        if tiles is not None:
            count, left = tiles, np.full(1, tiles)
        else:
            count, left = same_iterations(self.program, state, path, growth, last.registers, head, on)
        if self.iterated.get(head):
            count = min(count, self.bounds[head] - self.iterated[head] - 1)
        if count >= ENDLESS:
            return False
        # Buffers and their phases come round after some iterations.
        step = lcm(round_of_waits or 1, *(period for period, _ in turns.values()))
        if not is_regular:
            step = lcm(step, 2 * self.stages)
        count = count // step * step
        if count <= 0:
            return False
        # The last iteration of a row that leaves is done, too.
        leaves = on & (left < count)
        each = np.where(leaves, left + 1, count)
        for _, begin, rows, _ in self.left:
            if begin == len(self.trace):
                # These left by this branch.
                each = np.where(rows, 0, each)
        most = len(visits) - 2
        window = max(min(self.stages + 2, most) if is_regular else most, 1)
        self.trace.append(Skip(head, count, last.place - second.place, window, last.place - visits[-1 - window].place))
        if self.passed is not None:
            self.passed(lines_accessed(self.trace[second.place : last.place]) * len(self.rows) * count)
        registers = dict(last.registers)
        for name, (period, grown) in turns.items():
            value = registers[name]
            if value is not None and grown.any():
                times = count // period if each.size == 1 else each[:, None] // period
                registers[name] = value + grown * times & 0xFFFFFFFF
        state.registers = registers
        if (each < count).any():
            end = len(self.trace) - 1
            self.absent.append(Absence((count - each) / (1 + count), end - (last.place - second.place), end))
        if leaves.any():
            self._leave(latch, leaves[:, None])
        if self.iterated.get(head):
            self.iterated[head] += count
        return True
