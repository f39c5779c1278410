"""Turns a graph of graphviz into a file's bytes: SVG, PNG or PDF through `dot`, or its own source."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from irscope.errors import IrscopeError, MissingTool, ToolTooSlow, UsageError
from irscope.render.dot.graph import Drawing
from irscope.render.dot.palette import in_theme
from irscope.render.theme import sized
from irscope.tools import ToolLimits, run_tool

_FORMATS = ("svg", "png", "pdf", "gv")
_DEFAULT_SECONDS = 60.0
"""Of processor time."""
_OTHER_RANKS = "-Gnewrank=true"
_INSTALL = "install Graphviz (apt install graphviz, brew install graphviz, conda install graphviz, or graphviz.org)"


def format_of(suffix: str) -> str:
    """The format that a file's suffix names; raises UsageError for one that none has."""
    name = {"dot": "gv"}.get(suffix.lstrip(".").lower(), suffix.lstrip(".").lower())
    if name not in _FORMATS:
        raise UsageError(f"a graph is no {suffix!r} file: write .svg, .png, .pdf or .gv.")
    return name


def has_dot() -> bool:
    """Whether Graphviz's `dot` is installed."""
    return shutil.which("dot") is not None


def missing_dot(written: str) -> MissingTool:
    """The error where `dot` is missing, and the source was written instead."""
    return MissingTool(
        f"dot is not installed, so {written} was written instead: {_INSTALL}, then dot -O -Tsvg {written}."
    )


def render_bytes(
    graph: Drawing,
    format_: str,
    seconds: float = _DEFAULT_SECONDS,
    *,
    theme: str | None = None,
    width: int | None = None,
) -> bytes:
    """The graph in a format, in a theme, so many pixels wide; `dot` may use so many seconds of processor time.

    Raises UsageError for a width of the source, which has none, MissingTool where `dot` is not installed, and
    IrscopeError where it fails, ToolTooSlow where it has no end.
    """
    source = in_theme(graph.source, theme)
    if format_ == "gv":
        if width is not None:
            raise UsageError("--width is of a picture, not of a graph's source: write -o FILE.svg, .png or .pdf.")
        return source.encode("utf-8", "replace")
    if format_ == "svg":
        svg = _run(["dot", "-Tsvg"], source, seconds)
        return svg if width is None else sized(svg.decode("utf-8", "replace"), width).encode()
    # A picture grows until one of its sides is as long as its size says.
    wide = ["-Gdpi=96", f"-Gsize={width / 96:.6f},10000!"] if width is not None else []
    resolution = ["-Gdpi=110"] if format_ == "png" else []
    return _run(["dot", f"-T{format_}", *(wide or resolution)], source, seconds)


def _run(command: Sequence[str], source: str, seconds: float) -> bytes:
    try:
        limits = ToolLimits(processor_s=seconds)
        answer = run_tool(command, source.encode("utf-8", "replace"), limits)
    except FileNotFoundError as error:
        raise MissingTool(f"dot is not installed: {_INSTALL}, or write the graph's source with -o FILE.gv.") from error
    except ToolTooSlow as error:
        raise ToolTooSlow(f"{error} Fold harder with --fold N, or take a part with --around.") from error
    if answer.returncode != 0 and _OTHER_RANKS not in command:
        # dot 2.43 finds no ranks for some graphs with frames in frames, but does so in another way.
        return _run([*command, _OTHER_RANKS], source, seconds)
    if answer.returncode != 0:
        said = answer.stderr.decode("utf-8", "replace").strip()
        raise IrscopeError(f"dot failed with exit code {answer.returncode}: {said}. The graph's source: -o FILE.gv.")
    return answer.stdout


def render_svgs(sources: Sequence[str], seconds: float = _DEFAULT_SECONDS) -> list[str]:
    """Graphs in the DOT language as SVG, placed by one `dot`; raises what `render_bytes` does."""
    if not sources:
        return []
    found = _run(["dot", "-Tsvg"], "\n".join(sources), seconds).decode("utf-8", "replace")
    return [f"<svg{part.partition('</svg>')[0]}</svg>" for part in found.split("<svg")[1:]]
