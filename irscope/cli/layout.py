"""`irscope layout`: who owns which element, as a table, a picture, a page or JSON, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from irscope.capture import Capture, Target
from irscope.cli import app, options
from irscope.cli.output import colored, emit, emit_json, emit_page, width, write_output
from irscope.cli.recording import recorded
from irscope.cli.subject import How, captures_of
from irscope.cli.talk import say
from irscope.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from irscope.layout.described import DescribedLayout
    from irscope.layout.rows import Row

_CHOOSE = "Which layouts"
_TEXT = "A layout as text"
_SHOW = "Output"
_FORMATS = ("terminal", "svg", "png", "html", "json")


@app.command(rich_help_panel="Look into it")
@recorded(without=("num_stages", "enable_only", "plan", "snapshots", "llvm"))
def layout(
    subject: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE[::KERNEL]|CAPTURE|'#ENCODING']",
            help="A Python file with kernels, a capture, 'last', or an encoding as TTGIR writes it.",
            show_default=False,
        ),
    ] = None,
    layouts: Annotated[
        list[str] | None,
        typer.Option(
            "--layout",
            "-l",
            metavar="'#ALIAS[@128x64]'",
            help="Show this one; repeatable. A kind, such as nvidia_mma, is understood too.",
            rich_help_panel=_CHOOSE,
        ),
    ] = None,
    value: Annotated[
        str | None, typer.Option("--value", metavar="%NAME", help="The layout of a value.", rich_help_panel=_CHOOSE)
    ] = None,
    operation: Annotated[
        str | None, typer.Option("--op", metavar="tt.dot", help="The layouts of an operation.", rich_help_panel=_CHOOSE)
    ] = None,
    line: Annotated[
        int | None, typer.Option("--line", metavar="N", help="The layouts of a Python line.", rich_help_panel=_CHOOSE)
    ] = None,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="PASS[#N]", help="Layouts as a pass left them.", rich_help_panel=_CHOOSE),
    ] = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--compare",
            metavar="A B",
            help="Two layouts of one shape, with the elements that move marked.",
            rich_help_panel=_CHOOSE,
        ),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option("--shape", metavar="128x64", help="Of a layout that is given as text.", rich_help_panel=_TEXT),
    ] = None,
    dtype: Annotated[
        str, typer.Option("--dtype", help="Its element type: f16, f32, i8, …", rich_help_panel=_TEXT)
    ] = "f16",
    from_file: Annotated[
        Path | None,
        typer.Option("--from", metavar="X.ttgir", help="Layouts and aliases of a TTGIR file.", rich_help_panel=_TEXT),
    ] = None,
    costs: Annotated[
        bool,
        typer.Option(
            "--costs", help="Rank global and shared accesses and conversions by what they waste.", rich_help_panel=_SHOW
        ),
    ] = False,
    callers: Annotated[
        bool,
        typer.Option(
            "--callers", help="In tables, each line of Python with the lines that call it.", rich_help_panel=_SHOW
        ),
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check the maps on the GPU, element by element.", rich_help_panel=_SHOW)
    ] = False,
    color_by: Annotated[
        str | None,
        typer.Option("--color-by", metavar="warp|lane|register|bank|vector", rich_help_panel=_SHOW, show_default=False),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar="|".join(_FORMATS),
            help="Default: as -o's suffix says, else the terminal.",
            rich_help_panel=_SHOW,
        ),
    ] = None,
    output: options.Output = None,
    as_json: options.AsJson = False,
    color: options.Color = None,
    *,
    asked: How,
) -> int:
    """Show which thread holds which element, where it lies in shared memory, and what that costs.

    With nothing chosen it lists every layout of the kernel.
    """
    form = _format(form, output, as_json)
    chosen_names = [*(layouts or ()), *(compare or ())]
    capture: Capture | None = None
    if subject is not None and subject.startswith("#"):
        found = [_given(subject, shape, dtype, from_file, asked)]
        chosen = found
    else:
        if shape is not None:
            raise UsageError(
                "--shape goes with a layout that is given as text: irscope layout '#ttg.blocked<{…}>' --shape 128x64."
            )
        if from_file is not None:
            found = _of_file(from_file, asked.targets)
        else:
            capture = _one(captures_of(subject, asked), subject)
            found = _of_capture(capture, after)
        chosen = _choose(found, chosen_names, value, operation, line)
    if verify:
        return _verify(chosen or found, as_json, output)
    if costs:
        return _show_costs(capture, as_json, output, color, callers)
    picked = bool(chosen_names or value or operation or line is not None or (subject or "").startswith("#"))
    if not picked and form in ("terminal", "json"):
        return _show_table(found, form, output, color, callers)
    return _show_pictures(chosen, form, color_by, compare is not None, output, color)


def _format(form: str | None, output: Path | None, as_json: bool) -> str:
    if as_json:
        return "json"
    if form is None:
        suffix = output.suffix.removeprefix(".") if output is not None else ""
        return suffix if suffix in _FORMATS else "terminal"
    if form not in _FORMATS:
        raise UsageError(f"--format {form!r}: write {', '.join(_FORMATS)}.{did_you_mean(form, _FORMATS)}")
    return form


def _one(captures: Sequence[Capture], subject: str | None) -> Capture:
    if len(captures) > 1:
        say(f"{subject} made {len(captures)} launches; this is the first. --launch N chooses another.")
    return captures[0]


def _given(text: str, shape: str | None, dtype: str, file: Path | None, asked: How) -> DescribedLayout:
    from irscope.layout.described import DescribedLayout
    from irscope.layout.encoding import read_aliases, resolve_aliases
    from irscope.record.layouts import ask_layout

    if shape is None:
        raise UsageError("a layout that is given as text needs a shape: --shape 128x64.")
    sizes = tuple(int(part) for part in shape.lower().replace("×", "x").split("x") if part.isdigit())
    if not sizes or len(sizes) != len(shape.lower().replace("×", "x").split("x")):
        raise UsageError(f"--shape {shape!r} is no shape: write sizes with x between them, such as 128x64.")
    if file is not None:
        text = resolve_aliases(text, read_aliases(_read(file)))
    target = Target.parse(asked.targets[0] if asked.targets else "cuda:90")
    warps, ctas = asked.options.get("num_warps"), asked.options.get("num_ctas", 1)
    return DescribedLayout.of(ask_layout(text, sizes, warps, target, dtype, num_ctas=ctas), target)


def _read(file: Path) -> str:
    return file.read_text("utf-8", "replace")


def _of_file(file: Path, targets: Sequence[str]) -> list[DescribedLayout]:
    import re

    from irscope.layout.described import describe
    from irscope.record.layout_answers import layouts_of_text

    text = _read(file)
    # ttg.target = "cuda:90"
    named = re.search(r'ttg\.target = "([^"]+)"', text)
    target = Target.parse(targets[0] if targets else (named[1] if named else "cuda:90"))
    return describe(layouts_of_text(text, target), target)


def _of_capture(capture: Capture, after: str | None) -> list[DescribedLayout]:
    from irscope.layout.described import describe

    rows: Sequence[Row] = [dict(row) for row in capture.layouts]
    if after is not None:
        from irscope.cli.stages import one_pass, snapshot_text
        from irscope.record.layout_answers import layouts_of_text

        text = snapshot_text(capture, one_pass(capture, after), before=False)
        rows = layouts_of_text(text, capture.target, rows)
    elif not rows and "ttgir" in capture.stages:
        from irscope.record.layout_answers import layouts_of_text

        rows = layouts_of_text(capture.text("ttgir"), capture.target)
    found = describe(rows, capture.target)
    if not found:
        raise UsageError(
            f"{capture.name} ({capture.target}) has no layouts: they stand in TTGIR, and it holds "
            f"{', '.join(capture.stages)}."
        )
    return found


def _choose(
    found: list[DescribedLayout], names: list[str], value: str | None, operation: str | None, line: int | None
) -> list[DescribedLayout]:
    from irscope.layout.choose import choose_layouts

    return choose_layouts(found, names=names, value=value, operation=operation, line=line)


def _show_table(found: list[DescribedLayout], form: str, output: Path | None, color: bool | None, callers: bool) -> int:
    from irscope.layout.described import as_json
    from irscope.render.layout_table import layout_table

    if form == "json":
        emit_json([as_json(item, full=False) for item in found], output)
    else:
        paint = colored(color) and output is None
        emit(layout_table(found, width=width(), color=paint, callers=callers), output, painted=paint)
    return 0


def _show_costs(capture: Capture | None, as_json: bool, output: Path | None, color: bool | None, callers: bool) -> int:
    from irscope.layout import costs
    from irscope.record.conflict_counts import with_compilers_count
    from irscope.render.layout_table import cost_table

    if capture is None:
        raise UsageError("--costs needs a kernel: a file or a capture.")
    if not capture.layouts and "ttgir" in capture.stages:
        from irscope.record.layout_answers import layouts_of_text

        capture = capture.with_(layouts=tuple(layouts_of_text(capture.text("ttgir"), capture.target)))
    warps = capture.launch.option("num_warps", 4)
    found = with_compilers_count(costs.costs_of(capture), capture.target, warps)
    if as_json:
        emit_json(costs.as_json(found), output)
    else:
        paint = colored(color) and output is None
        emit(cost_table(found, width=width(), color=paint, callers=callers), output, painted=paint)
    return 0


def _show_pictures(
    chosen: list[DescribedLayout],
    form: str,
    color_by: str | None,
    compared: bool,
    output: Path | None,
    color: bool | None,
) -> int:
    from irscope.layout.described import as_json
    from irscope.render.layout_figure import make_figure

    if form == "json":
        emit_json([as_json(item) for item in chosen], output)
        return 0
    if form == "html":
        from irscope.render.layout_html import render_html

        emit_page(render_html(chosen, compared=compared), output)
        return 0
    if compared:
        first, second = chosen[0], chosen[1]
        figures = [make_figure(first, color_by, second), make_figure(second, color_by, first)]
    else:
        figures = [make_figure(item, color_by) for item in chosen]
    if form == "terminal":
        from irscope.render.layout_terminal import render_terminal

        paint = colored(color) and output is None
        emit(
            "\n".join(render_terminal(figure, width=width(), color=paint) for figure in figures), output, painted=paint
        )
        return 0
    from irscope.render.layout_svg import render_svg

    svg = render_svg(figures)
    if form == "svg":
        emit_page(svg, output)
        return 0
    from irscope.render.layout_png import render_png

    if output is None:
        raise UsageError("a PNG is written to a file: -o picture.png.")
    write_output(output, render_png(svg))
    say(f"wrote {output}")
    return 0


def _verify(found: list[DescribedLayout], as_json: bool, output: Path | None) -> int:
    from irscope.record.layout_verify import verify_layouts

    reports = verify_layouts(found)
    if as_json:
        emit_json([report.as_json() for report in reports], output)
    else:
        emit("\n".join(str(report) for report in reports), output)
    return 0 if all(report.agrees for report in reports) else 1
