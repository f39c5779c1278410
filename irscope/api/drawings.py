"""Drawings of a capture: dataflow, control flow, passes and warps as graphs or JSON, its loop and its movie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from irscope.analysis.flow.control_flow_fold import (
    FoldedFlow,
    blocks_around,
    blocks_on_lines,
    fold_flows,
    has_label,
    parts_of,
)
from irscope.analysis.flow.dataflow import MAX_EDGES, MAX_NODES, Dataflow, Folded, around, fold, on_lines, read_dataflow
from irscope.analysis.flow.partitions import read_partitions
from irscope.api.texts import one_pass, selected_lines, snapshot_text
from irscope.errors import PlanError, UsageError
from irscope.ir.asm.control_flow import UNKNOWN, ControlFlow, read_control_flow
from irscope.model.capture import Capture, StageKind, stage_named, stage_rank
from irscope.model.plain import picked
from irscope.record.variants.completing import with_layouts
from irscope.render.capture import partitions_json
from irscope.render.dot.flows import passes_graph, python_lines, render_blocks, render_dataflow
from irscope.render.dot.graph import Drawing
from irscope.render.warps import WarpsPicture, warps_picture

if TYPE_CHECKING:
    from irscope.analysis.in_flight.model import InFlight
    from irscope.analysis.movie.model import Movie
    from irscope.render.movie.tiles import Answers

_DRAWN: tuple[StageKind, ...] = ("mlir",)
_WITH_BLOCKS: tuple[StageKind, ...] = ("llvm", "ptx", "sass", "amdgcn")


Kind = Literal["dataflow", "control-flow", "passes", "warps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOptions:
    """The kind of a graph, and its subject."""

    kind: Kind = "dataflow"
    stage: str | None = None
    """None: the lowest one that the graph can be of."""
    after: str | None = None
    """The IR after this pass, in place of a stage."""
    around: str | None = None
    """Only what is near a value, a label or a register."""
    depth: int = 3
    """Steps from the value of `around`."""
    lines: str | None = None
    """Only what comes from these lines of the kernel's file: `23-31`."""
    fold: int | None = None
    """Fold at least this much: 0 nothing, up to 5 whole regions."""
    max_nodes: int = MAX_NODES
    """Fold more above this many nodes."""

    def __post_init__(self) -> None:
        parts = {"--stage": self.stage, "--after": self.after, "--around": self.around, "--lines": self.lines}
        given = [name for name, value in parts.items() if value]
        if given and self.kind in ("passes", "warps"):
            raise UsageError(f"{given[0]} does not go with {self.kind}: it is of dataflow and control-flow.")
        if self.stage and self.after:
            raise UsageError(
                "--stage and --after do not go together: a pass has its stage, as in --after ttgir:pipeline."
            )


@dataclass(frozen=True)
class Picture:
    """A graph in the DOT language, or a picture that is drawn already, and notes."""

    graph: Drawing | WarpsPicture
    notes: tuple[str, ...] = ()


def picture_of(capture: Capture, wanted: GraphOptions, theme: str | None = None) -> Picture:
    """Draw a capture; raises UsageError if it has nothing to draw."""
    name = f"{capture.name} · {capture.target}"
    if wanted.kind == "warps":
        picture = _warps(capture, theme)
        return Picture(picture, (picture.note,) if picture.note else ())
    if wanted.kind == "passes":
        if (passes := passes_graph(capture)) is None:
            raise _missing(capture, "holds no passes")
        return Picture(passes)
    text, kind, what = _text(capture, wanted)
    if _draws_blocks(wanted, kind):
        return _blocks_picture(capture, wanted, text, kind, f"{name} · {what}")

    folded, lines = _dataflow(capture, wanted, text, kind)
    notes = (folded.note,) if folded.level > 1 or folded.left_out else ()
    graph = render_dataflow(folded.flow, title=f"{name} · {what}", notes=[*_chosen(wanted), folded.note], lines=lines)
    return Picture(graph, notes)


def _draws_blocks(wanted: GraphOptions, kind: StageKind) -> bool:
    """Whether to draw the control flow; raises UsageError for a text that has no such graph."""
    blocks = wanted.kind == "control-flow"
    if blocks and kind not in _WITH_BLOCKS:
        raise UsageError(
            "control-flow: MLIR has regions, which its dataflow shows. Choose --stage llir, ptx, sass or amdgcn."
        )
    if not blocks and kind not in _DRAWN:
        raise UsageError("dataflow is drawn of MLIR: LLVM IR and assembly have control-flow.")
    return blocks


def _blocks(capture: Capture, wanted: GraphOptions, text: str, kind: StageKind) -> tuple[FoldedFlow, str]:
    flows = read_control_flow(text, kind)
    if not flows:
        raise UsageError(f"{capture.name} ({capture.target}): this text has no function with instructions.")
    if wanted.lines is not None:
        flows = blocks_on_lines(flows, selected_lines(capture, text, kind, wanted.lines))
    register = ""
    if wanted.around is not None:
        register = "" if has_label(flows, wanted.around) else wanted.around
        flows = blocks_around(flows, wanted.around, wanted.depth)
    return fold_flows(flows, wanted.fold, wanted.max_nodes), register


def _blocks_picture(capture: Capture, wanted: GraphOptions, text: str, kind: StageKind, title: str) -> Picture:
    folded, register = _blocks(capture, wanted, text, kind)
    graph = render_blocks(
        folded.flows,
        kind,
        title=title,
        notes=[*_chosen(wanted), folded.note],
        lines=python_lines(capture, text, kind),
        register=register,
    )
    return Picture(graph, (folded.note,) if folded.level > (wanted.fold or 0) else ())


def _chosen(wanted: GraphOptions) -> list[str]:
    parts = [f"around {wanted.around}, {wanted.depth} steps"] if wanted.around else []
    parts += [f"lines {wanted.lines} of Python"] if wanted.lines else []
    return [", ".join(parts)] if parts else []


def _text(capture: Capture, wanted: GraphOptions) -> tuple[str, StageKind, str]:
    if wanted.after is not None:
        snapshot = one_pass(capture, wanted.after)
        text = snapshot_text(capture, snapshot, before=False)
        return text, snapshot.group, f"after {snapshot.label}"
    drawn = _WITH_BLOCKS if wanted.kind == "control-flow" else _DRAWN
    held = [stage for stage in capture.stages if stage_named(stage).kind in drawn]
    if (stage := wanted.stage) is None:
        if not held:
            raise _missing(
                capture, f"holds no stage with a {wanted.kind}: it has {', '.join(capture.stages) or 'none'}"
            )
        stage = max(held, key=stage_rank)
    elif stage in capture.stages and stage_named(stage).is_binary:
        raise UsageError(f"--stage {stage}: only stages with a text can be drawn; irscope dump shows {stage}.")
    return capture.text(stage), stage_named(stage).kind, stage


def _dataflow(capture: Capture, wanted: GraphOptions, text: str, kind: StageKind) -> tuple[Folded, dict[int, str]]:
    flow = read_dataflow(text)
    lines = python_lines(capture, text, kind)
    if wanted.lines is not None:
        flow = on_lines(flow, selected_lines(capture, text, kind, wanted.lines))
    if wanted.around is not None:
        flow = around(flow, wanted.around, wanted.depth)
    most_edges = max(MAX_EDGES, 2 * wanted.max_nodes)
    return fold(flow, lines, wanted.fold, wanted.max_nodes, most_edges), lines


def _warps(capture: Capture, theme: str | None = None) -> WarpsPicture:
    if (found := warps_picture(capture, theme)) is None:
        why = "tl.range(…, warp_specialize=True) requests them, and so does gluon's warp_specialize"
        raise _missing(capture, f"has no partitions of warps: its TTGIR holds no warp_specialize. {why}")
    return found


def _missing(capture: Capture, what: str) -> UsageError:
    """What a capture lacks, and of a failed compile why."""
    why = f" The compile {capture.failure.verdict}: irscope draw poster shows where." if capture.failure else ""
    return UsageError(f"{capture.name} ({capture.target}) {what}.{why}")


def picture_json(capture: Capture, wanted: GraphOptions) -> dict[str, Any]:
    """The picture as JSON: nodes and edges, or passes."""
    head = picked(capture, "id kernel=name target")
    if wanted.kind == "warps":
        _warps(capture)
        return head | {"warp_specialization": partitions_json(read_partitions(capture.text("ttgir")))}
    if wanted.kind == "passes":
        rows = [picked(one, "pass=label outcome changed duration_us") for one in capture.snapshots]
        return head | {"passes": rows}
    text, kind, what = _text(capture, wanted)
    if _draws_blocks(wanted, kind):
        blocks, _ = _blocks(capture, wanted, text, kind)
        lines = python_lines(capture, text, kind)
        functions = [_blocks_json(flow, kind, lines) for flow in blocks.flows]
        return head | {"of": what, "note": blocks.note, "fold": blocks.level, "functions": functions}
    folded, lines = _dataflow(capture, wanted, text, kind)
    return head | {"of": what, "note": folded.note, "fold": folded.level, **_graph_json(folded.flow, lines)}


def card_svg(capture: Capture, kind: str, theme: str | None = None, part: str | None = None) -> str:
    """A poster, the loop, or the roofline of a capture, as SVG; raises UsageError where there is nothing to draw."""
    if kind == "roofline":
        from irscope.api.timing import counted_roofline
        from irscope.render.roofline import roofline_svg

        return roofline_svg(counted_roofline(capture, part), theme)
    from irscope.render.poster.poster import loop_svg, poster_svg

    if kind == "loop":
        return loop_svg(capture, _loop(capture), theme)
    return poster_svg(with_layouts(capture), theme)


def card_json(capture: Capture, kind: str, part: str | None = None) -> dict[str, Any]:
    """The same as JSON: the roofline, or the steps of each iteration, and of a poster the live registers too."""
    if kind == "roofline":
        from irscope.api.timing import counted_roofline
        from irscope.render.roofline import roofline_json

        return roofline_json(counted_roofline(capture, part))
    from irscope.analysis.in_flight.find import as_json, in_flight
    from irscope.render.poster.facts import live_registers

    head = picked(capture, "id kernel=name target")
    if kind == "loop":
        return head | {"loop": as_json(_loop(capture))}
    flight, live = in_flight(capture), live_registers(capture)
    counts = [one.live or 0 for one in live.instructions] if live is not None else []
    return head | {"loop": flight and as_json(flight), "registers": live and {"stage": live.stage, "live": counts}}


def _loop(capture: Capture) -> InFlight:
    from irscope.analysis.in_flight.find import in_flight

    flight = in_flight(capture)
    if flight is None or not flight.line or not flight.steps:
        why = "it holds no TTGIR" if flight is None else flight.note or "its TTGIR has none that accesses memory"
        raise _missing(capture, f"has no loop to draw: {why}")
    return flight


def _blocks_json(flow: ControlFlow, kind: StageKind, lines: dict[int, str]) -> dict[str, Any]:
    blocks = [
        picked(
            block,
            "id=number labels ending calls basic_blocks=blocks",
            instructions=len(block.instructions),
            text_lines=[item.line for item in block.instructions],
            parts={row.name: row.count for row in parts_of(block.instructions, kind)},
            python=list(dict.fromkeys(lines[one.line] for one in block.instructions if one.line in lines)),
        )
        for block in flow.blocks
    ]
    jumps = [
        picked(jump, "from=source kind condition back", to=jump.target if jump.target != UNKNOWN else None)
        for jump in flow.jumps
    ]
    loops = [picked(loop, "head", blocks=sorted(loop.body)) for loop in flow.loops]
    return picked(flow, "function", blocks=blocks, jumps=jumps, loops=loops)


def _graph_json(flow: Dataflow, lines: dict[int, str]) -> dict[str, Any]:
    names = "id=number operation=name role values type region text_line=line operations=size"
    return {
        "nodes": [picked(node, names, python=lines.get(node.line, "")) for node in flow.nodes],
        "edges": [picked(edge, "from=source to=target value type carried") for edge in flow.edges],
        "regions": [picked(scope, "id=number parent operation=name title text_line=line") for scope in flow.scopes],
    }


def movie_of_stages(capture: Capture, stages: Sequence[str]) -> Movie:
    """The movie of a capture from the first pass that changed the TTGIR on, or of some of its stages.

    Raises PlanError for a stage in which no pass changed anything.
    """
    from irscope.analysis.movie.make import movie_of, of_stages

    made = movie_of(capture)
    known = list(dict.fromkeys(one.stage for one in made.frames[1:]))
    for stage in stages:
        if stage not in known:
            raise PlanError(f"no pass changed the IR in stage {stage!r}: there are {', '.join(known) or 'none'}.")
    if stages:
        return of_stages(made, stages)
    at = next((number for number, frame in enumerate(made.frames) if frame.stage == "ttgir"), 0)
    return replace(made, frames=made.frames[at:])


def movie_maps(capture: Capture, made: Movie) -> Answers:
    """The maps of a movie's layouts."""
    from irscope.record.layouts.questions import answered_rows
    from irscope.render.movie.tiles import layouts_wanted

    rows = answered_rows(layouts_wanted(made), capture.text("source"), capture.target, capture.layouts)
    return {(row.encoding, row.shape): row.answer for row in rows}
