"""The graphs of a capture: the dataflow of its IR, the control flow of its assembly, its passes and scheduled loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from irscope.analysis.flow.control_flow import read_control_flow
from irscope.analysis.flow.control_flow_fold import fold_flows
from irscope.analysis.flow.dataflow import Node, read_dataflow
from irscope.analysis.flow.dataflow_fold import fold
from irscope.analysis.flow.dataflow_view import structured
from irscope.analysis.flow.loop_stages import LoopSchedule, PipelinedLoop, read_pipelined, read_schedules
from irscope.analysis.passes.effects import pass_effects
from irscope.ir.locations.stages import capture_locations
from irscope.ir.locations.user import place_of
from irscope.model.capture import Capture, StageKind, stage_named
from irscope.render.dot.blocks import render_blocks
from irscope.render.dot.dataflow import render_dataflow
from irscope.render.dot.graph import Drawing
from irscope.render.dot.loops import render_loops
from irscope.render.dot.passes import render_passes

__all__ = ["Loops", "StageGraph", "loops_graph", "loops_of", "passes_graph", "python_lines", "stage_graph"]


@dataclass(frozen=True, slots=True)
class StageGraph:
    """A graph of a stage's text."""

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
        dataflow = fold(structured(read_dataflow(text)), python)
        drawing = render_dataflow(dataflow.flow, title=title, notes=[dataflow.note], lines=python)
        return StageGraph(drawing, {f"n{node.number}": tuple(_lines(node)) for node in dataflow.flow.nodes})
    if not (flows := read_control_flow(text, kind)):
        return None
    folded = fold_flows(flows)
    drawing = render_blocks(folded.flows, kind, title=title, notes=[folded.note], lines=python)
    blocks = ((f"f{place}b{block.number}", block) for place, flow in enumerate(folded.flows) for block in flow.blocks)
    return StageGraph(drawing, {name: tuple(one.line for one in block.instructions) for name, block in blocks})


def _lines(node: Node) -> Iterable[int]:
    """Those of the operations; an argument has none of its own."""
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
