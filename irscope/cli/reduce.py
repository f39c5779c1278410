"""`irscope reduce`: shrinks the IR of a capture as long as a criterion holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
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
    kept_meaning,
    last_stage,
)
from irscope.api.reduction.run import Reduction, ReductionOrigin, origins_of, python_case
from irscope.api.texts import one_pass
from irscope.cli.command import AsJson, Output, Subject
from irscope.cli.keeping import refuse_untrusted
from irscope.cli.launches import one_capture, program_request, session_without_gpu, why_no_gpu
from irscope.cli.output import STANDARD_OUTPUT, emit, emit_json, write_output
from irscope.cli.recording import interpreter_at, option_value, versus_pair
from irscope.cli.streams import echo, progress, say
from irscope.device.measurement import Session
from irscope.errors import UsageError
from irscope.interruption import Interrupted, signal_of
from irscope.model.capture import Capture, PassSnapshot, Target
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.process.requests import RecordRequest
from irscope.record.variants.pool import VariantPool

_LIMIT_S = 20.0
_LEAST_OF_HANG_S = 2.0
_MUCH_LONGER = 10
"""A compile hangs that takes so many times longer than all that ended in the capture: no candidate is larger."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The property to preserve.

    Options:
        --check CMD: This shell command exits with 0, as for ablate --check. {capture} and $IRSCOPE_CAPTURE are the
            candidate's file: irscope show {capture} --stage ptx | grep -q wgmma
        --finding CODE: irscope why has this finding: IRS401, spills, …
        --meaning PASS[#N]: This pass changes the kernel's meaning, as verify --passes reports.
        versus = --vs KEY=VALUE: It differs from the same text compiled with plan='-coalesce -pipeline', num_warps=8,
            target=cuda:80 or triton=PYTHON; repeatable.
        --differs FIGURE: --vs: what differs, where both compile: outcome (nothing: one must fail), ttir, ttgir, ptx,
            amdgcn, instructions, registers, spills or shared.
        --result: With --vs: one side writes the launch's results, the other does not.
        --limit SECONDS (0.1..): Time limit of a candidate. Default: 20; for a hang 2, or ten times the longest compile.
        --fresh: Test the candidates of an earlier call again.
    """

    check: str | None = None
    finding: str | None = None
    meaning: str | None = None
    versus: list[str] | None = None
    differs: str = "outcome"
    result: bool = False
    limit: float | None = None
    fresh: bool = False

    def __post_init__(self) -> None:
        rows = {"--check": self.check, "--finding": self.finding, "--meaning": self.meaning, "--vs": self.versus}
        given = [name for name, value in rows.items() if value is not None]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} are several criteria: give one.")
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
        python: bool,
    ) -> tuple[Reduced | None, ReducedPython | None]:
        """Reduce launch `number` of a subject: its IR, unless it has none, and if that is asked for its Python text."""
        if python:
            # Before all else: what cannot be done is said at once.
            python_case(capture)
        limit_s = self.limit or default_limit_s(capture)
        meaning = one_pass(capture, self.meaning) if self.meaning is not None else None
        with ExitStack() as stack:
            pool = stack.enter_context(VariantPool(jobs=record_options.jobs, timeout_s=limit_s))
            if self.versus:
                kept_of, what = self._difference(stack, pool, subject, record_options, capture, number)
            else:
                kept_of, what = self._alone(capture, meaning, limit_s, echo if record_options.verbose else None)
            ir = None
            if origins or not python:
                stage = meaning.stage if meaning is not None else last_stage(self.differs, self.result)
                level = "triton" if meaning is not None else "none"
                ir = Reduction(pool, capture, kept_of, what, told, self.fresh, stage, level).run(origins)
            text = None
            if python and (ir is None or ir.is_complete):
                try:
                    text = Reduction(pool, capture, kept_of, what, told).run_python()
                except (Interrupted, KeyboardInterrupt) as stop:
                    if ir is None:
                        raise
                    ir = replace(ir, signal=signal_of(stop))
            return ir, text

    def _alone(
        self, capture: Capture, meaning: PassSnapshot | None, limit_s: float, talk: Callable[[str], None] | None
    ) -> tuple[KeptOf, str]:
        if meaning is None and self.check is None and self.finding is None:
            kept = kept_failure(capture)
            hangs = kept.likeness is not None and kept.likeness.kind == "timeout"
            return failing_alike(capture), f"{kept.text} (--limit {limit_s:g})" if hangs else kept.text
        if meaning is not None:
            kept = kept_meaning(capture, meaning)
        elif self.check is not None:
            kept = kept_check(self.check, limit_s, talk)
        else:
            kept = kept_finding(capture, self.finding or "")
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
        session: Session | None = None
        if self.result:
            if why_no_gpu(subject, record_options, capture):
                session = session_without_gpu(capture)
            else:
                from irscope.api.gpu import launch_on_gpu

                session = stack.enter_context(launch_on_gpu(program_request(subject, record_options), capture, number))
        versus = self.versus or []
        words = " ".join(versus)
        kept_of = kept_difference(partial(changed, versus=versus), words, self.differs, pool.compile_one, session)
        return kept_of, f"it differs from {words}"


def reduce(
    subject: Subject = None,
    *,
    wanted: _Wanted,
    stage: str | None = None,
    before: str | None = None,
    output: Output = None,
    markdown: Path | None = None,
    python: Path | None = None,
    trust: bool = False,
    as_json: AsJson = False,
    record_options: RecordingOptions,
) -> int:
    """Reduce a kernel to the smallest IR that still has a failure, a finding, or what a command checks.

    Operations, regions, arguments, attributes and passes are removed as long as the criterion holds. MLIR
    verifies every candidate, and a separate process compiles it. Ctrl-C writes the smallest result so far.

    Options:
        --stage, -s source|ttir|ttgir: Reduce this stage's IR. Default: the IR before the pass that fails, else the
            latest from which it still does.
        --before PASS[#N]: Reduce the IR as this pass finds it.
        --markdown FILE: Write a text for an issue: IR, commands, versions.
        python = --python-output FILE: Also reduce the kernel's Python text, by the same rule, and write it here.
        --trust: Let --python-output run the text of a capture that was not recorded here.
    """
    from irscope.render.text.searches import (
        python_file,
        reduced_file,
        reduction_json,
        reduction_markdown,
        reduction_text,
    )  # fmt: skip

    if stage is not None and before is not None:
        raise UsageError("--stage and --before do not go together: a stage's IR, or the IR before a pass.")
    capture, number = one_capture(subject, replace(record_options, disassemble=False))
    if stage is None:
        before = before or wanted.meaning
    if python is not None and not trust:
        refuse_untrusted(capture, "--python-output runs", "what irscope reproduce writes of it")
    origins = origins_of(capture, stage, one_pass(capture, before) if before is not None else None)
    with progress("reduce") as tell:
        told: Callable[[str], None] = tell or (lambda _: None)
        made, text = wanted.reduced(subject, record_options, capture, number, origins, told, python is not None)
    if python is not None and text is not None:
        write_output(python, python_file(text).encode("utf-8", "surrogateescape"))
    if markdown is not None:
        write_output(markdown, reduction_markdown(made, text).encode("utf-8", "surrogateescape"))
    if as_json:
        emit_json(reduction_json(made, text), output)
    elif output is not None and made is not None:
        write_output(output, reduced_file(made).encode("utf-8", "surrogateescape"))
    elif made is not None and STANDARD_OUTPUT not in (markdown, python):
        emit(reduced_file(made), exact=True)
    for line in reduction_text(made, text):
        say(line)
    if signal := next((one.signal for one in (made, text) if one is not None and one.signal), 0):
        return 128 + signal
    return 0 if made is None or made.is_steady else 1


def changed(request: RecordRequest, versus: Sequence[str]) -> RecordRequest:
    """The request for the other side; raises UsageError and PlanError."""
    for text in versus:
        key, value = versus_pair(text)
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
