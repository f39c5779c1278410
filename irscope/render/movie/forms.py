"""A movie as one SVG whose frames CSS shows in turn, as single frames, as an animated GIF, or as JSON."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from io import BytesIO
from typing import Any

from irscope.analysis.movie.model import Frame, Movie
from irscope.errors import MissingTool, UsageError
from irscope.model.capture import Capture
from irscope.render.canvas import render_png, theme_named
from irscope.render.movie.scene import Answers, Scene


def movie_json(capture: Capture, movie: Movie) -> dict[str, Any]:
    """The numbers of a movie: the fields of `irscope.analysis.movie.model`."""
    return {
        "id": capture.id,
        "kernel": capture.name,
        "target": str(capture.target),
        "chosen_after": movie.chosen_after,
        "not_kept": list(movie.not_kept),
        "values": [asdict(value) | {"title": value.title} for value in movie.values],
        "frames": [_frame_json(frame) for frame in movie.frames],
    }


def _frame_json(frame: Frame) -> dict[str, Any]:
    data = asdict(frame)
    data["net"] = dict(frame.net)
    data["families"] = dict(frame.families)
    return data


_COLORS = 96
"""Of a picture that has some 30 and the shades at the edges of letters."""


def render_gif(frames: Iterable[tuple[str, float]]) -> bytes:
    """Pictures, each for its time, as a GIF that loops.

    Args:
        frames: (SVG of its own size, seconds).

    Raises MissingTool without Pillow, or without resvg-py.
    """
    try:
        image: Any = importlib.import_module("PIL.Image")
    except ImportError as error:
        raise MissingTool("GIF needs the package Pillow: pip install 'irscope[gif]'. An .svg needs nothing.") from error
    pictures: list[Any] = []
    milliseconds: list[int] = []
    for svg, seconds in frames:
        pictures.append(image.open(BytesIO(render_png(svg, zoom=1.0))).convert("RGB"))
        # Units of GIF: hundredths of a second.
        milliseconds.append(round(seconds * 100) * 10)
    # One table of colours for all, so that what stays is the same in each and is stored once.
    palette = _beside(image, pictures).quantize(_COLORS)
    drawn = [one.quantize(palette=palette, dither=image.Dither.NONE) for one in pictures]
    data = BytesIO()
    drawn[0].save(data, "GIF", save_all=True, append_images=drawn[1:], duration=milliseconds, loop=0, optimize=True)
    return data.getvalue()


def _beside(image: Any, pictures: list[Any]) -> Any:
    """Every picture on one, at half its size."""
    wide, high = (max(size // 2, 1) for size in pictures[0].size)
    whole = image.new("RGB", (wide, high * len(pictures)))
    for number, one in enumerate(pictures):
        whole.paste(one.resize((wide, high), image.Resampling.NEAREST), (0, number * high))
    return whole


_MOST_SECONDS = 60.0
"""Of one frame."""
_FIRST_HOLD, _LAST_HOLD = 2, 3
"""Frames that the first and the last are worth."""


def movie_svg(
    capture: Capture, movie: Movie, theme: str = "light", seconds: float = 1.2, answers: Answers | None = None
) -> str:
    """A movie as an animated SVG of 1280×720 pixels that loops; without animations its first frame is shown.

    Who asked for less motion sees the first frame too.

    Args:
        capture: what the movie is of.
        movie: with at least one frame.
        theme: `light`, `dark` or `print`.
        seconds: of each frame.
        answers: the maps of layouts; those missing are computed from their texts, as far as these tell.

    Raises UsageError for a theme or a time that is none.
    """
    scene = _scene(capture, movie, theme, answers)
    still = scene.still()
    holds = _holds(movie, seconds)
    total, begin = sum(holds), 0
    frames: list[str] = []
    for at, hold in enumerate(holds):
        drawn = scene.frame(at)
        first = " first" if at == 0 else ""
        frames.append(f'<g class="frame h{hold}{first}" style="animation-delay:{begin * seconds:g}s">{drawn}</g>')
        begin += hold
    rules = "".join(
        f"@keyframes h{hold}{{0%{{visibility:visible}}{100 * hold / total:.4f}%{{visibility:hidden}}"
        f"100%{{visibility:hidden}}}}.h{hold}{{animation-name:h{hold}}}"
        for hold in sorted(set(holds))
    )
    style = (
        f".frame{{visibility:hidden;animation-duration:{total * seconds:g}s;animation-timing-function:step-end;"
        f"animation-iteration-count:infinite}}.first{{visibility:visible}}{rules}"
        "@media(prefers-reduced-motion:reduce){.frame{animation:none}}"
    )
    return _whole(scene, capture, still + "".join(frames), style)


def timed_frames(
    capture: Capture, movie: Movie, theme: str = "light", seconds: float = 1.2, answers: Answers | None = None
) -> Iterator[tuple[str, float]]:
    """Each frame of a movie as an SVG that does not move, and for how many seconds; arguments as `movie_svg`."""
    for at, hold in enumerate(_holds(movie, seconds)):
        yield frame_svg(capture, movie, at, theme, answers), hold * seconds


def _holds(movie: Movie, seconds: float) -> list[int]:
    """How many times the time of a frame each is shown; raises UsageError for a time that is none."""
    if not 0.1 <= seconds <= _MOST_SECONDS:
        raise UsageError(f"{seconds!r} seconds a pass: at least 0.1, at most {_MOST_SECONDS:g}.")
    holds = [1] * len(movie.frames)
    if holds:
        holds[0] += _FIRST_HOLD - 1
        holds[-1] += _LAST_HOLD - 1
    return holds


def frame_svg(capture: Capture, movie: Movie, at: int, theme: str = "light", answers: Answers | None = None) -> str:
    """One frame of a movie as an SVG that does not move; raises UsageError if there is no such frame."""
    if not 0 <= at < len(movie.frames):
        raise UsageError(
            f"there is no frame {at}: the movie of {capture.name} has frames 0 to {len(movie.frames) - 1}."
        )
    scene = _scene(capture, movie, theme, answers)
    return _whole(scene, capture, scene.still() + scene.frame(at), "")


def _scene(capture: Capture, movie: Movie, theme: str, answers: Answers | None) -> Scene:
    if not movie.frames:
        raise UsageError(f"{capture.name} holds no IR of a pass: there is nothing to show.")
    maps = {(row.encoding, row.shape): row.answer for row in capture.layouts}
    return Scene(capture, movie, theme_named(theme), {**maps, **(answers or {})})


def _whole(scene: Scene, capture: Capture, drawn: str, style: str) -> str:
    canvas, theme = scene.canvas, scene.canvas.theme
    looks = (
        f".held{{fill:{theme.text};fill-opacity:.62}}.made{{fill:{theme.accent}}}.gone{{fill:{theme.bad}}}"
        f".now{{fill:none;stroke:{theme.text};stroke-width:1.5}}"
        f".fresh{{fill:none;stroke:{theme.accent};stroke-width:2.5}}.cell{{stroke-width:.6}}"
    )
    canvas.parts = [f"<style>{looks}{style}</style><defs>{scene.tiles()}</defs>", drawn]
    return canvas.svg(f"{capture.name} on {capture.target}, pass by pass")
