"""`irscope report`: captures as one HTML page that anyone can open."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from irscope.cli import app
from irscope.cli.output import write_output
from irscope.cli.recording import recorded
from irscope.cli.subject import How, captures_of, failure_text
from irscope.cli.talk import say
from irscope.errors import UsageError

if TYPE_CHECKING:
    from irscope.capture import Capture

_OUTPUT = "Output"


_SCRIPT = "irscope.script_arguments"


class ReportCommand(TyperCommand):
    """Keeps what stands behind `--` apart: it goes to the script, and is no further capture."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_SCRIPT] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])


@app.command(cls=ReportCommand, rich_help_panel="Compare")
@recorded(without=("arguments",))
def report(
    context: typer.Context,
    subjects: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE[::KERNEL]|CAPTURE]…",
            help="Python files with kernels, IR files, .irscope files, stored captures' ids, or 'last'. "
            "What stands behind -- goes to the script.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write.", rich_help_panel=_OUTPUT)
    ] = Path("report.html"),
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.", rich_help_panel=_OUTPUT)] = False,
    title: Annotated[
        str,
        typer.Option("--title", metavar="TEXT", help="The page's title.", rich_help_panel=_OUTPUT, show_default=False),
    ] = "",
    *,
    asked: How,
) -> int:
    """Write one HTML file that shows every pass, stage, layout and comparison; it needs no server and no network.

    irscope report last shows the capture recorded last; with several captures, any two can be compared in the page.
    """
    asked = replace(asked, arguments=tuple(context.meta[_SCRIPT]))
    if output.is_dir():
        raise UsageError(f"-o {str(output)!r} is a folder: name the page, such as {str(output / 'report.html')!r}.")
    captures = [capture for subject in subjects or ["last"] for capture in captures_of(subject, asked)]
    write_report(captures, output, title)
    if show:
        typer.launch(output.resolve().as_uri())
    for capture in captures:
        if capture.status == "failed":
            say(failure_text(capture))
    return 0


def write_report(captures: list[Capture], output: Path, title: str = "") -> None:
    """Write the page, and say how large it is."""
    from irscope.render.report import render_report

    page = render_report(captures, title=title).encode("utf-8", "surrogateescape")
    write_output(output, page)
    count = "1 capture" if len(captures) == 1 else f"{len(captures)} captures"
    say(f"wrote {output}: {count}, {len(page) / 1e6:.2f} MB")
