"""`irscope report`: writes captures as one HTML page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from irscope.cli import app, options
from irscope.cli.output.destination import write_output
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import captures_of, run_compile
from irscope.cli.subject.recording import recorded
from irscope.cli.subject.stored import readable
from irscope.errors import UsageError
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.completing import with_operations
from irscope.render.text.failure import failure_text
from irscope.store.shelf import StoredCaptures

_output = options.in_panel("Output")
_SCRIPT = "irscope.script_arguments"


class _ReportCommand(TyperCommand):
    """Separates the arguments after `--`, which are for the script, from the captures."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_SCRIPT] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])


@app.command(cls=_ReportCommand, rich_help_panel="Compare")
@recorded(without=("arguments",))
def report(
    context: typer.Context,
    subjects: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE[::KERNEL]|CAPTURE]…",
            help="Python files, IR files, .irscope files, ids of stored captures, or 'last'. Arguments after -- are "
            "for the script.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[Path, _output("--output", "-o", metavar="FILE", help="The page to write.")] = Path("report.html"),
    show: Annotated[bool, _output("--open", help="Open the page in the browser.")] = False,
    operations: Annotated[
        bool,
        _output("--operations", help="Compile the TTGIR again to find which operation each instruction is from."),
    ] = False,
    title: Annotated[str, _output("--title", metavar="TEXT", help="The title of the page.", show_default=False)] = "",
    *,
    record_options: RecordingOptions,
) -> int:
    """Write one HTML file with every pass, stage and layout; it needs no server and no network.

    irscope report last shows the last recording. A page of several captures compares any two of them.
    """
    record_options = replace(record_options, arguments=tuple(context.meta[_SCRIPT]))
    if output.is_dir():
        raise UsageError(
            f"-o {str(output)!r} is a folder: give the name of the page, such as {str(output / 'report.html')!r}."
        )
    from irscope.render.report.page import render_report

    captures = StoredCaptures(
        file for subject in subjects or ["last"] for file in captures_of(subject, record_options).files
    )
    if len(captures) > 1:
        captures = StoredCaptures(file for file in captures.files if readable(file) is not None)
    for file in captures.files if operations else ():
        file.put(with_operations(file.load(), run=run_compile, tell=say), None)
    page = render_report(captures, title=title).encode("utf-8", "surrogateescape")
    write_output(output, page)
    count = "1 capture" if len(captures) == 1 else f"{len(captures)} captures"
    say(f"wrote {output}: {count}, {len(page) / 1e6:.2f} MB")
    if show:
        typer.launch(output.resolve().as_uri())
    for file in captures.files:
        if file.status == "failed":
            say(failure_text(file.load()))
    return 0
