"""What a reduction preserves: a failure, a finding, a command's success, or a difference between two compiles.

What makes the thing to keep of the first compile of a text is of type `KeptOf`: None if it is not so there.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from irscope.analysis.findings.find import OF_SASS, findings_of
from irscope.analysis.findings.model import KINDS
from irscope.analysis.findings.studied import Studied
from irscope.analysis.passes.ablation import count_capture
from irscope.analysis.passes.effects import count_text
from irscope.analysis.reduce.model import Likeness, likeness_of, without_place
from irscope.analysis.resources import instruction_families
from irscope.device.measurement import Session
from irscope.errors import DAMAGE, RecordingError, UsageError, did_you_mean
from irscope.model.capture import Capture, Failure, PassSnapshot
from irscope.record.process.annotations import disassembled
from irscope.record.process.requests import RecordRequest
from irscope.record.variants.pool import Judge
from irscope.store.file import SUFFIX, save

_OF_TTGIR, _OF_ASSEMBLY = ("IRS201", "IRS202", "IRS302"), ("IRS101", "IRS102", "IRS103", "IRS401")
"""Findings that are known before the binary."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One thing that is true of the capture, and of every smaller one that is accepted."""

    text: str
    """In words."""
    judge: Judge
    """Whether it is true of a request."""
    likeness: Likeness | None = None
    """Of the failure, if it is one."""
    last_stage: str = ""
    """How far a compile must go; empty for the binary."""
    layouts: bool = False
    """Whether the layouts must be known."""
    lasts: bool = True
    """Whether what a request comes to is the same the next time."""

    def text_of(self, made: Capture) -> str:
        """The same in words, with the figures of a smaller capture: it may need fewer bytes, and fails alike."""
        if self.likeness is None or made.failure is None or not self.likeness.is_of(made.failure):
            return self.text
        return _failure_text(made.failure)


KeptOf = Callable[[RecordRequest, Capture], Kept | None]


def if_it_holds(kept: Kept) -> KeptOf:
    """What was true of a capture, if it is so of a text."""
    return lambda request, capture: kept if kept.judge(request, (capture,)) is True else None


def failing_alike(recorded: Capture) -> KeptOf:
    """The failure of a capture; where its passes ran together, and it does not tell which failed, as a text tells."""
    kept = kept_failure(recorded)

    def of(request: RecordRequest, capture: Capture) -> Kept | None:
        if kept.judge(request, (capture,)) is True:
            return kept
        return kept_failure(capture) if _is_close(recorded.failure, capture.failure) else None

    return of


def _is_close(one: Failure | None, other: Failure | None) -> bool:
    """Whether two failures differ at most in that only one of them tells the pass."""
    if one is None or other is None or one.stage != other.stage or (one.pass_label and other.pass_label):
        return False
    return likeness_of(replace(one, pass_label="")) == likeness_of(replace(other, pass_label=""))


def kept_failure(capture: Capture) -> Kept:
    """The failure of a capture; raises UsageError where it has none."""
    failure = capture.failure
    if failure is None:
        raise UsageError(
            f"{capture.name} ({capture.id[:8]}) did not fail: give what to preserve, one of --check CMD, --finding "
            "CODE, --vs KEY=VALUE."
        )
    likeness = likeness_of(failure)
    holds = _of_one(lambda other: likeness.is_of(other.failure))
    # What does not fit has been made.
    stage = "" if failure.kind == "fit" else failure.stage
    return Kept(_failure_text(failure), holds, likeness, stage)


def _failure_text(failure: Failure) -> str:
    if failure.kind == "timeout":
        return f"it hangs in {failure.where}"
    return f"it {failure.verdict}: {without_place(failure.headline)}"


def _of_one(holds: Callable[[Capture], bool]) -> Judge:
    return lambda request, made: holds(made[0]) if made else request


def kept_finding(capture: Capture, code: str) -> Kept:
    """That a finding of a code is among those of the capture; raises UsageError where it is not."""
    code = next((one.code for one in KINDS.values() if code in (one.code, one.name)), code)
    if code not in KINDS:
        raise UsageError(f"--finding {code!r}: no finding has that code.{did_you_mean(code, KINDS)}")
    if code in OF_SASS:
        capture = disassembled(capture)
    codes = [*dict.fromkeys(one.code for one in findings_of(capture))]
    if code not in codes:
        said = ", ".join(codes) or "none"
        raise UsageError(f"{capture.name} ({capture.id[:8]}) has no finding {code}: it has {said}.")
    assembly = {"cuda": "ptx", "hip": "amdgcn"}.get(capture.target.backend, "")
    last_stage = "ttgir" if code in _OF_TTGIR else assembly if code in _OF_ASSEMBLY else ""

    def holds(other: Capture) -> bool:
        if not other.has_compiled:
            return False
        try:
            studied = Studied(disassembled(other) if code in OF_SASS else other)
            return any(one.code == code for one in findings_of(studied))
        except DAMAGE:
            return False

    return Kept(f"it has a finding {code} ({KINDS[code].name})", _of_one(holds), None, last_stage, layouts=True)


def kept_meaning(capture: Capture, snapshot: PassSnapshot) -> Kept:
    """That a pass changes what the kernel means, on the arguments of the capture's launch; raises UsageError."""
    from irscope.verify.meaning import compare_texts

    if snapshot.stage not in ("ttir", "ttgir"):
        raise UsageError(f"--meaning {snapshot.label}: only passes of ttir and ttgir are compared.")

    def changes(other: Capture) -> bool:
        for one in other.passes():
            before, after = other.text_before(one), other.text_after(one)
            if one.name != snapshot.name or before is None or after is None or before == after:
                continue
            try:
                if compare_texts(capture, before, after).answer == "changed":
                    return True
            except UsageError:
                # It has other parameters.
                continue
        return False

    return Kept(f"{snapshot.label} changes the meaning", _of_one(changes), None, snapshot.stage)


def kept_check(command: str, timeout_s: float, echo: Callable[[str], None] | None) -> Kept:
    """That a shell command exits with 0, as that of `ablate --check` does if it is good; failed compiles count too."""
    from irscope.analysis.passes.bisection import command_check

    def holds(capture: Capture) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"candidate{SUFFIX}")
            save(capture, path)
            judge = command_check(command, tuple(capture.passes()), timeout_s, echo)
            return judge(capture, path).judgement == "good"

    return Kept(f"{command!r} exits with 0", _of_one(holds), lasts=False)


def refuse_lost(
    capture: Capture, what: str, tried: Sequence[str], unread: Sequence[str] = (), made: Capture | None = None
) -> RecordingError:
    """The error where what is to be kept is not true of the capture when it is compiled again.

    `tried`: the texts that were compiled. `unread`: those that MLIR does not read. `made`: what the last gave.
    """
    if not tried:
        failure = capture.failure
        does_not_parse = failure is not None and failure.kind == "parse"
        names = [f"the {failure.stage}"] if failure is not None and does_not_parse else unread
        why = "the capture holds no IR"
        if names:
            why = f"the installed Triton cannot parse {' and '.join(names)}, and only IR that it parses can be reduced"
        advice = ""
        if capture.launch.kernel.source and not does_not_parse:
            advice = " irscope reduce --python-output FILE reduces the Python text of the kernel."
        return RecordingError(f"{capture.name} ({capture.id[:8]}): {what}, but {why}: nothing to reduce.{advice}")
    return RecordingError(
        f"{capture.name} ({capture.id[:8]}): {what}, but not when it is compiled again from "
        f"{' or '.join(tried)} with Triton as it is installed here"
        f"{_how_it_ended(made)}: nothing to reduce. "
        "irscope show CAPTURE says which version recorded it."
    )


def _how_it_ended(made: Capture | None) -> str:
    if made is None:
        return ""
    if made.failure is None:
        return " (it compiled)"
    return f" (it {made.failure.verdict}: {without_place(made.failure.headline)})"


Compile = Callable[[RecordRequest], Capture]
OtherSide = Callable[[RecordRequest], RecordRequest]
"""The request for the other side of a comparison."""
_COUNTS = ("instructions", "registers", "spills", "shared")
_STAGES = ("ttir", "ttgir", "ptx", "amdgcn")
differing_figures = ("outcome", *_STAGES, *_COUNTS)
"""What `--differs` takes."""
# function_type = (!tt.ptr<f32>, i32) -> ()
_ARGUMENTS = re.compile(r"function_type = (?P<type>\(.*?\) -> |!llvm\.func<[^>]*)")


def kept_difference(
    other: OtherSide, words: str, figure: str, compile_one: Compile, session: Session | None = None
) -> KeptOf:
    """What makes the thing to keep of the first compile: how its two sides differ.

    `other`: the request for the other side of one. `words`: what it changes. `figure`: what must differ. `session`: if
    the launch's result must. Raises UsageError for another figure.
    """
    if figure not in differing_figures:
        raise UsageError(
            f"--differs {figure!r}: write {', '.join(differing_figures)}.{did_you_mean(figure, differing_figures)}"
        )

    def of(request: RecordRequest, capture: Capture) -> Kept | None:
        if figure in _STAGES and capture.has_compiled and figure not in capture.stages:
            # The text is of this stage, or of a later one.
            return None
        wanted = _difference(capture, compile_one(other(request)), figure, session)
        if wanted is None:
            return None
        judge = _side_judge(other, figure, wanted, session, _arguments(request))
        return Kept(f"{wanted.text}; the other side is {words}", judge, None, last_stage(figure, session is not None))

    return of


def _side_judge(other: OtherSide, figure: str, wanted: _Difference, session: Session | None, arguments: str) -> Judge:
    """Compiles the side that fails first, and the other one only where the first is as it should be."""
    first = 1 if wanted.sides[0] is None and wanted.sides[1] is not None else 0

    def judge(request: RecordRequest, made: tuple[Capture, ...]) -> RecordRequest | bool:
        if not made and session is not None and _arguments(request) != arguments:
            # It could not be launched as the script does.
            return False
        if len(made) == 1 and _failing(made[0], figure) != wanted.sides[first]:
            return False
        if len(made) < 2:
            return request if len(made) == first else other(request)
        return _difference(made[first], made[1 - first], figure, session) == wanted

    return judge


def last_stage(figure: str, runs: bool) -> str:
    """How far both sides must be compiled; empty for the binary. `runs`: whether they are launched."""
    return figure if figure in _STAGES and not runs else ""


def _arguments(request: RecordRequest) -> str:
    found = _ARGUMENTS.search(request.text)
    return found["type"] if found else ""


@dataclass(frozen=True, slots=True)
class _Difference:
    text: str
    sides: tuple[Likeness | None, Likeness | None] = (None, None)
    """How each fails; None for one that compiles."""


def _failing(capture: Capture, figure: str) -> Likeness | None:
    """How a side fails; what does not fit on the GPU has been compiled, and its figures are there."""
    if capture.failure is None or (capture.has_compiled and figure != "outcome"):
        return None
    return likeness_of(capture.failure)


def _difference(one: Capture, other: Capture, figure: str, session: Session | None) -> _Difference | None:
    sides = left, right = _failing(one, figure), _failing(other, figure)
    if left != right:
        if session is not None or any(side is not None and side.kind == "parse" for side in sides):
            return None
        return _Difference(f"{_outcome(left)}, and the other side {_outcome(right)}", sides)
    if left is None and session is not None:
        first, second = (session.check(_of_launch(side, session.baseline)).passes for side in (one, other))
        words = ("its output is that of the launch", "its output differs")
        rows = words if first else words[::-1]
        return _Difference(f"{rows[0]}, and the other side: {rows[1]}") if first != second else None
    if left is not None or figure == "outcome":
        return None
    if figure in _COUNTS:
        first, second = (getattr(count_capture(side), figure) or 0 for side in (one, other))
        sign = ">" if first > second else "<"
        return _Difference(f"{figure} {sign} those of the other side") if first != second else None
    first, second = _operations(one, figure), _operations(other, figure)
    return _Difference(f"the operations of {figure} are not those of the other side") if first != second else None


def _of_launch(capture: Capture, base: Capture) -> Capture:
    """A side as what it is, a variant of the launch: its text names no constants."""
    known = base.launch
    return replace(capture, launch=replace(capture.launch, signature=known.signature, constants=known.constants))


def _outcome(likeness: Likeness | None) -> str:
    return "it compiles" if likeness is None else f"it fails in {likeness}"


def _operations(capture: Capture, stage: str) -> object:
    if stage in ("ptx", "amdgcn"):
        return instruction_families(replace(capture, artifacts=(capture.artifact(stage),)))
    return count_text(capture.text(stage)).operations
