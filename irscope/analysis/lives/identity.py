"""Which operations before a pass are which after it: the structural diff's pairs, checked by locations.

The diff ignores locations, so they are a second witness. Two operations are the same where name, location, text,
operands and region agree; where the diff pairs two that agree in the location and most of the others; and where name,
location and text agree, though their loop or function was built anew. Two that come from different places of the Python
are never the same. Where several fit, only their number is known: they are one lot.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from irscope.analysis.diff.reorder import matched
from irscope.ir.columns import read_body
from irscope.ir.locations.model import TextLocations, columns_of
from irscope.ir.locations.stages import read_locations
from irscope.ir.reach import Unions, reached
from irscope.ir.syntax import Body
from irscope.model.capture import Capture, PassSnapshot

# ── The texts of a capture's passes, each with the one before it ────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class PassStep:
    """The change of a text by one pass, or by several passes together, where the texts between them were not kept."""

    passes: tuple[PassSnapshot, ...]
    left: str
    right: str

    @property
    def label(self) -> str:
        """`ttgir:coalesce#1`; of several passes, the first and the last."""
        first, last = self.passes[0].label, self.passes[-1].label
        return first if len(self.passes) == 1 else f"{first} … {last}"

    @property
    def is_exact(self) -> bool:
        return len(self.passes) == 1


@dataclass(frozen=True, slots=True)
class Trail:
    """The texts of the passes of MLIR, in the order of the pipeline."""

    first: str | None
    """The text that the first step found; None where no text was kept."""
    before: tuple[PassSnapshot, ...]
    """The passes before the first text, where the recording did not keep what they found."""
    steps: tuple[PassStep, ...]
    """Those that changed the text."""
    behind: tuple[PassSnapshot, ...]
    """The passes after the last text, whose own texts were not kept."""
    passes: tuple[PassSnapshot, ...]
    """All that may have changed the text; optimisers that are one step as a whole (`llvm-opt`) have none."""

    def text_after(self, step: int) -> str | None:
        """The text after a step, by its index; -1 is the first text."""
        return self.first if step < 0 else self.steps[step].right

    def step_at(self, snapshot: PassSnapshot) -> int | None:
        """The step whose text is the one after a pass, -1 for the first text; None where that text was not kept."""
        at = -1
        for index, step in enumerate(self.steps):
            if snapshot.index < step.passes[0].index:
                break
            if snapshot.index < step.passes[-1].index:
                return None
            at = index
        unknown = any(one.index <= snapshot.index for one in self.behind) or (
            at < 0 and any(one.index > snapshot.index for one in self.before)
        )
        return None if unknown or self.first is None else at


def trail_of(capture: Capture) -> Trail:
    """The texts of a capture's passes of MLIR."""
    passes = tuple([one for one in capture.passes() if one.argument or one.text is not None])
    first = capture.text_before(passes[0]) if passes else None
    before: tuple[PassSnapshot, ...] = ()
    steps: list[PassStep] = []
    pending: list[PassSnapshot] = []
    text = first
    for snapshot in passes:
        if snapshot.text is None:
            if snapshot.text_left_out:
                pending.append(snapshot)
            continue
        if text is None:
            first, before = snapshot.text, (*pending, snapshot)
        elif snapshot.text != text:
            steps.append(PassStep((*pending, snapshot), text, snapshot.text))
        text, pending = snapshot.text, []
    return Trail(first, before, tuple(steps), tuple(pending), passes)


Place = tuple[tuple[str, int, int], ...]
"""(file, line, column) of each frame, innermost first."""

# Which properties two operations must share, in the order in which pairs are settled.
_NAME, _PLACE, _KEY, _OPERANDS, _REGION, _READERS, _CODE = range(7)
_LEVELS = (
    (_NAME, _PLACE, _KEY, _OPERANDS, _REGION),
    (_NAME, _PLACE, _OPERANDS, _REGION),
    (_NAME, _PLACE, _KEY, _REGION),
    (_NAME, _PLACE, _KEY, _OPERANDS),
    (_NAME, _PLACE, _REGION, _READERS),
    (_NAME, _KEY, _OPERANDS, _REGION),
)
# What the diff does not pair, because it left its loop or its function, or this was built anew.
_REBUILT = (_NAME, _PLACE, _KEY)
_INLINED = (_NAME, _KEY, _CODE)
_MOST_RIVALS = 250_000
"""Pairs of operations that are compared one by one; of more, all of one name are one lot."""
_MOST_AT_A_PLACE = 1000
"""Operations of one place; of more it is not said which stand in for which."""
_NOT_FROM_CODE = frozenset({"module", "builtin.module"})


@dataclass(frozen=True, slots=True)
class Lot:
    """Operations before and after a step that are the same, as far as their numbers go: one and one are a pair.

    Lines are 1-based, of the step's texts.
    """

    lefts: tuple[int, ...]
    rights: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """The operations before a pass that one after it comes from, by its location."""

    relation: Literal["replaces", "copies", "beside"]
    """It took the place of one that is gone; there was one of its kind at the same line and column of the Python; or
    others were there, those next to it if there are such."""
    names: tuple[str, ...]


class Compared:
    """The operations of a step's two texts."""

    def __init__(self, step: PassStep) -> None:
        left, right = _side_of(step.left), _side_of(step.right)
        self._matching = matched(left.body, right.body)
        self._left, self._right = self._matching.left, self._matching.right
        self._left_side, self._right_side = left.of(self._left), right.of(self._right)
        self._made: dict[int, frozenset[int]] = {}
        self._role_of = {one: other for other, one in enumerate(self._matching.value_of) if one >= 0}

    # ── operations ────────────────────────────────────────────────────────────────────────────────────────────

    def lots(self, is_wanted: Callable[[str], bool]) -> list[Lot]:
        """All operations of some names, in lots."""
        lefts, rights = self._left_side.lines_of(is_wanted), self._right_side.lines_of(is_wanted)
        ours = {line: self._left_sign(line) for line in lefts}
        theirs = {line: self._right_sign(line) for line in rights}
        found: list[tuple[list[int], list[int]]] = []
        for level in (*_LEVELS, _REBUILT, _INLINED):
            for group, others in _buckets(ours, theirs, level):
                if not self._is_settled(level, group, others):
                    continue
                found.append((group, others))
                for line in group:
                    del ours[line]
                for line in others:
                    del theirs[line]
        found += self._unsettled([*ours], [*theirs])
        return [
            Lot(
                tuple(sorted(self._left.numbers[line] for line in group)),
                tuple(sorted(self._right.numbers[line] for line in others)),
            )
            for group, others in found
        ]

    def _is_settled(self, level: Sequence[int], group: list[int], others: list[int]) -> bool:
        if len(group) != len(others):
            return False
        if level in _LEVELS[1:]:
            # Such pairs need the diff's word; where several agree in all, only their number is known.
            ((one, *more), (other, *_)) = group, others
            return not more and self._matching.to_right[one] == other and self._fits(one, other)
        places = [self._left_side.place(line) for line in group]
        if level == _REBUILT:
            return all(places)
        # What was inlined has the frames of its caller too.
        longer = [self._right_side.place(line) for line in others] if level == _INLINED else []
        return all(
            place and len(other) > len(place) and other[: len(place)] == place for place in places for other in longer
        )

    def _unsettled(self, lefts: list[int], rights: list[int]) -> Iterable[tuple[list[int], list[int]]]:
        """The rest: the diff's pairs, in one lot with those that might as well be meant; what is alone came or went."""
        waiting = set(rights)
        pairs = [(line, self._matching.to_right[line]) for line in lefts]
        pairs = [(one, other) for one, other in pairs if other in waiting and self._fits(one, other)]
        paired = {line for line, _ in pairs}, {line for _, line in pairs}
        items = [*pairs, *((line, -1) for line in lefts if line not in paired[0])]
        items += [(-1, line) for line in rights if line not in paired[1]]
        lots = Unions(len(items))
        asks_all = len(pairs) * len(items) <= _MOST_RIVALS
        for index, (one, other) in enumerate(pairs):
            for second in (*range(index), *range(len(pairs), len(items))):
                ours, theirs = items[second]
                if (theirs < 0 or self._may_be(one, theirs, asks_all)) and (
                    ours < 0 or self._may_be(ours, other, asks_all)
                ):
                    lots.join(index, second)
        found: dict[int, tuple[list[int], list[int]]] = {}
        for index, item in enumerate(items):
            for lot, line in zip(found.setdefault(lots.root(index), ([], [])), item, strict=True):
                lot.extend([line] * (line >= 0))
        return found.values()

    def _may_be(self, left_line: int, right_line: int, asks_all: bool) -> bool:
        same_name = self._left.shapes[left_line].name == self._right.shapes[right_line].name
        return same_name and (not asks_all or self._fits(left_line, right_line))

    def _fits(self, left_line: int, right_line: int) -> bool:
        """Whether both may come from one place; a place that is not known fits all."""
        one, other = self._left_side.place(left_line), self._right_side.place(right_line)
        return not one or not other or one[0] in other or other[0] in one

    def _left_sign(self, line: int) -> tuple[Hashable, ...]:
        body, place = self._left, self._left_side.place(line)
        readers = tuple(self._left_side.readers(line))
        parent = body.parents[line]
        return body.shapes[line].name, place, body.keys[line], body.uses[line], parent, readers, place[:1]

    def _right_sign(self, line: int) -> tuple[Hashable, ...]:
        """As `_left_sign`, where what has a partner goes by the left side's numbers, and what has none by its own."""
        body, place, to_left = self._right, self._right_side.place(line), self._matching.to_left

        def partner(other: int) -> int:
            return to_left[other] if other < 0 or to_left[other] >= 0 else -2 - other

        readers = tuple((partner(reader), at) for reader, at in self._right_side.readers(line))
        region = partner(body.parents[line])
        return body.shapes[line].name, place, body.keys[line], self._read(line), region, readers, place[:1]

    def _read(self, right_line: int) -> tuple[int, ...]:
        value_of = self._matching.value_of
        return tuple(
            [value_of[value] if value_of[value] >= 0 else -2 - value for value in self._right.uses[right_line]]
        )

    # ── where they come from ──────────────────────────────────────────────────────────────────────────────────

    def origin(self, right_number: int) -> Origin | None:
        """What an operation that the step made comes from; None where its location is no other operation's."""
        line = self._right_side.line(right_number)
        found = self._left_side.lines_at(self._right_side.place(line))
        if not found or len(found) > _MOST_AT_A_PLACE:
            return None
        to_right = self._matching.to_right
        if replaced := [one for one in found if to_right[one] < 0 and line in self._made_for(one)]:
            return Origin("replaces", _names(self._left, replaced))
        if any(self._left.keys[one] == self._right.keys[line] for one in found):
            return Origin("copies", (self._right.shapes[line].name,))
        around = {reader for reader, _ in self._right_side.readers(line)}
        around.update(self._right.definers[value] for value in self._right.uses[line])
        neighbours = [one for one in found if to_right[one] >= 0 and to_right[one] in around]
        return Origin("beside", _names(self._left, neighbours or found))

    def replacements(self, left_number: int) -> tuple[str, ...]:
        """The names of the operations that stand in for one that the step removed; empty where there are none."""
        return _names(self._right, sorted(self._made_for(self._left_side.line(left_number))))

    def _made_for(self, left_line: int) -> frozenset[int]:
        """The new operations at the place of one that is gone: those that stand in for it, and what joins these."""
        if left_line not in self._made:
            self._made[left_line] = frozenset(self._search(left_line))
        return self._made[left_line]

    def _search(self, left_line: int) -> set[int]:
        place, name = self._left_side.place(left_line), self._left.shapes[left_line].name
        within = self._right_side.lines_within(place)
        if not place or len(within) > _MOST_AT_A_PLACE:
            return set()
        to_left, shapes = self._matching.to_left, self._right.shapes
        # What replaces one of its own kind replaces nothing else.
        taken = {
            self._left.shapes[one].name for one in self._left_side.lines_at(place) if self._matching.to_right[one] < 0
        } - {name}
        made = {line for line in within if to_left[line] < 0 and shapes[line].name not in taken}

        def beside(line: int) -> set[int]:
            readers = {reader for reader, _ in self._right_side.readers(line)}
            return made & readers.union(self._right.definers[value] for value in self._right.uses[line])

        return set(reached([line for line in made if self._stands_in(left_line, line)], beside))

    def _stands_in(self, left_line: int, right_line: int) -> bool:
        """Whether a right operation takes the place of a left one's result, or reads what it read."""
        left, right = self._left, self._right
        results = {self._matching.value_of[value] for value in _defined(right, right_line)}
        return bool(
            results.intersection(_defined(left, left_line))
            or set(left.uses[left_line]).intersection(self._read(right_line))
        )

    # ── values ────────────────────────────────────────────────────────────────────────────────────────────────

    def after(self, value: int, lot: Lot) -> int | None:
        """The right value that plays the part of a left one, or the same result of the one that is its lot's right."""
        found = self._role_of.get(value)
        return self._result(lot, value, self._left_side, self._right_side) if found is None else found

    def before(self, value: int, lot: Lot) -> int | None:
        """The left value whose part a right one plays, or the same result of the one that is its lot's left."""
        found = self._matching.value_of[value]
        return self._result(lot, value, self._right_side, self._left_side) if found < 0 else found

    def _result(self, lot: Lot, value: int, here: _Side, there: _Side) -> int | None:
        """Where the diff pairs no values, of an operation that left its function."""
        if len(lot.lefts) != 1 or len(lot.rights) != 1:
            return None
        own, other = lot.lefts[0], lot.rights[0]
        if here is self._right_side:
            own, other = other, own
        results, others = here.results(here.line(own)), there.results(there.line(other))
        return others[results.index(value)] if value in results and len(results) == len(others) else None

    def sign(self, number: int, *, is_right: bool) -> tuple[str, Place]:
        """The name of the operation on a line, and where it comes from; that is empty where it is not known."""
        side = self._right_side if is_right else self._left_side
        line = side.line(number)
        return side.body.shapes[line].name, side.place(line)

    def same_text(self, left_number: int, right_number: int) -> bool:
        """Whether two lines say the same, up to names and locations."""
        return self._matching.is_equal(self._left_side.line(left_number), self._right_side.line(right_number))


class _Side:
    """The operations of one text: where they stand, and which lines of Python they come from."""

    def __init__(self, body: Body, locations: TextLocations) -> None:
        self.body = body
        self._locations = locations
        self._places = [columns_of(chain) for chain in locations.chains]
        self._line_of = {number: line for line, number in enumerate(body.numbers)}
        self.operations = [line for line, shape in enumerate(body.shapes) if shape.name[:1].isalpha()]
        self._at: dict[Place, list[int]] = {}
        self._within: dict[Place, list[int]] = {}
        for line in self.operations:
            shape = body.shapes[line]
            if not shape.is_function and shape.name not in _NOT_FROM_CODE:
                place = self.place(line)
                self._at.setdefault(place, []).append(line)
                for length in range(1, len(place) + 1):
                    self._within.setdefault(place[:length], []).append(line)
        self._readers: dict[int, list[tuple[int, int]]] = {}
        for line, uses in enumerate(body.uses):
            for at, value in enumerate(uses):
                self._readers.setdefault(value, []).append((line, at))

    def of(self, body: Body) -> _Side:
        """The same side with the lines of its body in another order, if they are."""
        return self if body is self.body else _Side(body, self._locations)

    def results(self, line: int) -> list[int]:
        return _defined(self.body, line)

    def readers(self, line: int) -> list[tuple[int, int]]:
        return [reader for value in _defined(self.body, line) for reader in self._readers.get(value, ())]

    def line(self, number: int) -> int:
        return self._line_of[number]

    def place(self, line: int) -> Place:
        number = self.body.numbers[line] - 1
        index = self._locations.by_line[number] if number < len(self._locations.by_line) else -1
        return self._places[index] if index >= 0 else ()

    def lines_of(self, is_wanted: Callable[[str], bool]) -> list[int]:
        known: dict[str, bool] = {}
        found: list[int] = []
        for line in self.operations:
            name = self.body.shapes[line].name
            if name not in known:
                known[name] = is_wanted(name)
            if known[name]:
                found.append(line)
        return found

    def lines_at(self, place: Place) -> list[int]:
        """The operations that come from a place, or before it was inlined from its innermost frames."""
        for length in range(len(place), 0, -1):
            if found := self._at.get(place[:length]):
                return found
        return []

    def lines_within(self, place: Place) -> list[int]:
        """The operations that come from a place, inlined further or not."""
        return self._within.get(place, [])


@lru_cache(maxsize=4)
def _side_of(text: str) -> _Side:
    """The operations of a text, which is the right side of one step and the left side of the next.

    Its values have numbers for names: the diff takes a variable's name in them for evidence.
    """
    body = read_body(text, "mlir", frozenset({"locations"}))
    pairs = enumerate(zip(body.names, body.definers, strict=True))
    names = [f"{name[0]}{value}" if line >= 0 else name for value, (name, line) in pairs]
    return _Side(replace(body, names=names), read_locations(text, "mlir"))


def _buckets(
    ours: dict[int, tuple[Hashable, ...]], theirs: dict[int, tuple[Hashable, ...]], level: Sequence[int]
) -> list[tuple[list[int], list[int]]]:
    found: dict[tuple[Hashable, ...], tuple[list[int], list[int]]] = {}
    for side, signs in enumerate((ours, theirs)):
        for line, sign in signs.items():
            found.setdefault(tuple([sign[part] for part in level]), ([], []))[side].append(line)
    return [bucket for bucket in found.values() if bucket[0] and bucket[1]]


def _defined(body: Body, line: int) -> list[int]:
    return [body.values[line][place] for place in body.shapes[line].defines]


def _names(body: Body, lines: Sequence[int]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(body.shapes[line].name for line in lines))
