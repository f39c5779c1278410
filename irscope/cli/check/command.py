"""`irscope check`: fails where a kernel breaks an assertion, or is worse than a baseline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from irscope import __version__
from irscope.cli import app, options
from irscope.cli.check.assertions import Asserted, with_assertions
from irscope.cli.output.destination import Destination, with_destination, write_output
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import captures_of
from irscope.cli.subject.named import is_program
from irscope.cli.subject.recording import recorded
from irscope.cli.subject.stored import readable
from irscope.errors import UsageError
from irscope.model.recording_options import RecordingOptions
from irscope.store.shelf import StoredCaptures

if TYPE_CHECKING:
    from irscope.analysis.checks.results import Against, Report

_baseline = options.in_panel("Baseline")
_output = options.in_panel("Output")
_FORMATS = ("text", "github")


@app.command(rich_help_panel="Compare")
@recorded(without=("llvm",), several=True)
@with_destination
@with_assertions
def check(
    subjects: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE[::KERNEL]|CAPTURE|COLLECTION]…",
            help="What is checked: every launch of a Python file, an IR file, a capture, a collection. Default: last.",
            show_default=False,
        ),
    ] = None,
    *,
    asserted: Asserted,
    baseline: Annotated[
        Path | None,
        _baseline("--baseline", metavar="FILE", help="Fail where a fact of a kernel is worse than in this file."),
    ] = None,
    update_baseline: Annotated[
        bool, _baseline("--update-baseline", help="Write the file of --baseline: what is now is good.")
    ] = False,
    tolerance: Annotated[
        list[str] | None,
        _baseline(
            "--tolerance",
            metavar="FACT=N[%]",
            help="How much worse a fact may be: registers=4, instruction_count=10%; repeatable. With --update-baseline "
            "it is kept in the file.",
        ),
    ] = None,
    form: Annotated[
        str, _output("--format", metavar="text|github", help="github: annotations of the lines of a pull request.")
    ] = "text",
    sarif: Annotated[
        Path | None, _output("--sarif", metavar="FILE", help="Also write SARIF, which code scanning reads.")
    ] = None,
    markdown: Annotated[
        Path | None, _output("--markdown", metavar="FILE", help="Also write a summary for a pull request.")
    ] = None,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Fail where a kernel breaks an assertion, or got worse than a baseline: a guard for tests and CI.

    Each breach is shown with its line of Python, its cause and the IR around. That kernels compile is always asserted.
    """
    if form not in _FORMATS:
        raise UsageError(f"--format {form!r}: write {' or '.join(_FORMATS)}.")
    if (update_baseline or tolerance) and baseline is None:
        raise UsageError("--update-baseline and --tolerance are about the file of --baseline: give it.")
    assertions = asserted.all()
    against = _against(baseline, update_baseline, tolerance or [], subjects or [], record_options)
    asked = replace(record_options, disassemble=False)
    is_lean = against is None and not asserted.needs_findings
    captures = StoredCaptures(
        file for one in subjects or [None] for file in captures_of(one, _lean(one, asked) if is_lean else asked).files
    )
    from irscope.api.checks import check_captures
    from irscope.cli.check.golden import golden_of_each, write_golden

    golden = asserted.golden or []
    if asserted.update:
        write_golden(golden, captures)
    of_each = golden_of_each(golden, captures) if golden else None
    report = check_captures(captures, assertions, against, of_each, read=readable, tell=say)
    if against is not None and against.is_written:
        _write_baseline(against, report)
    _emit(report, form, sarif, markdown, to)
    return int(not report.passed)


def _lean(subject: str | None, asked: RecordingOptions) -> RecordingOptions:
    """The options with which a program is recorded whose findings are not asked for: half the cost of others."""
    if not is_program(subject, asked) or asked.snapshots != "triton":
        return asked
    return replace(asked, snapshots="none", layouts=False)


def _against(
    path: Path | None, updates: bool, tolerances: list[str], subjects: list[str], record_options: RecordingOptions
) -> Against | None:
    if path is None:
        return None
    from irscope.analysis.checks.results import Against, read_tolerances
    from irscope.model.evidence import Baseline
    from irscope.store.baseline import load_baseline

    held = Baseline() if updates and not path.exists() else load_baseline(path)
    merged = {name: str(one) for name, one in read_tolerances([*held.tolerances, *tolerances]).items()}
    held = replace(held, tolerances=tuple(f"{name}={text}" for name, text in merged.items()))
    is_whole = record_options.launch is None and not any("::" in one for one in subjects)
    return Against(str(path), held, read_tolerances(held.tolerances), is_whole, updates)


def _write_baseline(against: Against, report: Report) -> None:
    from irscope.record.triton.versions import triton_version
    from irscope.store.baseline import save_baseline

    kernels = {} if against.is_whole else {name: dict(rows) for name, rows in against.baseline.kernels.items()}
    for name, rows in report.facts.items():
        kernels.setdefault(name, {}).update(rows)
    written = replace(against.baseline, kernels=kernels, triton_versions=(triton_version(),))
    save_baseline(written, Path(against.path))
    count = sum(len(rows) for rows in kernels.values())
    say(
        f"wrote {against.path}: {count} variant{'s' * (count != 1)} of {len(kernels)} kernel{'s' * (len(kernels) != 1)}"
    )


def _emit(report: Report, form: str, sarif: Path | None, markdown: Path | None, to: Destination) -> None:
    from irscope.render.checks import render_report, report_json

    root = Path.cwd()
    if sarif is not None:
        from irscope.render.checks import sarif_log

        write_output(sarif, f"{_plain_json(sarif_log(report, root, __version__))}\n".encode())
    if markdown is not None:
        from irscope.render.checks import render_markdown

        write_output(markdown, render_markdown(report, root).encode("utf-8", "replace"))
    if form == "github" and not to.as_json:
        from irscope.cli.output.destination import emit
        from irscope.render.checks import render_github

        emit(render_github(report, root), to.path)
        return
    to.emit(lambda: report_json(report), lambda _, color: render_report(report, color=color))


def _plain_json(value: dict[str, object]) -> str:
    import json

    return json.dumps(value, indent=2)
