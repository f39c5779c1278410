"""The log of what was followed: steps in order, what each leaves in flight, and the tiles in the slots of buffers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from irscope.analysis.in_flight.barriers import Barrier
from irscope.analysis.in_flight.buffers import Buffer
from irscope.analysis.in_flight.model import BEFORE, Ring, Slot, Step, StepKind
from irscope.ir.mlir.model import Operation

__all__ = ["Doing", "Log"]

# ttg.async_wait %a, %b {num = 2 : i32}      ttng.warp_group_dot_wait %acc {pendings = 1 : i32}
_LEFT = re.compile(r"\b(?:num|pendings) = (\d{1,6}) : i32")


@dataclass(frozen=True, slots=True)
class Doing:
    """One execution of an operation, with its operands evaluated."""

    operation: Operation
    kind: StepKind | None
    """None of an operation that is no step, but uses what was loaded, commits copies or arrives at barriers."""
    keys: tuple[int, ...]
    """What its operands are, as the follower tells values apart."""
    key: int
    """What its result is."""
    views: tuple[Slot, ...] = ()
    """Its operands in memory, without barriers."""
    barriers: tuple[Slot, ...] = ()
    """Those that it uses, and whose predicate holds."""
    target: Slot | None = None
    """Where it writes, if that is none of its operands."""
    phase: int | None = None
    """Of a wait for a barrier in specialised warps: the phase that it asks for."""
    is_off: bool = False


@dataclass(slots=True)
class _Open:
    """What one partition has begun, and not waited for."""

    copies: list[int] = field(default_factory=list[int])
    """Those in no group."""
    groups: list[list[int]] = field(default_factory=list[list[int]])
    """The copies of each committed group; a group that is waited for is empty."""
    dots: list[int] = field(default_factory=list[int])
    last: int | None = None
    """Its last step; and its last wait."""
    last_wait: int | None = None


class Log:
    """Steps in the order in which they were done."""

    def __init__(self, place_at: Callable[[int], str]) -> None:
        self.place_at = place_at
        self.steps: list[Step] = []
        self.turn = BEFORE
        self.partition = ""
        self.is_specialised = False
        """Whether tensor memory is followed too, and barriers count their phases."""
        self.buffers: list[Buffer] = []
        self.barriers: dict[Slot, Barrier] = {}
        self._tiles: dict[int, int] = {}
        """Key of a value -> the tile that it was read from."""
        self._loads: dict[int, int] = {}
        """Key of a value -> the load that it is the data of, as a step."""
        self._tokens: dict[int, int] = {}
        """Key of a token -> the copy, or the number of the group, that it is of."""
        self._opened: dict[str, _Open] = {}

    @property
    def _open(self) -> _Open:
        return self._opened.setdefault(self.partition, _Open())

    def barrier(self, at: Slot) -> Barrier:
        """The barrier in a slot."""
        return self.barriers.setdefault(at, Barrier())

    def is_held(self, one: Doing) -> bool:
        """Whether it waits for a phase that is not complete."""
        return one.phase is not None and any(not self.barrier(at).passes(one.phase) for at in one.barriers)

    def do(self, one: Doing) -> None:
        """Note an execution."""
        self._land([self._loads[key] for key in one.keys if key in self._loads], len(self.steps))
        if one.kind is not None:
            self._step(one, one.kind)
        elif one.operation.name == "ttg.async_commit_group":
            self._commit(one)
        if self.is_specialised and one.kind != "wait" and not one.is_off:
            self._arrive(one)

    def _land(self, steps: Sequence[int], at: int) -> None:
        for one in steps:
            if self.steps[one].until is None:
                self.steps[one] = replace(self.steps[one], until=at)

    def _commit(self, one: Doing) -> None:
        mine = self._open
        mine.groups.append([self._tokens[key] for key in one.keys if key in self._tokens] or mine.copies)
        mine.copies = [each for each in mine.copies if each not in mine.groups[-1]]
        self._tokens[one.key] = len(mine.groups) - 1

    def _arrive(self, one: Doing) -> None:
        """Count its arrivals: those of copies and dots are theirs when they are done, which they may be at once."""
        for at in one.barriers:
            if one.operation.name == "ttng.tc_gen5_commit":
                # It arrives when all dots that its partition began are done.
                for dot in self._open.dots:
                    if self.steps[dot].until is None:
                        self.barrier(at).arrive(dot)
            self.barrier(at).count(one.operation, self._open.last)

    def _step(self, one: Doing, kind: StepKind) -> None:
        number = len(self.steps)
        target = one.target or (one.views[0] if one.views else None)
        tile = None
        if kind in ("copy", "write") and target is not None and not one.is_off:
            tile = self.buffers[target[0]].write(target[1], number, lands=kind == "write")
            for load in [self._loads[key] for key in one.keys if key in self._loads]:
                self.steps[load] = replace(self.steps[load], tile=tile)
        elif kind != "wait" and not one.is_off:
            tile = self._used(one, kind, number)
        shown = target if target is not None and kind in ("copy", "write", "read", "tensor") else None
        if kind == "tensor" and not self.is_specialised:
            shown = None
        results = one.operation.results
        value = self.buffers[shown[0]].name if shown is not None else results[0].name if results else ""
        line = one.operation.first_line
        self.steps.append(
            Step(
                self.turn, kind, one.operation.name, value, line, self.place_at(line), tile,
                shown[0] if shown else None, shown[1] if shown else None, one.is_off, None, self.partition,
            )
        )  # fmt: skip
        self._open.last = number
        self._follow(one, kind, number)

    def _used(self, one: Doing, kind: StepKind, number: int) -> int | None:
        """The tile that a step reads, or writes to tensor memory; None if it is not known."""
        written = _written_places(one.operation) if self.is_specialised else ()
        read = [view for at, view in enumerate(one.views) if at not in written]
        tiles = [self._tiles[key] for key in one.keys if key in self._tiles]
        for buffer, slot in read:
            found = self.buffers[buffer].read(slot, number, self._open.last_wait)
            tiles += [found] if found is not None else []
        for buffer, slot in (one.views[at] for at in written if at < len(one.views)):
            # A dot adds to what is there, until that is read.
            own = self.buffers[buffer].put(slot, number, lands=kind != "dot")
            tiles += [own] if own is not None and not tiles else []
        # What is multiplied are the tiles of this turn: the newest.
        tile = max(tiles, default=None)
        if kind in ("read", "convert", "tensor") and tile is not None:
            self._tiles[one.key] = tile
        return tile

    def _follow(self, one: Doing, kind: StepKind, number: int) -> None:
        """Note what a step leaves in flight, or waits for."""
        if kind == "wait":
            self._land([number], number)
            return self._wait(one, number)
        if self.steps[number].is_off:
            # It keeps its place in a group, but nothing is on its way.
            self._land([number], number)
        is_async = kind == "dot" and _is_async(one.operation)
        if is_async and (self.is_specialised or not one.barriers):
            self._open.dots.append(number)
        if kind == "load":
            self._loads[one.key] = number
        elif one.barriers:
            for at in one.barriers:
                self.barrier(at).arrive(number)
        elif kind == "copy":
            self._open.copies.append(number)
            self._tokens[one.key] = number
        elif not is_async:
            self._land([number], number)
        return None

    def _wait(self, one: Doing, number: int) -> None:
        left = int(match[1]) if (match := _LEFT.search(one.operation.text)) else None
        mine = self._open
        tokens = [self._tokens[key] for key in one.keys if key in self._tokens]
        if one.operation.name == "ttng.wait_barrier":
            mine.last_wait = number
            for at in one.barriers if not one.is_off else ():
                self._arrived(self.barrier(at).take(one.phase), number)
                self.steps[number] = replace(self.steps[number], after=self.barrier(at).completed_behind())
        elif one.operation.name == "ttng.warp_group_dot_wait":
            done = mine.dots[: len(mine.dots) - (left or 0)]
            mine.dots = mine.dots[len(done) :]
            self._arrived(done, number)
        elif one.operation.name == "ttg.async_wait" and left is not None:
            self._committed(len(mine.groups) - left, number)
        elif tokens:
            self._committed(max(tokens) + 1, number)

    def _committed(self, groups: int, number: int) -> None:
        """The first groups are there; those before them too, as they end in order."""
        own = self._open.groups
        count = min(max(groups, 0), len(own))
        self._arrived([one for group in own[:count] for one in group], number)
        own[:count] = [[] for _ in range(count)]

    def _arrived(self, steps: Sequence[int], number: int) -> None:
        self._land(steps, number)
        tiles = [tile for one in steps if (tile := self.steps[one].tile) is not None and not self.steps[one].is_off]
        self.steps[number] = replace(self.steps[number], tile=max(tiles, default=None))
        for one in steps:
            step = self.steps[one]
            if step.kind == "copy" and step.buffer is not None:
                self.buffers[step.buffer].land(one, number)

    def rings(self) -> tuple[Ring, ...]:
        """The buffers that steps write, without barriers; steps then tell theirs among these."""
        kept = [
            number
            for number, one in enumerate(self.buffers)
            if one.stays and not one.is_barrier and (one.is_shared or self.is_specialised)
        ]
        for at, step in enumerate(self.steps):
            ring = kept.index(step.buffer) if step.buffer in kept else None
            self.steps[at] = replace(step, buffer=ring, slot=step.slot if ring is not None else None)
        return tuple(self.buffers[number].ring(self.steps) for number in kept)


def _is_async(operation: Operation) -> bool:
    return "isAsync = true" in operation.text or "is_async" in operation.text


def _written_places(operation: Operation) -> list[int]:
    """Which of the operation's operands in memory, barriers left out, it writes."""
    kinds = zip(operation.operands, operation.operand_types, strict=False)
    held = [value for value, kind in kinds if kind.form == "memdesc" and str(kind.element) != "i64"]
    return [held.index(value) for value in operation.written if value in held]
