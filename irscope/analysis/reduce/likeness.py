"""When two failures are the same one: the pass and the message, apart from numbers, types, names and places."""

from __future__ import annotations

import re
from dataclasses import dataclass

from irscope.model.capture import Failure, FailureKind

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
        """Whether a failure is the same one."""
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
