"""Writes pictures that are drawn as SVG: as they are or as PNG, in a theme, at a width, one or a folder of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from irscope.cli import options
from irscope.cli.output.destination import STANDARD_OUTPUT, emit_page, is_terminal, write_output
from irscope.cli.output.talk import say
from irscope.errors import UsageError

__all__ = ["Looks", "is_folder", "write_picture", "write_pictures"]

_picture = options.in_panel("Output")
# What a name of a file had better not hold: #mma, slice 1 of #blocked, 128×64
_STRANGE = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, slots=True)
class Looks:
    """How an exported picture looks: the options --theme and --width."""

    theme: Annotated[
        str | None,
        _picture(
            "--theme",
            metavar="light|dark|print",
            help="Of a picture. Default: the reader's; a PNG or a poster is light.",
        ),
    ] = None
    width: Annotated[
        int | None, _picture("--width", metavar="PIXELS", min=160, max=7680, help="Of a picture, texts grow with it.")
    ] = None

    def __post_init__(self) -> None:
        """Raises UsageError for a theme that is none."""
        if self.theme is not None:
            from irscope.render.canvas import theme_named

            theme_named(self.theme)


def is_folder(output: Path | None) -> bool:
    """Whether `-o` names a folder: it ends in a slash or has no suffix."""
    return output is not None and output != STANDARD_OUTPUT and (output.is_dir() or not output.suffix)


def write_picture(svg: str, form: str, output: Path | None, looks: Looks) -> None:
    """Write a picture to a file or to standard output; raises UsageError for a PNG on a terminal."""
    from irscope.render.canvas import sized

    drawn = sized(svg, looks.width)
    if form == "svg":
        emit_page(drawn, output)
        return
    from irscope.render.canvas import render_png

    if output is None:
        if is_terminal():
            raise UsageError("a PNG is written to a file: -o picture.png.")
        output = STANDARD_OUTPUT
    # At its own size a picture is drawn twice as large, for screens with small pixels.
    write_output(output, render_png(drawn, zoom=2.0 if looks.width is None else 1.0))
    if output != STANDARD_OUTPUT:
        say(f"wrote {output}")


def write_pictures(pictures: Iterable[tuple[str, str]], form: str, folder: Path, looks: Looks) -> None:
    """Write each (name, SVG) to a file of its own in a folder, whose name tells twins apart by a number."""
    taken: dict[str, int] = {}
    for name, svg in pictures:
        plain = _STRANGE.sub("-", name.replace("×", "x")).strip("-.") or "picture"
        taken[plain] = taken.get(plain, 0) + 1
        number = f"-{taken[plain]}" if taken[plain] > 1 else ""
        file = folder / f"{plain}{number}.{form}"
        write_picture(svg, form, file, looks)
        if form == "svg":
            say(f"wrote {file}")
