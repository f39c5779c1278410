"""The life of a value: followed from one text back to the pass that made it, and on to the one that removed it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from irscope.analysis.lives.identity import Compared, Lot, Origin
from irscope.analysis.lives.operations import Sighting
from irscope.analysis.lives.steps import Step, Trail
from irscope.errors import UsageError, did_you_mean
from irscope.ir.body.reader import Body, read_body
from irscope.ir.locations.stages import read_locations
from irscope.model.capture import StageKind

__all__ = ["ValueEvent", "value_lives"]


@dataclass(frozen=True, slots=True)
class ValueEvent:
    """What a step did with a value."""

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
    body = _body(trail.text_after(at) or "", trail.kind)
    wanted = f"%{name.removeprefix('%').partition('#')[0]}"
    found = [value for value, one in enumerate(body.names) if one == wanted and body.definers[value] >= 0]
    if not found:
        near = did_you_mean(wanted, body.names, or_all=False) or " The text of the stage has its values: irscope show."
        raise UsageError(f"no value is named {name!r} there.{near}")
    return [[*_backward(trail, at, value), *_forward(trail, at, value)] for value in found]


def _backward(trail: Trail, at: int, value: int) -> list[ValueEvent]:
    """The events up to a text, the last one first found."""
    events: list[ValueEvent] = []
    for index in range(at, -1, -1):
        step = trail.steps[index]
        compared, after = Compared(step), _body(step.right, step.kind)
        here = _sighting(step.right, step.kind, after, value)
        lot = _lot_of(compared, here, is_right=True)
        before = compared.before(value, lot)
        if len(lot.lefts) > 1 or (lot.lefts and len(lot.rights) > 1):
            among = max(len(lot.lefts), len(lot.rights))
            return [ValueEvent(index, "unclear", after.names[value], here, among=among), *events]
        if before is None:
            return [ValueEvent(index, "made", after.names[value], here, compared.origin(here.line)), *events]
        events[:0] = _change(index, compared, step, (before, value), lot)
        value = before
    first = trail.first or ""
    body = _body(first, trail.kind)
    return [ValueEvent(-1, "there", body.names[value], _sighting(first, trail.kind, body, value)), *events]


def _forward(trail: Trail, at: int, value: int) -> list[ValueEvent]:
    """The events after a text."""
    events: list[ValueEvent] = []
    for index in range(at + 1, len(trail.steps)):
        step = trail.steps[index]
        compared, before = Compared(step), _body(step.left, step.kind)
        here = _sighting(step.left, step.kind, before, value)
        lot = _lot_of(compared, here, is_right=False)
        after = compared.after(value, lot)
        if len(lot.rights) > 1 or (lot.rights and len(lot.lefts) > 1):
            among = max(len(lot.lefts), len(lot.rights))
            return [*events, ValueEvent(index, "unclear", before.names[value], here, among=among)]
        if after is None:
            gone = compared.replacements(here.line) if not lot.rights else ()
            return [*events, ValueEvent(index, "removed", before.names[value], here, replacements=gone)]
        events += _change(index, compared, step, (value, after), lot)
        value = after
    return events


def _change(index: int, compared: Compared, step: Step, values: tuple[int, int], lot: Lot) -> list[ValueEvent]:
    """The event of a step that a value is on both sides of; none where its operation says the same."""
    left, right = _body(step.left, step.kind), _body(step.right, step.kind)
    old = _sighting(step.left, step.kind, left, values[0])
    new = _sighting(step.right, step.kind, right, values[1])
    if old.line not in lot.lefts or new.line not in lot.rights:
        return [ValueEvent(index, "rewritten", right.names[values[1]], new, Origin("replaces", (old.name,)))]
    if compared.same_text(old.line, new.line):
        return []
    return [ValueEvent(index, "changed", right.names[values[1]], new)]


def _lot_of(compared: Compared, here: Sighting, *, is_right: bool) -> Lot:
    lots = compared.lots(lambda name: name == here.name)
    # What is no operation (a block's label) has no lot: the values' own pairs are all there is.
    return next((lot for lot in lots if here.line in (lot.rights if is_right else lot.lefts)), Lot((), ()))


def _body(text: str, kind: StageKind) -> Body:
    return read_body(text, kind, frozenset({"locations"}))


def _sighting(text: str, kind: StageKind, body: Body, value: int) -> Sighting:
    line = body.definers[value]
    number = body.numbers[line]
    chain = read_locations(text, kind).chain_at(number)
    return Sighting(body.shapes[line].name, number, body.lines[line].strip(), chain)
