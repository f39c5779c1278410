"""Draws an SVG as PNG, through an optional package that carries all it needs."""

from __future__ import annotations

import importlib
from typing import Any

from irscope.errors import MissingTool


def render_png(svg: str, zoom: float = 2.0) -> bytes:
    """The picture as PNG, `zoom` pixels for each of the SVG's; raises MissingTool where resvg-py is not installed."""
    try:
        resvg: Any = importlib.import_module("resvg_py")
    except ImportError as error:
        raise MissingTool(
            "PNG needs the package resvg-py: pip install 'irscope[png]'. --format svg needs nothing."
        ) from error
    # Other versions return a list of integers.
    return bytes(resvg.svg_to_bytes(svg_string=svg, zoom=zoom))
