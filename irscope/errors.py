"""The errors that irscope raises, as one tree.

IrscopeError                the base: every message names the value and the remedy
├── UsageError              the request itself is wrong (exit code 2)
├── CaptureFormatError      a file is not a capture, is damaged, or was written by a newer irscope
├── CaptureNotFound         no stored capture has that id, and no file has that name
├── StageNotFound           the capture has no such stage
├── PlanError               a text is not a plan, or a rule matches no pass
├── TargetError             a text is not a target, or the installed Triton does not support it
├── SignatureError          a signature does not fit the kernel's parameters
├── ParseError              a text cannot be parsed
├── RecordingError          nothing could be recorded; the message quotes the recording process
├── NoDevice                there is no GPU to run on
├── DeviceFault             a launch crashed its process: a fault of the GPU, or a time-out
├── NotRun                  the machine cannot execute a kernel; the message names what is missing
│   ├── NotComputed         control flow depends on elements with unknown values
│   ├── LimitExceeded       a run has more work than its limit
│   └── WaitsForOthers      a program waits for programs that were not executed with it
├── WrongProgram            a kernel does what no kernel may, such as a failed assertion
│   ├── OutOfBounds         an access outside of every storage of the launch
│   └── NeverEnds           a wait or a loop that never ends
├── ToolTooSlow             a program exceeded its limits of processor time or sleep, and was ended
└── MissingTool             a required program or package is not installed
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

_Result = TypeVar("_Result")


class IrscopeError(Exception):
    """The base of all errors that irscope raises on purpose."""

    exit_code = 1


DAMAGE = (IrscopeError, ValueError, KeyError, TypeError, IndexError)
"""What studying a capture may raise whose file was damaged, or says anything."""


def undamaged(study: Callable[[], _Result], default: _Result) -> _Result:
    """The result of analysing a capture; the default for one whose file is damaged or inconsistent."""
    try:
        return study()
    except DAMAGE:
        return default


class UsageError(IrscopeError):
    """The request itself is wrong: options that contradict each other, or name nothing."""

    exit_code = 2


class CaptureFormatError(IrscopeError):
    """A file is not a capture, is damaged, or was written by a newer irscope."""


class CaptureNotFound(IrscopeError):
    """No stored capture has that id, and no file has that name."""


class StageNotFound(IrscopeError):
    """The capture has no such stage."""


class PlanError(IrscopeError):
    """A text is not a plan, or one of its rules matches no pass."""


class TargetError(IrscopeError):
    """A text is not a target, or the installed Triton does not support it."""


class SignatureError(IrscopeError):
    """A signature does not fit the kernel's parameters."""


class ParseError(IrscopeError):
    """A text, such as IR, a log or an encoding, cannot be parsed."""


class RecordingError(IrscopeError):
    """Nothing could be recorded; the message quotes the recording process."""


class NoDevice(IrscopeError):
    """There is no GPU to run on; the message says what needs one."""


class DeviceFault(IrscopeError):
    """A launch crashed its process: an illegal access, another fault of the GPU, or a time-out."""


class NotRun(IrscopeError):
    """The machine cannot execute a kernel: the message names the operation, or what else is missing."""


class WrongProgram(IrscopeError):
    """A kernel has a fault: an access out of bounds, a wait that never ends, a failed assertion."""


class OutOfBounds(WrongProgram):
    """An access to global memory is outside of every storage of the launch."""

    def __init__(self, message: str, row: int = 0) -> None:
        """`row`: the place of the program among those that ran together."""
        super().__init__(message)
        self.row = row


class NeverEnds(WrongProgram):
    """A wait or a loop never ends."""

    def __init__(self, message: str, operations: tuple[Any, ...] = ()) -> None:
        """`operations`: of the IR, at which partitions of warps wait."""
        super().__init__(message)
        self.operations = operations


class NotComputed(NotRun):
    """Control flow depends on elements with unknown values."""


class LimitExceeded(NotRun):
    """A run has more work than its limit."""


class WaitsForOthers(NotRun):
    """A program waits for programs that are not executed with it."""


class ToolTooSlow(IrscopeError):
    """A program exceeded its limits of processor time or sleep, and was ended."""


class MissingTool(IrscopeError):
    """A required program or package is not installed."""


def did_you_mean(name: str, known: Iterable[str], limit: int = 3, *, or_all: bool = True) -> str:
    """The end of an error message: the nearest of the known names, or all of them if none is near and `or_all` is set.

    Returns a text such as " Did you mean 'combine'?", which begins with a space.
    """
    names = sorted(set(known))
    near = _near(name, names)[:limit]
    if near:
        return f" Did you mean {' or '.join(repr(other) for other in near)}?"
    return f" Known: {', '.join(names)}." if names and or_all else ""


def _near(name: str, names: Sequence[str]) -> list[str]:
    """The names that a mistyped, shortened or reordered name may mean, the nearest first."""
    wanted = folded(name)
    if not wanted:
        return []
    by_distance = sorted((_distance(wanted, folded(other)), other) for other in names)
    # One letter in four may be another, at most three.
    near = [other for distance, other in by_distance if distance <= min(3, len(wanted) // 4)]
    return near + [other for other in names if other not in near and _is_part(wanted, folded(other))]


def _is_part(wanted: str, name: str) -> bool:
    """Whether `wanted` is part of a name: its beginning, some of its words, or at least four letters of it."""
    if len(wanted) > 1 and name.startswith(wanted):
        return True
    return set(wanted.split("_")) <= set(name.split("_")) or (len(wanted) > 3 and wanted in name)


def folded(name: str) -> str:
    """A name as it is compared: without case, dashes as underscores."""
    return name.replace("-", "_").lower()


def _distance(name: str, other: str) -> int:
    """The Damerau-Levenshtein distance: letters inserted, deleted, replaced, or swapped with the next."""
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


def installed_from() -> dict[str, Any]:
    """What irscope was installed from, if not an index: a folder, wheel or repository (PEP 610, `direct_url.json`)."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return json.loads(distribution("irscope").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return {}


def installing(extra: str) -> str:
    """The command that installs an extra of this irscope: `pip install 'irscope[triton]'`.

    Of one that was installed from a folder, a wheel or a repository, from there: another place may have no irscope, or
    another one.
    """
    origin = installed_from()
    url = str(origin.get("url", ""))
    folder: dict[str, bool] = origin.get("dir_info", {})
    if folder.get("editable"):
        return f"pip install -e '{unquote(urlsplit(url).path)}[{extra}]'"
    if "vcs_info" in origin:
        url = f"{origin['vcs_info']['vcs']}+{url}"
    return f"pip install 'irscope[{extra}]{f' @ {url}' if url else ''}'"
