"""What a reduction gave, and when two failures are the same one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from irscope.analysis.reduce.program import Case
from irscope.analysis.reduce.python import PythonCase
from irscope.model.capture import Capture, Failure, FailureKind, PassSnapshot


@dataclass(frozen=True, slots=True)
class CaseSize:
    """How big a case is."""

    operations: int
    """The module and its functions included."""
    characters: int
    """Of the text in MLIR's custom form, without locations."""
    passes: int
    """How many may run, as far as they are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """What a search ended with."""

    capture: Capture
    """What it began with."""
    kept: str
    """What is still true of it, in words."""
    versions: tuple[tuple[str, str], ...]
    """(program, version) of what compiles it."""
    failure: Failure | None
    """How it fails; None where what is kept is no failure."""
    taken: tuple[tuple[str, int], ...]
    """(step, how many places it shrank), in the order in which they first helped."""
    compiled: int
    """How many candidates were compiled."""
    seconds: float
    signal: int = 0
    """The signal that interrupted it, so that the smallest may not be found yet; 0 for none."""

    @property
    def is_complete(self) -> bool:
        return not self.signal


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced(_Result):
    """The smallest IR that was found."""

    origin: str
    """The text that it began with: `before ttgir:pipeline#1`, `stage ttir`."""
    into: str
    """The stage whose passes run on the text."""
    before: CaseSize
    after: CaseSize
    case: Case
    text: str
    """The reduced text in MLIR's custom form."""
    passes: tuple[PassSnapshot, ...]
    """Those that run on it, up to the failure."""
    repeated: int
    """How many candidates were known already."""
    goes_on: bool = True
    """Whether what was found out of candidates is kept for the next time."""
    is_steady: bool = True
    """False if what is kept was not so when the result was compiled again, three times."""
    hangs_after_s: float = 0.0
    """The time limit of a candidate, where what is kept is that it hangs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReducedPython(_Result):
    """The smallest Python text of a kernel that was found."""

    case: PythonCase
    lines_before: int
    """Without comments and blank lines."""
    options: tuple[tuple[str, Any], ...]

    @property
    def lines(self) -> int:
        """Without comments and blank lines."""
        return sum(1 for line in self.case.text.splitlines() if line.strip())


# kernel.py:24:1: error: 'tt.load' op …   |  ptxas kernel.ptx, line 5; error   : Not a name …
_BEFORE = re.compile(r"^.*?\b(?:error|fatal)\s*: ")
# (FMA.cpp:28, Multiplier::multiply)
_PLACE = re.compile(r"\((?P<file>[\w.+-]+):\d+(?P<rest>[^()]*)\)$")
# "/tmp/x.ttgir"   /tmp/tmpab12.ptx
_PATH = re.compile(r"""(?:/[\w.+-]+){2,}""")
# failed to legalize operation 'cf.br' that was explicitly marked illegal: "cf.br"(%0)[^bb1] : (i32) -> ()
_OPERATION = re.compile(r': (?:%[^"=]* = )?"[\w.]+"\(.*$')
# tensor<64x32xf16, #blocked>   !ttg.memdesc<…>   #ttg.blocked<{…}>; the innermost of what is nested
_TYPE = re.compile(r"(?P<name>\b(?:tensor|vector|memref|memdesc|struct)|[!#]\w+(?:\.\w+)*)<(?:[^<>]|->)*>")
# ('i32')   'tensor'   '!tt.ptr': of several types the compiler names one or another
_QUOTED = re.compile(r"'(?:i\d+|b?f\d+\w*|index|tensor|vector|!\w+(?:\.\w+)*)'")
# @triton.language.standard.zeros__Tc32
_SYMBOL = re.compile(r"@[\w.$-]+")
# %acc_12#1  |  #blocked3  |  !type2  |  ^bb4
_NAME = re.compile(r"[%^][\w$.-]+(?:#\d+)?|(?<!\w)[#!][A-Za-z_]\w*\b(?![.<])")
# %r12, %rd3, %p1, %f7 of PTX, and $L__BB0_2; not %clusterid.x, which is one register of the GPU
_VIRTUAL = re.compile(r"%[a-z]{1,3}\d+\b|\$L_\w+")
# 131072, 1.5e-3; not that of sm_90a or gfx942, which is another target
_NUMBER = re.compile(r"(?P<target>\b(?:sm_|compute_|gfx)\w+)|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Likeness:
    """What two failures have in common if they are the same one."""

    kind: FailureKind
    where: str
    """The pass without its number, or the stage; empty if that is not known."""
    said: str
    """The first line of the message, without what `plain_message` leaves out."""

    def __str__(self) -> str:
        return ": ".join(filter(None, [self.where or self.kind, self.said]))

    def is_of(self, failure: Failure | None) -> bool:
        return failure is not None and likeness_of(failure) == self


def likeness_of(failure: Failure) -> Likeness:
    """What must be the same of another failure."""
    where = failure.pass_label.partition("#")[0] or failure.stage
    # A time-out says how long it took.
    said = "" if failure.kind == "timeout" else plain_message(failure.headline, _names_of(failure))
    return Likeness(failure.kind, where, said)


def without_place(line: str) -> str:
    """A line of a message without the place in a file that it begins with."""
    return _BEFORE.sub("", line.strip())


def _names_of(failure: Failure) -> re.Pattern[str]:
    """What is a name that a program chose, in the messages of what failed: of an assembler its virtual registers."""
    return _VIRTUAL if failure.kind == "assembler" else _NAME


def plain_message(line: str, names: re.Pattern[str] = _NAME) -> str:
    """A line of a message without what differs between programs that fail alike: numbers, names, places, and what the
    brackets of types hold."""
    line = _PLACE.sub(lambda match: f"({match['file']}{match['rest']})", without_place(line))
    line = _OPERATION.sub("", line)
    while (shorter := _TYPE.sub(r"\g<name>", line)) != line:
        line = shorter
    for pattern, text in ((_QUOTED, "TYPE"), (_PATH, "PATH"), (_SYMBOL, "@"), (names, "%")):
        line = pattern.sub(text, line)
    line = _NUMBER.sub(lambda match: match["target"] or "N", line)
    return " ".join(line.split())
