"""Writes the result of a command: as text, JSON, a page of the report or a picture; to a file, the pager or a pipe."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from irscope.cli.command import AsJson, Color, Output
from irscope.cli.streams import say, standard_output
from irscope.errors import UsageError
from irscope.model.capture import Capture, StageKind
from irscope.render.text.tables import WIDE, visible
from irscope.store.disk import write_atomically
from irscope.store.file import SUFFIX

if TYPE_CHECKING:
    from irscope.render.report.facts import Between
    from irscope.render.report.results import Results


_Row = TypeVar("_Row")

STANDARD_OUTPUT = Path("-")
"""`-o -`: standard output, with no colours and no pager."""

JSON_VERSION = 3
"""The version of the JSON that commands print, docs/json.md; greater where a key lost or changed its meaning."""

_OTHER_FORMS = {
    **dict.fromkeys((".html", ".htm", ".xhtml", ".xht", ".shtml", ".mht", ".mhtml"), "a page"),
    **dict.fromkeys((".svg", ".svgz", ".png", ".pdf", ".gif", ".jpg", ".jpeg", ".webp"), "a picture"),
    **dict.fromkeys((".xml", ".xsl", ".js", ".css"), "code for a browser"),
    **dict.fromkeys((".zip", ".gz", ".cubin", ".hsaco"), "binary"),
    SUFFIX: "a capture",
}
_WRITERS = {
    "a page": ("report", "diff", "layout", "draw", "source", "ablate", "bench", "upgrade"),
    "a picture": ("draw", "layout", "time", "passes"),
    "a capture": ("dump", "show", "import"),
    "binary": ("dump", "show"),
}
"""The commands that write a form; what each writes depends on its other options too."""


class _Rendering(Protocol):
    """Writes a result as text, in lines of so many columns, or of any number where `width` is None."""

    def __call__(self, *, width: int | None, color: bool) -> str: ...


class _RenderingOf(Protocol):
    """The same of a capture."""

    def __call__(self, capture: Capture, /, *, width: int | None, color: bool) -> str: ...


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a command's result goes, and in which form: the options --output, --json and --color."""

    path: Output = None
    """None: standard output."""
    as_json: AsJson = False
    color: Color = None
    """None: on a terminal."""

    def refuse_for(self, command: str) -> None:
        """Raise UsageError, before anything runs, for a file whose name means a form that a command does not write."""
        if (form := _form_of(self.path)) and command not in _WRITERS.get(form, ()):
            raise _not_text(self.path, form)

    @property
    def is_colored(self) -> bool:
        """Whether a text gets colour; one in a file never does."""
        return self.path is None and colored(self.color)

    def emit(
        self,
        json_of: Callable[[], dict[str, Any] | Sequence[dict[str, Any]]],
        text_of: _Rendering,
    ) -> None:
        """Write the result as JSON if that is asked for, else as text."""
        if self.as_json:
            emit_json(json_of(), self.path)
        else:
            text = text_of(width=table_width(self.path), color=self.is_colored)
            emit(text, self.path, painted=self.is_colored)

    def emit_each(
        self,
        captures: Sequence[Capture],
        json_of: Callable[[Capture], dict[str, Any]],
        text_of: _RenderingOf,
    ) -> None:
        """Write what there is on each capture; a text stands under a line that names it if there are several."""

        def text(width: int | None, color: bool) -> str:
            title = "{0.id:.8} {0.name} {0.target}\n" if len(captures) > 1 else ""
            return "\n".join(title.format(one) + text_of(one, width=width, color=color) for one in captures)

        self.emit(lambda: [json_of(one) for one in captures], text)


def _form_of(path: Path | None) -> str:
    """What the suffix of a file means other than text; empty where it means nothing else."""
    return _OTHER_FORMS.get(path.suffix.lower(), "") if path is not None else ""


def _not_text(path: Path | None, form: str) -> UsageError:
    pages, pictures, captures = (", ".join(_WRITERS[one]) for one in ("a page", "a picture", "a capture"))
    suffix = path.suffix if path is not None else ""
    return UsageError(
        f"-o {str(path)!r}: the output is text, but {suffix} means {form}. Pages (.html) are written by {pages}; "
        f"pictures (.svg, .png) by {pictures}; captures ({SUFFIX}) by {captures}."
    )


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
        if form := _form_of(output):
            raise _not_text(output, form)
        write_output(output, text.encode("utf-8", "surrogateescape"))
        return
    from irscope.render.text.terminal import harmless, page, theme_of, themed

    if exact and not is_terminal():
        standard_output().write(text)
    else:
        page(themed(harmless(text), theme_of(os.environ)) if painted else visible(text), standard_output())


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


def is_page(path: Path | None) -> bool:
    """Whether a file's name asks for a page."""
    return path is not None and path.suffix.lower() in (".html", ".htm")


def emit_report(
    captures: Iterable[Capture],
    view: Mapping[str, object],
    output: Path | None,
    *,
    between: Mapping[tuple[int, int], Between] | None = None,
    results: Results | None = None,
) -> None:
    """Write the report of some captures, each once, to a file or to standard output.

    Args:
        view: what is shown first, as the page's fragment has it: `{"tab": "compare", "a": 1, "b": 2}`.
        between: what is known of pairs of layouts of the first capture, by their numbers.
        results: those of many compiles, a view of its own.
    """
    from irscope.render.report.page import render_report

    each = {capture.id: capture for capture in captures}
    emit_page(render_report(tuple(each.values()), view=view, between=between or {}, results=results), output)


# What a name of a file had better not hold: #mma, slice 1 of #blocked, 128×64
_STRANGE = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, slots=True)
class Looks:
    """How an exported picture looks: --theme and --width, which `irscope draw --help` lists.

    Options:
        --theme light|dark|print (hidden): Of a picture. Default: the reader's; a PNG, PDF or GIF is light.
        --width PIXELS (160..7680, hidden): Of a picture, texts grow with it.
    """

    theme: str | None = None
    width: int | None = None

    def __post_init__(self) -> None:
        if self.theme is not None:
            from irscope.render.canvas import theme_named

            theme_named(self.theme)


def is_folder(output: Path | None) -> bool:
    """Whether `-o` names a folder: an existing one, or a name without a suffix."""
    if output is None or output == STANDARD_OUTPUT:
        return False
    return output.is_dir() or not (output.suffix or output.exists())


def write_picture(svg: str, form: str, output: Path | None, looks: Looks) -> None:
    """Write a picture to a file or to standard output; raises UsageError for a PNG on a terminal."""
    from irscope.render.canvas import render_png, sized

    drawn = sized(svg, looks.width)
    if form == "svg":
        emit_page(drawn, output)
        return
    if output is None:
        if is_terminal():
            raise UsageError("a PNG is written to a file: -o picture.png.")
        output = STANDARD_OUTPUT
    # At its own size a picture is drawn twice as large, for screens with small pixels.
    write_output(output, render_png(drawn, zoom=2.0 if looks.width is None else 1.0))
    if output != STANDARD_OUTPUT:
        say(f"wrote {output}")


TRACE = ".trace.json"


def draws_or_traces(path: Path | None) -> bool:
    """Whether a command that times something writes a picture (.svg, .png) or a Chrome trace (.trace.json)."""
    return path is not None and (path.suffix.lower() in (".svg", ".png") or path.name.endswith(TRACE))


def draw_or_trace(
    rows: Sequence[_Row], path: Path, draw: Callable[[_Row], str], trace: Callable[[_Row], dict[str, Any]]
) -> None:
    """Write a picture or a Chrome trace of one launch, as the file's name says; raises UsageError for several."""
    if len(rows) != 1:
        raise UsageError(f"-o {str(path)!r} shows one launch, and there are {len(rows)}: --launch N chooses one.")
    if path.name.endswith(TRACE):
        write_output(path, json.dumps(trace(rows[0])).encode())
        say(f"wrote {path}")
        return
    write_picture(draw(rows[0]), path.suffix[1:].lower(), path, Looks())


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
