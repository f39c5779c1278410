"""Draws the stages of pipelined loops: which iteration is in which stage, turn by turn, and what is in flight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap

from irscope.analysis.flow.loop_stages import LoopSchedule, PipelinedLoop, ScheduledOperation
from irscope.render.canvas import shades
from irscope.render.dot.graph import Drawing, new_drawing, text
from irscope.render.dot.palette import BORDER, INK, PAPER, PLAIN, SOFT, STEADY

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
        schedules: the loops, cut into stages.
        pipelined: the loops that resulted, in the same order if there are as many.
        title: what it is of.
        lines: line of the scheduled text -> the line of Python that it comes from, as a text.
    """
    note = "Stage s of iteration i runs in turn i + s. A column is one turn: what stands in it is in flight together."
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
        _row(_cell("", PAPER), *beside("prologue"), loop, *beside("epilogue")),
        _row(_cell("", PAPER), *(_cell(f"turn {turn}", PLAIN) for turn in range(turns))),
    ]
    for iteration in range(iterations):
        cells = [_cell(f"iteration {iteration}", PLAIN)]
        for turn in range(turns):
            stage = turn - iteration
            if 0 <= stage < stages:
                fill, ink = colors[stage]
                in_loop = stages - 1 <= turn < stages - 1 + steady
                cells.append(_stage_cell(schedule, stage, fill, ink, in_loop))
            else:
                cells.append(_cell("", PAPER))
        rows.append(_row(*cells))
    grid = f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="3" CELLPADDING="5">{"".join(rows)}</TABLE>'
    outer = [
        _row(f'<TD ALIGN="LEFT"><B>{text(schedule.title)}</B>{text(python)}</TD>'),
        _row(f'<TD ALIGN="LEFT">{grid}</TD>'),
        *_details(schedule, result, stages),
    ]
    attributes = f'BORDER="1" COLOR="{BORDER}" CELLBORDER="0" CELLSPACING="2" CELLPADDING="4"'
    return f"<<TABLE {attributes}>{''.join(outer)}</TABLE>>"


def _row(*cells: str) -> str:
    return f"<TR>{''.join(cells)}</TR>"


def _cell(content: str, fill: str) -> str:
    return f'<TD BGCOLOR="{fill}">{text(content)}</TD>'


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
    return [_row(f'<TD ALIGN="LEFT"><FONT {style}>{_wrapped(one)}</FONT></TD>') for one in texts]


def _wrapped(value: str, width: int = 130) -> str:
    """A text in several lines, each of them escaped."""
    return '<BR ALIGN="LEFT"/>'.join(text(line) for line in wrap(value, width)) + '<BR ALIGN="LEFT"/>'


def _described(operation: ScheduledOperation) -> str:
    return " ".join(part for part in (operation.name, operation.value, operation.type) if part)


def _in_flight(result: PipelinedLoop) -> str:
    begun = ", ".join(f"{_plain(name)} {value}".strip() for name, value in result.copies[:6])
    parts = [f"the pipelined loop begins {begun} each turn"]
    if result.prologue:
        parts.append(f"{result.prologue} copies stand before it")
    waits = dict.fromkeys(f"{_plain(name)} leaves {left}" for name, left in result.waits if left)
    if waits:
        parts.append(f"{', '.join(waits)} in flight")
    if result.buffers:
        parts.append("buffers: " + ", ".join(f"{value} {kind} (×{count})" for value, kind, count in result.buffers))
    return "; ".join(parts)
