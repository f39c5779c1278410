"""The one way out for what a command made: to a file, to a pager on a terminal, or plainly into a pipe."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from irscope.capture import StageKind
from irscope.cli.streams import standard_output
from irscope.errors import UsageError
from irscope.store import SUFFIX, write_atomically

STANDARD_OUTPUT = Path("-")
"""`-o -`: standard output, plainly: no colours, no pager."""

_OTHER_FORMS = {
    **dict.fromkeys((".html", ".htm", ".xhtml", ".xht", ".shtml", ".mht", ".mhtml"), "a page"),
    **dict.fromkeys((".svg", ".svgz", ".png", ".pdf", ".gif", ".jpg", ".jpeg", ".webp"), "a picture"),
    **dict.fromkeys((".xml", ".xsl", ".js", ".css"), "code for a browser"),
    **dict.fromkeys((".zip", ".gz", ".cubin", ".hsaco"), "binary"),
    SUFFIX: "a capture",
}
_PAGES = (
    "Pages are written by report, diff, ablate and layout (-o FILE.html), pictures by layout and graph "
    f"(.svg, .png), captures by dump and import ({SUFFIX})."
)


def colored(asked: bool | None) -> bool:
    """Whether standard output gets colour."""
    if asked is not None:
        return asked
    from irscope.render.terminal import use_color

    return sys.stdout is not None and use_color(sys.stdout, os.environ)  # pyright: ignore[reportUnnecessaryComparison]


def width() -> int:
    """Columns of the terminal; 200 in a pipe, where nothing needs to be cut."""
    return shutil.get_terminal_size().columns if is_terminal() else 200


def is_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()  # pyright: ignore[reportUnnecessaryComparison]


def emit(text: str, output: Path | None = None, *, painted: bool = False, exact: bool = False) -> None:
    """Print a text, through the pager on a terminal, or write it to a file.

    Control characters are made visible, but in a `painted` text those of colours: its renderer let none of the
    capture's through. Into a pipe an `exact` text (a stage's, JSON) goes as it is.
    Raises UsageError where the file's suffix promises a page, a picture or a capture.
    """
    text = text if text.endswith("\n") or not text else text + "\n"
    if output is not None:
        suffix = output.suffix.lower()
        if suffix in _OTHER_FORMS:
            name = repr(str(output))
            raise UsageError(f"-o {name}: this is text, and {suffix} promises {_OTHER_FORMS[suffix]}. {_PAGES}")
        write_output(output, text.encode("utf-8", "surrogateescape"))
        return
    from irscope.render.tables import visible
    from irscope.render.terminal import harmless, page

    if exact and not is_terminal():
        standard_output().write(text)
    else:
        page(harmless(text) if painted else visible(text), standard_output())


def emit_json(value: Any, output: Path | None = None) -> None:
    """Print a value as JSON."""
    emit(json.dumps(value, indent=2, default=str), output, exact=True)


def emit_page(page: str, output: Path | None) -> None:
    """Write a page or an SVG, or print its source into a pipe."""
    if output is not None:
        write_output(output, page.encode("utf-8", "backslashreplace"))
    else:
        emit(page, exact=True)


def write_output(output: Path, data: bytes) -> None:
    """Write a file whole or not at all; `-` is standard output."""
    if output != STANDARD_OUTPUT:
        write_atomically(output, data)
        return
    stream = standard_output()
    stream.flush()
    stream.buffer.write(data)
    stream.buffer.flush()


def paint_text(text: str, kind: StageKind, color: bool) -> str:
    """A text of a stage, highlighted where colour is wanted."""
    if not color:
        return text
    from irscope.render.terminal import highlight

    return highlight(text, kind, color=color)
