"""Follows stand-ins from their reads to the branches, checks, loops and launches that they decide."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from irscope.errors import UsageError
from irscope.model.assumption import Assumption, Decision, DecisionKind
from irscope.record.virtual import numbers as virtual_numbers
from irscope.record.virtual.numbers import Read, Reads, carry, plain
from irscope.record.virtual.places import Place, place_of_reader

_following: list[Following] = []
"""One for each virtual GPU, the innermost last."""


class Following:
    """The reads of stand-ins of a program on one virtual GPU, and what they decided."""

    def __init__(self, assumed: Mapping[str, str] | None = None) -> None:
        """`assumed`: the values of `--assume`, by name or FILE:LINE."""
        self._assumed = {name: _assumed_value(name, text) for name, text in (assumed or {}).items()}
        self._used: set[str] = set()
        self._seen: dict[tuple[str, int, str], Read] = {}
        self._decided: dict[tuple[DecisionKind, str, str], set[Read]] = {}
        """The reads that decided something outside of launches, by kind, text and place."""
        self._questions: list[tuple[Reads, Place]] = []
        """The latest questions, those of the current statement last."""
        self._dropped = 0
        """How many questions came before these."""

    # ---- reads

    def read(self, default: Any, *, expression: str = "") -> Any:
        """The value that a program reads where data has not been computed: `default`, or that of `--assume`.

        `default`: a number, a bool, or a list of them as `tolist` returns it. Numbers are returned as stand-ins.
        """
        place = place_of_reader()
        value = self._assume(default, place)
        is_set = value is not default
        names = place.names if isinstance(value, list) and len(place.names) == len(value) else ()
        if len(names) > 1:
            # a, b = x.tolist()
            reads = [self._note(name, item, place, is_set, expression) for name, item in zip(names, value, strict=True)]
            return [carry(item, frozenset({read})) for item, read in zip(value, reads, strict=True)]
        return carry(value, frozenset({self._note(place.name, value, place, is_set, expression)}))

    def read_of(self, value: Any) -> Reads:
        """The read of `value` on the innermost line of the program."""
        place = place_of_reader()
        return frozenset({self._note(place.name, value, place, False, "")})

    def question(self, default: bool) -> bool:
        """The outcome of a test of data that has not been computed: `default`, or that of `--assume`."""
        place = place_of_reader()
        answer = self._assume(default, place)
        self._ask(frozenset({self._note(place.name, answer, place, answer is not default, "")}), place)
        return bool(answer)

    def converted(self, reads: Reads, before: Any, after: Any) -> Reads:
        """The reads of a number after its conversion by `int` or `float`: a value read directly becomes the new one."""
        (read, *others) = reads
        if others or read.value != repr(before):
            return reads
        fresh = replace(read, value=repr(after))
        for key, held in self._seen.items():
            if held == read:
                self._seen[key] = fresh
        for reads_decided in self._decided.values():
            if read in reads_decided:
                reads_decided.symmetric_difference_update({read, fresh})
        return frozenset({fresh})

    def _note(self, name: str, value: Any, place: Place, is_set: bool, expression: str) -> Read:
        key = (place.file, place.line, name)
        text = repr(plain(value))
        read = self._seen.get(key)
        if read is None or (read.value != text and read.value != repr(_as_int(value))):
            text = text if len(text) <= 40 else text[:37] + "..."
            read = Read(name, text, place.file, place.line, expression or place.text, is_set)
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
        """Record that a stand-in number was compared, or tested for truth."""
        place = place_of_reader()
        if place.file:
            self._ask(reads, place)

    def mark(self) -> int:
        """The beginning of a test, for `settle`."""
        return self._dropped + len(self._questions)

    def settle(self, mark: int, value: Any, required: bool) -> Any:
        """The outcome of a test that began at `mark`, after which the program goes on only if it is `required`."""
        first = max(mark - self._dropped, 0)
        questions, self._questions = self._questions[first:], self._questions[:first]
        if all(read.given for reads, _ in questions for read in reads):
            # No stand-in was tested, or only values that the user set.
            return value
        place = place_of_reader()
        for reads, where in questions:
            self._decided.get(("branch", where.text, where.label), set()).difference_update(reads)
            self._decide("check", place, reads)
        # Not bool() of the value itself, which is another question.
        return value if bool(plain(value)) is required else required

    def decide(self, kind: DecisionKind, reads: Reads) -> None:
        """Record what stand-ins decide on the innermost line of the program.

        `check`: a comparison, which raises if it fails, was assumed to pass. `conversion`: they can be followed no
        further, since C code converted them, or they were read as an array. `loop`: its bounds. `shape`: a tensor's.
        """
        self._decide(kind, place_of_reader(), reads)

    def _ask(self, reads: Reads, place: Place) -> None:
        self._questions.append((reads, place))
        if len(self._questions) > _KEPT_QUESTIONS:
            del self._questions[: _KEPT_QUESTIONS // 2]
            self._dropped += _KEPT_QUESTIONS // 2
        self._decide("branch", place, reads)

    def _decide(self, kind: DecisionKind, place: Place, reads: Reads) -> None:
        self._decided.setdefault((kind, place.text, place.label), set()).update(reads)

    # ---- results

    def assumptions(self, of_launch: Mapping[Read, list[Decision]]) -> tuple[Assumption, ...]:
        """The assumptions so far that decided anything; what they decided of a launch comes first."""
        decided: dict[Read, list[Decision]] = {read: list(made) for read, made in of_launch.items()}
        for (kind, what, place), reads in self._decided.items():
            for read in reads:
                decided.setdefault(read, []).append(Decision(kind, what, place))
        return tuple(_assumption(read, tuple(made)) for read, made in decided.items())

    def value_of_parameter(self, parameter: str, default: Any) -> Any:
        """The value that `--assume` sets for a kernel's parameter, as a number of `default`'s type; or None."""
        return self._cast(parameter, default) if parameter in self._assumed else None

    def unused(self) -> tuple[str, ...]:
        """The names in `--assume` that no stand-in has."""
        return tuple(name for name in self._assumed if name not in self._used)

    def names(self) -> tuple[str, ...]:
        """The names of all reads so far, which `--assume` could set."""
        found = (f"{read.name} ({read.place})" if read.name else read.place for read in self._seen.values())
        return tuple(dict.fromkeys(found))


_KEPT_QUESTIONS = 10_000


def current_following() -> Following | None:
    """The innermost virtual GPU's record of stand-ins, or None without a virtual GPU."""
    return _following[-1] if _following else None


@contextmanager
def follow(assumed: Mapping[str, str] | None = None) -> Iterator[Following]:
    """Follow the stand-ins of the program within."""
    following = Following(assumed)
    _following.append(following)
    virtual_numbers.listeners.append(following.on_question)
    try:
        yield following
    finally:
        virtual_numbers.listeners.remove(following.on_question)
        _following.remove(following)


def _assumed_value(name: str, text: str) -> Any:
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
