"""Draws the pipeline of passes: one column per stage, changes of the IR in green, runs of idle passes in one box."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irscope.analysis.passes.effects import PassEffect
from irscope.render.dot.graph import Drawing, new_drawing, plain, text
from irscope.render.dot.palette import (
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
)
from irscope.render.text.figures import milliseconds

_IN_A_BOX = 3


def render_passes(effects: Sequence[PassEffect], *, title: str, notes: Iterable[str] = ()) -> Drawing:
    """The passes in the order they ran, by stage; `p7` is the box that begins with the eighth.

    Args:
        effects: the passes, each with what it changed.
        title: what it is of.
        notes: lines below the title.
    """
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
        label = "<BR/>".join(f'<FONT POINT-SIZE="9" COLOR="{SOFT}">{text(row)}</FONT>' for row in rows)
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
        rows.append(f'<FONT POINT-SIZE="9" COLOR="{SOFT}">{text(largest, 60)}</FONT>')
    graph.node(
        name,
        label=f"<{'<BR/>'.join(rows)}>",
        tooltip=plain(f"{snapshot.argument} {snapshot.options}".strip() or snapshot.name),
        **style,
    )


def _changes(effect: PassEffect) -> list[str]:
    counted = ((effect.operations, "ops"), (effect.layouts, "layouts"), (effect.convert_layouts, "convert_layout"))
    return [f"{what} {value:+d}" for value, what in counted if value]
