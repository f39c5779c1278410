"""Follows stand-ins from their reads to the branches, checks, loops and launches that they decide."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from irscope.assumption import Assumption, Decision, DecisionKind
from irscope.errors import UsageError
from irscope.record import virtual_numbers
from irscope.record.virtual_numbers import Read, Reads, carry, plain, reads_of
from irscope.record.virtual_places import Place, place_of_reader

_following: list[Following] = []
"""Of the virtual GPUs that are there, the innermost last."""


class Following:
    """What one virtual GPU knows of the stand-ins that its program was given."""

    def __init__(self, assumed: Mapping[str, str] | None = None) -> None:
        """`assumed`: what `--assume` sets, by name or FILE:LINE."""
        self._assumed = {name: assumed_value(name, text) for name, text in (assumed or {}).items()}
        self._used: set[str] = set()
        self._seen: dict[tuple[str, int, str], Read] = {}
        self._decided: dict[tuple[DecisionKind, str, str], set[Read]] = {}
        """What was decided outside of launches: by kind, text and place."""
        self._asked: list[tuple[Reads, Place]] = []
        """The latest questions, of which those of the statement under way are the last."""
        self._forgotten = 0
        """How many questions were asked before these."""

    # ---- reads

    def read(self, default: Any, *, expression: str = "") -> Any:
        """What a program is given for data that nobody computed: `default`, or what `--assume` says.

        `default`: a number, a bool, or a list of them as `tolist` makes it. Numbers come back as stand-ins.
        """
        place = place_of_reader()
        value = self._assume(default, place)
        given = value is not default
        names = place.names if isinstance(value, list) and len(place.names) > 1 else ()
        if len(names) == len(value) if names else False:
            # a, b = x.tolist()
            reads = [self._note(name, item, place, given, expression) for name, item in zip(names, value, strict=True)]
            return [carry(item, frozenset({read})) for item, read in zip(value, reads, strict=True)]
        return carry(value, frozenset({self._note(place.name, value, place, given, expression)}))

    def read_of(self, value: Any) -> Reads:
        """The read that the innermost line of the program is making, which gives it `value`."""
        place = place_of_reader()
        return frozenset({self._note(place.name, value, place, False, "")})

    def question(self, default: bool) -> bool:
        """How a test of data that nobody computed comes out: `default`, or what `--assume` says."""
        place = place_of_reader()
        answer = self._assume(default, place)
        self._ask(frozenset({self._note(place.name, answer, place, answer is not default, "")}), place)
        return bool(answer)

    def check(self) -> None:
        """A comparison that raises where it fails was taken to pass."""
        place = place_of_reader()
        self._decide("check", place.text, place.label, self.read_of(True))

    def lost(self, value: Any) -> None:
        """A stand-in was read in a way that cannot be followed further: converted by C code, or as an array."""
        place = place_of_reader()
        self._decide("conversion", place.text, place.label, self.read_of(value))

    def converted(self, reads: Reads, before: Any, after: Any) -> Reads:
        """The reads of a number that `int` or `float` was made of: what was read itself has the new value."""
        (read, *others) = reads
        if others or read.value != repr(before):
            return reads
        fresh = replace(read, value=repr(after))
        for key, held in self._seen.items():
            if held == read:
                self._seen[key] = fresh
        for told in self._decided.values():
            if read in told:
                told.symmetric_difference_update({read, fresh})
        return frozenset({fresh})

    def _note(self, name: str, value: Any, place: Place, given: bool, expression: str) -> Read:
        key = (place.file, place.line, name)
        text = repr(plain(value))
        read = self._seen.get(key)
        if read is None or (read.value != text and read.value != repr(_as_int(value))):
            text = text if len(text) <= 40 else text[:37] + "..."
            read = Read(name, text, place.file, place.line, expression or place.text, given)
            self._seen[key] = read
        return read

    def _assume(self, default: Any, place: Place) -> Any:
        names = place.names if isinstance(default, list) and len(place.names) == len(default) else ()
        if any(name in self._assumed for name in names):
            return [self._cast(name, item) for name, item in zip(names, default, strict=True)]
        for name in (place.name, place.label, f"{place.file}:{place.line}"):
            if name and name in self._assumed:
                return self._cast(name, default)
        return default

    def _cast(self, name: str, default: Any) -> Any:
        if name not in self._assumed:
            return default
        self._used.add(name)
        value = self._assumed[name]
        if isinstance(default, list):
            return value if isinstance(value, list) else _filled(default, value)
        if isinstance(value, list):
            raise UsageError(f"--assume {name}={value}: one number is read at {place_of_reader().label}, not a list.")
        return type(plain(default))(value)

    # ---- decisions

    def on_question(self, reads: Reads) -> None:
        """A stand-in number was compared, or tested for truth."""
        place = place_of_reader()
        if place.file:
            self._ask(reads, place)

    def mark(self) -> int:
        """The beginning of a test whose outcome is looked at as a whole."""
        return self._forgotten + len(self._asked)

    def settle(self, mark: int, value: Any, wanted: bool) -> Any:
        """The end of a test that should come out as `wanted` for the program to go on."""
        first = max(mark - self._forgotten, 0)
        asked, self._asked = self._asked[first:], self._asked[:first]
        if not asked:
            return value
        if all(read.given for reads, _ in asked for read in reads):
            # The user's own values are taken at their word.
            return value
        place = place_of_reader()
        for reads, where in asked:
            self._undecide("branch", where, reads)
            self._decide("check", place.text, place.label, reads)
        # bool() would ask again.
        return value if bool(plain(value)) is wanted else wanted

    def loop(self, reads: Reads) -> None:
        """A loop runs as often as a stand-in says."""
        place = place_of_reader()
        self._decide("loop", place.text, place.label, reads)

    def shape(self, reads: Reads) -> None:
        """A tensor's shape is made of stand-ins."""
        place = place_of_reader()
        self._decide("shape", place.text, place.label, reads)

    def _ask(self, reads: Reads, place: Place) -> None:
        self._asked.append((reads, place))
        if len(self._asked) > _KEPT_QUESTIONS:
            del self._asked[: _KEPT_QUESTIONS // 2]
            self._forgotten += _KEPT_QUESTIONS // 2
        self._decide("branch", place.text, place.label, reads)

    def _decide(self, kind: DecisionKind, what: str, place: str, reads: Reads) -> None:
        self._decided.setdefault((kind, what, place), set()).update(reads)

    def _undecide(self, kind: DecisionKind, place: Place, reads: Reads) -> None:
        held = self._decided.get((kind, place.text, place.label), set())
        held.difference_update(reads)

    # ---- results

    def assumptions(self, of_launch: Mapping[Read, list[Decision]]) -> tuple[Assumption, ...]:
        """All that was assumed so far and decided anything, with what it decided of a launch in front."""
        decided: dict[Read, list[Decision]] = {read: list(made) for read, made in of_launch.items()}
        for (kind, what, place), reads in self._decided.items():
            for read in reads:
                decided.setdefault(read, []).append(Decision(kind, what, place))
        return tuple(_assumption(read, tuple(made)) for read, made in decided.items())

    def given_for(self, parameter: str, default: Any) -> Any:
        """What `--assume` says of a kernel's parameter, as a number like `default`; None where it says nothing."""
        return self._cast(parameter, default) if parameter in self._assumed else None

    def unused(self) -> tuple[str, ...]:
        """The names of `--assume` that no stand-in had."""
        return tuple(name for name in self._assumed if name not in self._used)

    def names(self) -> tuple[str, ...]:
        """What `--assume` could set, as far as anything was read."""
        found = (f"{read.name} ({read.place})" if read.name else read.place for read in self._seen.values())
        return tuple(dict.fromkeys(found))


_KEPT_QUESTIONS = 10_000


def following() -> Following | None:
    """What follows stand-ins now; None where there is no virtual GPU."""
    return _following[-1] if _following else None


@contextmanager
def follow(assumed: Mapping[str, str] | None = None) -> Iterator[Following]:
    """Follow the stand-ins of the program within."""
    one = Following(assumed)
    _following.append(one)
    virtual_numbers.listen(one.on_question)
    try:
        yield one
    finally:
        virtual_numbers.stop_listening(one.on_question)
        _following.remove(one)


def assumed_value(name: str, text: str) -> Any:
    """The value of `--assume NAME=VALUE`: a number, true or false, or a list; raises UsageError."""
    words: dict[str, Any] = {"true": True, "false": False, "inf": math.inf, "nan": math.nan}
    if text.lower() in words:
        return words[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = None
    if isinstance(value, tuple):
        value = list(value)
    if not isinstance(value, int | float | list):
        raise UsageError(f"--assume {name}={text}: the value is a number, true, false, or a list such as [3,5].")
    return value


def _as_int(value: Any) -> Any:
    try:
        return int(plain(value))
    except (TypeError, ValueError, OverflowError):
        return value


def _filled(shape: list[Any], value: Any) -> list[Any]:
    return [_filled(item, value) if isinstance(item, list) else type(plain(item))(value) for item in shape]


def _assumption(read: Read, decided: tuple[Decision, ...]) -> Assumption:
    return Assumption(read.name or read.place, read.value, read.file, read.line, read.expression, read.given, decided)


def launch_decisions(arguments: Mapping[str, Any]) -> dict[Read, list[Decision]]:
    """What the stand-ins among a launch's arguments decide: the parameters."""
    made: dict[Read, list[Decision]] = {}
    for name, value in arguments.items():
        for read in reads_of(value):
            made.setdefault(read, []).append(Decision("argument", name))
    return made
