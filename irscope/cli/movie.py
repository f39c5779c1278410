"""`irscope movie`: plays a kernel's compilation, pass by pass, as an animated picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from irscope.cli import app, options
from irscope.cli.grouped import grouped
from irscope.cli.output.destination import emit_json, write_output
from irscope.cli.output.page import emit_report, is_page
from irscope.cli.output.pictures import Looks, is_folder, write_picture, write_pictures
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import captures_of, run_compile, tell_incomplete
from irscope.cli.subject.recording import recorded
from irscope.errors import PlanError, StageNotFound, UsageError, did_you_mean
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.completing import with_all_texts

if TYPE_CHECKING:
    from irscope.analysis.movie.model import Movie
    from irscope.render.movie.tiles import Answers

_FORMATS = ("svg", "gif", "png", "html")
_output = options.in_panel("Output")


@app.command(rich_help_panel="Inspect")
@recorded()
@grouped("looks", Looks)
def movie(
    subject: options.Subject = None,
    stage: Annotated[
        list[str] | None,
        _output("--stage", "-s", metavar="STAGE", help="Only the passes of this stage; repeatable."),
    ] = None,
    seconds: Annotated[
        float, _output("--seconds", metavar="S", min=0.1, max=60.0, help="How long a pass is shown.")
    ] = 1.2,
    frame: Annotated[
        int | None, _output("--frame", metavar="N", min=0, help="This frame alone, as a picture that does not move.")
    ] = None,
    output: options.Output = None,
    form: Annotated[
        str | None,
        _output("--format", "-f", metavar="|".join(_FORMATS), help="Default: as -o's suffix says, else svg."),
    ] = None,
    as_json: options.AsJson = False,
    *,
    looks: Looks,
    record_options: RecordingOptions,
) -> int:
    """Play the passes that changed a kernel: its tiles under each pass's layouts, counts, what came and went.

    An animated SVG of 1280×720 for each launch: -o FILE.svg takes the first, -o DIR/ each. -o FILE.html writes the
    report's page at its movie, with a slider. --frame N is one picture, an .svg or a .png. -o FILE.gif needs the
    packages of pip install 'irscope[gif]': the SVG plays in browsers and slides that show pages.
    """
    from irscope.cli.dump.stages import file_names

    suffix = output.suffix.removeprefix(".").lower() if output is not None and not is_folder(output) else ""
    form = form or ("html" if is_page(output) else suffix if suffix in _FORMATS else "svg")
    _check(form, suffix, frame, output)
    captures = captures_of(subject, record_options)
    if as_json:
        from irscope.render.movie.forms import movie_json

        studied = ((capture, _movie(capture, stage)) for capture in map(_with_texts, captures))
        emit_json([movie_json(capture, made) for capture, made in studied], output)
        return tell_incomplete(captures)
    if form == "html":
        emit_report(map(_with_texts, captures), {"tab": "movie"}, output)
        return tell_incomplete(captures)

    def drawn(capture: Capture) -> str:
        return _drawn(_with_texts(capture), stage, frame, seconds, looks)

    if form == "gif":
        _write_gifs(captures, stage, seconds, output, looks)
    elif output is not None and is_folder(output):
        names = file_names(list(captures))
        pictures = ((name, drawn(capture)) for name, capture in zip(names, captures, strict=True))
        write_pictures(pictures, form, output, looks)
    else:
        if len(captures) > 1:
            say(f"{len(captures)} launches: this is the first. --launch N takes another, -o DIR/ draws each.")
        write_picture(drawn(captures[0]), form, output, looks)
    return tell_incomplete(captures)


def _write_gifs(
    captures: Sequence[Capture], stages: list[str] | None, seconds: float, output: Path | None, looks: Looks
) -> None:
    """Write the first capture's movie to a file, or each one's to a folder."""
    from irscope.cli.dump.stages import file_names
    from irscope.render.canvas import sized
    from irscope.render.movie.forms import render_gif, timed_frames

    if output is None:
        raise UsageError("a GIF is written to a file: -o movie.gif.")
    is_one = not is_folder(output)
    if is_one and len(captures) > 1:
        say(f"{len(captures)} launches: this is the first. --launch N takes another, -o DIR/ draws each.")
    for name, capture in list(zip(file_names(list(captures)), captures, strict=True))[: 1 if is_one else None]:
        whole = _with_texts(capture)
        made = _movie(whole, stages)
        frames = timed_frames(whole, made, looks.theme or "light", seconds, _answers(whole, made))
        file = output if is_one else output / f"{name}.gif"
        write_output(file, render_gif((sized(svg, looks.width), time) for svg, time in frames))
        say(f"wrote {file}")


def _check(form: str, suffix: str, frame: int | None, output: object) -> None:
    """Raises UsageError for a form that is none, or that the other options do not go with."""
    if form not in _FORMATS:
        raise UsageError(f"--format {form!r}: write {', '.join(_FORMATS)}.{did_you_mean(form, _FORMATS)}")
    if suffix and suffix not in (form, "json", "htm"):
        raise UsageError(
            f"-o {str(output)!r}: a movie is an .svg or a .gif, which play by themselves, or a page, .html."
        )
    if form == "png" and frame is None:
        raise UsageError("a PNG does not move: --frame N takes one frame; a movie is an .svg, a .gif or an .html.")
    if form == "gif" and frame is not None:
        raise UsageError("--frame N is a picture that does not move: an .svg or a .png.")
    if form == "html" and frame is not None:
        raise UsageError("--frame N is a picture, .svg or .png: on the page a slider goes to each frame.")


def _with_texts(capture: Capture) -> Capture:
    """The capture, compiled again if it holds the IR of no pass; raises StageNotFound if it has no passes."""
    if any(snapshot.text is not None for snapshot in capture.passes("mlir")):
        return capture
    if next(capture.passes("mlir"), None) is None:
        raise StageNotFound(f"{capture.name} has no passes of MLIR: there is nothing to play.")
    return with_all_texts(capture, run=run_compile, tell=say)


def _movie(capture: Capture, stages: list[str] | None) -> Movie:
    """The movie of a capture, or of some of its stages; raises PlanError for one in which no pass changed anything."""
    from irscope.analysis.movie.make import movie_of, of_stages

    made = movie_of(capture)
    known = list(dict.fromkeys(one.stage for one in made.frames[1:]))
    for stage in stages or ():
        if stage not in known:
            raise PlanError(f"no pass changed the IR in stage {stage!r}: there are {', '.join(known) or 'none'}.")
    return of_stages(made, stages) if stages else made


def _drawn(capture: Capture, stages: list[str] | None, frame: int | None, seconds: float, looks: Looks) -> str:
    from irscope.render.movie.forms import frame_svg, movie_svg

    made = _movie(capture, stages)
    answers, theme = _answers(capture, made), looks.theme or "light"
    if frame is not None:
        return frame_svg(capture, made, frame, theme, answers)
    return movie_svg(capture, made, theme, seconds, answers)


def _answers(capture: Capture, made: Movie) -> Answers:
    """The maps of a movie's layouts."""
    from irscope.record.layouts.questions import answered_rows
    from irscope.render.movie.tiles import layouts_wanted

    rows = answered_rows(layouts_wanted(made), capture.text("source"), capture.target, capture.layouts)
    return {(row.encoding, row.shape): row.answer for row in rows}
