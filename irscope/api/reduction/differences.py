"""A difference between two compiles of one text that a reduction keeps: other passes, options, target or Triton."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from irscope.analysis.passes.ablation import count_capture
from irscope.analysis.passes.effects import count_text
from irscope.analysis.reduce.likeness import Likeness, likeness_of
from irscope.analysis.resources.metrics import instruction_families
from irscope.api.reduction.kept import Kept, KeptOf
from irscope.device.measurement import Session
from irscope.errors import UsageError, did_you_mean
from irscope.model.capture import Capture
from irscope.record.process.requests import RecordRequest
from irscope.record.variants.candidates import Judge

__all__ = ["Compile", "OtherSide", "differing_figures", "kept_difference", "last_stage"]

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
        judge = _judge(other, figure, wanted, session, _arguments(request))
        return Kept(f"{wanted.text}; the other side is {words}", judge, None, last_stage(figure, session is not None))

    return of


def _judge(other: OtherSide, figure: str, wanted: _Difference, session: Session | None, arguments: str) -> Judge:
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
    """How two sides differ."""

    text: str
    sides: tuple[Likeness | None, Likeness | None] = (None, None)
    """How each fails; None for one that compiles."""


def _failing(capture: Capture, figure: str) -> Likeness | None:
    """How a side fails; what does not fit on the GPU has been compiled, and its figures are there."""
    if capture.failure is None or (capture.has_compiled and figure != "outcome"):
        return None
    return likeness_of(capture.failure)


def _difference(one: Capture, other: Capture, figure: str, session: Session | None) -> _Difference | None:
    """How two sides differ; None if they do not."""
    sides = left, right = _failing(one, figure), _failing(other, figure)
    if left != right:
        if session is not None or any(side is not None and side.kind == "parse" for side in sides):
            return None
        return _Difference(f"{_outcome(left)}, and the other side {_outcome(right)}", sides)
    if left is None and session is not None:
        first, second = (session.check(_of_launch(side, session.baseline)).passes for side in (one, other))
        words = ("it writes what the launch writes", "it writes something else")
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
