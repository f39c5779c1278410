"""Takes a part of a dataflow: around a value, or what some lines of Python wrote."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from irscope.analysis.flow.dataflow import Dataflow
from irscope.errors import UsageError, did_you_mean

NO_LINES = "--lines: nothing of this stage comes from these lines. irscope source shows which lines have some."


def around(flow: Dataflow, value: str, depth: int) -> Dataflow:
    """What stands within `depth` steps of a value, up and down.

    Args:
        flow: the graph.
        value: `%acc_153` or `acc_153`; the name alone of a block argument or a result, one of several as `%a#1`.
        depth: steps along edges.

    Raises UsageError where no node makes that value.
    """
    name = value if value.startswith("%") else f"%{value}"
    found = {node.number for node in flow.nodes if any(one in (name, f"{name}#0") for one in node.values)}
    found |= {edge.source for edge in flow.edges if edge.value == name}
    if not found:
        known = [one for node in flow.nodes for one in node.values]
        raise UsageError(f"--around {value!r}: no operation makes that value.{_nearest(name, known)}")
    kept = within(found, [(edge.source, edge.target) for edge in flow.edges], depth)
    return flow.with_nodes(node for node in flow.nodes if node.number in kept)


def within(start: Iterable[int], pairs: Iterable[tuple[int, int]], depth: int) -> set[int]:
    """The numbers that are reached from some in at most `depth` steps, where each pair is a step both ways."""
    beside: dict[int, set[int]] = {}
    for one, other in pairs:
        beside.setdefault(one, set()).add(other)
        beside.setdefault(other, set()).add(one)
    kept = latest = set(start)
    for _ in range(depth):
        latest = {other for number in latest for other in beside.get(number, ())} - kept
        if not latest:
            break
        kept = kept | latest
    return kept


def _nearest(name: str, known: list[str]) -> str:
    near = did_you_mean(name, known)
    return near if near.startswith(" Did") else f" There are {len(known)} values, such as {', '.join(known[:5])}."


def on_lines(flow: Dataflow, text_lines: Collection[int]) -> Dataflow:
    """What stands on some lines of the text, with its neighbours, which are faded.

    Raises UsageError where nothing stands there.
    """
    wanted = {node.number for node in flow.nodes if node.line in text_lines and node.name}
    if not wanted:
        raise UsageError(NO_LINES)
    beside = {edge.source for edge in flow.edges if edge.target in wanted and not edge.carried}
    beside |= {edge.target for edge in flow.edges if edge.source in wanted and not edge.carried}
    nodes = [
        node if node.number in wanted else replace(node, faded=True)
        for node in flow.nodes
        if node.number in wanted | beside
    ]
    edges = [edge for edge in flow.edges if edge.source in wanted or edge.target in wanted]
    return flow.with_nodes(nodes, edges)
