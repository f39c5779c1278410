"""`irscope draw`: dataflow, control flow, passes, warps, loops, posters, movies and rooflines as pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from irscope.cli.captures import captures_of, captures_with_passes, tell_incomplete
from irscope.cli.command import After, AsJson, Lines, Output, Part, Subject
from irscope.cli.output import (
    STANDARD_OUTPUT,
    Looks,
    emit_json,
    emit_page,
    emit_report,
    is_folder,
    is_page,
    is_terminal,
    write_output,
    write_picture,
)
from irscope.cli.recording import split_words
from irscope.cli.streams import say
from irscope.cli.texts import file_names
from irscope.errors import IrscopeError, UsageError, did_you_mean
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.store.disk import write_atomically
from irscope.store.shelf import StoredCaptures

if TYPE_CHECKING:
    from irscope.api.drawings import GraphOptions, Kind
    from irscope.render.dot.graph import Drawing

_OF_DOT = ("svg", "png", "pdf", "gv", "html")


class _Form(NamedTuple):
    """A kind of picture: its formats, the default first, and the options that go with it."""

    formats: tuple[str, ...]
    options: tuple[str, ...] = ()


_PARTS = ("stage", "after", "around", "lines", "fold")
_KINDS = {
    "dataflow": _Form(_OF_DOT, _PARTS),
    "control-flow": _Form(_OF_DOT, _PARTS),
    "passes": _Form(_OF_DOT),
    "warps": _Form(("svg", "png", "html")),
    "loop": _Form(("svg", "png", "html")),
    "poster": _Form(("svg", "png")),
    "movie": _Form(("svg", "gif", "png", "html"), ("stage", "frame")),
    "roofline": _Form(("svg", "png"), ("part",)),
}


@dataclass(frozen=True, slots=True)
class _Drawn:
    """How the pictures of one command are written."""

    form: str
    looks: Looks
    output: Path | None
    as_json: bool


def draw(
    kind: str,
    subject: Subject = None,
    stage: list[str] | None = None,
    after: After = None,
    around: str | None = None,
    depth: int = 3,
    lines: Lines = None,
    fold: int | None = None,
    max_nodes: int = 30,
    seconds: float = 1.2,
    frame: int | None = None,
    part: Part = None,
    form: str | None = None,
    theme: str | None = None,
    width: int | None = None,
    output: Output = None,
    as_json: AsJson = False,
    *,
    record_options: RecordingOptions,
) -> int:
    """Draw a kernel: dataflow, control-flow, passes, warps, loop, poster, movie or roofline.

    dataflow: layouts are colours; memory, dots and layout conversions stand out. control-flow: the basic blocks, jumps
    and loops of llir, ptx, sass or amdgcn. passes: the pipeline, with the passes that changed the IR marked. warps: the
    partitions of a warp-specialised kernel, with the buffers and barriers between them. loop: what a
    program does in each iteration of its loop, and what is in flight. poster: a kernel at a glance. movie: the passes
    that changed a kernel, as an animated SVG or GIF. roofline: a launch against the peaks of its target.

    -o FILE draws the first launch, -o DIR/ each, -o FILE.html the report's page where it shows the same. --json prints
    what is drawn.

    Options:
        kind = KIND: dataflow, control-flow, passes, warps, loop, poster, movie or roofline.
        --stage, -s STAGE: Of dataflow and control-flow: the stage, by default the lowest that has such a graph. Of
            movie: only the passes of these stages.
        --around VALUE: Only what is near a value (acc_153), a label (.L_x_3) or a register (R24).
        --depth (0..1000): Steps from the value of --around.
        --fold 0-5 (0..5): Fold at least this much: 0 nothing, 1 chains (the default), up to 5 whole regions;
            control-flow: 0 to 4.
        --max-nodes (2..5000): Fold more above this many nodes.
        --seconds S (0.1..60.0): Of movie: how long a pass is shown.
        --frame (0..): Of movie: this frame alone, as one picture.
        form = --format, -f FORMAT: svg, png, pdf, gv, gif or html, as far as the kind has it. Default: the suffix of
            -o; else svg, or gv of what Graphviz draws.
        --theme light|dark|print: Of a picture. Default: the reader's; a PNG, PDF or GIF is light.
        --width PIXELS (160..7680): Of a picture, texts grow with it.
    """
    if kind not in _KINDS:
        raise UsageError(f"draw {kind!r}: write {', '.join(_KINDS)}.{did_you_mean(kind, _KINDS)}")
    given = {"stage": stage, "after": after, "around": around, "lines": lines, "fold": fold, "frame": frame}
    if wrong := [
        name for name, value in (given | {"part": part}).items() if value and name not in _KINDS[kind].options
    ]:
        raise UsageError(f"--{wrong[0]} does not go with draw {kind}.")
    stages, form = split_words(stage), _format(kind, form, output, as_json)
    to = _Drawn(form, Looks(theme, width), output, as_json)
    if kind == "movie" and not as_json:
        _check_movie(form, frame, output)
    captures = (captures_with_passes if kind == "passes" else captures_of)(subject, record_options)
    if kind == "movie":
        _draw_movies(captures, stages, frame, seconds, to)
    elif kind in ("poster", "loop", "roofline"):
        _draw_cards(kind, captures, part, to)
    else:
        from irscope.api.drawings import GraphOptions

        if len(stages) > 1:
            raise UsageError(f"--stage: {kind} is drawn of one stage.")
        asked = GraphOptions(
            kind=cast("Kind", kind),
            stage=stages[0] if stages else None,
            after=after,
            around=around,
            depth=depth,
            lines=lines,
            fold=fold,
            max_nodes=max_nodes,
        )
        _draw_graphs(captures, asked, to)
    return tell_incomplete(captures)


def _format(kind: str, form: str | None, output: Path | None, as_json: bool) -> str:
    formats = _KINDS[kind].formats
    suffix = output.suffix.removeprefix(".").lower() if output is not None and not is_folder(output) else ""
    if form is None and is_page(output):
        form = "html"
    if form is None:
        form = suffix or ("gv" if output is None and formats == _OF_DOT else "svg")
    form = {"dot": "gv"}.get(form, form)
    if form not in formats and not as_json:
        near = did_you_mean(form, formats)
        raise UsageError(f"{kind} is drawn as {', '.join(formats)}, and not as {form!r}.{near}")
    return form


def _draw_each(captures: StoredCaptures, to: _Drawn, draw: Callable[[Capture, Path | None], None]) -> None:
    """Draw the first capture to a file, or each to one in a folder: one that cannot be drawn is named, and left out."""
    if to.output is not None and is_folder(to.output):
        failed: list[tuple[Path, IrscopeError]] = []
        names = file_names(list(captures))
        for name, capture in zip(names, captures, strict=True):
            file = to.output / f"{name}.{to.form}"
            try:
                draw(capture, file)
            except IrscopeError as error:
                failed.append((file, error))
        last = failed.pop()[1] if len(failed) == len(names) else None
        for file, error in failed:
            say(f"{file} is not written: {error}")
        if last is not None:
            raise last
        return
    if len(captures) > 1:
        names = list(dict.fromkeys(f"{one.facts.name} ({one.facts.target})" for one in captures.files))
        say(
            f"{len(captures)} launches: {', '.join(names)}; this is the first. --launch N takes another, -o DIR/ draws "
            "each."
        )
    draw(captures[0], to.output)


def _write(svg: str, file: Path | None, to: _Drawn) -> None:
    write_picture(svg, to.form, file, to.looks)
    if to.form == "svg" and file not in (None, STANDARD_OUTPUT):
        say(f"wrote {file}")


def _draw_cards(kind: str, captures: StoredCaptures, part: str | None, to: _Drawn) -> None:
    from irscope.api.drawings import card_json, card_svg

    if to.as_json:
        rows = [one for one in captures if kind != "roofline" or one.failure is None]
        emit_json([card_json(one, kind, part) for one in rows], to.output)
    elif to.form == "html":
        emit_report(captures, {"tab": "poster"}, to.output)
    else:
        _draw_each(captures, to, lambda one, file: _write(card_svg(one, kind, to.looks.theme, part), file, to))


def _check_movie(form: str, frame: int | None, output: Path | None) -> None:
    if form == "png" and frame is None:
        raise UsageError("a PNG is one frame: give --frame N; a movie is an .svg, a .gif or an .html.")
    if form in ("gif", "html") and frame is not None:
        raise UsageError("--frame N writes a still picture: an .svg or a .png.")
    if form == "gif" and output is None:
        raise UsageError("a GIF is written to a file: -o movie.gif.")


def _draw_movies(captures: StoredCaptures, stages: list[str], frame: int | None, seconds: float, to: _Drawn) -> None:
    from irscope.api.drawings import movie_maps, movie_of_stages
    from irscope.api.texts import with_texts
    from irscope.render.canvas import sized
    from irscope.render.movie.forms import frame_svg, movie_json, movie_svg, render_gif, timed_frames

    def whole(capture: Capture) -> Capture:
        return with_texts(capture, "there is nothing to play", "mlir")

    if to.as_json:
        emit_json([movie_json(one, movie_of_stages(one, stages)) for one in map(whole, captures)], to.output)
        return
    if to.form == "html":
        emit_report(map(whole, captures), {"tab": "movie"}, to.output)
        return

    def draw_movie(one: Capture, file: Path | None) -> None:
        capture = whole(one)
        made = movie_of_stages(capture, stages)
        maps = movie_maps(capture, made)
        if to.form == "gif" and file is not None:
            frames = timed_frames(capture, made, to.looks.theme, seconds, maps)
            write_output(file, render_gif((sized(svg, to.looks.width), time) for svg, time in frames))
            say(f"wrote {file}")
        elif frame is not None:
            _write(frame_svg(capture, made, frame, to.looks.theme, maps), file, to)
        else:
            _write(movie_svg(capture, made, to.looks.theme, seconds, maps), file, to)

    _draw_each(captures, to, draw_movie)


def _draw_graphs(captures: StoredCaptures, asked: GraphOptions, to: _Drawn) -> None:
    """Draw graphs; without `dot` their source is written instead, and MissingTool says how to install it."""
    from irscope.api.drawings import picture_json, picture_of
    from irscope.render.dot.graph import has_dot, missing_dot
    from irscope.render.warps import WarpsPicture

    if to.form == "html":
        emit_report(captures, _graph_view(asked), to.output)
        return
    if to.as_json:
        emit_json([picture_json(capture, asked) for capture in captures], to.output)
        return
    instead: Path | None = None

    def draw_graph(capture: Capture, file: Path | None) -> None:
        nonlocal instead
        picture = picture_of(capture, asked, to.looks.theme)
        for note in picture.notes:
            say(note)
        if isinstance(picture.graph, WarpsPicture):
            # Its theme is that of its drawing.
            _write(picture.graph.svg, file, replace(to, looks=Looks(width=to.looks.width)))
        elif to.form != "gv" and file is not None and not has_dot():
            instead = instead or file.with_suffix(".gv")
            _write_source(picture.graph, file)
        else:
            _write_graph(picture.graph, file, to)

    _draw_each(captures, to, draw_graph)
    if instead is not None:
        raise missing_dot(str(instead))


def _graph_view(asked: GraphOptions) -> dict[str, object]:
    """The view of the page that shows a graph; raises UsageError for a part of one, which it does not show."""
    parts = {"--after": asked.after, "--around": asked.around, "--lines": asked.lines, "--fold": asked.fold}
    if given := [name for name, value in parts.items() if value]:
        raise UsageError(f"{given[0]} does not go with a page, which shows whole stages: write -o FILE.svg.")
    if asked.kind in ("passes", "warps"):
        return {"tab": "graph", "of": asked.kind}
    stage = asked.stage or ("llir" if asked.kind == "control-flow" else None)
    return {"tab": "graph", "of": stage} if stage else {"tab": "graph"}


def _write_graph(graph: Drawing, file: Path | None, to: _Drawn) -> None:
    from irscope.render.dot.graph import render_bytes

    form = to.form
    try:
        data = render_bytes(graph, form, theme=to.looks.theme, width=to.looks.width)
    except UsageError:
        raise
    except IrscopeError:
        if file is not None:
            _write_source(graph, file)
        raise
    if file is not None:
        write_atomically(file, data)
        say(f"wrote {file}")
    elif form in ("gv", "svg"):
        emit_page(data.decode("utf-8", "replace"), None)
    elif is_terminal():
        raise UsageError(f"a {form} is not text: write it to a file with -o FILE.{form}.")
    else:
        write_output(STANDARD_OUTPUT, data)


def _write_source(graph: Drawing, file: Path) -> None:
    from irscope.render.dot.graph import render_bytes

    path = file.with_suffix(".gv")
    write_atomically(path, render_bytes(graph, "gv"))
    say(f"wrote {path}, the graph's source")
