"""`irscope sweep`: compiles captures in all ways that are asked for, and tabulates what came of each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from irscope.cli import app, options
from irscope.cli.output.destination import Destination
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import captures_of
from irscope.cli.subject.named import is_program
from irscope.cli.subject.recording import recorded
from irscope.cli.subject.variants import progress_bar
from irscope.errors import IrscopeError, UsageError, did_you_mean
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.completing import tell_origin
from irscope.store.shelf import StoredCaptures

if TYPE_CHECKING:
    from irscope.model.trial import SweepRow

_ways = options.in_panel("What is compiled")
_work = options.in_panel("How it is done")
_output = options.in_panel("Output")


@app.command(rich_help_panel="Effect of passes")
@recorded(only=("timeout",))
def sweep(
    subjects: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COLLECTION[::KERNEL]|CAPTURE|FILE]…", help="What is compiled again.", show_default=False
        ),
    ] = None,
    versus: Annotated[
        list[str] | None,
        _ways(
            "--vs",
            metavar="KEY=VALUE[,VALUE]",
            help="num_warps=2,8, target=cuda:100, any compile option, BLOCK=64,128 of a tl.constexpr of a FILE's "
            "kernels, or triton=PATH of another interpreter or environment; repeatable. Each value of each key goes "
            "with all others, and with the capture's own.",
        ),
    ] = None,
    plans: Annotated[
        list[str] | None,
        _ways("--plan", metavar="FILE|PLAN", help="A plan to compile under, such as -combine; repeatable."),
    ] = None,
    scheduler: Annotated[
        str,
        _work(
            "--scheduler",
            metavar="tcp://HOST:PORT",
            help="A dask cluster. Default: processes here.",
            show_default=False,
        ),
    ] = "",
    jobs: Annotated[
        int | None, _work("--jobs", "-j", min=1, metavar="N", help="Processes here. Default: the cores.")
    ] = None,
    fresh: Annotated[
        bool, _work("--fresh", help="Compile all of it, also what the table has already, or an ended run began.")
    ] = False,
    output: Annotated[
        Path, _output("--output", "-o", metavar="TABLE", help="The table: .parquet, .csv or .json.")
    ] = Path("sweep.parquet"),
    show: Annotated[
        Path | None, _output("--show", metavar="TABLE", help="Summarise a table that is there.", show_default=False)
    ] = None,
    by: Annotated[
        str, _output("--by", metavar="FIGURE", help="What compiles are ranked by: registers, spilled_bytes, ….")
    ] = "registers",
    as_json: options.AsJson = False,
    color: options.Color = None,
    *,
    record_options: RecordingOptions,
) -> int:
    """Compile captures in all ways with all others, on all cores or a cluster, and write one table of what came of it.

    Each row is kept as soon as it is there: the same command goes on where it was ended, and compiles nothing twice.
    """
    from irscope.analysis.sweep import CRITERIA, summary_of
    from irscope.render.text.variants import render_summary, summary_json
    from irscope.store.table import check_table, load_table

    if by not in CRITERIA:
        raise UsageError(f"--by {by!r}: write {', '.join(CRITERIA)}.{did_you_mean(by, CRITERIA, or_all=False)}")
    if show is not None:
        if subjects or versus or plans:
            raise UsageError("--show summarises a table that is there: give no captures and no ways with it.")
        rows = load_table(show)
    else:
        check_table(output)
        rows = _swept(subjects or ["last"], versus or [], plans or [], scheduler, jobs, fresh, output, record_options)
        say(f"wrote {output}: {len(rows)} rows")
    summary = summary_of(rows, by)
    Destination(None, as_json, color).emit(
        lambda: summary_json(summary), lambda width, color: render_summary(summary, width=width, color=color)
    )
    # A compile that fails is a result; work that was lost is not.
    return int(any(one.failure == "worker" for one in rows))


def _swept(
    subjects: list[str],
    versus: list[str],
    plans: list[str],
    scheduler: str,
    jobs: int | None,
    fresh: bool,
    output: Path,
    record_options: RecordingOptions,
) -> tuple[SweepRow, ...]:
    from irscope.api.sweep import client_of
    from irscope.api.sweep import sweep as run_sweep
    from irscope.cli.sweep.points import points_of, with_constants
    from irscope.store.table import Journal, load_table, save_table

    points = points_of(versus, plans)
    # Their source is compiled: what else a recording would make of them is made when it is looked at.
    record_options = replace(record_options, disassemble=False, layouts=False)
    captures = StoredCaptures(file for one in subjects for file in captures_of(one, record_options).files)
    points = with_constants(points, captures)
    for one in captures:
        tell_origin(one, say)
    of_constants = {
        constants: _recorded_with(constants, subjects, record_options) if constants else captures
        for constants in dict.fromkeys(one.constants for one in points)
    }
    journal, known = Journal(output), ()
    if fresh:
        journal.remove()
    elif output.is_file():
        try:
            known = load_table(output)
        except IrscopeError as error:
            say(f"{error} It is written anew.")
    ways = f"{len(captures)} captures in {len(points)} ways"
    with progress_bar() as bar, client_of(scheduler, jobs) as client:
        task = bar.add_task(ways, total=None)
        failures = 0

        def progress(done: int, total: int, row: SweepRow | None) -> None:
            nonlocal failures
            failures += row is not None and row.status != "ok"
            if row is None and done:
                say(f"{done} of {total} are there already.")
            told = f"{ways}; {failures} failed" if failures else ways
            bar.update(task, completed=done, total=total, description=told)

        rows = run_sweep(
            client, of_constants, points, journal, known, timeout_s=record_options.timeout_s, progress=progress
        )
    save_table(rows, output)
    journal.remove()
    return tuple(rows)


def _recorded_with(
    constants: tuple[tuple[str, str], ...], subjects: list[str], record_options: RecordingOptions
) -> StoredCaptures:
    """The captures of programs, recorded again with other tl.constexpr values; raises UsageError for a stored one."""
    if held := [one for one in subjects if not is_program(one, record_options)]:
        raise UsageError(
            f"--vs {constants[0][0]}=…: it is a tl.constexpr, which decides the IR that captures hold, and {held[0]!r} "
            "is no program that could be recorded again: give the FILE."
        )
    asked = replace(record_options, constants=constants)
    return StoredCaptures(file for one in subjects for file in captures_of(one, asked).files)
