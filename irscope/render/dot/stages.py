"""The graphs of a capture: its stages, its passes, and its pipelined loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from irscope.analysis.flow.control_flow_fold import fold_flows
from irscope.analysis.flow.dataflow import Node, read_dataflow
from irscope.analysis.flow.dataflow_fold import fold
from irscope.analysis.passes.effects import PassEffect, pass_effects
from irscope.ir.asm.control_flow import read_control_flow
from irscope.ir.locations.model import place_of
from irscope.ir.locations.stages import capture_locations
from irscope.model.capture import Capture, StageKind, stage_named
from irscope.render.dot.flows import render_blocks, render_dataflow
from irscope.render.dot.graph import (
    BAD,
    CHANGED,
    CHANGED_EDGE,
    FAILED,
    FRAME,
    IDLE,
    IDLE_EDGE,
    INK,
    PAPER,
    SOFT,
    UNKNOWN,
    UNKNOWN_EDGE,
    Drawing,
    new_drawing,
    plain,
    small,
    text,
)
from irscope.render.text.tables import milliseconds

_IN_A_BOX = 3


def render_passes(effects: Sequence[PassEffect], *, title: str, notes: Iterable[str] = ()) -> Drawing:
    """The passes in the order they ran, by stage; `p7` is the box that begins with the eighth."""
    changed = sum(1 for effect in effects if effect.snapshot.changed)
    total = milliseconds(sum(effect.snapshot.duration_us or 0 for effect in effects))
    counts = f"{len(effects)} passes, {changed} changed the IR (green), {total} ms"
    summary = f"{counts}; grey boxes hold passes that changed nothing"
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
        style |= {"fillcolor": UNKNOWN, "color": UNKNOWN_EDGE}
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
    """The passes of a capture; None if it holds none."""
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
