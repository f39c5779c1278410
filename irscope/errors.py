"""The errors irscope raises, one tree.

IrscopeError                the base: every message names the value and the remedy
├── UsageError              the request itself is off (exit code 2)
├── CaptureFormatError      a file is not a capture, or a newer or damaged one
├── CaptureNotFound         no stored capture has that id, and no file has that name
├── StageNotFound           the capture holds no such stage
├── PlanError               the text is no plan, or a rule matches no pass
├── TargetError             the text is no target, or the installed Triton does not take it
├── SignatureError          a signature does not fit the kernel's parameters
├── ParseError              a text is not what it was said to be
├── RecordingError          nothing could be recorded; what the child said is in the message
├── NoDevice                there is no GPU to run on
├── DeviceFault             a launch ended the process that made it: a fault of the GPU, or a time-out
└── MissingTool             a program or package that this needs is not installed
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class IrscopeError(Exception):
    """The base of all errors that irscope raises on purpose."""

    exit_code = 1


class UsageError(IrscopeError):
    """The request itself is off: options that contradict each other, or name nothing."""

    exit_code = 2


class CaptureFormatError(IrscopeError):
    """A file is not a capture, is damaged, or was written by a newer irscope."""


class CaptureNotFound(IrscopeError):
    """No stored capture has that id, and no file has that name."""


class StageNotFound(IrscopeError):
    """The capture holds no such stage."""


class PlanError(IrscopeError):
    """A text is no plan, or one of its rules matches no pass."""


class TargetError(IrscopeError):
    """A text is no target, or the installed Triton does not take it."""


class SignatureError(IrscopeError):
    """A signature does not fit the kernel's parameters."""


class ParseError(IrscopeError):
    """A text is not what it was said to be."""


class RecordingError(IrscopeError):
    """Nothing could be recorded; the message says what the recording process said."""


class NoDevice(IrscopeError):
    """There is no GPU to run on; the message says what needs one."""


class DeviceFault(IrscopeError):
    """A launch ended the process that made it: an illegal access, another fault of the GPU, or a time-out."""


class MissingTool(IrscopeError):
    """A program or package that this needs is not installed."""


def did_you_mean(name: str, known: Iterable[str], limit: int = 3, *, or_all: bool = True) -> str:
    """The end of an error message: the nearest of the known names, or where none is near all of them (`or_all`).

    Returns a text such as " Did you mean 'combine'?", starting with a blank.
    """
    names = sorted(set(known))
    near = _near(name, names)[:limit]
    if near:
        return f" Did you mean {' or '.join(repr(other) for other in near)}?"
    return f" Known: {', '.join(names)}." if names and or_all else ""


def _near(name: str, names: Sequence[str]) -> list[str]:
    """The names that a mistyped, shortened or reordered one may mean, the nearest first."""
    wanted = _folded(name)
    if not wanted:
        return []
    by_distance = sorted((_distance(wanted, _folded(other)), other) for other in names)
    near = [other for distance, other in by_distance if distance <= _allowed(wanted)]
    return near + [other for other in names if other not in near and _is_part(wanted, _folded(other))]


def _is_part(wanted: str, name: str) -> bool:
    """Whether a name was cut short: its beginning, some of its words in any order, or four letters in a row of it."""
    if len(wanted) > 1 and name.startswith(wanted):
        return True
    return set(wanted.split("_")) <= set(name.split("_")) or (len(wanted) > 3 and wanted in name)


def _folded(name: str) -> str:
    return name.replace("-", "_").lower()


def _allowed(name: str) -> int:
    """How many letters may be wrong: one of four, two of eight, three of twelve and more; none of three or fewer."""
    return min(3, len(name) // 4)


def _distance(name: str, other: str) -> int:
    """How many letters must be put in, taken out, replaced or swapped with the next (Damerau and Levenshtein)."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(name, 1):
        now = [row]
        for column, mate in enumerate(other, 1):
            best = min(last[column] + 1, now[-1] + 1, last[column - 1] + (letter != mate))
            if row > 1 and column > 1 and letter == other[column - 2] and name[row - 2] == mate:
                best = min(best, before[column - 2] + 1)
            now.append(best)
        before, last = last, now
    return last[-1]
