"""`irscope passes`: shows which passes ran, how long each took, and what it changed."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from irscope.analysis.passes.effects import PassEffect, pass_effects
from irscope.cli import app, options
from irscope.cli.output.destination import Destination, under_titles, with_destination
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import captures_with_passes, run_compile, tell_failures
from irscope.cli.subject.recording import recorded
from irscope.errors import PlanError, UsageError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassRule
from irscope.record.variants.completing import with_log
from irscope.render.text.figures import milliseconds

if TYPE_CHECKING:
    from irscope.model.evidence import PassLog

_life = options.in_panel("The life of an operation")
_SLOW_FACTOR = 10
"""A pass that takes this many times the median of those that ran is marked as slow."""


@app.command(rich_help_panel="Passes")
@recorded()
@with_destination
def passes(
    subject: options.Subject = None,
    changed: Annotated[bool, typer.Option("--changed", help="Hide the passes that changed nothing.")] = False,
    stage: Annotated[
        list[str] | None,
        typer.Option(
            "--stage",
            "-s",
            metavar="STAGE",
            help="Only the passes of this stage; repeatable. With --op and --value: at whose end to look.",
        ),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option("--match", metavar="TEXT", help="Only passes whose name or MLIR argument contains this."),
    ] = None,
    log: Annotated[
        bool,
        typer.Option("--log", help="Show what the compiler says of its reasons; it compiles again to say so."),
    ] = False,
    operation: Annotated[
        str | None,
        _life(
            "--op", metavar="NAME", help="Which pass made each convert_layout (or other operation), which removed it."
        ),
    ] = None,
    line: Annotated[
        int | None, _life("--line", metavar="N", min=1, help="With --op: only those of this line of the Python.")
    ] = None,
    value: Annotated[
        str | None,
        _life("--value", metavar="%V", help="Follow this value back to the pass that made it, and on to its end."),
    ] = None,
    at: Annotated[
        str | None,
        _life("--at", metavar="PASS[#N]", help="Look after this pass. Default: at the end of TTGIR, or of --stage."),
    ] = None,
    show_diff: Annotated[bool, _life("--diff", help="With --op and --value: also the change around each.")] = False,
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
        from irscope.cli.passes.lives import Followed, Question

        question = Question(operation, line, value, stage[0] if stage else None, at, show_diff)
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
            return _text(capture, effects(capture), width, color)
        from irscope.render.text.history import log_text

        return log_text(capture, _logs(capture, effects(capture), stage, match), width=width, color=color)

    def as_json(capture: Capture) -> dict[str, Any]:
        data = _json(capture, effects(capture))
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


def _text(capture: Capture, effects: list[PassEffect], width: int | None, color: bool) -> str:
    from irscope.render.text.tables import table

    times = sorted(effect.snapshot.duration_us for effect in effects if effect.snapshot.duration_us is not None)
    slow = max(times[len(times) // 2] * _SLOW_FACTOR, 5000) if times else None
    rows = [_cells(effect, slow) for effect in effects]
    columns = ["stage", "#", "pass", "ms", "", "ops ±", "lines ±", "layouts ±", "convert ±"]
    columns.append("MLIR argument and options")
    return table(columns, rows, width=width, color=color) + _footer(capture, effects)


def _footer(capture: Capture, effects: list[PassEffect]) -> str:
    ran = [effect.snapshot for effect in effects if effect.snapshot.outcome == "ran"]
    total = milliseconds(sum(snapshot.duration_us or 0 for snapshot in ran))
    parts = [f"{len(effects)} passes", f"{sum(1 for item in ran if item.changed)} changed the IR"]
    unknown = sum(1 for item in ran if item.changed is None)
    if unknown:
        parts.append(f"{unknown} not compared (? – --snapshots all does)")
    skipped = sum(1 for effect in effects if effect.snapshot.outcome == "skipped")
    if skipped:
        parts.append(f"{skipped} switched off")
    return f"\n{', '.join(parts)}; {total} ms.\n"


def _cells(effect: PassEffect, slow_us: float | None) -> list[str]:
    snapshot = effect.snapshot
    marks = {"skipped": "OFF", "failed": "FAILED"}
    mark = marks.get(snapshot.outcome) or {True: "changed", False: "", None: "?"}[snapshot.changed]
    duration = snapshot.duration_us
    time = "" if duration is None else milliseconds(duration)
    if duration is not None and slow_us is not None and duration >= slow_us:
        time += " SLOW"
    arguments = snapshot.argument + (f"{{{snapshot.options}}}" if snapshot.options else "")
    return [
        effect.stage_title,
        str(snapshot.index),
        effect.title,
        time,
        mark,
        _signed(effect.operations),
        _signed(effect.lines),
        _signed(effect.layouts),
        _signed(effect.convert_layouts),
        arguments + (f" on {snapshot.scope}" if snapshot.scope else ""),
    ]


def _signed(value: int | None) -> str:
    return "" if not value else f"{value:+d}"


def _json(capture: Capture, effects: list[PassEffect]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for effect in effects:
        row = asdict(effect.snapshot)
        del row["text"]
        row["plan_name"] = str(PassRule(effect.snapshot.name, effect.snapshot.stage, effect.snapshot.occurrence))
        row["text_left_out"] = effect.snapshot.text_left_out
        row |= {
            "lines_change": effect.lines,
            "operations_change": effect.operations,
            "layouts_change": effect.layouts,
            "convert_layouts_change": effect.convert_layouts,
            "by_operation": dict(effect.by_operation),
        }
        rows.append(row)
    return {"id": capture.id, "kernel": capture.name, "target": str(capture.target), "passes": rows}
