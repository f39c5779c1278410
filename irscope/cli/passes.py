"""`irscope passes`: which passes ran, what each changed, and the history of an operation or a value through them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from irscope.analysis.passes.effects import PassEffect, pass_effects
from irscope.cli.captures import captures_with_passes, run_compile, tell_failures
from irscope.cli.output import Destination, under_titles
from irscope.cli.parameters import Option, Subject
from irscope.cli.streams import say
from irscope.errors import PlanError, UsageError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.completing import with_log
from irscope.render.text.passes import passes_json, render_passes

if TYPE_CHECKING:
    from irscope.model.evidence import PassLog


def passes(
    subject: Subject = None,
    changed: Annotated[bool, Option("--changed", help="Hide the passes that changed nothing.")] = False,
    stage: Annotated[
        list[str] | None,
        Option(
            "--stage",
            "-s",
            metavar="STAGE",
            help="Only the passes of this stage; repeatable. With --op and --value: look at the end of this stage.",
        ),
    ] = None,
    match: Annotated[
        str | None,
        Option("--match", metavar="TEXT", help="Only passes whose name or MLIR argument contains this."),
    ] = None,
    log: Annotated[
        bool,
        Option("--log", help="Show the compiler's own log, with its reasons; compiles again to get it."),
    ] = False,
    operation: Annotated[
        str | None,
        Option(
            "--op", metavar="NAME", help="Which pass made each convert_layout (or other operation), which removed it."
        ),
    ] = None,
    line: Annotated[
        int | None, Option("--line", metavar="N", min=1, help="With --op: only those of this line of the Python.")
    ] = None,
    value: Annotated[
        str | None,
        Option("--value", metavar="%V", help="Follow this value back to the pass that made it, and on to its end."),
    ] = None,
    at: Annotated[
        str | None,
        Option("--at", metavar="PASS[#N]", help="Look after this pass. Default: at the end of TTGIR, or of --stage."),
    ] = None,
    show_diff: Annotated[bool, Option("--diff", help="With --op and --value: also the change around each.")] = False,
    *,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """List the passes: stage, number, name, MLIR argument and options, time, and what each changed.

    With --target and no file: the pipeline of that target, from compiling a small kernel that irscope brings.
    """
    follows = operation is not None or value is not None
    if follows and (changed or log or match is not None or len(stage or ()) > 1):
        raise UsageError(
            "--changed, --log, --match and several --stage are for the list of passes, not for --op, --value."
        )
    if not follows and (line is not None or at is not None or show_diff):
        raise UsageError("--line, --at and --diff go with --op NAME or --value %V.")
    captures = captures_with_passes(subject, replace(record_options, disassemble=False))
    if follows:
        from irscope.api.following import Followed, Question

        question = Question(operation, line, value, stage[0] if stage else None, at, show_diff, run_compile, say)
        to.emit(
            lambda: [Followed(capture, question).as_json() for capture in captures],
            lambda width, color: under_titles(captures, lambda one: Followed(one, question).as_text(width, color)),
        )
        return tell_failures(captures)
    for file in captures.files if log else ():
        file.put(with_log(file.load(), run=run_compile, tell=say), None)

    def effects(capture: Capture) -> list[PassEffect]:
        return _chosen_effects(capture, changed, stage, match)

    def text(capture: Capture, width: int | None, color: bool) -> str:
        if not log:
            return render_passes(capture, effects(capture), width=width, color=color)
        from irscope.render.text.history import log_text

        return log_text(capture, _logs(capture, effects(capture), stage, match), width=width, color=color)

    def as_json(capture: Capture) -> dict[str, Any]:
        data = passes_json(capture, effects(capture))
        if log and capture.log is not None:
            from irscope.render.text.history import log_json

            data["log"] = log_json(capture, _logs(capture, effects(capture), stage, match))
            data["log_differs"] = list(capture.log.differing)
        return data

    to.emit(
        lambda: list(map(as_json, captures)),
        lambda width, color: under_titles(captures, lambda one: text(one, width, color)),
    )
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
            not match
            or any(_folded(match) in _folded(name) for name in (effect.snapshot.name, effect.snapshot.argument))
        )
    ]


def _logs(
    capture: Capture, effects: list[PassEffect], stages: list[str] | None, match: str | None
) -> tuple[PassLog, ...]:
    """The logs of the chosen passes, and of whole stages unless passes were chosen by name."""
    chosen = {(effect.snapshot.stage, effect.snapshot.index) for effect in effects if effect.snapshot.group == "mlir"}
    return tuple(
        item
        for item in (capture.log.passes if capture.log else ())
        if (item.stage, item.index) in chosen
        or (item.index is None and not match and (not stages or item.stage in stages))
    )


def _folded(name: str) -> str:
    return name.lower().replace("-", "_")
