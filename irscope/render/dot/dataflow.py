"""Draws a dataflow with graphviz: regions are frames, layouts are colours, and expensive operations stand out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from irscope.analysis.flow.dataflow import Dataflow, Edge, Node, Scope
from irscope.ir.mlir.short_types import base_layout, layout_of, short_layout, short_type
from irscope.render.canvas import fills, hexadecimal, mix, shade_of
from irscope.render.dot.graph import (
    BACK,
    BAD,
    BRANCH,
    FADED,
    FRAME,
    INK,
    LOOP,
    PAPER,
    PLAIN,
    SOFT,
    Drawing,
    new_drawing,
    plain,
    text,
)

_FRAME = {"scf.for": LOOP, "scf.while": LOOP, "scf.if": BRANCH}
_SHAPES: dict[str, dict[str, str]] = {
    "memory": {"shape": "cylinder", "penwidth": "1.8"},
    "shared": {"shape": "box3d", "penwidth": "1.4"},
    "dot": {"shape": "box", "penwidth": "4"},
    "convert": {"shape": "hexagon", "penwidth": "3", "color": BAD, "margin": "0,0.02"},
    "reduce": {"shape": "box", "peripheries": "2", "penwidth": "1.4"},
    "sync": {"shape": "box", "style": "filled,dotted"},
    "argument": {"shape": "ellipse", "penwidth": "1"},
    "group": {"shape": "box", "style": "filled,rounded,dashed", "color": SOFT},
    "trivial": {"shape": "box", "style": "filled,rounded", "color": SOFT},
    "constant": {"shape": "plain", "penwidth": "0"},
    "control": {"shape": "diamond"},
}
_LEGEND = (
    ("memory", "cylinder: global memory"),
    ("shared", "box with depth: shared memory"),
    ("dot", "thick frame: dot"),
    ("convert", "red hexagon: convert_layout"),
    ("reduce", "double frame: reduction"),
    ("sync", "dotted: waits and fences"),
    ("group", "dashed: several operations, folded"),
)
_LONGEST = 44


def render_dataflow(
    flow: Dataflow, *, title: str, notes: Iterable[str] = (), lines: Mapping[int, str] = MappingProxyType({})
) -> Drawing:
    """A dataflow as a graph of graphviz.

    Args:
        flow: what to draw.
        title: what it is of.
        notes: lines below the title: what was folded, what was chosen.
        lines: text line -> the line of Python that it comes from, as a text.
    """
    colors = layout_colors(flow)
    graph = new_drawing("dataflow", title, notes, _legend_rows(flow, colors))
    home: dict[int, list[Node]] = {}
    for node in flow.nodes:
        home.setdefault(node.region, []).append(node)
    children: dict[int, list[Scope]] = {}
    for scope in flow.scopes:
        children.setdefault(scope.parent, []).append(scope)
    used = _used(flow)

    def draw_scope(graph: Drawing, number: int, depth: int) -> None:
        for node in home.get(number, ()):
            _draw_node(graph, node, colors, lines)
        for scope in children.get(number, ()):
            if scope.number not in used or depth >= 400:
                continue
            # Deep nesting is drawn without frames: dot, and Python, have only so much stack.
            if not scope.title or depth > 24:
                draw_scope(graph, scope.number, depth + 1)
                continue
            python = f"  ·  line {lines[scope.line]}" if scope.line in lines and not scope.name.startswith("^") else ""
            label = f"<<B>{text(scope.title, 90)}</B>{text(python)}>"
            with graph.frame(str(scope.number), label, fillcolor=_FRAME.get(scope.name, FRAME), fontsize="12") as inner:
                draw_scope(inner, scope.number, depth + 1)

    draw_scope(graph, -1, 0)
    for edge in flow.edges:
        _draw_edge(graph, edge)
    return graph


def layout_colors(flow: Dataflow) -> dict[str, tuple[str, str]]:
    """(filling, text) of each layout: the most frequent first, and what is made from one in a lighter shade of it."""
    counts = Counter(layout_of(node.type) for node in flow.nodes)
    counts.pop("", None)
    bases = list(dict.fromkeys(base_layout(layout) for layout, _ in counts.most_common()))
    base_fills = dict(zip(bases, fills(min(max(len(bases), 1), 16)) * (1 + len(bases) // 16), strict=False))
    colors: dict[str, tuple[str, str]] = {}
    for layout in counts:
        base = base_layout(layout)
        fill = base_fills[base] if layout == base else mix(base_fills[base], (255, 255, 255), 0.45)
        colors[layout] = (hexadecimal(fill), shade_of(fill).text)
    return colors


def _used(flow: Dataflow) -> set[int]:
    """The scopes that hold a node, or one that does."""
    parents = {scope.number: scope.parent for scope in flow.scopes}
    used: set[int] = set()
    for node in flow.nodes:
        number = node.region
        while number >= 0 and number not in used:
            used.add(number)
            number = parents.get(number, -1)
    return used


def _draw_node(graph: Drawing, node: Node, colors: Mapping[str, tuple[str, str]], lines: Mapping[int, str]) -> None:
    layout = layout_of(node.type)
    fill, ink = colors.get(layout, (PLAIN, INK))
    style = dict(_SHAPES.get(node.role, {"shape": "box"}))
    if node.faded:
        fill, ink = PAPER, SOFT
        style |= {"color": FADED, "penwidth": "1"}
    graph.node(
        f"n{node.number}",
        label=_label(node, layout, lines),
        fillcolor=fill,
        fontcolor=ink,
        tooltip=plain(node.text[:400]) or node.name,
        **style,
    )


def _label(node: Node, layout: str, lines: Mapping[int, str]) -> str:
    head = node.name.removeprefix("builtin.") or (node.values[0] if node.values else "")
    if node.members:
        head = f"{node.size} operations"
    rows = [f"<B>{text(head)}</B>"]
    if node.detail:
        rows.append(text(node.detail, _LONGEST))
    named = node.values[0] if node.values and node.name else ""
    facts = [part for part in (named, short_type(node.type)) if part]
    if facts:
        rows.append(text("  ".join(facts), _LONGEST))
    small = [part for part in (short_layout(layout), _python(node, lines)) if part]
    if small:
        rows.append(f'<FONT POINT-SIZE="9">{text("  ·  ".join(small), _LONGEST + 14)}</FONT>')
    return f"<{'<BR/>'.join(rows)}>"


def _python(node: Node, lines: Mapping[int, str]) -> str:
    own = list(dict.fromkeys(lines[one.line] for one in (node.members or (node,)) if one.line in lines and one.name))
    if not own:
        return ""
    return f"line{'' if len(own) == 1 else 's'} {', '.join(own[:3])}" + (" …" if len(own) > 3 else "")


def _draw_edge(graph: Drawing, edge: Edge) -> None:
    types = [short_type(one) for one in edge.type.split("\n") if one]
    label = "\n".join(dict.fromkeys(types[:3])) + ("\n…" if len(types) > 3 else "")
    style: dict[str, str] = {}
    if edge.carried:
        style = {"style": "dashed", "color": BACK, "constraint": "false", "fontcolor": BACK, "penwidth": "1.4"}
        label = f"next iteration\n{label}" if label else "next iteration"
    elif any("x" in one for one in types):
        style = {"penwidth": "1.5"}
    graph.edge(
        f"n{edge.source}",
        f"n{edge.target}",
        label=plain(label),
        tooltip=plain(f"{edge.value} {edge.type}"[:400]),
        **style,
    )


def _legend_rows(flow: Dataflow, colors: Mapping[str, tuple[str, str]]) -> list[str]:
    """The rows of the legend: a layout's colour and what it is, and what the shapes mean."""
    rows = [
        f'<TR><TD BGCOLOR="{fill}"><FONT COLOR="{ink}">{text(short_layout(layout), 60)}</FONT></TD>'
        f'<TD ALIGN="LEFT">{text(flow.aliases.get(layout, ""), 110)}</TD></TR>'
        for layout, (fill, ink) in sorted(colors.items())[:16]
    ]
    if any(not layout_of(node.type) for node in flow.nodes):
        rows.append(f'<TR><TD BGCOLOR="{PLAIN}">no layout</TD><TD ALIGN="LEFT">scalars and tokens</TD></TR>')
    roles = {node.role for node in flow.nodes}
    meant = [meaning for role, meaning in _LEGEND if role in roles]
    if meant:
        rows.append(
            f'<TR><TD COLSPAN="2" ALIGN="LEFT"><FONT COLOR="{SOFT}">{text("  ·  ".join(meant), 300)}</FONT></TD></TR>'
        )
    return rows
