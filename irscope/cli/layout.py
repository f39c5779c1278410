"""`irscope layout`: which thread holds which element, as a table, a picture, a page or JSON, and what it costs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from irscope.cli.captures import captures_of, tell_unknown
from irscope.cli.output import (
    Destination,
    Looks,
    emit,
    emit_json,
    emit_report,
    is_folder,
    table_width,
    width,
    write_picture,
    write_pictures,
)
from irscope.cli.streams import say
from irscope.errors import UsageError, did_you_mean
from irscope.memory.allocation import allocations_of
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.completing import with_layouts, with_operations

if TYPE_CHECKING:
    from irscope.layout.described import DescribedLayout
    from irscope.render.layout.figure import Figure


_FORMATS = ("terminal", "svg", "png", "html", "json")


def layout(
    subject: str | None = None,
    layouts: list[str] | None = None,
    value: str | None = None,
    operation: str | None = None,
    line: int | None = None,
    after: str | None = None,
    compare: str | None = None,
    shape: str | None = None,
    aliases: Path | None = None,
    costs: bool = False,
    memory: bool = False,
    callers: bool = False,
    verify: bool = False,
    color_by: str | None = None,
    form: str | None = None,
    *,
    to: Destination,
    looks: Looks,
    record_options: RecordingOptions,
) -> int:
    """Show which thread holds which element, where it lies in shared memory, and what that costs.

    Without a choice it lists every layout of the kernel. -o FILE.svg, .png or .html draws them; pictures take the
    --format, --theme and --width of irscope draw. For an encoding, --num-warps sets the warps; the threads per warp
    come from its text, from --option threads_per_warp=64, or from --target.

    Options:
        subject = [FILE[::KERNEL]|CAPTURE|'#ENCODING']: A Python file with kernels, a capture, 'last', or an encoding as
            TTGIR writes it.
        layouts = --layout, -l '#ALIAS[@128x64]': Show this one; repeatable. A kind, such as nvidia_mma, is understood
            too.
        --value %NAME: The layout of a value.
        operation = --op tt.dot: The layouts of an operation.
        --line (1..): The layouts of a Python line.
        --after PASS[#N]: The layouts after a pass.
        --compare '#B': Compare the one of --layout, or the encoding that is given, with another layout of its shape:
            what moves, or its accesses of shared memory and their bank conflicts.
        --shape 128x64[xf16]: The shape and element type of an encoding given with --layout.
        aliases = --ttgir X.ttgir: Layouts of a TTGIR file, or its aliases for an encoding.
        --costs: Rank global and shared accesses and layout conversions by waste: excess sectors, bank conflicts.
        --memory: Shared and tensor memory over time: its buffers, and the peak.
        --callers: In tables, each line of Python with the lines that call it.
        --verify: Check the maps on the GPU, element by element.
        --color-by KEY: warp, lane, register, bank or vector.
        form = --format, -f terminal|svg|png|html|json (hidden): Default: as -o's suffix says.
    """
    from irscope.api.layouts import Typed, given_layouts, layouts_of_capture, layouts_of_file
    from irscope.layout.described import choose_layouts

    form = _format(form, to.path, to.as_json)
    names = [*(layouts or ()), *((compare,) if compare is not None else ())]
    capture: Capture | None = None
    texts = [text for text in (subject, *names) if text is not None and text.startswith("#")]
    as_text = (subject or "").startswith("#")
    if compare is not None and len(layouts or ()) + as_text != 1:
        raise UsageError("--compare '#B' compares the one of --layout '#A', or the encoding that is given, with it.")
    if as_text:
        options = dict(record_options.options)
        shown = chosen = given_layouts(texts, Typed(shape, aliases), record_options.targets, options)
    else:
        if shape is not None:
            raise UsageError(
                "--shape goes with a layout that is given as text: irscope layout '#ttg.blocked<{…}>' --shape 128x64."
            )
        if aliases is not None:
            shown = layouts_of_file(aliases, record_options.targets)
        else:
            captures = captures_of(subject, record_options, of_one=True)
            if len(captures) > 1:
                say(f"{subject} made {len(captures)} launches; this is the first. --launch N chooses another.")
            capture = captures[0]
            if memory:
                return _show_memory(capture, form, to, looks)
            shown = layouts_of_capture(capture, after)
        chosen = choose_layouts(shown, names=names, value=value, operation=operation, line=line)
    if memory:
        raise UsageError("--memory needs a kernel: a file or a capture.")
    if verify:
        return _verify(chosen, to)
    if costs:
        return _show_costs(capture, to, callers)
    if form == "html":
        return _show_page(capture if after is None else None, shown, chosen, color_by, compare is not None, to.path)
    picked = bool(names or value or operation or line is not None or as_text)
    if not picked and form in ("terminal", "json"):
        return _show_table(shown, replace(to, as_json=form == "json"), callers)
    return _show_pictures(chosen, form, color_by, compare is not None, to, looks)


def _format(form: str | None, output: Path | None, as_json: bool) -> str:
    if as_json:
        return "json"
    if form is None:
        suffix = output.suffix.removeprefix(".") if output is not None else ""
        return "svg" if is_folder(output) else suffix if suffix in _FORMATS else "terminal"
    if form not in _FORMATS:
        raise UsageError(f"--format {form!r}: write {', '.join(_FORMATS)}.{did_you_mean(form, _FORMATS)}")
    return form


def _show_table(shown: list[DescribedLayout], to: Destination, callers: bool) -> int:
    from irscope.layout.described import as_json
    from irscope.render.layout.terminal import layout_table

    to.emit(lambda: [as_json(item, full=False) for item in shown], partial(layout_table, shown, callers=callers))
    return 0


def _show_costs(capture: Capture | None, to: Destination, callers: bool) -> int:
    from irscope.api.layouts import with_compilers_count
    from irscope.memory import costs
    from irscope.render.layout.terminal import cost_table

    if capture is None:
        raise UsageError("--costs needs a kernel: a file or a capture.")
    counted = costs.costs_of(with_operations(with_layouts(capture), sass=False))
    counted = with_compilers_count(counted, capture.target, capture.launch.option("num_warps", 4))
    to.emit(partial(costs.as_json, counted), partial(cost_table, counted, callers=callers))
    tell_unknown(capture)
    return 0


def _show_page(
    capture: Capture | None,
    layouts: list[DescribedLayout],
    chosen: list[DescribedLayout],
    color_by: str | None,
    compared: bool,
    output: Path | None,
) -> int:
    """Write the page: the capture, or layouts alone, opened at the first of the chosen ones."""
    from irscope.api.layouts import compilers_ways
    from irscope.render.report.facts import between_layouts, capture_of_layouts

    shown = [*layouts, *(item for item in chosen if item not in layouts)]
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
    chosen: list[DescribedLayout], form: str, color_by: str | None, compared: bool, to: Destination, looks: Looks
) -> int:
    from irscope.api.layouts import compilers_ways
    from irscope.layout.described import as_json
    from irscope.memory.between import between_as_json

    pair = (chosen[-2], chosen[-1]) if compared else None
    ways = compilers_ways(*pair) if pair is not None else None
    if form == "json":
        rows = [as_json(item) for item in chosen]
        if pair is not None:
            for row, (first, second) in zip(rows[-2:], (pair, pair[::-1]), strict=True):
                row["comparison"] = between_as_json(first, second, ways)
        emit_json(rows, to.path)
        return 0
    figures = _figures(chosen, pair, color_by, ways)
    if form == "terminal":
        from irscope.render.layout.terminal import render_beside, render_terminal

        if compared:
            text = render_beside(figures, width=width(), color=to.is_colored)
        else:
            text = "\n".join(render_terminal(figure, width=width(), color=to.is_colored) for figure in figures)
        emit(text, to.path, painted=to.is_colored)
        return 0
    from irscope.render.layout.svg import render_svg

    if to.path is not None and is_folder(to.path) and not compared:
        write_pictures(((_file_name(one), render_svg([one], looks.theme)) for one in figures), form, to.path, looks)
    else:
        write_picture(render_svg(figures, looks.theme, beside=compared), form, to.path, looks)
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
    from irscope.render.layout.figure import make_figure, make_lines_figure, make_pair

    if pair is not None:
        return list(make_pair(*pair, color_by, ways))
    both = [(make_figure(item, color_by), make_lines_figure(item)) for item in chosen]
    return [figure for figures in both for figure in figures if figure is not None]


def _verify(chosen: list[DescribedLayout], to: Destination) -> int:
    from irscope.record.layouts.verify import verify_layouts

    reports = verify_layouts(chosen)
    to.emit(lambda: [one.as_json() for one in reports], lambda width, color: "\n".join(map(str, reports)))
    return 0 if all(report.agrees for report in reports) else 1


def _show_memory(capture: Capture, form: str, to: Destination, looks: Looks) -> int:
    """Print or write a capture's memory over time; returns the exit code, 1 if the kernel does not fit."""
    from irscope.api.explain import smaller
    from irscope.render.layout.timeline import attempts_json, attempts_text, memory_json, memory_text, timeline_svg

    allocations = allocations_of(capture)
    if not allocations:
        raise UsageError(
            f"{capture.name} ({capture.target}) does not hold the IR after shared memory was allocated: "
            "record it again, with --snapshots triton."
        )
    title = f"{capture.name} {capture.target}"
    fits = all(one.limit is None or one.total <= one.limit for one in allocations)
    tried = None if fits else smaller(capture)
    notes = attempts_text(tried) if tried is not None else ""
    if form == "json":
        rows = None if tried is None else attempts_json(tried)
        emit_json({"id": capture.id, "memories": memory_json(allocations), "tried": rows}, to.path)
    elif form == "terminal":
        text = memory_text(title, allocations, width=table_width(to.path), color=to.is_colored)
        emit(text + (f"\n{notes}" if notes else ""), to.path, painted=to.is_colored)
    elif form == "html":
        emit_report([capture], {"tab": "memory"}, to.path)
        if notes:
            say(notes)
    else:
        write_picture(timeline_svg(title, allocations, looks.theme), form, to.path, looks)
    return 0 if tried is None else 1
