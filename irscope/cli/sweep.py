"""`irscope sweep`: compiles captures in every combination of options, and tabulates the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from irscope.cli.captures import captures_of, is_program
from irscope.cli.command import AsJson, Color
from irscope.cli.output import Destination
from irscope.cli.recording import interpreter_at, option_value, plan_text, versus_pair
from irscope.cli.streams import progress_bar, say
from irscope.errors import IrscopeError, PlanError, UsageError, did_you_mean
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.model.trial import Point, SweepRow, combinations
from irscope.record.variants.completing import tell_origin
from irscope.store.shelf import StoredCaptures


def sweep(
    subjects: list[str] | None = None,
    versus: list[str] | None = None,
    scheduler: str = "",
    verify: bool = False,
    fresh: bool = False,
    output: Path = Path("sweep.parquet"),
    show: Path | None = None,
    by: str = "registers",
    as_json: AsJson = False,
    color: Color = None,
    *,
    record_options: RecordingOptions,
) -> int:
    """Compile captures in every combination of options and targets, on all cores or a cluster, into one table.

    Each row is written as soon as it is computed: the same command resumes a sweep, and compiles nothing twice.

    Options:
        subjects = [COLLECTION[::KERNEL]|CAPTURE|FILE]…: What is compiled again.
        versus = --vs KEY=VALUE[,VALUE]: num_warps=2,8, target=cuda:100, any compile option, BLOCK=64,128 of a
            tl.constexpr of a FILE's kernels, plan=-combine (or a FILE with one), or triton=PATH of another interpreter
            or environment; repeatable. Every combination is compiled, with the capture's own values too.
        --scheduler tcp://HOST:PORT: A dask cluster. Default: processes here.
        --verify: A column `meaning`: does each compile mean the same as its IR? docs/verify.md.
        --fresh: Compile everything again, also what the table or an interrupted run has.
        --output, -o TABLE: The table: .parquet, .csv or .json.
        --show TABLE: Summarise an existing table.
        --by FIGURE: What compiles are ranked by: registers, spilled_bytes, …; by compile_us or processor_us each is
            compiled three times, and the shortest counts.
    """
    from irscope.analysis.sweep import COMPILES_FOR_TIME, CRITERIA, TIMES, summary_of
    from irscope.render.text.variants import render_summary, summary_json
    from irscope.store.table import check_table, load_table

    if by not in CRITERIA:
        raise UsageError(f"--by {by!r}: write {', '.join(CRITERIA)}.{did_you_mean(by, CRITERIA, or_all=False)}")
    if show is not None:
        if subjects or versus:
            raise UsageError("--show summarises a table that is there: give no captures and no --vs with it.")
        rows = load_table(show)
    else:
        check_table(output)
        compiles = COMPILES_FOR_TIME if by in TIMES else 1
        rows = _swept(subjects or ["last"], versus or [], scheduler, fresh, output, record_options, verify, compiles)
        say(f"wrote {output}: {len(rows)} rows")
        if verify:
            counts = Counter(one.meaning or "not compiled" for one in rows)
            say(f"meaning: {', '.join(f'{count} {answer}' for answer, count in counts.items())}")
    summary = summary_of(rows, by)
    Destination(None, as_json, color).emit(partial(summary_json, summary), partial(render_summary, summary))
    # A compile that fails is a result, where others do not; work that was lost is none.
    wanted = [one for one in rows if one.vs] or rows
    return int(any(one.failure == "worker" for one in rows) or all(one.failure for one in wanted))


def _swept(
    subjects: list[str],
    versus: list[str],
    scheduler: str,
    fresh: bool,
    output: Path,
    record_options: RecordingOptions,
    verifies: bool = False,
    compiles: int = 1,
) -> tuple[SweepRow, ...]:
    from irscope.api.sweeping import client_of
    from irscope.api.sweeping import sweep as run_sweep
    from irscope.store.table import Journal, load_table, save_table

    points = points_of(versus)
    # Their source is compiled: what else a recording would make of them is made when it is looked at.
    record_options = replace(record_options, disassemble=False, layouts=False)
    captures = StoredCaptures(file for one in subjects for file in captures_of(one, record_options).files)
    points = with_constants(points, captures)
    for one in captures:
        tell_origin(one)
    of_constants = {
        constants: recorded_with(constants, subjects, record_options) if constants else captures
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
    with progress_bar() as bar, client_of(scheduler, record_options.jobs) as client:
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
            client, of_constants, points, journal, known, timeout_s=record_options.timeout_s, progress=progress,
            verifies=verifies, compiles=compiles,
        )  # fmt: skip
    save_table(rows, output)
    journal.remove()
    return tuple(rows)


def recorded_with(
    constants: tuple[tuple[str, str], ...], subjects: Sequence[str | None], record_options: RecordingOptions
) -> StoredCaptures:
    """The captures of programs, recorded again with other tl.constexpr values; raises UsageError for a stored one."""
    if held := [one for one in subjects if not is_program(one, record_options)]:
        raise UsageError(
            f"--vs {constants[0][0]}=…: it is a tl.constexpr, which decides the IR that captures hold, and {held[0]!r} "
            "is not a program that can be recorded again: give the FILE."
        )
    asked = replace(record_options, constants=constants)
    return StoredCaptures(file for one in subjects for file in captures_of(one, asked, becomes_last=False).files)


def points_of(versus: Sequence[str]) -> tuple[Point, ...]:
    """Every combination, the capture's own first; raises UsageError and PlanError."""
    axes: dict[str, list[Any]] = {}
    for text in versus:
        key, value = versus_pair(text)
        if key in ("config", "kernel"):
            raise UsageError(f"--vs {text!r}: it needs the script: irscope record --config all records all.")
        axes.setdefault(key, []).extend(_value(key, one.strip()) for one in value.split(",") if one.strip())
    return combinations(axes)


def with_constants(points: Sequence[Point], captures: Sequence[Capture]) -> tuple[Point, ...]:
    """The points, with the options that are no options of the captures' but tl.constexpr parameters as constants."""
    constants = {name for one in captures for name in one.launch.constexprs}
    return tuple(
        replace(
            point,
            options=tuple(row for row in point.options if row[0] not in constants),
            constants=tuple((name, str(value)) for name, value in point.options if name in constants),
        )
        for point in points
    )


def _value(key: str, text: str) -> Any:
    if key == "target":
        return text
    if key == "plan":
        return _plan(text)
    return interpreter_at(text, "--vs triton=") if key == "triton" else option_value(text)


def _plan(text: str) -> str:
    path = Path(text)
    try:
        is_file = path.is_file()
    except OSError:
        is_file = False
    if not is_file and not text.lstrip().startswith(("-", "+")):
        raise PlanError(f"--vs plan={text} is neither a file nor a plan, such as -combine.")
    return plan_text(text) if is_file else text
