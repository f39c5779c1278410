"""Writes the pictures of `irscope graph`: through `dot`, or as they are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from irscope.cli.dump.stages import file_names
from irscope.cli.graph.pictures import Picture
from irscope.cli.output import pictures as drawn
from irscope.cli.output.destination import STANDARD_OUTPUT, emit_page, is_terminal, write_output
from irscope.cli.output.pictures import Looks
from irscope.cli.output.talk import say
from irscope.errors import IrscopeError, UsageError
from irscope.model.capture import Capture
from irscope.render.dot.graph import Drawing, has_dot, missing_dot, render_bytes
from irscope.render.warps import WarpsPicture
from irscope.store.disk import write_atomically

__all__ = ["write_pictures"]

_DRAWN = ("svg", "png")
"""The formats of pictures that need no `dot`."""


def write_pictures(
    pictures: Sequence[tuple[Capture, Picture]], output: Path | None, format_: str, looks: Looks
) -> None:
    """Write each picture to its file, or the only one to standard output.

    Without `dot` the graphs' source is written instead, and MissingTool says how to install it.
    """
    if output is None:
        _write_one(pictures[0][1].graph, None, format_, looks)
        return
    names = file_names([capture for capture, _ in pictures])
    files = [output] if output.suffix else [output / f"{name}.{format_}" for name in names]
    instead: Path | None = None
    for (_, picture), file in zip(pictures, files, strict=False):
        graph = picture.graph
        if isinstance(graph, WarpsPicture) or format_ == "gv" or has_dot():
            _write_one(graph, file, format_, looks)
            continue
        instead = instead or file.with_suffix(".gv")
        _write_source(graph, file)
    if instead is not None:
        raise missing_dot(str(instead))


def _write_one(graph: Drawing | WarpsPicture, file: Path | None, format_: str, looks: Looks) -> None:
    if isinstance(graph, WarpsPicture):
        if format_ not in _DRAWN:
            raise UsageError(
                f"--warps is no picture of Graphviz's, so there is no {format_} of it: write .svg or .png."
            )
        # Its theme is that of its drawing.
        drawn.write_picture(graph.svg, format_, file, Looks(width=looks.width))
        if file is not None and format_ == "svg":
            say(f"wrote {file}")
        return
    try:
        data = render_bytes(graph, format_, theme=looks.theme, width=looks.width)
    except UsageError:
        raise
    except IrscopeError:
        if file is not None:
            _write_source(graph, file)
        raise
    if file is not None:
        write_atomically(file, data)
        say(f"wrote {file}")
    elif format_ in ("gv", "svg"):
        emit_page(data.decode("utf-8", "replace"), None)
    elif is_terminal():
        raise UsageError(f"a {format_} is not text: write it to a file with -o FILE.{format_}.")
    else:
        write_output(STANDARD_OUTPUT, data)


def _write_source(graph: Drawing, file: Path) -> None:
    path = file.with_suffix(".gv")
    write_atomically(path, render_bytes(graph, "gv"))
    say(f"wrote {path}, the graph's source")
