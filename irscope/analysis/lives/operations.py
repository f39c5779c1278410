"""The lives of operations: which pass made each of some name, which removed it, and where it came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from irscope.analysis.lives.identity import Compared, Lot, Origin, PassStep, Trail, trail_of
from irscope.errors import UsageError, did_you_mean
from irscope.ir.columns import read_body
from irscope.ir.locations.model import Chain
from irscope.ir.locations.stages import read_locations
from irscope.ir.syntax import Body
from irscope.model.capture import Capture


@dataclass(frozen=True, slots=True)
class Sighting:
    name: str
    """`ttg.convert_layout`."""
    line: int
    """1-based, in the text."""
    text: str
    """Its first line, without its location."""
    chain: Chain


@dataclass(frozen=True, slots=True)
class _Birth:
    step: int
    """The step that made it; -1 if it was there before the first one."""
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class _Removal:
    step: int
    replacements: tuple[str, ...] = ()
    """The operations that stand in for it; empty where there are none, or where they are not known."""
    among: int = 1
    """How many equal operations it is one of; which of them was removed is not known if there are several."""


@dataclass(frozen=True, slots=True)
class OperationLife:
    """One operation, from the text where it first is to the last."""

    births: tuple[_Birth, ...]
    """One; or several where it is not known which of these operations it is."""
    counted_from: int
    """The step from which it counts. Where it has several births, only how many such there are is exact."""
    first: Sighting
    last: Sighting
    lines: tuple[tuple[int, int], ...]
    """(step, line of the text after it) wherever the line may have changed."""
    removal: _Removal | None = None
    """None for an operation of the last text."""

    @property
    def is_certain(self) -> bool:
        """Whether it is known which operation it is."""
        return len(self.births) == 1 and (self.removal is None or self.removal.among == 1)

    @property
    def made_by(self) -> tuple[int, ...]:
        """The steps that may have made it: one, if it is known."""
        return tuple(dict.fromkeys(birth.step for birth in self.births))

    @property
    def chain(self) -> Chain:
        """Where it comes from, as the last text that knows it says."""
        return self.last.chain or self.first.chain

    def is_there(self, step: int) -> bool:
        """Whether it is in the text after a step."""
        return self.counted_from <= step and (self.removal is None or step < self.removal.step)

    def line_after(self, step: int) -> int:
        return next(line for index, line in reversed(self.lines) if index <= step)


@dataclass(frozen=True, slots=True)
class _StepCount:
    step: int
    count: int
    """After it."""
    made: int
    removed: int
    is_certain: bool
    """Whether it is known which were made and removed; their difference always is."""


@dataclass(frozen=True, slots=True)
class Lives:
    """The lives of some operations of a capture."""

    trail: Trail
    lives: tuple[OperationLife, ...]
    uncertain: frozenset[int] = frozenset()
    """The steps that made or removed some of several equal ones."""

    def counts(self) -> tuple[_StepCount, ...]:
        """The steps that made or removed any of them."""
        made = Counter(life.counted_from for life in self.lives)
        removed = Counter(life.removal.step for life in self.lives if life.removal is not None)
        found: list[_StepCount] = []
        count = made.pop(-1, 0)
        for step in sorted({*made, *removed}):
            count += made[step] - removed[step]
            found.append(_StepCount(step, count, made[step], removed[step], step not in self.uncertain))
        return tuple(found)


def is_named(name: str, asked: str) -> bool:
    """Whether an operation's name is the one asked for, with its dialect or without: `convert_layout`."""
    return asked in (name, name.rpartition(".")[2])


def operation_lives(
    capture: Capture,
    is_wanted: Callable[[str], bool],
    *,
    until: str = "",
    explains: bool = True,
    watch: Callable[[int, Compared, list[Lot]], None] | None = None,
) -> Lives:
    """Follow the operations of some names through MLIR's passes, if asked only until a stage's artifact.

    `explains`: whether to find out what each comes from, and what stands in for it. `watch` gets each step that has
    such operations on either side, what is compared of it, and their lots. Costs a structural diff of each such step.
    """
    trail = trail_of(capture)
    if until:
        steps = trail.steps
        last = next((at for at in reversed(range(len(steps))) if steps[at].right == capture.texts.get(until)), -1)
        trail = replace(trail, steps=steps[: last + 1])
    if trail.first is None:
        return Lives(trail, ())
    follower = _OperationFollower(
        {
            one.line: OperationLife((_Birth(-1),), -1, one, one, ((-1, one.line),))
            for one in sightings(trail.first, is_wanted)
        },
        explains=explains,
    )
    for index, step in enumerate(trail.steps):
        seen = {one.line: one for one in sightings(step.right, is_wanted)}
        if follower.present or seen:
            compared = Compared(step)
            lots = compared.lots(is_wanted)
            follower.take(index, compared, lots, seen)
            if watch is not None:
                watch(index, compared, lots)
    lives = [*follower.ended, *follower.present.values()]
    lives.sort(key=lambda life: (life.counted_from, life.first.line))
    return Lives(trail, tuple(lives), frozenset(follower.uncertain))


def sightings(text: str, is_wanted: Callable[[str], bool]) -> Iterator[Sighting]:
    """The operations of some names in a text."""
    body = _body(text)
    found = [line for line, shape in enumerate(body.shapes) if shape.name[:1].isalpha() and is_wanted(shape.name)]
    if not found:
        return
    locations = read_locations(text, "mlir")
    for line in found:
        number = body.numbers[line]
        yield Sighting(body.shapes[line].name, number, body.lines[line].strip(), locations.chain_at(number))


class _OperationFollower:
    def __init__(self, present: dict[int, OperationLife], *, explains: bool) -> None:
        self._explains = explains
        self.present = present
        """Line of the present text -> the operation's life so far."""
        self.ended: list[OperationLife] = []
        self.uncertain: set[int] = set()

    def take(self, index: int, compared: Compared, lots: list[Lot], seen: dict[int, Sighting]) -> None:
        after: dict[int, OperationLife] = {}
        for lot in lots:
            tracks = [self.present[line] for line in lot.lefts]
            if not tracks:
                births = (_Birth(index, compared.origin(line) if self._explains else None) for line in lot.rights)
                tracks = [
                    OperationLife((birth,), index, seen[line], seen[line], ())
                    for birth, line in zip(births, lot.rights, strict=True)
                ]
            elif not lot.rights:
                is_explained = self._explains and len(tracks) == 1
                self._end(index, tracks, compared.replacements(lot.lefts[0]) if is_explained else ())
            elif len(tracks) + len(lot.rights) > 2:
                tracks = self._mixed(index, tracks, [seen[line] for line in lot.rights])
            for line, track in zip(lot.rights, tracks, strict=False):
                after[line] = replace(track, last=seen[line], lines=(*track.lines, (index, line)))
        self.present = after

    def _mixed(self, index: int, tracks: list[OperationLife], rights: list[Sighting]) -> list[OperationLife]:
        """The lives of operations that cannot be told apart: each may be any of those before."""
        births = tuple(dict.fromkeys(birth for track in tracks for birth in track.births))
        if len(rights) > len(tracks):
            births = (*births, _Birth(index))
        mixed = [replace(track, births=births) for track in tracks]
        self._end(index, mixed[len(rights) :], (), len(tracks))
        if len(rights) != len(tracks):
            self.uncertain.add(index)
        fresh = [OperationLife(births, index, one, one, ()) for one in rights[len(tracks) :]]
        return [*mixed[: len(rights)], *fresh]

    def _end(self, index: int, tracks: list[OperationLife], replacements: tuple[str, ...], among: int = 1) -> None:
        self.ended += [replace(track, removal=_Removal(index, replacements, among)) for track in tracks]


# ── The life of a value: followed from one text back to the pass that made it, and on to the one that removed it ────


@dataclass(frozen=True, slots=True)
class ValueEvent:
    """The change of a value by a step."""

    step: int
    """-1 for the text before the first step."""
    what: Literal["there", "made", "rewritten", "changed", "unclear", "removed"]
    """`there`: before the first step; `rewritten`: another operation now makes it; `changed`: the same one, which says
    something else; `unclear`: its operation is one of several that cannot be told apart, so it is followed no further.
    """
    value: str
    """Its name after the step; of one removed, before it."""
    sighting: Sighting
    """The operation that makes it, or whose block's argument it is; of one removed, before the step."""
    origin: Origin | None = None
    """Of one made or rewritten."""
    replacements: tuple[str, ...] = ()
    """Of one removed: the operations that stand in for its own."""
    among: int = 1


def value_lives(trail: Trail, at: int, name: str) -> list[list[ValueEvent]]:
    """The lives of the values that have a name in the text after a step: one for each, since regions reuse names.

    Raises UsageError, with the nearest names, if there is none.
    """
    body = _body(trail.text_after(at) or "")
    wanted = f"%{name.removeprefix('%').partition('#')[0]}"
    found = [value for value, one in enumerate(body.names) if one == wanted and body.definers[value] >= 0]
    if not found:
        near = did_you_mean(wanted, body.names, or_all=False) or " The text of the stage has its values: irscope show."
        raise UsageError(f"no value is named {name!r} in this stage.{near}")
    return [[*_followed(trail, at, value, is_forward=False), *_followed(trail, at, value)] for value in found]


def _followed(trail: Trail, at: int, value: int, *, is_forward: bool = True) -> list[ValueEvent]:
    """The events after a text; or else those up to it, from the first."""
    events: list[ValueEvent] = []
    for index in range(at + 1, len(trail.steps)) if is_forward else range(at, -1, -1):
        step = trail.steps[index]
        compared, text = Compared(step), step.left if is_forward else step.right
        body = _body(text)
        here, name = _sighting(text, body, value), body.names[value]
        lot = _lot_of(compared, here, is_right=not is_forward)
        other = compared.after(value, lot) if is_forward else compared.before(value, lot)
        partners, own = (lot.rights, lot.lefts) if is_forward else (lot.lefts, lot.rights)
        if len(partners) > 1 or (partners and len(own) > 1):
            events.append(ValueEvent(index, "unclear", name, here, among=max(len(own), len(partners))))
        elif other is None and is_forward:
            gone = compared.replacements(here.line) if not partners else ()
            events.append(ValueEvent(index, "removed", name, here, replacements=gone))
        elif other is None:
            events.append(ValueEvent(index, "made", name, here, compared.origin(here.line)))
        else:
            events += _change(index, compared, step, (value, other) if is_forward else (other, value), lot)
            value = other
            continue
        return events if is_forward else events[::-1]
    if is_forward:
        return events
    first = trail.first or ""
    body = _body(first)
    there = ValueEvent(-1, "there", body.names[value], _sighting(first, body, value))
    return [there, *events[::-1]]


def _change(index: int, compared: Compared, step: PassStep, values: tuple[int, int], lot: Lot) -> list[ValueEvent]:
    """The event of a step that a value is on both sides of; none where its operation says the same."""
    left, right = _body(step.left), _body(step.right)
    old = _sighting(step.left, left, values[0])
    new = _sighting(step.right, right, values[1])
    if old.line not in lot.lefts or new.line not in lot.rights:
        return [ValueEvent(index, "rewritten", right.names[values[1]], new, Origin("replaces", (old.name,)))]
    if compared.same_text(old.line, new.line):
        return []
    return [ValueEvent(index, "changed", right.names[values[1]], new)]


def _lot_of(compared: Compared, here: Sighting, *, is_right: bool) -> Lot:
    lots = compared.lots(lambda name: name == here.name)
    # What is no operation (a block's label) has no lot: the values' own pairs are all there is.
    return next((lot for lot in lots if here.line in (lot.rights if is_right else lot.lefts)), Lot((), ()))


def _body(text: str) -> Body:
    return read_body(text, "mlir", frozenset({"locations"}))


def _sighting(text: str, body: Body, value: int) -> Sighting:
    line = body.definers[value]
    number = body.numbers[line]
    chain = read_locations(text, "mlir").chain_at(number)
    return Sighting(body.shapes[line].name, number, body.lines[line].strip(), chain)
