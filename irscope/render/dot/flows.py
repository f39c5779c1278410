"""Graphs of a capture: its passes, its dataflow with regions and layouts, and the blocks and jumps of its code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from irscope.analysis.flow.control_flow_fold import PARTS, Part, PartRow, fold_flows, mentions, parts_of
from irscope.analysis.flow.dataflow import Dataflow, Edge, Node, Scope, fold, read_dataflow
from irscope.analysis.passes.effects import PassEffect, pass_effects
from irscope.ir.asm.control_flow import UNKNOWN, BasicBlock, ControlFlow, Jump, Loop, read_control_flow
from irscope.ir.asm.instructions import Instruction
from irscope.ir.locations.model import place_of
from irscope.ir.locations.stages import capture_locations
from irscope.ir.mlir.attributes import base_layout, short_layout
from irscope.ir.mlir.types import layout_of, short_type
from irscope.model.capture import Capture, StageKind, stage_named
from irscope.render.canvas import fills, hexadecimal, mix, shade_of
from irscope.render.dot.graph import (
    BACK,
    BAD,
    BORDER,
    BRANCH,
    CHANGED,
    CHANGED_EDGE,
    FADED,
    FAILED,
    FRAME,
    IDLE,
    IDLE_EDGE,
    INK,
    INNER_LOOP,
    LOOP,
    PAPER,
    PART_COLORS,
    PLAIN,
    SOFT,
    UNSURE,
    UNSURE_EDGE,
    Drawing,
    cell,
    lines_text,
    new_drawing,
    plain,
    row,
    small,
    text,
)
from irscope.render.text.tables import counted, milliseconds

_COLORS: dict[Part, str] = {
    "dot": PART_COLORS["dot"],
    "memory": PART_COLORS["memory"],
    "shared": PART_COLORS["shared"],
    "exchange": PART_COLORS["exchange"],
    "sync": BORDER,
    "spill": BAD,
}
_MOST_ROWS = 8
_MOST_DEPTH = 24


def render_blocks(
    flows: Sequence[ControlFlow],
    kind: StageKind,
    *,
    title: str,
    notes: Iterable[str] = (),
    lines: Mapping[int, str] | None = None,
    register: str = "",
) -> Drawing:
    """The control flow of a text's functions as a graph of graphviz; `lines`: text line -> the line of Python.

    `register`: the instructions that name it are shown in place of what stands out.
    """
    rows = {
        (place, block.number): () if register else parts_of(block.instructions, kind)
        for place, flow in enumerate(flows)
        for block in flow.blocks
    }
    graph = new_drawing("blocks", title, notes, _legend(flows, rows.values()))
    for place, flow in enumerate(flows):
        label = f"<<B>{text(flow.function, 90)}</B>  ·  {counted(flow.instructions, 'instruction')}>"
        with graph.frame(f"f{place}", label, fillcolor=FRAME, fontsize="12") as frame:
            drawer = _Drawer(frame, f"f{place}", flow, kind, lines or {}, register)
            drawer.draw({block.number: rows[place, block.number] for block in flow.blocks})
    return graph


class _Drawer:
    def __init__(
        self, graph: Drawing, prefix: str, flow: ControlFlow, kind: StageKind, lines: Mapping[int, str], register: str
    ) -> None:
        self.graph = graph
        self.prefix = prefix
        self.flow = flow
        self.kind = kind
        self.lines = lines
        self.register = register
        self.blocks = {block.number: block for block in flow.blocks}
        self.home: dict[int, int] = {}
        """Block -> the innermost loop it stands in, as an index into the loops."""
        self.nested: dict[int, list[int]] = {}
        for place, loop in enumerate(flow.loops):
            outer = [other for other in range(place) if loop.body < flow.loops[other].body]
            crosses = any(loop.body & one.body and not loop.body <= one.body for one in flow.loops[:place])
            if crosses or len(outer) >= _MOST_DEPTH:
                continue
            self.nested.setdefault(outer[-1] if outer else -1, []).append(place)
            self.home.update(dict.fromkeys(loop.body, place))

    def draw(self, rows: Mapping[int, Sequence[PartRow]]) -> None:
        self._loop(self.graph, -1, rows)
        for number, jump in enumerate(self.flow.jumps):
            self._jump(number, jump)

    def _loop(self, graph: Drawing, place: int, rows: Mapping[int, Sequence[PartRow]]) -> None:
        for block in self.flow.blocks:
            if self.home.get(block.number, -1) == place:
                self._block(graph, block, rows[block.number])
        for inner in self.nested.get(place, ()):
            label = f"<{self._loop_title(self.flow.loops[inner])}>"
            frame = f"{self.prefix}l{inner}"
            with graph.frame(frame, label, fillcolor=LOOP if place < 0 else INNER_LOOP, fontsize="11") as one:
                self._loop(one, inner, rows)

    def _loop_title(self, loop: Loop) -> str:
        held = [self.blocks[number] for number in loop.body if number in self.blocks]
        count = sum(len(block.instructions) for block in held)
        latches = (self.blocks.get(jump.source) for jump in self.flow.jumps if jump.back and jump.target == loop.head)
        python = self._python([block.instructions[-1] for block in latches if block is not None])
        return f"<B>loop</B>  ·  {counted(count, 'instruction')}" + (f"  ·  {text(python)}" if python else "")

    def _block(self, graph: Drawing, block: BasicBlock, rows: Sequence[PartRow]) -> None:
        style = {"shape": "box", "style": "filled", "color": INK, "fillcolor": PAPER, "margin": "0.06,0.04"}
        if block.blocks > 1 or block.is_loop:
            style |= {"style": "filled,rounded,dashed", "color": SOFT}
        if any(row.part == "dot" for row in rows):
            style |= {"penwidth": "4"}
        if block.faded:
            style |= {"color": FADED, "fontcolor": SOFT, "fillcolor": PLAIN}
        tooltip = plain("\n".join(item.text for item in block.instructions[:40])[:1500])
        graph.node(f"{self.prefix}b{block.number}", label=self._label(block, rows), tooltip=tooltip, **style)

    def _label(self, block: BasicBlock, rows: Sequence[PartRow]) -> str:
        kind = "loop of " if block.is_loop else ""
        held = f"{kind}{counted(block.blocks, 'block')}, " if block.blocks > 1 or block.is_loop else ""
        name = block.name if block.labels or block.number else "entry"
        cells = [_line(f"<B>{text(name, 60)}</B>  ·  {held}{counted(len(block.instructions), 'instruction')}")]
        for one in rows[:_MOST_ROWS]:
            cells.append(_line(f"{_mark(one.part)}{one.count} × {text(one.name, 44)}"))
        if len(rows) > _MOST_ROWS:
            cells.append(_line(small(f"and {sum(row.count for row in rows[_MOST_ROWS:])} more")))
        if self.register:
            naming = [one.text for one in block.instructions if mentions(one.text, self.register)]
            cells += [_line(_mono(one)) for one in naming[:_MOST_ROWS]]
            if len(naming) > _MOST_ROWS:
                cells.append(_line(_mono(f"… {len(naming) - _MOST_ROWS} more")))
        for name in block.calls:
            cells.append(_line(f"calls {text(name, 60) if name else 'the address in a register'}"))
        if block.ending:
            ends = "the program ends" if block.ending == "exit" else "returns"
            cells.append(_line(small(f"{ends} for some threads" if block.instructions[-1].predicate else ends)))
        python = self._python(block.instructions)
        if python:
            cells.append(_line(small(python)))
        return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="1" CELLPADDING="1">{"".join(cells)}</TABLE>>'

    def _python(self, instructions: Iterable[Instruction]) -> str:
        return lines_text(self.lines[item.line] for item in instructions if item.line in self.lines)

    def _jump(self, number: int, jump: Jump) -> None:
        source = f"{self.prefix}b{jump.source}"
        if jump.target == UNKNOWN:
            name = f"{self.prefix}u{number}"
            self.graph.node(name, label="unknown", shape="ellipse", style="filled,dotted", fillcolor=PAPER)
            self.graph.edge(source, name, label=plain(jump.condition), style="dotted")
            return
        style: dict[str, str] = {"color": BORDER} if jump.kind == "falls" else {"penwidth": "1.3"}
        label = jump.condition
        if jump.kind == "calls":
            style = {"style": "dotted", "color": SOFT}
            label = "calls"
        elif jump.back:
            style = {"color": BACK, "fontcolor": BACK, "penwidth": "1.6"}
            label = f"next iteration {label}".strip()
        self.graph.edge(source, f"{self.prefix}b{jump.target}", label=plain(label), **style)


def _mark(part: Part) -> str:
    return f'<FONT COLOR="{_COLORS[part]}">■&#160;</FONT>'


def _line(content: str) -> str:
    return row(cell(content))


def _mono(content: str) -> str:
    return f'<FONT FACE="Courier" POINT-SIZE="9">{text(content, 76)}</FONT>'


def _legend(flows: Iterable[ControlFlow], rows: Iterable[Sequence[PartRow]]) -> list[str]:
    seen = {row.part for found in rows for row in found}
    colors = "  ".join(f"{_mark(part)}{text(meaning)}" for part, meaning in PARTS.items() if part in seen)
    flows = list(flows)
    meant = ["strong arrow: jumps, where the condition holds"]
    if any(jump.kind == "falls" for flow in flows for jump in flow.jumps):
        meant.append("faint arrow: falls through")
    if any(jump.back for flow in flows for jump in flow.jumps):
        meant.append("blue: the next iteration of a loop")
    if "dot" in seen:
        meant.append("thick frame: multiplies matrices")
    if any(block.blocks > 1 or block.is_loop for flow in flows for block in flow.blocks):
        meant.append("dashed frame: several blocks, folded")
    if any(jump.target == UNKNOWN for flow in flows for jump in flow.jumps):
        meant.append("unknown: branch to an address in a register")
    lines = [colors] if colors else []
    return [_line(one) for one in (*lines, f'<FONT COLOR="{SOFT}">{text("  ·  ".join(meant), 300)}</FONT>')]


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
_LIDDED = ("memory", "shared")
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
    """A dataflow as a graph of graphviz, `notes` below its title; `lines`: text line -> the line of Python."""
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
    # The lid of a cylinder and the depth of a box take room that graphviz does not leave.
    rows = ['<FONT POINT-SIZE="4"> </FONT>'] if node.role in _LIDDED else []
    rows.append(f"<B>{text(head)}</B>")
    if node.detail:
        rows.append(text(node.detail, _LONGEST))
    named = node.values[0] if node.values and node.name else ""
    facts = [part for part in (named, short_type(node.type)) if part]
    if facts:
        rows.append(text("  ".join(facts), _LONGEST))
    own = node.members or (node,)
    python = lines_text(lines[one.line] for one in own if one.line in lines and one.name)
    details = [part for part in (short_layout(layout), python) if part]
    if details:
        rows.append(f'<FONT POINT-SIZE="9">{text("  ·  ".join(details), _LONGEST + 14)}</FONT>')
    return f"<{'<BR/>'.join(rows)}>"


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
    rows = [
        row(
            cell(f'<FONT COLOR="{ink}">{text(short_layout(layout), 60)}</FONT>', f'BGCOLOR="{fill}"'),
            cell(text(flow.aliases.get(layout, ""), 110)),
        )
        for layout, (fill, ink) in sorted(colors.items())[:16]
    ]
    if any(not layout_of(node.type) for node in flow.nodes):
        rows.append(row(cell("no layout", f'BGCOLOR="{PLAIN}"'), cell("scalars and tokens")))
    roles = {node.role for node in flow.nodes}
    meant = [meaning for role, meaning in _LEGEND if role in roles]
    if meant:
        words = f'<FONT COLOR="{SOFT}">{text("  ·  ".join(meant), 300)}</FONT>'
        rows.append(row(cell(words, 'COLSPAN="2" ALIGN="LEFT"')))
    return rows


_IN_A_BOX = 3


def render_passes(effects: Sequence[PassEffect], *, title: str, notes: Iterable[str] = ()) -> Drawing:
    """The passes in the order they ran, by stage; `p7` is the box that begins with the eighth."""
    changed = sum(1 for effect in effects if effect.snapshot.changed)
    total = milliseconds(sum(effect.snapshot.duration_us or 0 for effect in effects))
    counts = f"{len(effects)} passes, {changed} changed the IR (green), {total} ms"
    summary = f"{counts}; faint boxes hold passes that changed nothing"
    graph = new_drawing("passes", title, (*notes, summary), rankdir="TB", newrank="true")
    stages = list(dict.fromkeys(effect.stage_title for effect in effects))
    heads: list[str] = []
    # The page goes from a box to its first pass by the box's name.
    places = {id(effect): place for place, effect in enumerate(effects)}
    for column, stage in enumerate(stages):
        with graph.frame(str(column), f"<<B>{text(stage)}</B>>", fillcolor=FRAME, fontsize="14") as inner:
            previous = ""
            for group in _groups([effect for effect in effects if effect.stage_title == stage]):
                name = f"p{places[id(group[0])]}"
                _draw(inner, name, group)
                if previous:
                    inner.edge(previous, name)
                else:
                    heads.append(name)
                previous = name
        if column + 1 < len(stages):
            heads.append(previous)
    # The end of one stage to the beginning of the next; the columns stand side by side.
    for end, start in zip(heads[1::2], heads[2::2], strict=False):
        graph.edge(end, start, constraint="false", style="bold", color=INK)
    graph.same_rank(heads[::2])
    return graph


def _groups(effects: list[PassEffect]) -> list[list[PassEffect]]:
    """Each pass by itself, but those in a row that changed nothing together."""
    groups: list[list[PassEffect]] = []
    for effect in effects:
        if groups and effect.is_idle and groups[-1][0].is_idle:
            groups[-1].append(effect)
        else:
            groups.append([effect])
    return groups


def _draw(graph: Drawing, name: str, group: list[PassEffect]) -> None:
    if len(group) > 1 or group[0].is_idle:
        names = [effect.title for effect in group]
        rows = [", ".join(names[start : start + _IN_A_BOX]) for start in range(0, len(names), _IN_A_BOX)]
        label = "<BR/>".join(map(small, rows))
        graph.node(name, label=f"<{label}>", shape="box", style="filled,rounded", fillcolor=IDLE, color=IDLE_EDGE)
        return
    effect = group[0]
    snapshot = effect.snapshot
    style = {"shape": "box", "style": "filled,rounded", "fillcolor": CHANGED, "color": CHANGED_EDGE}
    mark = ""
    if snapshot.outcome == "skipped":
        style |= {"fillcolor": PAPER, "color": SOFT, "style": "filled,rounded,dashed"}
        mark = "  switched off"
    elif snapshot.outcome == "failed":
        style |= {"fillcolor": FAILED, "color": BAD, "penwidth": "2.5"}
        mark = "  failed"
    elif snapshot.changed is None:
        style |= {"fillcolor": UNSURE, "color": UNSURE_EDGE}
        mark = "  not compared"
    time = f"{milliseconds(snapshot.duration_us)} ms" if snapshot.duration_us is not None else ""
    facts = [part for part in (time, *_changes(effect)) if part]
    rows = [f"<B>{text(effect.title)}</B>{text(mark)}"]
    if facts:
        rows.append(f'<FONT POINT-SIZE="9">{text("  ·  ".join(facts))}</FONT>')
    largest = ", ".join(f"{operation} {change:+d}" for operation, change in effect.by_operation[:2])
    if largest:
        rows.append(small(largest, 60))
    graph.node(
        name,
        label=f"<{'<BR/>'.join(rows)}>",
        tooltip=plain(f"{snapshot.argument} {snapshot.options}".strip() or snapshot.name),
        **style,
    )


def _changes(effect: PassEffect) -> list[str]:
    counted = ((effect.operations, "ops"), (effect.layouts, "layouts"), (effect.convert_layouts, "convert_layout"))
    return [f"{what} {value:+d}" for value, what in counted if value]


@dataclass(frozen=True, slots=True)
class StageGraph:
    drawing: Drawing
    lines: Mapping[str, tuple[int, ...]]
    """Name of a node -> the 1-based lines of the text that it stands for."""


def stage_graph(capture: Capture, stage: str) -> StageGraph | None:
    """The dataflow of a stage of MLIR, else the control flow; None for a text without instructions, or no text."""
    text, kind = capture.texts.get(stage), stage_named(stage).kind
    if text is None or kind not in ("mlir", "llvm", "ptx", "sass", "amdgcn"):
        return None
    title, python = f"{capture.name} · {capture.target} · {stage}", python_lines(capture, text, kind)
    if kind == "mlir":
        dataflow = fold(read_dataflow(text), python)
        drawing = render_dataflow(dataflow.flow, title=title, notes=[dataflow.note], lines=python)
        return StageGraph(drawing, {f"n{node.number}": tuple(_lines(node)) for node in dataflow.flow.nodes})
    if not (flows := read_control_flow(text, kind)):
        return None
    folded = fold_flows(flows)
    drawing = render_blocks(folded.flows, kind, title=title, notes=[folded.note], lines=python)
    blocks = ((f"f{place}b{block.number}", block) for place, flow in enumerate(folded.flows) for block in flow.blocks)
    return StageGraph(drawing, {name: tuple(one.line for one in block.instructions) for name, block in blocks})


def _lines(node: Node) -> Iterable[int]:
    if node.members:
        return sorted(line for member in node.members for line in _lines(member))
    return [node.line] if node.name else []


def passes_graph(capture: Capture) -> Drawing | None:
    if not (effects := list(pass_effects(capture))):
        return None
    plan = (f"plan: {capture.plan}",) if capture.plan else ()
    return render_passes(effects, title=f"{capture.name} · {capture.target} · passes", notes=plan)


def python_lines(capture: Capture, text: str, kind: StageKind) -> dict[int, str]:
    """The line of Python of each text line; with the file's name if it is not the kernel's file."""
    locations = capture_locations(capture, text, kind)
    file = capture.launch.kernel.file
    shown: list[str] = []
    for chain in locations.chains:
        place = place_of(chain, file)
        other = f"{Path(place[0][0]).name}:" if place and place[0][0] != file else ""
        shown.append(f"{other}{place[0][1]}" if place else "")
    return {number: shown[chain] for number, chain in enumerate(locations.by_line, 1) if chain >= 0 and shown[chain]}
