"""Draws an SVG as PNG, with an optional package."""

from __future__ import annotations

import importlib
from typing import Any

from irscope.errors import MissingTool


def render_png(svg: str, zoom: float = 2.0) -> bytes:
    """The picture as PNG, with `zoom` pixels per pixel of the SVG; raises MissingTool without resvg-py."""
    try:
        resvg: Any = importlib.import_module("resvg_py")
    except ImportError as error:
        raise MissingTool(
            "PNG needs the package resvg-py: pip install 'irscope[png]'. --format svg needs nothing."
        ) from error
    # Other versions return a list of integers.
    return bytes(resvg.svg_to_bytes(svg_string=svg, zoom=zoom))
