"""Graphs in the DOT language: their colours, their source, and the pictures that Graphviz makes of them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

from irscope.errors import IrscopeError, MissingTool, ToolTooSlow, UsageError
from irscope.render.canvas import sized, theme_named
from irscope.render.text.tables import visible
from irscope.tools import ToolLimits, run_tool

INK, SOFT, PAPER, PLAIN = "#16181d", "#6b7280", "#ffffff", "#f1f3f5"
EDGE, BORDER, FADED = "#4b5563", "#9aa3af", "#c3c8d0"
FRAME, LOOP, INNER_LOOP, BRANCH = "#fafbfc", "#dfe7f3", "#cdd9ec", "#f4ecd8"
BACK = "#1d4ed8"
"""What goes to the next iteration of a loop."""
BAD = "#c81e1e"
"""What failed, or what costs time by itself: spills, layout conversions."""
CHANGED, IDLE, UNSURE, FAILED = "#bfe3d0", "#f6f7f9", "#fdf3cf", "#fbd5d5"
CHANGED_EDGE, IDLE_EDGE, UNSURE_EDGE = "#2f7d5b", "#d3d7de", "#b08900"
"""Of passes."""
PART_COLORS = {"dot": "#d55e00", "memory": "#0072b2", "shared": "#009e73", "exchange": "#cc79a7"}
"""Of what instructions do."""

_DARK: Mapping[str, str] = {
    INK: "#eceef2", SOFT: "#a9b0bc", PAPER: "#101216", PLAIN: "#1c222b",
    EDGE: "#a9b0bc", BORDER: "#5f6878", FADED: "#454c58",
    FRAME: "#191c22", LOOP: "#16263d", INNER_LOOP: "#1d3352", BRANCH: "#33290f",
    BACK: "#7ab8ff", BAD: "#ff8a80",
    CHANGED: "#173d2d", IDLE: "#191c22", UNSURE: "#3d3210", FAILED: "#4d1f1f",
    CHANGED_EDGE: "#63c39b", IDLE_EDGE: "#383e49", UNSURE_EDGE: "#d8b03a",
    PART_COLORS["memory"]: "#4a9be0",
}  # fmt: skip
_PRINT: Mapping[str, str] = {INK: "#000000", SOFT: "#3f444c", EDGE: "#3f444c", BORDER: "#8c929c", FADED: "#8c929c"}
_OTHERS: Mapping[str, Mapping[str, str]] = {"light": {}, "dark": _DARK, "print": _PRINT}
# fillcolor="#dfe7f3"      BGCOLOR="#e5e7eb"; in a label a quote has a backslash before it, or is &quot;
_COLOR = re.compile(r'(?<=\w=")#[0-9a-f]{6}(?=")')


def in_theme(source: str, name: str | None) -> str:
    """A graph in the DOT language in the colours of a theme; None is light. Raises UsageError for one that is none."""
    colors = _OTHERS[theme_named(name or "light").name]
    return _COLOR.sub(lambda match: colors.get(match[0], match[0]), source)


def _style_of(theme: str | None) -> str:
    return "" if theme is not None else f"<style>@media(prefers-color-scheme:dark){{{dark_rules()}}}</style>"


def dark_rules(within: str = "") -> str:
    """The rules of CSS that make a light graph dark; `within`: a selector of what it is in, and a space."""
    return "".join(
        f'{within}[{of}="{light}"]{{{of}:{dark}}}' for light, dark in _DARK.items() for of in ("fill", "stroke")
    )


_SECONDS = 60.0
"""Of processor time, that a drawing may take."""
_OTHER_RANKS = "-Gnewrank=true"
_INSTALL = "install Graphviz (apt install graphviz, brew install graphviz, conda install graphviz, or graphviz.org)"


def has_dot() -> bool:
    return shutil.which("dot") is not None


def missing_dot(written: str) -> MissingTool:
    """The error where `dot` is missing, and the source was written instead."""
    return MissingTool(
        f"dot is not installed, so {written} was written instead: {_INSTALL}, then dot -O -Tsvg {written}."
    )


def render_bytes(graph: Drawing, format_: str, *, theme: str | None = None, width: int | None = None) -> bytes:
    """The graph in a format (svg, png, pdf or gv), in a theme, so many pixels wide.

    Raises UsageError for a width of the source, which has none, MissingTool where `dot` is not installed, and
    IrscopeError where it fails, ToolTooSlow where it has no end.
    """
    source = in_theme(graph.source, theme)
    if format_ == "gv":
        if width is not None:
            raise UsageError("--width is of a picture, not of a graph's source: write -o FILE.svg, .png or .pdf.")
        return source.encode("utf-8", "replace")
    if format_ == "svg":
        # Before its first group.
        svg = _run(["dot", "-Tsvg"], source).replace(b"<g ", f"{_style_of(theme)}<g ".encode(), 1)
        if width is not None:
            return sized(svg.decode("utf-8", "replace"), width).encode()
        # A browser that opens the file shows all of it: the graph of a kernel is wider than a window.
        return svg.replace(b"<svg ", b'<svg style="max-width:100%;max-height:100%" ', 1)
    # A picture grows until one of its sides is as long as its size says.
    wide = ["-Gdpi=96", f"-Gsize={width / 96:.6f},10000!"] if width is not None else []
    resolution = ["-Gdpi=110"] if format_ == "png" else []
    return _run(["dot", f"-T{format_}", *(wide or resolution)], source)


def _run(command: Sequence[str], source: str, seconds: float = _SECONDS) -> bytes:
    try:
        answer = run_tool(command, source.encode("utf-8", "replace"), ToolLimits(processor_s=seconds))
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


def render_svgs(sources: Sequence[str], seconds: float) -> list[str]:
    """Graphs in the DOT language as SVG, placed by one `dot` within some seconds; raises what `render_bytes` does."""
    if not sources:
        return []
    found = _run(["dot", "-Tsvg"], "\n".join(sources), seconds).decode("utf-8", "replace")
    return [f"<svg{part.partition('</svg>')[0]}</svg>" for part in found.split("<svg")[1:]]


FONT = "Helvetica,Arial,DejaVu Sans"


class Drawing:
    """A directed graph, or a frame within one."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph

    @property
    def source(self) -> str:
        return str(self._graph.source)

    def node(self, name: str, label: str, **style: str) -> None:
        """Add a node; a label between `<` and `>` is HTML."""
        self._graph.node(name, label=label, **style)

    def edge(self, source: str, target: str, label: str = "", **style: str) -> None:
        self._graph.edge(source, target, label=label, **style)

    def same_rank(self, names: Iterable[str]) -> None:
        with self._graph.subgraph() as row:
            row.attr(rank="same")
            for name in names:
                row.node(name)

    @contextmanager
    def frame(self, name: str, label: str, **style: str) -> Generator[Drawing, None, None]:
        with self._graph.subgraph(name=f"cluster_{name}") as inner:
            inner.attr(label=label, labeljust="l", style="rounded,filled", color=BORDER, margin="14", **style)
            yield Drawing(inner)


def new_drawing(
    name: str, title: str, notes: Iterable[str] = (), legend: Iterable[str] = (), **attributes: str
) -> Drawing:
    """An empty graph in the house style; `legend` are the rows of an HTML table with two columns."""
    from graphviz import Digraph  # pyright: ignore[reportMissingTypeStubs]

    across = 'COLSPAN="2" ALIGN="LEFT"'
    heading = [row(cell(f'<B><FONT POINT-SIZE="18">{text(title)}</FONT></B>', across))]
    heading += [row(cell(small(note, size=12), across)) for note in notes]
    graph: Any = Digraph(name)
    graph.attr(
        "graph",
        label=f'<<TABLE BORDER="0" CELLSPACING="2" CELLPADDING="2">{"".join([*heading, *legend])}</TABLE>>',
        labelloc="t",
        labeljust="l",
        fontname=FONT,
        fontcolor=INK,
        bgcolor=PAPER,
        pad="0.3",
        nodesep="0.25",
        ranksep="0.45",
        # Bounds on what dot tries, so that a large graph ends.
        nslimit="4",
        nslimit1="4",
        mclimit="0.6",
        **attributes,
    )
    node_style = {"fontname": FONT, "fontsize": "11", "fontcolor": INK, "color": INK, "fillcolor": PLAIN}
    graph.attr("node", style="filled", margin="0.12,0.06", **node_style)
    graph.attr("edge", fontname=FONT, fontsize="9", fontcolor=SOFT, color=EDGE, arrowsize="0.7")
    return Drawing(graph)


def cell(content: str, attributes: str = 'ALIGN="LEFT"') -> str:
    return f"<TD {attributes}>{content}</TD>"


def row(*cells: str) -> str:
    return f"<TR>{''.join(cells)}</TR>"


def small(content: str, longest: int = 200, size: int = 9) -> str:
    return f'<FONT POINT-SIZE="{size}" COLOR="{SOFT}">{text(content, longest)}</FONT>'


def lines_text(shown: Iterable[str]) -> str:
    """`lines 23, 27–30` of Python, those that follow one another joined; at most six of them; empty for none."""
    distinct = list(dict.fromkeys(shown))
    if not distinct:
        return ""
    return f"line{'' if len(distinct) == 1 else 's'} {', '.join(ranges(distinct))}"


def ranges(shown: Iterable[str]) -> list[str]:
    """Lines as texts, those that follow one another joined: `23`, `27–30`; at most six of them."""
    numbers = sorted({int(one) for one in shown if one.isdecimal()})
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    texts = [f"{part[0]}–{part[-1]}" if len(part) > 1 else f"{part[0]}" for part in parts]
    texts += [one for one in shown if not one.isdecimal()]
    return [*texts[:6], *(["…"] if len(texts) > 6 else [])]


def text(value: str, longest: int = 200) -> str:
    """A text as it may stand in an HTML label: escaped, cut, and with control characters visible."""
    shown = visible(value).replace("\n", " ")
    return escape(shown if len(shown) <= longest else f"{shown[: longest - 1]}…")


def plain(label: str) -> str:
    """A label that is no HTML, as dot reads it."""
    shown = visible(label).replace("\\", "\\\\").replace("\n", "\\n")
    # Between angle brackets it would be read as HTML.
    return f" {shown}" if shown[:1] == "<" and shown[-1:] == ">" else shown
