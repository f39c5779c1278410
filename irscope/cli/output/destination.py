"""Writes the result of a command: to a file, to a pager on a terminal, or as it is into a pipe."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irscope.cli import options
from irscope.cli.grouped import grouped
from irscope.cli.output.streams import standard_output
from irscope.errors import UsageError
from irscope.model.capture import Capture, StageKind
from irscope.store.disk import write_atomically
from irscope.store.file import SUFFIX

STANDARD_OUTPUT = Path("-")
"""`-o -`: standard output, with no colours and no pager."""

JSON_VERSION = 2
"""The version of the JSON that commands print, docs/json.md; greater where a key lost or changed its meaning."""

_OTHER_FORMS = {
    **dict.fromkeys((".html", ".htm", ".xhtml", ".xht", ".shtml", ".mht", ".mhtml"), "a page"),
    **dict.fromkeys((".svg", ".svgz", ".png", ".pdf", ".gif", ".jpg", ".jpeg", ".webp"), "a picture"),
    **dict.fromkeys((".xml", ".xsl", ".js", ".css"), "code for a browser"),
    **dict.fromkeys((".zip", ".gz", ".cubin", ".hsaco"), "binary"),
    SUFFIX: "a capture",
}
_PAGES = (
    "Pages are written by report, diff, layout, graph, source, ablate, bench and upgrade (-o FILE.html), pictures by "
    f"layout, roofline and graph (.svg, .png), captures by dump and import ({SUFFIX})."
)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a command's result goes, and in which form: the options --output, --json and --color."""

    path: options.Output = None
    """None: standard output."""
    as_json: options.AsJson = False
    color: options.Color = None
    """None: on a terminal."""

    @property
    def is_colored(self) -> bool:
        """Whether a text gets colour; one in a file never does."""
        return self.path is None and colored(self.color)

    def emit(
        self,
        json_of: Callable[[], dict[str, Any] | Sequence[dict[str, Any]]],
        text_of: Callable[[int | None, bool], str],
    ) -> None:
        """Write the result as JSON if that is asked for, else as text.

        `text_of` takes the columns that a line may have, None for any number, and whether the text is coloured.
        """
        if self.as_json:
            emit_json(json_of(), self.path)
        else:
            emit(text_of(table_width(self.path), self.is_colored), self.path, painted=self.is_colored)


with_destination = grouped("to", Destination)
"""The decorator of a command that takes its Destination as the parameter `to`."""


def colored(asked: bool | None) -> bool:
    """Whether a text on standard output gets colour."""
    if asked is not None:
        return asked
    from irscope.render.text.terminal import use_color

    return sys.stdout is not None and use_color(sys.stdout, os.environ)  # pyright: ignore[reportUnnecessaryComparison]


def table_width(output: Path | None = None) -> int | None:
    """The columns that a line may take: the terminal's; None in a file or a pipe, where a row is one line."""
    return shutil.get_terminal_size().columns if output is None and is_terminal() else None


def width() -> int:
    """The columns of a drawing that needs some width."""
    from irscope.render.text.tables import WIDE

    return table_width() or WIDE


def is_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()  # pyright: ignore[reportUnnecessaryComparison]


def emit(text: str, output: Path | None = None, *, painted: bool = False, exact: bool = False) -> None:
    """Print a text, through the pager on a terminal, or write it to a file.

    Control characters are made visible, except colours in a `painted` text, whose renderer has masked the capture's
    own. An `exact` text (a stage, JSON) is written to a pipe unchanged.
    Raises UsageError if the file's suffix is one of a page, a picture or a capture.
    """
    text = text if text.endswith("\n") or not text else text + "\n"
    if output is not None:
        suffix = output.suffix.lower()
        if suffix in _OTHER_FORMS:
            name = repr(str(output))
            raise UsageError(f"-o {name}: the output is text, but {suffix} means {_OTHER_FORMS[suffix]}. {_PAGES}")
        write_output(output, text.encode("utf-8", "surrogateescape"))
        return
    from irscope.render.text.tables import visible
    from irscope.render.text.terminal import harmless, page, theme_of, themed

    if exact and not is_terminal():
        standard_output().write(text)
    else:
        page(themed(harmless(text), theme_of(os.environ)) if painted else visible(text), standard_output())


def under_titles(captures: Sequence[Capture], text_of: Callable[[Capture], str]) -> str:
    """The text of each capture, under a line that names it if there are several."""
    several = len(captures) > 1
    return "\n".join((f"{one.id[:8]} {one.name} {one.target}\n" if several else "") + text_of(one) for one in captures)


def emit_json(value: dict[str, Any] | Sequence[dict[str, Any]], output: Path | None = None) -> None:
    """Print an object, or a list of objects, as JSON."""
    emit(json_text(value), output, exact=True)


def json_text(value: dict[str, Any] | Sequence[dict[str, Any]]) -> str:
    """An object, or a list of objects, as JSON; each says which version of docs/json.md describes it."""
    version = {"irscope_json": JSON_VERSION}
    versioned = version | value if isinstance(value, dict) else [version | one for one in value]
    return json.dumps(versioned, indent=2, default=str)


def emit_page(page: str, output: Path | None) -> None:
    """Write a page or an SVG image to a file, or its source to standard output."""
    if output is not None:
        write_output(output, page.encode("utf-8", "backslashreplace"))
    else:
        emit(page, exact=True)


def write_output(output: Path, data: bytes) -> None:
    """Write a file, whole or not at all; `-` is standard output."""
    if output != STANDARD_OUTPUT:
        write_atomically(output, data)
        return
    stream = standard_output()
    stream.flush()
    stream.buffer.write(data)
    stream.buffer.flush()


def paint_text(text: str, kind: StageKind, color: bool) -> str:
    """The text of a stage, highlighted if it is to have colour."""
    if not color:
        return text
    from irscope.render.text.terminal import highlight

    return highlight(text, kind)
