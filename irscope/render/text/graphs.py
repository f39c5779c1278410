"""The graphs of TorchInductor's that kernels come from, as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irscope.model.capture import Capture
from irscope.model.evidence import GraphCall, GraphNode, GraphOrigin
from irscope.model.launch_record import Autotuning
from irscope.render.text.tables import masked, shorten

__all__ = ["choice_text", "graph_texts", "place_text"]

# What stands behind torch's own functions, by the backend of the target.
_LIBRARIES = {
    **{name: {"cuda": "cuBLAS", "hip": "hipBLAS"} for name in ("addmm", "mm", "bmm", "baddbmm", "_int_mm")},
    "convolution": {"cuda": "cuDNN", "hip": "MIOpen"},
}
_MOST_NODES = 12
_SHORT = 96


def graph_texts(captures: Iterable[tuple[str, Capture]], *, detailed: bool) -> str:
    """For each graph, its kernels with the lines of Python that each comes from; empty where there is no graph.

    Args:
        captures: (id, capture, which may lack its stages and passes).
        detailed: whether the nodes of each are told too, and the configurations that it was chosen among.
    """
    groups: dict[tuple[str, ...], list[tuple[GraphOrigin, str, Capture]]] = {}
    for id_, capture in captures:
        for origin in capture.graphs:
            key = (*_recording(capture), origin.graph, origin.part)
            groups.setdefault(key, []).append((origin, id_, capture))
    parts: list[str] = []
    for members in groups.values():
        first, _, one = members[0]
        lines = [_title(first, one)]
        for origin, id_, capture in sorted(members, key=lambda member: member[0].kernel):
            lines += _kernel(origin, id_, capture, detailed=detailed)
        parts.append("\n".join(map(masked, lines)))
    return "\n\n".join(parts)


def _recording(capture: Capture) -> tuple[str, str, str]:
    return capture.environment.date, capture.environment.command, str(capture.target)


def _title(origin: GraphOrigin, capture: Capture) -> str:
    kernels = "1 Triton kernel" if origin.kernels == 1 else f"{origin.kernels} Triton kernels"
    others = ", ".join(_call(call, capture.target.backend) for call in _summed(origin.others))
    return f"{origin.title}: {kernels}" + (f"; no Triton kernels: {others}" if others else "")


def _summed(calls: Sequence[GraphCall]) -> list[GraphCall]:
    """Each function once, with the number of its calls."""
    counts: dict[str, int] = {}
    for call in calls:
        counts[call.callee] = counts.get(call.callee, 0) + call.count
    return [GraphCall(callee, count=count) for callee, count in counts.items()]


def _call(call: GraphCall, backend: str) -> str:
    known = _LIBRARIES.get(call.callee.removeprefix("extern_kernels."))
    library = "ATen" if known is None else known.get(backend) or " or ".join(known.values())
    times = f" ×{call.count}" if call.count > 1 else ""
    return f"{call.callee}{times} ({library})"


def _kernel(origin: GraphOrigin, id_: str, capture: Capture, *, detailed: bool) -> list[str]:
    number = f"{origin.kernel}/{origin.kernels}" if origin.kernels else "–"
    nodes = _listed(origin.source_nodes, None if detailed else _MOST_NODES)
    tuning = capture.launch.autotuning
    heuristic = f" · {origin.heuristic}" if origin.heuristic else ""
    lines = [f"  {number}  {id_[:8]}  {capture.name}{heuristic}", f"       of {nodes}"]
    lines += [f"       {place_text(node)}  {shorten(node.code, _SHORT)}".rstrip() for node in origin.lines]
    if not origin.lines:
        lines.append("       its lines of Python are not known")
    if not detailed:
        return lines
    lines += [f"       %{node.name} = {node.operator}{_at(node)}" for node in origin.nodes]
    return [*lines, *(f"       {line}" for line in choice_text(tuning))]


def place_text(node: GraphNode) -> str:
    """`model.py:12`"""
    return f"{node.file.replace(chr(92), '/').rpartition('/')[2]}:{node.line}"


def _at(node: GraphNode) -> str:
    return f"  ({place_text(node)})" if node.file else ""


def _listed(names: Sequence[str], most: int | None) -> str:
    left_out = len(names) - most if most is not None else 0
    shown = ", ".join(names[:most])
    return (f"{shown}, and {left_out} more" if left_out > 0 else shown) or "nodes that are not known"


def choice_text(tuning: Autotuning | None) -> list[str]:
    """The configurations that TorchInductor chose among, which this one is, and why; empty for any other kernel."""
    if tuning is None or not tuning.candidates:
        return []
    if tuning.count == 1:
        why = "the only configuration of its heuristic"
    elif tuning.winner:
        why = "the fastest of those that were timed"
    elif tuning.winner is False:
        why = "timed, and not the fastest"
    else:
        why = "compiled without a GPU, where nothing is timed: by default the first that fits (--config all: each)"
    lines = [f"configuration {tuning.number_text}: {why}"]
    for index, config in enumerate(tuning.candidates):
        lines.append(f"{'*' if index == tuning.index else ' '} {index}  {config}")
    if tuning.index >= len(tuning.candidates):
        lines.append(f"* {tuning.index}  {tuning.config} (TorchInductor's own change of one of these)")
    return lines
