"""Where the time of a compile went: as a tree of text, as JSON, as a flame graph, and as a Chrome trace."""

from __future__ import annotations

from typing import Any

from irscope.analysis.passes.times import TimeNode, TimeTree, children, time_tree
from irscope.model.capture import Capture
from irscope.model.evidence import CompileTimes
from irscope.render.canvas import Canvas, Rect, theme_named
from irscope.render.text.tables import milliseconds, percent, shorten, table
from irscope.render.timing import chrome_trace

_LEAST_SHARE = 0.005
"""Parts of a smaller share are shown as one line."""
_TILES = {"pass": 0, "front end": 1, "stage": 2, "llvm": 3, "call": 4, "tool": 5, "compile": 6}
"""The colour of each kind of part."""


def times_text(capture: Capture, *, width: int | None, color: bool) -> str:
    """The parts of the compile as a tree, the slowest of LLVM's passes by name, and what is not accounted for."""
    if capture.times is None:
        return ""
    tree = time_tree(capture.times)
    rows = [[f"compile of {capture.name} for {capture.target}", _ms(tree.whole_ns), "100 %", ""]]
    rows += _rows(tree.root, tree.whole_ns, 1)
    rows.append(["  not accounted for", _ms(tree.unaccounted_ns), percent(tree.unaccounted_ns / _whole(tree)), ""])
    said = [f"{percent(tree.accounted)} of it is accounted for"]
    said += [f"import of Triton, once in a process: {_ms(node.duration_ns)} ms" for node in tree.imports]
    said.append(f"irscope's own recording, in no part: {_ms(tree.recording_ns)} ms")
    said.append(f"processor time, all of this included: {_ms(capture.times.processor_ns)} ms")
    notes = "".join(f"{note}\n" for note in capture.times.notes)
    return table(["part", "ms", "share", "times"], rows, width=width, color=color) + f"\n{'; '.join(said)}.\n{notes}"


def _whole(tree: TimeTree) -> int:
    return tree.whole_ns or 1


def _ms(duration_ns: int) -> str:
    return milliseconds(duration_ns / 1000)


def _rows(node: TimeNode, whole_ns: int, depth: int) -> list[list[str]]:
    rows: list[list[str]] = []
    small: list[TimeNode] = []
    for part in children(node):
        if part.duration_ns < _LEAST_SHARE * whole_ns and part.kind != "stage":
            small.append(part)
            continue
        count = str(part.count) if part.count > 1 else ""
        rows.append([_title(part, depth), _ms(part.duration_ns), percent(part.duration_ns / (whole_ns or 1)), count])
        rows += _rows(part, whole_ns, depth + 1)
    if small:
        total = sum(part.duration_ns for part in small)
        what = f"{len(small)} smaller parts" if len(small) > 1 else _title(small[0], 0)
        rows.append([f"{'  ' * depth}{what}", _ms(total), percent(total / (whole_ns or 1)), ""])
    return rows


def _title(part: TimeNode, depth: int) -> str:
    name = part.name if part.kind != "llvm" else f"llvm:{part.name}"
    return f"{'  ' * depth}{f'stage {name}' if part.kind == 'stage' else name}"


def times_json(capture: Capture) -> dict[str, Any]:
    """The tree with durations in microseconds, and the share that is accounted for."""
    times = capture.times or CompileTimes(())
    tree = time_tree(times)
    return {
        "id": capture.id,
        "kernel": capture.name,
        "target": str(capture.target),
        "triton": capture.environment.triton_version,
        "whole_us": tree.whole_ns // 1000,
        "accounted": round(tree.accounted, 4),
        "unaccounted_us": tree.unaccounted_ns // 1000,
        "import_us": sum(node.duration_ns for node in tree.imports) // 1000,
        "recording_us": tree.recording_ns // 1000,
        "processor_us": times.processor_ns // 1000,
        "notes": list(times.notes),
        "parts": [_node_json(part) for part in tree.root.parts],
    }


def _node_json(node: TimeNode) -> dict[str, Any]:
    row = {"name": node.name, "kind": node.kind, "duration_us": node.duration_ns // 1000}
    return row | {"parts": [_node_json(part) for part in node.parts]}


def times_trace(capture: Capture) -> dict[str, Any]:
    """In Chrome's trace format, which Perfetto opens; nested parts stand on one track."""
    times = capture.times or CompileTimes(())
    spans = (
        (span.name, span.kind, 1, span.start_ns / 1000, span.duration_ns / 1000, span.depth) for span in times.spans
    )
    return chrome_trace(f"{capture.name} for {capture.target}", {1: "compile"}, spans, "depth")


_ROW = 22


def times_svg(capture: Capture, theme: str | None = None) -> str:
    """A flame graph: each part as wide as its time, and below it the parts within it; time goes to the right."""
    tree = time_tree(capture.times or CompileTimes(()))
    deepest = _depth(tree.root)
    canvas = Canvas(theme_named(theme) if theme is not None else None, 1280, 130 + _ROW * deepest)
    canvas.head(capture.name, str(capture.target), f"{_ms(tree.whole_ns)} ms")
    said = f"Where the compile's time went: {percent(tree.accounted)} accounted for"
    area = canvas.panel(Rect(24, 64, 1232, 50 + _ROW * deepest), said, "irscope's own recording left out")
    _flame(canvas, tree.root, Rect(area.left, area.top, area.width, _ROW), area.width / _whole(tree))
    return canvas.svg(f"{capture.name}: where {_ms(tree.whole_ns)} ms of compiling went")


def _depth(node: TimeNode) -> int:
    return 1 + max((_depth(part) for part in node.parts if part.kind != "llvm analysis"), default=0)


def _flame(canvas: Canvas, node: TimeNode, place: Rect, scale: float) -> None:
    name = f"llvm:{node.name}" if node.kind == "llvm" else node.name
    tip = f"{name}: {_ms(node.duration_ns)} ms"
    tile = _TILES[node.kind]
    canvas.rect(Rect(place.left, place.top, max(place.width - 1, 0.5), place.height - 2), f"f{tile}", tip=tip)
    letters = int((place.width - 8) / 7)
    if letters > 3:
        canvas.text(place.left + 4, place.top + 14, shorten(name, letters), look=f"x{tile}", size=11)
    left = place.left
    for part in node.parts:
        width = part.duration_ns * scale
        if part.kind != "llvm analysis" and width >= 0.5:
            _flame(canvas, part, Rect(left, place.top + _ROW, width, _ROW), scale)
        left += width
