"""A movie as an animated GIF, with optional packages: for places that show no SVG that moves."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from io import BytesIO
from typing import Any

from irscope.errors import MissingTool
from irscope.render.canvas import render_png

__all__ = ["render_gif"]

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
