"""Follows placeholder values from their reads to the branches, checks, loops and launches that they decide."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any

from irscope.errors import UsageError
from irscope.model.launch_record import Assumption, Decision, DecisionKind, joined
from irscope.record.virtual.numbers import Read, Reads, address, carry, listeners, plain
from irscope.record.virtual.places import ProgramPlace, is_called_by_program, place_of_reader


class Following:
    """The reads of placeholder values of a program on one virtual GPU, and what they decided."""

    is_on = True

    def __init__(self, assumed: Mapping[str, str] | None = None) -> None:
        self._assumed = {name: _assumed_value(name, text) for name, text in (assumed or {}).items()}
        self._used: set[str] = set()
        self._seen: dict[tuple[str, int, str], Read] = {}
        self._decided: dict[tuple[DecisionKind, str, str], set[Read]] = {}
        """The reads that decided something outside of launches, by kind, text and place."""
        self._questions: list[tuple[Reads, ProgramPlace]] = []
        """The latest questions, those of the current statement last."""
        self._dropped = 0
        self._iterations: dict[ProgramPlace, int] = {}
        """How often each test went on with its loop."""
        self._of_launches: dict[Read, dict[Decision, None]] = {}
        """What the reads decided of launches, in order."""
        self._reported: dict[tuple[str, str, int], set[Decision]] = {}
        """What captures state: by name, file and line of the read."""

    # ---- reads

    def read(self, default: Any, *, shown: str = "") -> Any:
        """The value that a program reads where data has not been computed: `default`, or that of `--assume`.

        `default`: a number, a bool, or a list of them. `shown`: the text of a value that differs from run to run.
        """
        place = place_of_reader()
        value = self._assume(default, place)
        is_set = value is not default
        names = place.names if isinstance(value, list) and len(place.names) == len(value) else ()
        if len(names) > 1:
            # a, b = x.tolist()
            reads = [self._note(name, item, place, is_set) for name, item in zip(names, value, strict=True)]
            return [carry(item, frozenset({read})) for item, read in zip(value, reads, strict=True)]
        name = place.name or "".join(place.names[:1])
        return carry(value, frozenset({self._note(name, value, place, is_set, "" if is_set else shown)}))

    def read_of(self, value: Any) -> Reads:
        place = place_of_reader()
        return frozenset({self._note(place.name, value, place, False)})

    def address(self, value: int) -> Any:
        place = place_of_reader()
        read = Read(place.name, str(value), place.file, place.line, place.text)
        return address(value, frozenset({read}))

    def question(self, default: bool, *, shown: str = "") -> bool:
        """The outcome of a test of data that has not been computed: `default`, or that of `--assume`."""
        place = place_of_reader()
        answer = self._assume(default, place)
        is_set = answer is not default
        self._ask(frozenset({self._note(place.name, answer, place, is_set, "" if is_set else shown)}), place)
        return bool(answer)

    def converted(self, reads: Reads, before: Any, after: Any) -> Reads:
        """The reads of a number after its conversion by `int` or `float`: a value read directly becomes the new one."""
        (read, *others) = reads
        if others or read.value != repr(before):
            return reads
        fresh = replace(read, value=repr(after))
        for key, known in self._seen.items():
            if known == read:
                self._seen[key] = fresh
        for reads_decided in self._decided.values():
            if read in reads_decided:
                reads_decided.symmetric_difference_update({read, fresh})
        return frozenset({fresh})

    def _note(self, name: str, value: Any, place: ProgramPlace, is_set: bool, shown: str = "") -> Read:
        key = (place.file, place.line, name)
        text = shown or repr(plain(value))
        read = self._seen.get(key)
        if read is None or (read.value != text and read.value != repr(_as_int(value))):
            text = text if len(text) <= 40 else text[:37] + "..."
            read = Read(name, text, place.file, place.line, place.text, is_set)
            self._seen[key] = read
        return read

    def _assume(self, default: Any, place: ProgramPlace) -> Any:
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
        """Record that a placeholder number was compared, or tested for truth."""
        place = place_of_reader()
        if place.file:
            self._ask(reads, place)

    def mark(self) -> int:
        return self._dropped + len(self._questions)

    def settle(self, mark: int, value: Any, required: bool) -> Any:
        """The outcome of a test that began at `mark`, after which the program goes on only if it is `required`."""
        first = max(mark - self._dropped, 0)
        questions, self._questions = self._questions[first:], self._questions[:first]
        if all(read.given for reads, _ in questions for read in reads):
            # No placeholder value was tested, or only values that the user set.
            return value
        place = place_of_reader()
        for reads, where in questions:
            self._decided.get((_kind_of_test(where), where.text, where.label), set()).difference_update(reads)
            self._decide("check", place, reads)
        # Not bool() of the value itself, which is another question.
        return value if bool(plain(value)) is required else required

    def bound(self, mark: int, value: Any, ends: bool) -> Any:
        """The outcome of a test that began at `mark`, and with `ends` leaves a loop, which may never end."""
        questions = self._questions[max(mark - self._dropped, 0) :]
        if all(read.given for reads, _ in questions for read in reads):
            return value
        place = questions[-1][1]
        if bool(plain(value)) is ends:
            self._iterations.pop(place, None)
            return value
        self._iterations[place] = count = self._iterations.get(place, 0) + 1
        if count <= _MOST_ITERATIONS:
            return value
        del self._iterations[place]
        reads: Reads = frozenset().union(*(reads for reads, _ in questions))
        self._decided.setdefault(("loop", f"{place.text}: ended after {count} iterations", place.label), set()).update(
            reads
        )
        return ends

    def decide(self, kind: DecisionKind, reads: Reads) -> None:
        """Record what placeholder values decide on the innermost line of the program.

        `check`: a comparison, which raises if it fails, was assumed to pass. `conversion`: they can be followed no
        further, since C code converted them, or they were read as an array. `error`: an exception. `loop`: its bounds.
        `shape`: a tensor's.
        """
        self._decide(kind, place_of_reader(), reads)

    def _ask(self, reads: Reads, place: ProgramPlace) -> None:
        self._questions.append((reads, place))
        if len(self._questions) > _KEPT_QUESTIONS:
            del self._questions[: _KEPT_QUESTIONS // 2]
            self._dropped += _KEPT_QUESTIONS // 2
        self._decide(_kind_of_test(place), place, reads)

    def _decide(self, kind: DecisionKind, place: ProgramPlace, reads: Reads) -> None:
        self._decided.setdefault((kind, place.text, place.label), set()).update(reads)

    def convert(self, value: Any = None) -> None:
        """Record that what is read here, shown as `value`, is followed no further: C code takes it, or the host."""
        self.decide("conversion", self.read_of([] if value is None else value))

    def launched(self, of_launch: Mapping[Read, list[Decision]]) -> None:
        for read, decisions in of_launch.items():
            self._of_launches.setdefault(read, {}).update(dict.fromkeys(decisions))

    # ---- results

    def assumptions(self, of_launch: Mapping[Read, Iterable[Decision]]) -> tuple[Assumption, ...]:
        """The assumptions so far that decided anything; what they decided of a launch comes first."""
        decided: dict[Read, list[Decision]] = {read: list(decisions) for read, decisions in of_launch.items()}
        for (kind, what, place), reads in self._decided.items():
            for read in reads:
                decided.setdefault(read, []).append(Decision(kind, what, place))
        return tuple(_assumption(read, tuple(decisions)) for read, decisions in decided.items())

    def reported(self, assumptions: Iterable[Assumption]) -> None:
        for item in assumptions:
            self._reported.setdefault((item.name, item.file, item.line), set()).update(item.decided)

    def unreported(self) -> tuple[Assumption, ...]:
        """The assumptions that no capture states, and those without a decision, whose values could not be followed."""
        rows: list[Assumption] = []
        for item in joined(self.assumptions(self._of_launches)):
            reported = self._reported.get((item.name, item.file, item.line), set())
            if decided := tuple(decision for decision in item.decided if decision not in reported):
                rows.append(replace(item, decided=decided))
        followed = {(item.name, item.file, item.line) for item in rows} | set(self._reported)
        # A read without a name has the parameter's of the launch that it decided.
        followed_lines = {(file, line) for _, file, line in followed}
        undecided = [
            read
            for read in self._seen.values()
            if (read.name, read.file, read.line) not in followed
            and (read.name or (read.file, read.line) not in followed_lines)
        ]
        return (*rows, *joined(_assumption(read, ()) for read in undecided))

    def value_of_parameter(self, parameter: str, default: Any) -> Any:
        """The value that `--assume` sets for a kernel's parameter, as a number of `default`'s type; or None."""
        return self._cast(parameter, default) if parameter in self._assumed else None

    def unused(self) -> tuple[str, ...]:
        return tuple(name for name in self._assumed if name not in self._used)

    def names(self) -> tuple[str, ...]:
        names = (f"{read.name} ({read.place})" if read.name else read.place for read in self._seen.values())
        return tuple(dict.fromkeys(names))


_KEPT_QUESTIONS = 10_000
_MOST_ITERATIONS = 1000
"""Of a loop that a placeholder value keeps going."""


def _kind_of_test(place: ProgramPlace) -> DecisionKind:
    return "loop" if place.loops else "branch"


class _Unfollowed(Following):
    is_on = False

    def read(self, default: Any, *, shown: str = "") -> Any:
        return default

    def question(self, default: bool, *, shown: str = "") -> bool:
        return default

    def read_of(self, value: Any) -> Reads:
        return frozenset()

    def address(self, value: int) -> Any:
        return value

    def decide(self, kind: DecisionKind, reads: Reads) -> None:
        pass


_following: list[Following] = [_Unfollowed()]
"""One for each virtual GPU, the innermost last."""


def current_following() -> Following:
    """The innermost virtual GPU's record of placeholder values; without a virtual GPU, one that records nothing."""
    return _following[-1]


def measured(value: Any, *, shown: str = "") -> Any:
    """The result of a function that reads clocks or memory: a placeholder value where the program calls it."""
    if not is_called_by_program(2):
        return value
    following = current_following()
    return following.question(value) if isinstance(value, bool) else following.read(value, shown=shown)


@contextmanager
def follow(assumed: Mapping[str, str] | None = None) -> Iterator[Following]:
    following = Following(assumed)
    _following.append(following)
    listeners.append(following.on_question)
    try:
        yield following
    finally:
        listeners.remove(following.on_question)
        _following.remove(following)


def _assumed_value(name: str, text: str) -> Any:
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


class PlaceholderText(str):
    """The text of a tensor whose values have not been computed; to print it reads nothing."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __reduce__(self) -> Any:
        return str, (str.__str__(self),)

    def __str__(self) -> str:
        # Some of the standard library takes no class of str's.
        return self if is_called_by_program() else str.__str__(self)

    def __radd__(self, other: Any) -> Any:
        if not isinstance(other, str):
            return NotImplemented
        text = str.__add__(other, self)
        return PlaceholderText(text) if is_called_by_program() else text

    def number(self, kind: Callable[[Any], Any]) -> Any:
        """`len`, `int` or `float` of the text."""
        return current_following().read(kind(str.__str__(self)))


def _followed_text(name: str) -> Any:
    real = getattr(str, name)

    @wraps(real)
    def method(self: PlaceholderText, *args: Any, **options: Any) -> Any:
        result = real(self, *args, **options)
        if result is NotImplemented or not is_called_by_program():
            return result
        if name in _SAME:
            return PlaceholderText(result)
        if isinstance(result, bool):
            return current_following().question(result)
        current_following().convert("the text of a tensor")
        return result

    return method


_SAME = ["__add__", "__format__", "__getitem__", "lower", "lstrip", "replace", "rstrip", "strip", "upper"]
_PARTS = ["__iter__", "count", "encode", "find", "index", "partition", "rpartition", "split", "splitlines"]
_TESTS = ["__contains__", "__eq__", "__ge__", "__gt__", "__le__", "__lt__", "__ne__", "endswith", "startswith"]
for _name in (*_SAME, *_PARTS, *_TESTS):
    setattr(PlaceholderText, _name, _followed_text(_name))
PlaceholderText.__hash__ = str.__hash__  # type: ignore[method-assign]
