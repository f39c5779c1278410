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

import difflib
from collections.abc import Iterable


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


def did_you_mean(name: str, known: Iterable[str], limit: int = 3) -> str:
    """The end of an error message: the nearest of the known names, or all of them where none is near.

    Returns a text such as " Did you mean 'combine'?", starting with a blank.
    """
    names = sorted(set(known))
    near = difflib.get_close_matches(name, names, n=limit, cutoff=0.5)
    # A name that was cut short ("layout" of "remove_layout_conversions") is not close, but is meant.
    near += [other for other in names if name and name in other and other not in near][: limit - len(near)]
    if near:
        return f" Did you mean {' or '.join(repr(other) for other in near)}?"
    return f" Known: {', '.join(names)}." if names else ""
