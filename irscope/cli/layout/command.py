"""`irscope layout`: which thread holds which element, as a table, a picture, a page or JSON, and what it costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from irscope.cli import app, options
from irscope.cli.grouped import grouped
from irscope.cli.layout.arguments import LayoutCommand
from irscope.cli.output.destination import colored, emit, emit_json, table_width, width
from irscope.cli.output.pictures import Looks, is_folder, write_picture, write_pictures
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import captures_of, run_compile, tell_unknown
from irscope.cli.subject.recording import recorded
from irscope.errors import UsageError, did_you_mean
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions

if TYPE_CHECKING:
    from irscope.layout.described import DescribedLayout
    from irscope.render.layout.figure import Figure

_CHOOSE = "Which layouts"
_TEXT = "A layout as text"
_SHOW = "Output"
_FORMATS = ("terminal", "svg", "png", "html", "json")


@app.command(rich_help_panel="Inspect", cls=LayoutCommand)
@recorded(without=("num_stages", "enable_only", "plan", "snapshots", "llvm"))
@grouped("looks", Looks)
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
        list[str] | None,
        typer.Option(
            "--compare",
            metavar="A [B]",
            help="Two layouts of one shape: what moves from A to B, or A's accesses of B and their bank conflicts. "
            "With one, the first is the encoding that is given.",
            rich_help_panel=_CHOOSE,
        ),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option("--shape", metavar="128x64", help="Of a layout that is given as text.", rich_help_panel=_TEXT),
    ] = None,
    threads_per_warp: Annotated[
        int | None,
        typer.Option(
            "--threads-per-warp",
            metavar="32|64",
            help="Of a layout that is given as text. Default: as its text says, which the target need not have.",
            rich_help_panel=_TEXT,
        ),
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
    memory: Annotated[
        bool,
        typer.Option(
            "--memory",
            help="Shared and tensor memory over time: who holds what, and the peak.",
            rich_help_panel=_SHOW,
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
    looks: Looks,
    record_options: RecordingOptions,
) -> int:
    """Show which thread holds which element, where it lies in shared memory, and what that costs.

    With nothing chosen it lists every layout of the kernel.
    """
    from irscope.cli.layout.memory import show_memory
    from irscope.cli.layout.subject import Typed, given_layouts, layouts_of_capture, layouts_of_file
    from irscope.layout.described import choose_layouts

    form = _format(form, output, as_json)
    names = [*(layouts or ()), *(compare or ())]
    paint = colored(color) and output is None
    capture: Capture | None = None
    as_text = (subject or "").startswith("#") or (subject is None and shape is not None and compare is not None)
    if compare is not None and len(compare) + ((subject or "").startswith("#")) != 2:
        raise UsageError("--compare needs two layouts: '#A' '#B' of a kernel, or another one than the encoding given.")
    if as_text:
        texts = [*([subject] if subject is not None else []), *(compare or ())]
        found = chosen = given_layouts(texts, Typed(shape, dtype, threads_per_warp, from_file), record_options)
    else:
        if shape is not None or threads_per_warp is not None:
            raise UsageError(
                f"{'--shape' if shape is not None else '--threads-per-warp'} goes with a layout that is given as text: "
                "irscope layout '#ttg.blocked<{…}>' --shape 128x64."
            )
        if from_file is not None:
            found = layouts_of_file(from_file, record_options.targets)
        else:
            captures = captures_of(subject, record_options, of_one=True)
            if len(captures) > 1:
                say(f"{subject} made {len(captures)} launches; this is the first. --launch N chooses another.")
            capture = captures[0]
            if memory:
                return show_memory(capture, form, output, looks, paint, subject, record_options)
            found = layouts_of_capture(capture, after)
        chosen = choose_layouts(found, names=names, value=value, operation=operation, line=line)
    if memory:
        raise UsageError("--memory needs a kernel: a file or a capture.")
    if verify:
        return _verify(chosen, as_json, output)
    if costs:
        return _show_costs(capture, as_json, output, paint, callers)
    if form == "html":
        return _show_page(capture if after is None else None, found, chosen, color_by, compare is not None, output)
    picked = bool(names or value or operation or line is not None or as_text)
    if not picked and form in ("terminal", "json"):
        return _show_table(found, form, output, paint, callers)
    return _show_pictures(chosen, form, color_by, compare is not None, output, looks, paint)


def _format(form: str | None, output: Path | None, as_json: bool) -> str:
    if as_json:
        return "json"
    if form is None:
        suffix = output.suffix.removeprefix(".") if output is not None else ""
        return "svg" if is_folder(output) else suffix if suffix in _FORMATS else "terminal"
    if form not in _FORMATS:
        raise UsageError(f"--format {form!r}: write {', '.join(_FORMATS)}.{did_you_mean(form, _FORMATS)}")
    return form


def _show_table(found: list[DescribedLayout], form: str, output: Path | None, paint: bool, callers: bool) -> int:
    from irscope.layout.described import as_json
    from irscope.render.layout.terminal import layout_table

    if form == "json":
        emit_json([as_json(item, full=False) for item in found], output)
    else:
        emit(layout_table(found, width=table_width(output), color=paint, callers=callers), output, painted=paint)
    return 0


def _show_costs(capture: Capture | None, as_json: bool, output: Path | None, paint: bool, callers: bool) -> int:
    from irscope.cli.layout.conflict_counts import with_compilers_count
    from irscope.memory import costs
    from irscope.record.variants.completing import with_layouts, with_operations
    from irscope.render.layout.terminal import cost_table

    if capture is None:
        raise UsageError("--costs needs a kernel: a file or a capture.")
    found = costs.costs_of(with_operations(with_layouts(capture), sass=False, run=run_compile, tell=say))
    found = with_compilers_count(found, capture.target, capture.launch.option("num_warps", 4))
    if as_json:
        emit_json(costs.as_json(found), output)
    else:
        emit(cost_table(found, width=table_width(output), color=paint, callers=callers), output, painted=paint)
    tell_unknown(capture)
    return 0


def _show_page(
    capture: Capture | None,
    found: list[DescribedLayout],
    chosen: list[DescribedLayout],
    color_by: str | None,
    compared: bool,
    output: Path | None,
) -> int:
    """Write the page: the capture, or layouts alone, opened at the first of the chosen ones."""
    from irscope.cli.layout.conflict_counts import compilers_ways
    from irscope.cli.output.page import emit_report
    from irscope.render.report.facts import between_layouts, capture_of_layouts

    shown = [*found, *(item for item in chosen if item not in found)]
    pair = (chosen[-2], chosen[-1]) if compared else None
    first, *others = (shown.index(item) for item in pair or chosen)
    view: dict[str, object] = {"tab": "layouts", "layout": first + 1}
    between = {}
    if pair is not None:
        view["versus"] = others[0] + 1
        there, back = between_layouts(*pair, compilers_ways(*pair))
        between = {(first, others[0]): there, (others[0], first): back}
    if color_by is not None:
        view["color"] = color_by
    whole = capture_of_layouts(shown) if capture is None else replace(capture, layouts=tuple(one.row for one in shown))
    emit_report([whole], view, output, between=between)
    return 0


def _show_pictures(
    chosen: list[DescribedLayout],
    form: str,
    color_by: str | None,
    compared: bool,
    output: Path | None,
    looks: Looks,
    paint: bool,
) -> int:
    from irscope.cli.layout.conflict_counts import compilers_ways
    from irscope.layout.described import as_json
    from irscope.memory.between import between_as_json

    pair = (chosen[-2], chosen[-1]) if compared else None
    ways = compilers_ways(*pair) if pair is not None else None
    if form == "json":
        rows = [as_json(item) for item in chosen]
        if pair is not None:
            for row, (first, second) in zip(rows[-2:], (pair, pair[::-1]), strict=True):
                row["comparison"] = between_as_json(first, second, ways)
        emit_json(rows, output)
        return 0
    figures = _figures(chosen, pair, color_by, ways)
    if form == "terminal":
        from irscope.render.layout.terminal import render_beside, render_terminal

        if compared:
            text = render_beside(figures, width=width(), color=paint)
        else:
            text = "\n".join(render_terminal(figure, width=width(), color=paint) for figure in figures)
        emit(text, output, painted=paint)
        return 0
    from irscope.render.layout.svg import render_svg

    if output is not None and is_folder(output) and not compared:
        write_pictures(((_file_name(one), render_svg([one], looks.theme)) for one in figures), form, output, looks)
    else:
        write_picture(render_svg(figures, looks.theme, beside=compared), form, output, looks)
    return 0


def _file_name(figure: Figure) -> str:
    """`mma-128x64`, of a title such as `#mma · mma v3 · 128×64 f32 f16`."""
    parts = figure.title.split(" · ")
    return f"{parts[0]}-{parts[-1].split(' ')[0]}" if len(parts) > 1 else figure.title


def _figures(
    chosen: list[DescribedLayout],
    pair: tuple[DescribedLayout, DescribedLayout] | None,
    color_by: str | None,
    ways: int | None,
) -> list[Figure]:
    from irscope.render.layout.comparison import make_pair
    from irscope.render.layout.figure import make_figure, make_lines_figure

    if pair is not None:
        return list(make_pair(*pair, color_by, ways))
    both = [(make_figure(item, color_by), make_lines_figure(item)) for item in chosen]
    return [figure for figures in both for figure in figures if figure is not None]


def _verify(found: list[DescribedLayout], as_json: bool, output: Path | None) -> int:
    from irscope.record.layouts.verify import verify_layouts

    reports = verify_layouts(found)
    if as_json:
        emit_json([report.as_json() for report in reports], output)
    else:
        emit("\n".join(str(report) for report in reports), output)
    return 0 if all(report.agrees for report in reports) else 1
