"""The dataflow of a text: operations and block arguments as nodes, definitions and uses as edges, regions as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from irscope.ir.mlir.model import Block, Value
from irscope.ir.mlir.operations import OperationKind
from irscope.ir.mlir.reader import MlirModule, Operation, Region, parse_mlir

_Operation = Literal["plain", "trivial", "constant", "memory", "shared", "dot", "convert", "reduce", "sync", "control"]
Role = Literal[_Operation, "argument", "group"]
"""The role of a node in a picture; `group` stands for several nodes."""


_UNREAD = "(unread)"
"""The name of an operation that could not be read."""


@dataclass(frozen=True, slots=True)
class Node:
    """An operation or a block argument."""

    number: int
    name: str
    """`tt.load`, or an empty string for a block argument."""
    values: tuple[str, ...]
    """The values that it makes, as they are written: `%q_61`."""
    region: int
    """Index of the region it stands in."""
    line: int
    """1-based line of the text; that of the operation whose block it is, for an argument."""
    text: str = ""
    """The operation as written, without its location; of one with regions, the opening line and the closing one."""
    type: str = ""
    """Type of the first value; without one, of the value that is stored."""
    role: Role = "plain"
    members: tuple[Node, ...] = ()
    """What a group stands for."""
    detail: str = ""
    """What a picture shows besides its name."""
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
    """Number of a node."""
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


_ROLES: dict[OperationKind, Role] = {
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


def role_of(operation: Operation) -> Role:
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
        """What loops and branches hand to arguments of blocks."""
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
        self, name: str, values: Sequence[Value], region: int, line: int, role: Role, kind: str, text: str = "",
        detail: str = "", operation: Operation | None = None,
    ) -> Node:  # fmt: skip
        names = tuple(value.name for value in values)
        node = Node(len(self.nodes), name, names, region, line, text, kind, role, (), detail, False, operation)
        self.nodes.append(node)
        self.makers.update(((value.number, value.index), node.number) for value in values)
        return node

    def _operation(self, operation: Operation, home: int) -> None:
        loop = operation.regions[0].blocks[:1] if operation.name == "scf.for" and operation.regions else ()
        if operation.kind in ("module", "function") or self._yields(operation, home):
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

    def _yields(self, operation: Operation, home: int) -> bool:
        return operation.name == "scf.yield" and self.scopes[home].name in ("scf.for", "scf.if")

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
        """The operands of a branch go to the arguments of the block, in order."""
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
