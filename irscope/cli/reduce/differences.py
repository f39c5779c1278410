"""A difference between two compiles of one text that a reduction keeps: other passes, options, target or Triton."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from irscope.analysis.passes.ablation import count_capture
from irscope.analysis.passes.effects import count_text
from irscope.analysis.reduce.likeness import Likeness, likeness_of
from irscope.analysis.resources.metrics import instruction_families
from irscope.cli.reduce.kept import Kept, KeptOf
from irscope.cli.subject.recording import interpreter_at, option_value, versus_pair
from irscope.errors import UsageError, did_you_mean
from irscope.model.capture import Capture, Target
from irscope.plan import PassPlan
from irscope.record.process.requests import RecordRequest
from irscope.record.variants.measure import Session

__all__ = ["Compile", "changed", "differing_figures", "kept_difference", "other_interpreter"]

Compile = Callable[[RecordRequest], Capture]
_COUNTS = ("instructions", "registers", "spills", "shared")
_STAGES = ("ttir", "ttgir", "ptx", "amdgcn")
differing_figures = ("outcome", *_STAGES, *_COUNTS)
"""What `--differs` takes."""
# function_type = (!tt.ptr<f32>, i32) -> ()
_ARGUMENTS = re.compile(r"function_type = (?P<type>\(.*?\) -> |!llvm\.func<[^>]*)")


def other_interpreter(versus: Sequence[str]) -> str | None:
    """The Python of `--vs triton=`; None without one."""
    given = dict(versus_pair(text, "--vs") for text in versus).get("triton")
    return None if given is None else str(interpreter_at(given, "--vs triton="))


def changed(request: RecordRequest, versus: Sequence[str]) -> RecordRequest:
    """The request for the other side; raises UsageError and PlanError."""
    for text in versus:
        key, value = versus_pair(text, "--vs")
        if key == "plan":
            request = replace(request, plan=request.plan.joined(PassPlan.parse(value)))
        elif key == "target":
            request = replace(request, targets=(str(Target.parse(value)),))
        elif key in ("config", "kernel"):
            raise UsageError(f"--vs {text}: both sides compile one text, and that needs the script again.")
        elif key != "triton":
            options: dict[str, Any] = {**dict(request.options), key: option_value(value)}
            request = replace(request, options=tuple(options.items()))
    return request


def kept_difference(
    versus: Sequence[str], figure: str, compile_other: Compile, session: Session | None = None
) -> KeptOf:
    """What makes the thing to keep of the first compile: how its two sides differ.

    `figure`: what must differ. `session`: if the launch's result must. Raises UsageError for another figure.
    """
    if figure not in differing_figures:
        raise UsageError(
            f"--differs {figure!r}: write {', '.join(differing_figures)}.{did_you_mean(figure, differing_figures)}"
        )
    text = " ".join(versus)

    def of(request: RecordRequest, capture: Capture) -> Kept | None:
        other = compile_other(changed(request, versus))
        wanted = _difference(capture, other, figure, session)
        if wanted is None:
            return None
        arguments = _arguments(request)

        def holds(request: RecordRequest, capture: Capture) -> bool:
            if session is not None and _arguments(request) != arguments:
                # It could not be launched as the script does.
                return False
            return _difference(capture, compile_other(changed(request, versus)), figure, session) == wanted

        return Kept(f"{wanted[0]}; the other side is {text}", holds, None, _last_stage(figure, session))

    return of


def _last_stage(figure: str, session: Session | None) -> str:
    return figure if figure in _STAGES and session is None else ""


def _arguments(request: RecordRequest) -> str:
    found = _ARGUMENTS.search(request.text)
    return found["type"] if found else ""


_Difference = tuple[str, Likeness | None, Likeness | None]


def _difference(one: Capture, other: Capture, figure: str, session: Session | None) -> _Difference | None:
    """How two sides differ, in words and by their failures; None if they do not."""
    left = None if one.has_compiled or one.failure is None else likeness_of(one.failure)
    right = None if other.has_compiled or other.failure is None else likeness_of(other.failure)
    if left != right:
        if session is not None or (left and left.kind == "parse") or (right and right.kind == "parse"):
            return None
        words = [_outcome(side) for side in (left, right)]
        return f"{words[0]}, and the other side {words[1]}", left, right
    if left is not None or figure == "outcome":
        return None
    if session is not None:
        passes = session.check(one).passes, session.check(other).passes
        return (f"results: {passes}", None, None) if passes[0] != passes[1] else None
    if figure in _COUNTS:
        first, second = (getattr(count_capture(side), figure) or 0 for side in (one, other))
        sign = ">" if first > second else "<"
        return (f"{figure} {sign} those of the other side", None, None) if first != second else None
    first, second = _operations(one, figure), _operations(other, figure)
    return (f"the operations of {figure} are not those of the other side", None, None) if first != second else None


def _outcome(likeness: Likeness | None) -> str:
    return "it compiles" if likeness is None else f"it fails in {likeness}"


def _operations(capture: Capture, stage: str) -> object:
    if stage in ("ptx", "amdgcn"):
        return instruction_families(replace(capture, artifacts=(capture.artifact(stage),)))
    return count_text(capture.text(stage)).operations
