"""The graphs of a capture: its stages, its passes, and its pipelined loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

from irscope.analysis.flow.control_flow_fold import fold_flows
from irscope.analysis.flow.dataflow import Node, read_dataflow
from irscope.analysis.flow.dataflow_fold import fold
from irscope.analysis.flow.loop_stages import (
    LoopSchedule,
    PipelinedLoop,
    ScheduledOperation,
    read_pipelined,
    read_schedules,
)
from irscope.analysis.passes.effects import PassEffect, pass_effects
from irscope.ir.asm.control_flow import read_control_flow
from irscope.ir.locations.model import place_of
from irscope.ir.locations.stages import capture_locations
from irscope.model.capture import Capture, StageKind, stage_named
from irscope.render.canvas import shades
from irscope.render.dot.flows import render_blocks, render_dataflow
from irscope.render.dot.graph import (
    BAD,
    BORDER,
    CHANGED,
    CHANGED_EDGE,
    FAILED,
    FRAME,
    IDLE,
    IDLE_EDGE,
    INK,
    PAPER,
    PLAIN,
    SOFT,
    STEADY,
    UNKNOWN,
    UNKNOWN_EDGE,
    Drawing,
    cell,
    new_drawing,
    plain,
    row,
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


_MOST_STAGES = 8
_SHOWN = 5


def render_loops(
    schedules: Sequence[LoopSchedule],
    pipelined: Sequence[PipelinedLoop],
    *,
    title: str,
    lines: Mapping[int, str] | None = None,
) -> Drawing:
    """The scheduled loops, each as a table of turns and iterations.

    Args:
        pipelined: the loops that resulted, in the same order if there are as many.
        lines: line of the scheduled text -> the line of Python that it comes from, as a text.
    """
    note = (
        "Stage s of iteration i runs in step i + s of the pipelined loop; what one column holds is in flight together."
    )
    graph = new_drawing("loops", title, (note,), rankdir="TB")
    paired = dict(zip(schedules, pipelined, strict=True)) if len(schedules) == len(pipelined) else {}
    previous = ""
    for number, schedule in enumerate(schedules):
        name = f"loop{number}"
        graph.node(name, label=_table(schedule, paired.get(schedule), lines or {}), shape="plain", fillcolor=PAPER)
        if previous:
            graph.edge(previous, name, style="invis")
        previous = name
    return graph


def _table(schedule: LoopSchedule, result: PipelinedLoop | None, lines: Mapping[int, str]) -> str:
    stages = min(schedule.stages, _MOST_STAGES)
    iterations = stages + 1
    turns = iterations + stages - 1
    colors = shades(max(stages, 2))
    python = f"  ·  line {lines[schedule.line]}" if schedule.line in lines else ""
    steady = iterations - stages + 1

    def beside(name: str) -> list[str]:
        return [f'<TD COLSPAN="{stages - 1}"><FONT COLOR="{SOFT}">{name}</FONT></TD>'] if stages > 1 else []

    loop = f'<TD COLSPAN="{steady}" BGCOLOR="{STEADY}"><B>the loop</B></TD>'
    rows = [
        row(_filled("", PAPER), *beside("prologue"), loop, *beside("epilogue")),
        row(_filled("", PAPER), *(_filled(f"step {turn}", PLAIN) for turn in range(turns))),
    ]
    for iteration in range(iterations):
        cells = [_filled(f"iteration {iteration}", PLAIN)]
        for turn in range(turns):
            stage = turn - iteration
            if 0 <= stage < stages:
                fill, ink = colors[stage]
                in_loop = stages - 1 <= turn < stages - 1 + steady
                cells.append(_stage_cell(schedule, stage, fill, ink, in_loop))
            else:
                cells.append(_filled("", PAPER))
        rows.append(row(*cells))
    grid = f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="3" CELLPADDING="5">{"".join(rows)}</TABLE>'
    outer = [
        row(f'<TD ALIGN="LEFT"><B>{text(schedule.title)}</B>{text(python)}</TD>'),
        row(f'<TD ALIGN="LEFT">{grid}</TD>'),
        *_details(schedule, result, stages),
    ]
    attributes = f'BORDER="1" COLOR="{BORDER}" CELLBORDER="0" CELLSPACING="2" CELLPADDING="4"'
    return f"<<TABLE {attributes}>{''.join(outer)}</TABLE>>"


def _filled(content: str, fill: str) -> str:
    return cell(text(content), f'BGCOLOR="{fill}"')


def _stage_cell(schedule: LoopSchedule, stage: int, fill: str, ink: str, in_loop: bool) -> str:
    notable = [operation for operation in schedule.of_stage(stage) if operation.notable]
    shown = [f"{_plain(operation.name)} {operation.value.lstrip('%')}".strip() for operation in notable[:_SHOWN]]
    if len(notable) > _SHOWN:
        shown.append(f"and {len(notable) - _SHOWN} more")
    others = len(schedule.of_stage(stage)) - len(notable)
    if not notable and others:
        shown.append(f"{others} operations")
    body = "".join(f'<BR/><FONT POINT-SIZE="9">{text(one, 34)}</FONT>' for one in shown)
    border = ' BORDER="2"' if in_loop else ""
    return f'<TD BGCOLOR="{fill}" COLOR="{INK}"{border}><FONT COLOR="{ink}"><B>stage {stage}</B>{body}</FONT></TD>'


def _plain(name: str) -> str:
    return name.rpartition(".")[2].removesuffix("_global_to_local")


def _details(schedule: LoopSchedule, result: PipelinedLoop | None, stages: int) -> list[str]:
    texts: list[str] = []
    for stage in range(stages):
        operations = schedule.of_stage(stage)
        clusters = len({operation.cluster for operation in operations})
        notable = ", ".join(_described(operation) for operation in operations if operation.notable)
        others = sum(1 for operation in operations if not operation.notable)
        parts = [part for part in (notable, f"{others} others" if others else "") if part]
        several = f" in {clusters} clusters" if clusters > 1 else ""
        summary = " and ".join(parts) or "no operation, what was begun is on its way"
        texts.append(f"stage {stage}{several}: {summary}")
    if schedule.stages > stages:
        texts.append(f"{schedule.stages - stages} more stages are not drawn")
    if result is not None:
        texts.append(_in_flight(result))
    style = f'POINT-SIZE="10" COLOR="{SOFT}"'
    return [row(f'<TD ALIGN="LEFT"><FONT {style}>{_wrapped(one)}</FONT></TD>') for one in texts]


def _wrapped(value: str, width: int = 130) -> str:
    return '<BR ALIGN="LEFT"/>'.join(text(line) for line in wrap(value, width)) + '<BR ALIGN="LEFT"/>'


def _described(operation: ScheduledOperation) -> str:
    return " ".join(part for part in (operation.name, operation.value, operation.type) if part)


def _in_flight(result: PipelinedLoop) -> str:
    begun = ", ".join(f"{_plain(name)} {value}".strip() for name, value in result.copies[:6])
    parts = [f"the pipelined loop starts {begun} in each step"]
    if result.prologue:
        parts.append(f"{result.prologue} copies stand before it")
    waits = dict.fromkeys(f"{_plain(name)} leaves {left}" for name, left in result.waits if left)
    if waits:
        parts.append(f"{', '.join(waits)} in flight")
    if result.buffers:
        parts.append("buffers: " + ", ".join(f"{value} {kind} (×{count})" for value, kind, count in result.buffers))
    return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class StageGraph:
    drawing: Drawing
    lines: Mapping[str, tuple[int, ...]]
    """Name of a node -> the 1-based lines of the text that it stands for."""


@dataclass(frozen=True, slots=True)
class Loops:
    """The loops of a capture that the compiler cut into stages."""

    schedules: tuple[LoopSchedule, ...]
    """Of the last snapshot that has any."""
    pipelined: tuple[PipelinedLoop, ...]
    """Of the next snapshot."""
    python: Mapping[int, str]
    """Line of the scheduled text -> line of Python."""


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


def loops_graph(capture: Capture) -> Drawing | None:
    """The stages of the scheduled loops; None if there is none."""
    loops = loops_of(capture)
    if loops is None:
        return None
    title = f"{capture.name} · {capture.target} · loop stages"
    return render_loops(loops.schedules, loops.pipelined, title=title, lines=loops.python)


def loops_of(capture: Capture) -> Loops | None:
    """The scheduled loops of a capture; None if no snapshot has one."""
    scheduled = [one for one in capture.passes() if one.text is not None and "loop.stage" in one.text]
    if not scheduled:
        return None
    text = scheduled[-1].text or ""
    later = next((one.text for one in capture.passes() if one.index > scheduled[-1].index and one.text), None)
    return Loops(read_schedules(text), read_pipelined(later) if later else (), python_lines(capture, text, "mlir"))


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
