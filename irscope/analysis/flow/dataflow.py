"""The dataflow of a text: operations as nodes, uses as edges, regions as a tree; folded until it can be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from irscope.errors import UsageError, did_you_mean
from irscope.ir.mlir.model import Block, Value
from irscope.ir.mlir.operations import OperationKind
from irscope.ir.mlir.reader import MlirModule, Operation, Region, parse_mlir
from irscope.ir.mlir.types import layout_of

_Operation = Literal["plain", "trivial", "constant", "memory", "shared", "dot", "convert", "reduce", "sync", "control"]
_Role = Literal[_Operation, "argument", "group"]
"""The role of a node in a picture; `group` stands for several nodes."""


_UNREAD = "(unread)"


@dataclass(frozen=True, slots=True)
class Node:
    """An operation or a block argument."""

    number: int
    name: str
    """`tt.load`, or an empty string for a block argument."""
    values: tuple[str, ...]
    """The values that it makes, as they are written: `%q_61`."""
    region: int
    line: int
    """1-based line of the text; that of the operation whose block it is, for an argument."""
    text: str = ""
    """The operation as written, without its location; of one with regions, the opening line and the closing one."""
    type: str = ""
    """Type of the first value; without one, of the value that is stored."""
    role: _Role = "plain"
    members: tuple[Node, ...] = ()
    detail: str = ""
    """The details that a picture shows besides its name."""
    faded: bool = False
    """Whether it is only a neighbour of the selected nodes."""
    operation: Operation | None = field(default=None, compare=False, repr=False)
    """None for a block argument."""

    @property
    def size(self) -> int:
        """How many operations it stands for."""
        return sum(member.size for member in self.members) if self.members else 1


@dataclass(frozen=True, slots=True)
class Edge:
    """A value from where it is made to where it is read."""

    source: int
    target: int
    value: str
    operand: int = 0
    """Which operand of the target, 0-based, as written."""
    type: str = ""
    carried: bool = False
    """Whether it goes to the next iteration of a loop."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A region, or one block of several: what is drawn as a frame around its nodes."""

    number: int
    parent: int
    """-1 at the top."""
    name: str
    """The operation that it belongs to: `scf.for`; `^bb1` for a block."""
    title: str = ""
    line: int = 0


@dataclass(frozen=True)
class Dataflow:
    """A graph of definitions and uses."""

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    scopes: tuple[Scope, ...] = ()
    aliases: dict[str, str] = field(default_factory=dict[str, str])
    """`#blocked` -> what it stands for."""

    def with_nodes(self, kept: Iterable[Node], edges: Iterable[Edge] | None = None) -> Dataflow:
        """The graph with those nodes alone, and the edges that run among them."""
        nodes = tuple(kept)
        numbers = {node.number for node in nodes}
        edges = self.edges if edges is None else edges
        among = tuple(edge for edge in edges if edge.source in numbers and edge.target in numbers)
        return Dataflow(nodes, among, self.scopes, self.aliases)


_ROLES: dict[OperationKind, _Role] = {
    **dict.fromkeys(("arithmetic", "view", "memory_view", "index", "pointer"), "trivial"),
    **dict.fromkeys(("barrier", "wait", "arrive", "commit", "fence"), "sync"),
    **dict.fromkeys(("reduction", "scan", "gather"), "reduce"),
    **dict.fromkeys(("loop", "conditional", "branch", "yield", "call", "return", "specialization"), "control"),
    **dict.fromkeys(("load", "store", "atomic", "copy", "prefetch", "allocation", "deallocation"), "shared"),
    "constant": "constant",
    "conversion": "convert",
    "dot": "dot",
}
_COLLAPSED: tuple[OperationKind | None, ...] = ("reduction", "scan", "arithmetic")
"""Operations whose regions say what they compute of each element."""


def role_of(operation: Operation) -> _Role:
    info = operation.info
    if info is None:
        return "plain"
    if info.opcode == "make_range":
        return "trivial"
    role = _ROLES.get(info.kind, "plain")
    if role != "shared" or not any(effect.space in ("global", "memory") for effect in operation.effects):
        return "memory" if info.kind == "prefetch" else role
    return "plain" if info.kind == "allocation" else "memory"


def read_dataflow(text: str) -> Dataflow:
    """The dataflow of a module of MLIR as a reader expects it; never raises, and what cannot be read is left out.

    `module`, functions and loops are frames; what `scf.yield` hands on goes, as a carried edge, to the argument of the
    next iteration, and from where it was made to whoever reads the loop's result; a branch's results come from both
    sides; the operations within a reduction are a part of it.
    """
    module = parse_mlir(text)
    reader = _Reader(module)
    reader.region(-1, "", [Block("", (), module.operations)], 0, "")
    return reader.flow()


_Use = tuple[int, Value, int, bool]
"""(node that reads it, value, operand, whether it goes to the next iteration)."""


class _Reader:
    def __init__(self, module: MlirModule) -> None:
        self.module = module
        self.nodes: list[Node] = []
        self.scopes: list[Scope] = []
        self.makers: dict[tuple[int, int], int] = {}
        """(number, index) of a value -> the node that makes it."""
        self.plain: list[_Use] = []
        self.handed: list[_Use] = []
        """The values that loops and branches pass to arguments of blocks."""
        self.passed: dict[tuple[int, int], list[Value]] = {}
        """Result of a loop or a branch -> the values that it is, made within its regions."""
        self.blocks: dict[tuple[int, str], Block] = {}
        """By region and label."""
        self.hidden: set[int] = set()
        self.loops: list[tuple[Operation, Block]] = []
        self.jumps: list[tuple[Node, Operation]] = []

    def region(self, parent: int, name: str, blocks: Sequence[Block], line: int, title: str) -> None:
        """Take in the blocks of a region, without recursion, since the nesting may be of any depth."""
        waiting = [(parent, name, blocks, line, title)]
        while waiting:
            parent, name, blocks, line, title = waiting.pop()
            number = self._scope(parent, name, title, line)
            for block in blocks:
                home = number
                if len(blocks) > 1:
                    home = self._scope(number, block.label or "^entry", block.label, line)
                self.blocks[number, block.label] = block
                for argument in block.arguments:
                    self._node("", (argument,), home, line, "argument", str(self.module.type_of(argument)))
                for operation in block.operations:
                    self._operation(operation, home)
                    is_one = operation.kind in _COLLAPSED
                    for region in operation.regions:
                        inner = () if is_one else region.blocks
                        waiting.append((home, operation.name, inner, operation.first_line, _title(operation, region)))

    def _scope(self, parent: int, name: str, title: str, line: int) -> int:
        self.scopes.append(Scope(len(self.scopes), parent, name, title, line))
        return len(self.scopes) - 1

    def _node(
        self, name: str, values: Sequence[Value], region: int, line: int, role: _Role, kind: str, text: str = "",
        detail: str = "", operation: Operation | None = None,
    ) -> Node:  # fmt: skip
        names = tuple(value.name for value in values)
        node = Node(len(self.nodes), name, names, region, line, text, kind, role, (), detail, False, operation)
        self.nodes.append(node)
        self.makers.update(((value.number, value.index), node.number) for value in values)
        return node

    def _operation(self, operation: Operation, home: int) -> None:
        loop = operation.regions[0].blocks[:1] if operation.name == "scf.for" and operation.regions else ()
        is_yield = operation.name == "scf.yield" and self.scopes[home].name in ("scf.for", "scf.if")
        if operation.kind in ("module", "function") or is_yield:
            return
        if loop and loop[0].arguments:
            self.loops.append((operation, loop[0]))
            return
        types = [str(kind) for kind in operation.result_types[:1]]
        text = f"{operation.text}\n{operation.closing}" if operation.closing else operation.text
        node = self._node(
            operation.name or _UNREAD, operation.results, home, operation.first_line, role_of(operation),
            types[0] if types else _stored(operation), text, _detail(operation), operation,
        )  # fmt: skip
        if operation.name == "scf.if":
            for region in operation.regions:
                self._hand_on(operation, region)
        elif operation.kind == "branch":
            self.jumps.append((node, operation))
            return
        self.plain += [(node.number, value, place, False) for place, value in enumerate(operation.operands)]

    def _hand_on(self, operation: Operation, region: Region) -> Sequence[Value]:
        """Note that the results of an operation are what a region of it yields; returns these."""
        block = region.blocks[-1] if region.blocks else None
        last = block.operations[-1] if block is not None and block.operations else None
        yielded = last.operands if last is not None and last.name == "scf.yield" else ()
        for result, value in zip(operation.results, yielded, strict=False):
            self.passed.setdefault((result.number, result.index), []).append(value)
        return yielded

    def flow(self) -> Dataflow:
        for loop, body in self.loops:
            self._loop(loop, body)
        for node, branch in self.jumps:
            self._jump(node, branch)
        kinds = {(node.number, value): node.type for node in self.nodes for value in node.values[:1]}
        edges: dict[Edge, None] = {}
        for target, value, operand, carried in [*self.plain, *self.handed]:
            for source, name in self._sources(value, 0):
                kind = kinds.get((source, name)) or self._kind(source, name)
                edges[Edge(source, target, name, operand, kind, carried)] = None
        nodes = [node for node in self.nodes if node.number not in self.hidden]
        return Dataflow((), (), tuple(self.scopes), dict(self.module.aliases)).with_nodes(nodes, edges)

    def _kind(self, source: int, name: str) -> str:
        operation = self.nodes[source].operation
        if operation is None:
            return ""
        pairs = zip(operation.results, operation.result_types, strict=False)
        return next((str(kind) for value, kind in pairs if value.name == name), "")

    def _sources(self, value: Value, depth: int) -> list[tuple[int, str]]:
        """(node, name) of where a value is made: within loops and branches where it is a result of theirs."""
        key = value.number, value.index
        makers = self.passed.get(key)
        if makers is not None and depth <= 32:
            return list(dict.fromkeys(one for maker in makers for one in self._sources(maker, depth + 1)))
        return [(self.makers[key], value.name)] if key in self.makers else []

    def _loop(self, loop: Operation, body: Block) -> None:
        """Bounds go to the induction variable, first values to the arguments, yielded ones to the next iteration."""
        numbers = [self.makers[one.number, one.index] for one in body.arguments]
        self.handed += [(numbers[0], value, place, False) for place, value in enumerate(loop.operands[:3])]
        yielded = self._hand_on(loop, loop.regions[0])
        for place, number in enumerate(numbers[1:]):
            self.handed += [(number, value, 0, False) for value in loop.operands[3 + place : 4 + place]]
            self.handed += [(number, value, 1, True) for value in yielded[place : place + 1]]

    def _jump(self, node: Node, branch: Operation) -> None:
        region = self.scopes[node.region].parent
        place = len(branch.operands) - sum(len(values) for _, values in branch.branches)
        for number, value in enumerate(branch.operands[:place]):
            self.plain.append((node.number, value, number, False))
        for label, values in branch.branches:
            block = self.blocks.get((region, label))
            for argument, value in zip(block.arguments if block is not None else (), values, strict=False):
                target = self.nodes[self.makers[argument.number, argument.index]]
                back = target.line <= node.line and target.region <= node.region
                self.handed.append((target.number, value, 0, back))
        if not place:
            self.hidden.add(node.number)


def _stored(operation: Operation) -> str:
    value = operation.operand("value") or operation.operand("src")
    types = operation.operand_types
    if operation.kind == "branch" or not types:
        return ""
    return str(types[operation.operands.index(value)] if value is not None else types[0])


def _detail(operation: Operation) -> str:
    if operation.kind in ("reduction", "scan"):
        axis = operation.attribute("axis")
        return f"axis {axis}" if axis is not None else ""
    if operation.kind == "wait":
        left = operation.attribute("num") if operation.attribute("num") is not None else operation.attribute("pendings")
        return f"{left} left in flight" if left is not None else ""
    if operation.name == "arith.constant":
        return operation.attribute_texts.get("value", "").partition(" : ")[0]
    return ""


def _title(operation: Operation, region: Region) -> str:
    if operation.kind == "module":
        return ""
    if operation.kind == "function":
        return operation.symbol
    if operation.name == "scf.for" and operation.regions and operation.regions[0].blocks:
        first, last, step = (value.name for value in operation.operands[:3])
        index = operation.regions[0].blocks[0].arguments[0].name
        return f"for {index} = {first} to {last} step {step}"
    if operation.name == "scf.if":
        side = "then" if operation.regions[0] is region else "else"
        condition = operation.operand("condition")
        return f"if {condition.name}: {side}" if condition is not None else side
    return operation.name


_NOTABLE: frozenset[_Role] = frozenset({"memory", "shared", "dot", "convert", "reduce"})
"""The operations of interest in a picture of a kernel, which are folded last."""
MAX_NODES = 30
MAX_EDGES = 260
HARDEST = 5

_POINTERS = ("ptr", "tensordesc")
_LEVELS = (
    "nothing is folded",
    "chains of trivial operations are folded",
    "all but memory, dots, reductions and conversions are folded by line of Python",
    "all but memory, dots, reductions and conversions are folded by region",
    "everything is folded by line of Python",
    "everything is folded by region",
)


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
        lines: text line -> the line of Python that it comes from, as a text.
        level: 0 to 5, the least to fold; by default 1. Harder levels follow only if they are needed.
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
    if level == 1:
        return _merged(flow, _chains(flow))
    keep = _NOTABLE if level <= 3 else frozenset[_Role]()
    groups: dict[int, Hashable] = {}
    for node in flow.nodes:
        key = lines.get(node.line, "") if level % 2 == 0 else node.region
        group: Hashable = ("group", key, node.region if keep else 0)
        groups[node.number] = ("alone", node.number) if node.role in keep else group
    return _merged(flow, groups)


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


def _chains(flow: Dataflow) -> dict[int, Hashable]:
    """Trivial operations with the one that reads them, where that is one alone: such a fold makes no cycle."""
    nodes = {node.number: node for node in flow.nodes}
    readers: dict[int, set[int]] = {}
    for edge in flow.edges:
        readers.setdefault(edge.source, set()).add(-1 if edge.carried else edge.target)
    leaders = {number: number for number in nodes}

    def leader_of(number: int) -> int:
        while leaders[number] != number:
            number = leaders[number]
        return number

    # From the end: a value's reader usually has its leader before the operation that makes the value.
    for number in sorted(nodes, reverse=True):
        targets = {leader_of(target) if target >= 0 else -1 for target in readers.get(number, ())}
        if not _is_trivial(nodes[number]) or len(targets) != 1 or targets & {-1, number}:
            continue
        (target,) = targets
        if _is_trivial(nodes[target]) and nodes[target].region == nodes[number].region:
            leaders[number] = target
    return {number: leader_of(number) for number in leaders}


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
        role=head.role if len(roles) == 1 and head.role in _NOTABLE else "group",
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

    `value`: `%acc_153` or `acc_153`; the name alone of a block argument or a result, one of several as `%a#1`.
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
