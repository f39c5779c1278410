"""`irscope passes`: which passes ran, what each changed, and the history of an operation or a value through them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from irscope.analysis.passes.effects import PassEffect, pass_effects
from irscope.cli.captures import captures_with_passes, tell_failures
from irscope.cli.command import Subject
from irscope.cli.output import Destination, draw_or_trace, draws_or_traces
from irscope.errors import PlanError, UsageError, folded
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.completing import with_log, with_times
from irscope.render.text.history import log_json, log_text, passes_json, render_passes

if TYPE_CHECKING:
    from irscope.model.evidence import PassLog


def passes(
    subject: Subject = None,
    changed: bool = False,
    stage: list[str] | None = None,
    match: str | None = None,
    log: bool = False,
    operation: str | None = None,
    line: int | None = None,
    value: str | None = None,
    at: str | None = None,
    show_time: bool = False,
    show_diff: bool = False,
    *,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """List the passes: stage, number, name, MLIR argument and options, time, and what each changed.

    With --target and no file: the pipeline of that target, by compiling a small built-in kernel.

    Options:
        --changed: Hide the passes that changed nothing.
        --stage, -s STAGE: Only the passes of this stage; repeatable. With --op and --value: look at the
            end of this stage.
        --match TEXT: Only passes whose name or MLIR argument contains this.
        --log: Show the compiler's own log, with its reasons; compiles again to get it.
        operation = --op NAME: The passes that created and removed each convert_layout (or another operation).
        --line (1..): With --op: only those of this line of the Python.
        --value %V: Trace this value back to the pass that created it, and on to the pass that removed it.
        --at PASS[#N]: Look after this pass. Default: at the end of TTGIR, or of --stage.
        show_time = --time: Instead: where the compile's time went, by another compile; -o also takes .svg, .trace.json.
        show_diff = --diff: With --op and --value: also the change around each.
    """
    follows = operation is not None or value is not None
    if follows and (changed or log or match is not None or len(stage or ()) > 1):
        raise UsageError(
            "--changed, --log, --match and several --stage are for the list of passes, not for --op, --value."
        )
    if not follows and (line is not None or at is not None or show_diff):
        raise UsageError("--line, --at and --diff go with --op NAME or --value %V.")
    if show_time:
        if follows or changed or log or match is not None or stage:
            raise UsageError(
                "--time shows all of a compile: it takes no --op, --value, --changed, --log, --match, --stage."
            )
        return _times(subject, to, record_options)
    captures = captures_with_passes(subject, replace(record_options, disassemble=False))
    if follows:
        from irscope.api.following import Followed, Question

        question = Question(operation, line, value, stage[0] if stage else None, at, show_diff)
        to.emit_each(
            captures,
            lambda one: Followed(one, question).as_json(),
            lambda one, width, color: Followed(one, question).as_text(width, color),
        )
        return tell_failures(captures)
    for file in captures.files if log else ():
        file.put(with_log(file.load()), None)

    def effects(capture: Capture) -> list[PassEffect]:
        return _chosen_effects(capture, changed, stage, match)

    def text(capture: Capture, width: int | None, color: bool) -> str:
        if not log:
            return render_passes(capture, effects(capture), width=width, color=color)
        return log_text(capture, _logs(capture, effects(capture), stage, match), width=width, color=color)

    def as_json(capture: Capture) -> dict[str, Any]:
        data = passes_json(capture, effects(capture))
        if log and capture.log is not None:
            data["log"] = log_json(capture, _logs(capture, effects(capture), stage, match))
            data["log_differs"] = list(capture.log.differing)
        return data

    to.emit_each(captures, as_json, text)
    return tell_failures(captures)


def _times(subject: str | None, to: Destination, record_options: RecordingOptions) -> int:
    from irscope.render.timing import times_json, times_svg, times_text
    from irscope.render.traces import times_trace

    captures = captures_with_passes(subject, replace(record_options, disassemble=False, times=True))
    for file in captures.files:
        if (capture := file.load()).times is None and capture.has_compiled:
            file.put(with_times(capture), None)
    if to.path is not None and draws_or_traces(to.path):
        draw_or_trace(list(captures), to.path, times_svg, times_trace)
        return tell_failures(captures)
    to.emit_each(captures, times_json, times_text)
    return tell_failures(captures)


def _chosen_effects(capture: Capture, changed: bool, stages: list[str] | None, match: str | None) -> list[PassEffect]:
    """The chosen passes; raises PlanError for a stage in which no pass of the capture ran."""
    effects = list(pass_effects(capture))
    for stage in stages or ():
        known = {effect.snapshot.stage for effect in effects}
        if stage not in known:
            raise PlanError(f"no pass ran in stage {stage!r}: there are {', '.join(sorted(known)) or 'none'}.")
    return [
        effect
        for effect in effects
        if (not stages or effect.snapshot.stage in stages)
        and not (changed and effect.is_idle)
        and (
            not match or any(folded(match) in folded(name) for name in (effect.snapshot.name, effect.snapshot.argument))
        )
    ]


def _logs(
    capture: Capture, effects: list[PassEffect], stages: list[str] | None, match: str | None
) -> tuple[PassLog, ...]:
    chosen = {(effect.snapshot.stage, effect.snapshot.index) for effect in effects if effect.snapshot.group == "mlir"}
    return tuple(
        item
        for item in (capture.log.passes if capture.log else ())
        if (item.stage, item.index) in chosen
        or (item.index is None and not match and (not stages or item.stage in stages))
    )
