"""Folds a dataflow until it is small enough to read: chains of trivial operations first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace

from irscope.analysis.flow.dataflow import Dataflow, Edge, Node, Role
from irscope.errors import UsageError, did_you_mean
from irscope.ir.mlir.types import layout_of

NOTABLE: frozenset[Role] = frozenset({"memory", "shared", "dot", "convert", "reduce"})
"""What readers look for in a picture of a kernel; it is folded last."""
MAX_NODES = 120
MAX_EDGES = 260
HARDEST = 7

_POINTERS = ("ptr", "tensordesc")
_LEVELS = (
    "nothing is folded",
    "chains of trivial operations are folded",
    "connected trivial operations are folded",
    "all but memory, dots, reductions and conversions are folded by line of Python",
    "all but memory, dots, reductions and conversions are folded by region",
    "everything is folded by line of Python, and memory, dots, reductions and conversions by kind",
    "everything is folded by line of Python",
    "everything is folded by region",
)
"""What each level does, in words."""


@dataclass(frozen=True)
class Folded:
    """A graph that is small enough, and how it was folded."""

    flow: Dataflow
    level: int
    operations: int
    """How many operations and arguments the graph had."""
    left_out: int = 0
    """How many nodes were left out, because no folding made it small enough."""

    @property
    def note(self) -> str:
        """One line for the reader: how many operations are in how many nodes."""
        text = f"{self.operations} operations and arguments in {len(self.flow.nodes)} nodes: {_LEVELS[self.level]}"
        return f"{text}; {self.left_out} more are left out" if self.left_out else text


def fold(
    flow: Dataflow,
    lines: Mapping[int, str],
    level: int | None = None,
    most: int = MAX_NODES,
    most_edges: int = MAX_EDGES,
) -> Folded:
    """Fold no more than is needed to make the graph small enough.

    Args:
        flow: the graph, as `read_dataflow` gives it.
        lines: text line -> the line of Python that it comes from, as a text.
        level: 0 to 7, the least to fold; by default 1. Harder levels follow only if they are needed.
    """
    operations = len(flow.nodes)
    level = 1 if level is None else level
    while True:
        folded = at_level(flow, lines, level)
        if level >= HARDEST or (len(folded.nodes) <= most and len(folded.edges) <= most_edges):
            break
        level += 1
    left_out = max(len(folded.nodes) - most, 0)
    if left_out:
        folded = folded.with_nodes(folded.nodes[:most])
    if len(folded.edges) > most_edges:
        folded = folded.with_nodes(folded.nodes, folded.edges[:most_edges])
    return Folded(folded, level, operations, left_out)


def at_level(flow: Dataflow, lines: Mapping[int, str], level: int) -> Dataflow:
    """The graph folded as hard as one level says."""
    if level <= 0:
        return flow
    flow = _without_inputs(flow)
    if level <= 2:
        return _merged(flow, _chains(flow) if level == 1 else _components(flow))
    keep = NOTABLE if level <= 4 else frozenset[Role]()
    keys: dict[int, Callable[[Node], Hashable]] = {
        3: lambda node: (node.region, lines.get(node.line, "")),
        4: lambda node: node.region,
        5: lambda node: (lines.get(node.line, ""), node.name if node.role in NOTABLE else ""),
        6: lambda node: lines.get(node.line, ""),
    }
    key = keys.get(level, keys[4])
    alone = {node.number: ("alone", node.number) for node in flow.nodes if node.role in keep}
    return _merged(flow, {node.number: ("group", key(node)) for node in flow.nodes} | alone)


def _without_inputs(flow: Dataflow) -> Dataflow:
    """Without constants, scalar parameters, and unconnected operations such as returns and fences."""
    outer = {scope.number for scope in flow.scopes if scope.name.endswith("func")}
    gone = {
        node.number
        for node in flow.nodes
        if node.role == "constant"
        or (node.role == "argument" and node.region in outer and not any(word in node.type for word in _POINTERS))
    }
    tied = {number for edge in flow.edges for number in (edge.source, edge.target)}
    gone |= {node.number for node in flow.nodes if node.number not in tied and node.role in ("control", "sync")}
    kept = [node for node in flow.nodes if node.number not in gone or node.faded]
    return flow.with_nodes(kept) if kept else flow


def _is_trivial(node: Node) -> bool:
    return node.role == "trivial" and not node.faded


class _Sets:
    """Disjoint sets of nodes, each with a leader."""

    def __init__(self, flow: Dataflow) -> None:
        self._leader = {node.number: node.number for node in flow.nodes}

    def find(self, number: int) -> int:
        while self._leader[number] != number:
            self._leader[number] = self._leader[self._leader[number]]
            number = self._leader[number]
        return number

    def join(self, number: int, target: int) -> None:
        """Put a leader's set under another leader."""
        self._leader[number] = target

    def groups(self) -> dict[int, Hashable]:
        return {number: self.find(number) for number in self._leader}


def _chains(flow: Dataflow) -> dict[int, Hashable]:
    """Trivial operations with the one that reads them, where that is one alone: such a fold makes no cycle."""
    nodes = {node.number: node for node in flow.nodes}
    readers: dict[int, set[int]] = {}
    for edge in flow.edges:
        readers.setdefault(edge.source, set()).add(-1 if edge.carried else edge.target)
    sets = _Sets(flow)
    # From the end: a value's reader usually has its leader before the operation that makes the value.
    for number in sorted(nodes, reverse=True):
        targets = {sets.find(target) if target >= 0 else -1 for target in readers.get(number, ())}
        if not _is_trivial(nodes[number]) or len(targets) != 1 or targets & {-1, number}:
            continue
        (target,) = targets
        if _is_trivial(nodes[target]) and nodes[target].region == nodes[number].region:
            sets.join(number, target)
    return sets.groups()


def _components(flow: Dataflow) -> dict[int, Hashable]:
    nodes = {node.number: node for node in flow.nodes}
    sets = _Sets(flow)
    for edge in flow.edges:
        one, other = nodes[edge.source], nodes[edge.target]
        if _is_trivial(one) and _is_trivial(other) and one.region == other.region and not edge.carried:
            sets.join(sets.find(edge.source), sets.find(edge.target))
    return sets.groups()


def _merged(flow: Dataflow, groups: Mapping[int, Hashable]) -> Dataflow:
    """One node for each group; its number is that of its last member, which as a rule reads all others."""
    members: dict[Hashable, list[Node]] = {}
    for node in flow.nodes:
        members.setdefault(groups[node.number], []).append(node)
    number_of: dict[int, int] = {}
    nodes: list[Node] = []
    read_outside = {edge.source for edge in flow.edges if groups[edge.source] != groups[edge.target]}
    for group in members.values():
        head = next((node for node in reversed(group) if node.number in read_outside), group[-1])
        number_of.update((node.number, head.number) for node in group)
        nodes.append(head if len(group) == 1 else replace(_group(head, group), region=_common(flow, group)))
    edges: dict[tuple[int, int, bool], Edge] = {}
    values: dict[tuple[int, int, bool], list[str]] = {}
    for edge in flow.edges:
        source, target = number_of[edge.source], number_of[edge.target]
        if source == target:
            continue
        key = (source, target, edge.carried)
        edges.setdefault(key, replace(edge, source=source, target=target))
        if edge.type and edge.type not in values.setdefault(key, []):
            values[key].append(edge.type)
    joined = [replace(edge, type="\n".join(values.get(key, ()))) for key, edge in edges.items()]
    return flow.with_nodes(sorted(nodes, key=lambda node: node.number), joined)


def _common(flow: Dataflow, group: list[Node]) -> int:
    regions = {node.region for node in group}
    if len(regions) == 1:
        return group[0].region
    paths: list[list[int]] = []
    for number in regions:
        path = [number]
        while flow.scopes[path[-1]].parent >= 0:
            path.append(flow.scopes[path[-1]].parent)
        paths.append(path[::-1])
    shared = [steps[0] for steps in zip(*paths, strict=False) if len(set(steps)) == 1]
    return shared[-1] if shared else 0


def _group(head: Node, group: list[Node]) -> Node:
    flat = [member for node in group for member in (node.members or (node,))]
    layouts = Counter(layout for node in flat if (layout := layout_of(node.type)))
    most = layouts.most_common(1)[0][0] if layouts else ""
    kind = head.type if head.type else next((node.type for node in flat if layout_of(node.type) == most), "")
    counts = Counter(_short(node.name) for node in flat)
    named = [name if count == 1 else f"{name} ×{count}" for name, count in counts.most_common(4)]
    rest = len(counts) - len(named)
    roles = {node.role for node in flat}
    return replace(
        head,
        role=head.role if len(roles) == 1 and head.role in NOTABLE else "group",
        type=kind,
        members=tuple(flat),
        detail=", ".join(named) + (f" and {rest} more kinds" if rest else ""),
    )


def _short(name: str) -> str:
    """`splat` of `tt.splat`; names of LLVM's intrinsics and of assembly stay whole."""
    return (name.partition(".")[2] if name.count(".") == 1 else name) or "argument"


NO_LINES = "--lines: nothing of this stage comes from these lines. irscope source shows which lines have some."


def around(flow: Dataflow, value: str, depth: int) -> Dataflow:
    """What stands within `depth` steps of a value, up and down.

    Args:
        value: `%acc_153` or `acc_153`; the name alone of a block argument or a result, one of several as `%a#1`.

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
