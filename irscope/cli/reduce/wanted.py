"""What the options of `irscope reduce` ask for: what is to be kept, and with which pools it is searched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from irscope.analysis.reduce.model import Reduced, ReducedPython
from irscope.api.reduction.kept import (
    KeptOf,
    failing_alike,
    if_it_holds,
    kept_check,
    kept_difference,
    kept_failure,
    kept_finding,
    last_stage,
)
from irscope.api.reduction.run import Reduction, ReductionOrigin, python_case
from irscope.cli.output.talk import echo
from irscope.cli.subject.device import launch_on_gpu, why_no_gpu
from irscope.cli.subject.recording import interpreter_at, option_value, versus_pair
from irscope.errors import NoDevice, UsageError
from irscope.interruption import Interrupted, signal_of
from irscope.model.capture import Capture, Target
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.process.requests import RecordRequest
from irscope.record.variants.pool import VariantPool

__all__ = ["Wanted", "changed", "default_limit_s"]

_LIMIT_S = 20.0
_LEAST_OF_HANG_S = 2.0
_MUCH_LONGER = 10
"""A compile hangs that takes so many times longer than all that ended in the capture: no candidate is larger."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of one reduction."""

    check: str | None = None
    finding: str | None = None
    versus: tuple[str, ...] = ()
    differs: str = "outcome"
    result: bool = False
    limit_s: float | None = None
    fresh: bool = False
    python: bool = False

    def __post_init__(self) -> None:
        """Raises UsageError for several things to keep, or options that belong to another one."""
        rows = (("--check", self.check), ("--finding", self.finding), ("--vs", self.versus or None))
        given = [name for name, value in rows if value is not None]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} are several things to keep true: give one.")
        if not self.versus and (self.result or self.differs != "outcome"):
            raise UsageError("--differs and --result go with --vs KEY=VALUE, the other side of the comparison.")

    def reduced(
        self,
        subject: str | None,
        record_options: RecordingOptions,
        capture: Capture,
        number: int,
        origins: Sequence[ReductionOrigin],
        told: Callable[[str], None],
    ) -> tuple[Reduced | None, ReducedPython | None]:
        """Reduce launch `number` of a subject: its IR, unless it has none, and if that is asked for its Python text."""
        if self.python:
            # Before all else: what cannot be done is said at once.
            python_case(capture)
        limit_s = self.limit_s or default_limit_s(capture)
        with ExitStack() as stack:
            pool = stack.enter_context(VariantPool(jobs=record_options.jobs, timeout_s=limit_s))
            if self.versus:
                kept_of, what = self._difference(stack, pool, subject, record_options, capture, number)
            else:
                kept_of, what = self._alone(capture, limit_s, echo if record_options.verbose else None)
            ir = None
            if origins or not self.python:
                stage = last_stage(self.differs, self.result)
                ir = Reduction(pool, capture, kept_of, what, told, self.fresh, stage).run(origins)
            text = None
            if self.python and (ir is None or ir.is_complete):
                try:
                    text = Reduction(pool, capture, kept_of, what, told).run_python()
                except (Interrupted, KeyboardInterrupt) as stop:
                    if ir is None:
                        raise
                    ir = replace(ir, signal=signal_of(stop))
            return ir, text

    def _alone(self, capture: Capture, limit_s: float, talk: Callable[[str], None] | None) -> tuple[KeptOf, str]:
        if self.check is None and self.finding is None:
            kept = kept_failure(capture)
            hangs = kept.likeness is not None and kept.likeness.kind == "timeout"
            return failing_alike(capture), f"{kept.text} (--limit {limit_s:g})" if hangs else kept.text
        kept = (
            kept_check(self.check, limit_s, talk)
            if self.check is not None
            else kept_finding(capture, self.finding or "")
        )
        return if_it_holds(kept), kept.text

    def _difference(
        self,
        stack: ExitStack,
        pool: VariantPool,
        subject: str | None,
        record_options: RecordingOptions,
        capture: Capture,
        number: int,
    ) -> tuple[KeptOf, str]:
        session = None
        if self.result:
            if reason := why_no_gpu(subject, record_options, capture):
                raise NoDevice(f"--result runs the kernel. {reason} --differs needs no GPU.")
            session = stack.enter_context(launch_on_gpu(subject, record_options, capture, number))
        kept_of = kept_difference(
            partial(changed, versus=self.versus), " ".join(self.versus), self.differs, pool.compile_one, session
        )
        return kept_of, f"it differs from {' '.join(self.versus)}"


def changed(request: RecordRequest, versus: Sequence[str]) -> RecordRequest:
    """The request for the other side; raises UsageError and PlanError."""
    for text in versus:
        key, value = versus_pair(text, "--vs")
        if key == "plan":
            request = replace(request, plan=request.plan.joined(PassPlan.parse(value)))
        elif key == "target":
            request = replace(request, targets=(str(Target.parse(value)),))
        elif key == "triton":
            request = replace(request, interpreter=str(interpreter_at(value, "--vs triton=")))
        elif key in ("config", "kernel"):
            raise UsageError(f"--vs {text}: both sides compile one text, and that needs the script again.")
        else:
            options: dict[str, Any] = {**dict(request.options), key: option_value(value)}
            request = replace(request, options=tuple(options.items()))
    return request


def default_limit_s(capture: Capture) -> float:
    """The time limit of a candidate. Each that hangs takes all of it, so of a hang it is derived from what ended."""
    if capture.failure is None or capture.failure.kind != "timeout":
        return _LIMIT_S
    ended_s = sum(one.duration_us or 0 for one in capture.artifacts) / 1e6
    ended_s += sum(one.duration_us or 0 for one in capture.passes() if one.stage == capture.failure.stage) / 1e6
    return min(_LIMIT_S, max(_LEAST_OF_HANG_S, _MUCH_LONGER * ended_s))
