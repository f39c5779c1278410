"""A graph of graphviz in the house style: fonts, colours, a heading, a legend, and labels that are safe to draw."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from html import escape
from typing import Any

from irscope.render.dot.palette import BORDER, EDGE, INK, PAPER, PLAIN, SOFT
from irscope.render.text.tables import visible

FONT = "Helvetica,Arial,DejaVu Sans"


class Drawing:
    """A directed graph, or a frame within one."""

    def __init__(self, graph: Any) -> None:
        """Draw into a `graphviz.Digraph`."""
        self._graph = graph

    @property
    def source(self) -> str:
        """The graph in the DOT language."""
        return str(self._graph.source)

    def node(self, name: str, label: str, **style: str) -> None:
        """Add a node; a label between `<` and `>` is HTML."""
        self._graph.node(name, label=label, **style)

    def edge(self, source: str, target: str, label: str = "", **style: str) -> None:
        """Add an edge."""
        self._graph.edge(source, target, label=label, **style)

    def same_rank(self, names: Iterable[str]) -> None:
        """Put some nodes side by side."""
        with self._graph.subgraph() as row:
            row.attr(rank="same")
            for name in names:
                row.node(name)

    @contextmanager
    def frame(self, name: str, label: str, **style: str) -> Generator[Drawing, None, None]:
        """A frame around what is drawn in the block."""
        with self._graph.subgraph(name=f"cluster_{name}") as inner:
            inner.attr(label=label, labeljust="l", style="rounded,filled", color=BORDER, margin="14", **style)
            yield Drawing(inner)


def new_drawing(
    name: str, title: str, notes: Iterable[str] = (), legend: Iterable[str] = (), **attributes: str
) -> Drawing:
    """An empty graph in the house style; `legend` are the rows of an HTML table with two columns."""
    from graphviz import Digraph  # pyright: ignore[reportMissingTypeStubs]

    heading = [_wide(f'<B><FONT POINT-SIZE="18">{text(title)}</FONT></B>')]
    heading += [_wide(f'<FONT POINT-SIZE="12" COLOR="{SOFT}">{text(note)}</FONT>') for note in notes]
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


def _wide(cell: str) -> str:
    return f'<TR><TD COLSPAN="2" ALIGN="LEFT">{cell}</TD></TR>'


def text(value: str, longest: int = 200) -> str:
    """A text as it may stand in an HTML label: escaped, cut, and with control characters visible."""
    shown = visible(value).replace("\n", " ")
    return escape(shown if len(shown) <= longest else f"{shown[: longest - 1]}…")


def plain(label: str) -> str:
    """A label that is no HTML, as dot reads it."""
    shown = visible(label).replace("\\", "\\\\").replace("\n", "\\n")
    # Between angle brackets it would be read as HTML.
    return f" {shown}" if shown[:1] == "<" and shown[-1:] == ">" else shown
