"""`irscope diff`: compares two compilations, or one before and after a pass."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from irscope.cli import app, options
from irscope.cli.output.destination import (
    Destination,
    emit,
    emit_json,
    table_width,
    with_destination,
)
from irscope.cli.output.page import emit_report, is_page
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import captures_of
from irscope.cli.subject.recording import recorded
from irscope.errors import UsageError
from irscope.model.recording_options import RecordingOptions
from irscope.render.text.failure import failure_text

if TYPE_CHECKING:
    from irscope.analysis.diff.captures import Comparison

_compare = options.in_panel("Comparison")
_IGNORABLE = ("locations", "names", "attributes")


@app.command(rich_help_panel="Compare")
@recorded(without=("llvm",))
@with_destination
def diff(
    left: options.Subject = None,
    right: Annotated[
        str | None,
        typer.Argument(metavar="[FILE|CAPTURE|FOLDER]", help="The other side, unless it is a variant of the first."),
    ] = None,
    versus: Annotated[
        list[str] | None,
        _compare(
            "--vs",
            metavar="KEY=VALUE",
            help="A variant that differs in one thing: target=cuda:80, num_warps=8, BLOCK_K=32 (a tl.constexpr), "
            "config=3, kernel=OTHER, triton=PATH of another interpreter; repeatable.",
        ),
    ] = None,
    one_pass: Annotated[
        str | None, _compare("--pass", metavar="PASS[#N]", help="The IR before and after this pass.")
    ] = None,
    between: Annotated[
        tuple[str, str] | None,
        _compare("--between", metavar="PASS PASS", help="The IR after one pass and after another."),
    ] = None,
    stage: Annotated[
        list[str] | None,
        _compare(
            "--stage",
            "-s",
            metavar="STAGE",
            help="Diff the texts of these stages; repeatable. Default: the first that differs.",
        ),
    ] = None,
    schedule: Annotated[
        bool, _compare("--schedule", help="Compare how the SASS is scheduled: stall, yield, barriers, waits, reuse.")
    ] = False,
    side_by_side: Annotated[bool, _compare("--side-by-side", "-y", help="The two texts in two columns.")] = False,
    stat: Annotated[bool, _compare("--stat", help="Only the tables.")] = False,
    context: Annotated[int, _compare("--context", "-U", min=0, help="Unchanged lines around a change.")] = 3,
    ignore: Annotated[
        str, _compare("--ignore", metavar="locations,names,attributes", help="What does not count as a difference.")
    ] = "locations",
    exit_code: Annotated[bool, _compare("--exit-code", help="Exit with 1 if there is a difference, like git.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write an HTML page.", rich_help_panel="Output")
    ] = None,
    *,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Compare two compilations structurally: names, locations and the order of independent operations do not count.

    irscope diff --disable-pass combine compares the launch recorded last with the same launch without that pass.
    """
    if is_page(to.path) and not to.as_json and html is None:
        to, html = replace(to, path=None), to.path
    ignored = options.split_words([ignore])
    if unknown := [word for word in ignored if word not in _IGNORABLE]:
        raise UsageError(f"--ignore {unknown[0]!r}: write {', '.join(_IGNORABLE)}.")
    stages = options.split_words(stage)
    paint = to.is_colored and html is None

    if one_pass is not None or between is not None:
        from irscope.cli.diff.passes import diff_around_passes
        from irscope.cli.dump.stages import one_pass as find_pass

        if one_pass is not None and between is not None:
            raise UsageError("--pass and --between do not go together: give one.")
        if right is not None:
            raise UsageError("--pass and --between compare within one capture: give one.")
        if schedule:
            raise UsageError("--schedule compares machine code, but --pass and --between compare IR: give one.")
        if html is not None:
            if one_pass is None:
                raise UsageError("--between writes no page: the page shows one pass, with --pass.")
            captures = captures_of(left, record_options)
            number = captures[0].snapshots.index(find_pass(captures[0], one_pass)) + 1
            emit_report(captures, {"tab": "passes", "pass": number, **_toggles(ignored, side_by_side)}, html)
            say(f"wrote {html}")
            return 0
        found = diff_around_passes(captures_of(left, record_options), one_pass, between, cast("Any", ignored))
        to.emit(
            lambda: [one.as_json() for one in found],
            lambda columns, color: "\n".join(
                one.as_text(side_by_side=side_by_side, context=context, width=columns, color=color) for one in found
            ),
        )
        return int(exit_code and any(not one.text_diff.is_empty for one in found))

    from irscope.analysis.diff.captures import diff as compare
    from irscope.cli.diff.sides import nothing_to_compare, pairs_of, stages_shown
    from irscope.render.text.diff import comparison_json, render_comparison

    pairs = pairs_of(left, right, record_options, versus or [])
    comparisons: list[tuple[Comparison, list[str]]] = []
    texts: list[str] = []
    for one, other in pairs:
        shown = stages_shown(one, other, stages)
        wanted = None if stages == ["all"] or not shown else [*shown, *(["sass"] if schedule else [])]
        comparison = compare(one, other, ignore=cast("Any", ignored), stages=wanted)
        differing = (row.stage for row in comparison.stages if row.state == "differs" and comparison.diff(row.stage))
        shown = shown or [*differing][:1]
        comparisons.append((comparison, shown))
        if comparison.is_same_compile and (versus or record_options.plan):
            note = nothing_to_compare(one, versus or [], record_options.plan)
            texts.append(f"{note}\n")
            if to.as_json or html is not None:
                say(note)
            continue
        texts.append(
            render_comparison(
                comparison,
                stages=shown,
                width=table_width(to.path),
                color=paint,
                side_by_side=side_by_side,
                stat=stat,
                context=context,
                schedule=schedule,
            )
        )
    if html is not None:
        emit_report([one for pair in pairs for one in pair], _view(stages, ignored, side_by_side), html)
        say(f"wrote {html}")
    elif to.as_json:
        emit_json([comparison_json(comparison, shown) for comparison, shown in comparisons], to.path)
    else:
        emit("\n".join(texts), to.path, painted=paint)
    failed = [capture for pair in pairs for capture in pair if capture.status == "failed"]
    for capture in failed:
        say(failure_text(capture))
    differs = any(
        not comparison.is_empty or (schedule and comparison.schedule is not None and not comparison.schedule.is_empty)
        for comparison, _ in comparisons
    )
    return 1 if failed or (exit_code and differs) else 0


def _view(stages: list[str], ignored: list[str], side_by_side: bool) -> dict[str, object]:
    """The page's view of a comparison."""
    shown = {"stage": stages[0]} if stages and stages != ["all"] else {}
    return {"tab": "compare", "a": 1, "b": 2, **shown, **_toggles(ignored, side_by_side)}


def _toggles(ignored: list[str], side_by_side: bool) -> dict[str, int]:
    """What of the page's diff is switched on."""
    toggles = {"loc": "locations" not in ignored, "bare": "attributes" in ignored, "side": side_by_side}
    return {name: 1 for name, on in toggles.items() if on}
