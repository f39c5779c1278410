"""The dataflow of a text: operations and block arguments as nodes, definitions and uses as edges, regions as a tree."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from irscope.ir.asm.llvm import llvm_role, operation_name, symbol_of
from irscope.ir.body.reader import Body, read_body
from irscope.ir.mlir.model import Block
from irscope.ir.mlir.reader import MlirModule, Operation, Region, parse_mlir
from irscope.ir.tables.operations import OperationKind

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
    types: tuple[str, ...] = ()
    """Types of the values that it makes, as they are written."""
    operation: Operation | None = field(default=None, compare=False, repr=False)
    """None for a block argument, and in graphs of LLVM IR."""

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


def read_dataflow(text: str) -> Dataflow:
    """The definitions and uses of a module of MLIR as the compiler has them: operations and block arguments are nodes.

    Never raises; what cannot be read is left out.
    """
    module = parse_mlir(text)
    reader = _Reader(module)
    reader.region(-1, "", [Block("", (), module.operations)], 0)
    reader.connect()
    return Dataflow(tuple(reader.nodes), tuple(reader.edges), tuple(reader.scopes), dict(module.aliases))


class _Reader:
    def __init__(self, module: MlirModule) -> None:
        self.module = module
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.scopes: list[Scope] = []
        self.makers: dict[tuple[int, int], int] = {}
        self.read: list[tuple[int, Operation]] = []

    def region(self, parent: int, name: str, blocks: Iterable[Block], line: int, title: str = "") -> None:
        """Take in the blocks of a region, without recursion, since the nesting may be of any depth."""
        waiting: list[tuple[int, str, Iterable[Block], int, str]] = [(parent, name, blocks, line, title)]
        while waiting:
            parent, name, blocks, line, title = waiting.pop()
            number = len(self.scopes)
            self.scopes.append(Scope(number, parent, name, title, line))
            listed = list(blocks)
            for block in listed:
                home = number
                if len(listed) > 1:
                    home = len(self.scopes)
                    self.scopes.append(Scope(home, number, block.label or "^entry", block.label, line))
                for argument in block.arguments:
                    kind = str(self.module.type_of(argument))
                    self.makers[argument.number, argument.index] = len(self.nodes)
                    self.nodes.append(Node(len(self.nodes), "", (argument.name,), home, line, types=(kind,)))
                for operation in block.operations:
                    self.read.append((self._node(operation, home), operation))
                    for region in operation.regions:
                        waiting.append(
                            (home, operation.name, region.blocks, operation.first_line, _title(operation, region))
                        )

    def _node(self, operation: Operation, region: int) -> int:
        number = len(self.nodes)
        names = tuple(value.name for value in operation.results)
        types = tuple(map(str, operation.result_types))
        text = f"{operation.text}\n{operation.closing}" if operation.closing else operation.text
        name = operation.name or _UNREAD
        self.nodes.append(
            Node(number, name, names, region, operation.first_line, text, types=types, operation=operation)
        )
        for value in operation.results:
            self.makers[value.number, value.index] = number
        return number

    def connect(self) -> None:
        """Add the edges, once every value's maker is known: a block may read what stands behind it."""
        for node, operation in self.read:
            for place, value in enumerate(operation.operands):
                maker = self.makers.get((value.number, value.index))
                if maker is not None:
                    self.edges.append(Edge(maker, node, value.name, place))


def _title(operation: Operation, region: Region) -> str:
    if operation.name == "scf.if":
        return "then" if operation.regions[0] is region else "else"
    return operation.name


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
_COLLAPSED = ("reduction", "scan", "arithmetic")
"""Operations whose regions say what they compute of each element."""


def role_of(operation: Operation) -> Role:
    """The role of an operation in a picture."""
    info = operation.info
    if info is None:
        return "plain"
    if info.opcode == "make_range":
        return "trivial"
    role = _ROLES.get(info.kind, "plain")
    if role != "shared" or not any(effect.space in ("global", "memory") for effect in operation.effects):
        return "memory" if info.kind == "prefetch" else role
    return "plain" if info.kind == "allocation" else "memory"


def structured(raw: Dataflow) -> Dataflow:
    """The graph that is drawn, of the graph that the compiler has.

    `module`, functions and loops become frames; what `scf.yield` hands on goes, as a carried edge, to the argument of
    the next iteration, and from where it was made to whoever reads the loop's result; a branch's results come from both
    sides; the operations within a reduction are a part of it.
    """
    return _Structure(raw).build()


class _Structure:
    def __init__(self, raw: Dataflow) -> None:
        self.raw = raw
        self.inputs: dict[int, list[Edge]] = {}
        for edge in raw.edges:
            self.inputs.setdefault(edge.target, []).append(edge)
        self.arguments: dict[int, list[Node]] = {}
        self.terminators: dict[int, Node] = {}
        for node in raw.nodes:
            if not node.name:
                self.arguments.setdefault(node.region, []).append(node)
            else:
                self.terminators[node.region] = node
        self.of_region: dict[int, list[int]] = {}
        for node in raw.nodes:
            self.of_region.setdefault(node.region, []).append(node.number)
        self.regions: dict[tuple[str, int], list[Scope]] = {}
        self.inner: dict[int, list[int]] = {}
        self.blocks: dict[int, dict[str, int]] = {}
        """Region -> its blocks' numbers by label."""
        for scope in raw.scopes:
            self.inner.setdefault(scope.parent, []).append(scope.number)
            if scope.name.startswith("^"):
                self.blocks.setdefault(scope.parent, {})[scope.title] = scope.number
            else:
                self.regions.setdefault((scope.name, scope.line), []).append(scope)
        self.owners = {(node.name, node.line): node for node in raw.nodes if node.name}
        self.hidden: set[int] = set()
        self.edges: list[Edge] = []
        self.results: dict[str, list[tuple[int, str]]] = {}
        self.passed: dict[tuple[int, str], list[tuple[int, str]]] = {}
        """(operation, its value) -> where that value was made, within its regions."""

    def build(self) -> Dataflow:
        for node in self.raw.nodes:
            kind = node.operation.kind if node.operation is not None else None
            if kind in ("module", "function"):
                self.hidden.add(node.number)
            elif kind in _COLLAPSED:
                self._collapse(node)
        for node in self.raw.nodes:
            if node.name == "scf.for":
                self._loop(node)
            elif node.name == "scf.if":
                self._branch(node)
            elif node.operation is not None and node.operation.kind == "branch":
                self._jump(node, node.operation)
        nodes = [self._named(node) for node in self.raw.nodes if node.number not in self.hidden]
        types = {
            (node.number, value): kind
            for node in self.raw.nodes
            for value, kind in zip(node.values, node.types, strict=False)
        }
        edges = [*self._plain(), *self.edges]
        typed = [replace(edge, type=edge.type or types.get((edge.source, edge.value), "")) for edge in edges]
        titled = (
            replace(one, title=_scope_title(one, self.owners.get((one.name, one.line)))) for one in self.raw.scopes
        )
        return replace(self.raw, scopes=tuple(titled)).with_nodes(nodes, dict.fromkeys(typed))

    def _collapse(self, node: Node) -> None:
        for scope in self.regions.get((node.name, node.line), ()):
            waiting = [scope.number]
            while waiting:
                number = waiting.pop()
                self.hidden.update(self.of_region.get(number, ()))
                waiting.extend(self.inner.get(number, ()))

    def _loop(self, node: Node) -> None:
        """Bounds go to the induction variable, first values to the arguments, yielded ones to the next iteration."""
        scopes = self.regions.get((node.name, node.line), [])
        arguments = self.arguments.get(scopes[0].number, []) if scopes else []
        operands = sorted(self.inputs.get(node.number, []), key=lambda edge: edge.operand)
        if not arguments:
            return
        self.hidden.add(node.number)
        first = [edge for edge in operands if edge.operand >= 3]
        for edge in operands[: len(operands) - len(first)]:
            self.edges.append(replace(edge, target=arguments[0].number))
        by_place = {edge.operand - 3: edge for edge in first}
        yielded = {edge.operand: edge for edge in self._yielded(scopes[0])}
        for place, argument in enumerate(arguments[1:]):
            if place in by_place:
                self.edges.append(replace(by_place[place], target=argument.number, operand=0))
            if place in yielded:
                self.edges.append(replace(yielded[place], target=argument.number, operand=1, carried=True))
                self._hand_on(node, place, yielded[place])

    def _branch(self, node: Node) -> None:
        for scope in self.regions.get((node.name, node.line), ()):
            for edge in self._yielded(scope):
                self._hand_on(node, edge.operand, edge)

    def _yielded(self, scope: Scope) -> list[Edge]:
        """The values that `scf.yield` hands on at the end of a region; it is hidden itself."""
        ends = self.terminators.get(scope.number)
        if ends is None or ends.name != "scf.yield":
            return []
        self.hidden.add(ends.number)
        return self.inputs.get(ends.number, [])

    def _hand_on(self, node: Node, place: int, edge: Edge) -> None:
        if place < len(node.values):
            self.passed.setdefault((node.number, node.values[place]), []).append((edge.source, edge.value))

    def _jump(self, node: Node, operation: Operation) -> None:
        """The operands of a branch go to the arguments of the block, in order."""
        blocks = self.blocks.get(self.raw.scopes[node.region].parent, {})
        edges = {edge.operand: edge for edge in self.inputs.get(node.number, [])}
        passed = sum(len(values) for _, values in operation.branches)
        place = len(operation.operands) - passed
        moved: set[int] = set()
        for label, values in operation.branches:
            arguments = self.arguments.get(blocks.get(label, -1), [])
            for offset, argument in enumerate(arguments[: len(values)]):
                if (edge := edges.get(place + offset)) is not None:
                    back = argument.line <= node.line and argument.region <= node.region
                    self.edges.append(replace(edge, target=argument.number, operand=0, carried=back))
                    moved.add(edge.operand)
            place += len(values)
        self.inputs[node.number] = [edge for operand, edge in sorted(edges.items()) if operand not in moved]
        if not self.inputs[node.number]:
            self.hidden.add(node.number)

    def _plain(self) -> list[Edge]:
        """The other edges; one from a loop's result begins where the value was made."""
        edges: list[Edge] = []
        for number, inputs in self.inputs.items():
            for edge in inputs:
                if number not in self.hidden:
                    edges.extend(self._resolved(edge, 0))
        self.edges = [one for edge in self.edges for one in self._resolved(edge, 0)]
        return edges

    def _resolved(self, edge: Edge, depth: int) -> list[Edge]:
        makers = self.passed.get((edge.source, edge.value))
        if makers is None or depth > 32:
            return [edge]
        return [
            one
            for source, value in dict.fromkeys(makers)
            for one in self._resolved(replace(edge, source=source, value=value), depth + 1)
        ]

    def _named(self, node: Node) -> Node:
        if node.operation is None:
            return replace(node, role="argument", type=next(iter(node.types), ""))
        kind = next(iter(node.types), "") if node.values else _stored(node.operation)
        return replace(node, role=role_of(node.operation), type=kind, detail=_detail(node.operation))


def _stored(operation: Operation) -> str:
    """The type of what an operation without a result works on."""
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


def _scope_title(scope: Scope, owner: Node | None) -> str:
    if scope.name.startswith("^"):
        return scope.title
    operation = owner.operation if owner is not None else None
    if operation is None or operation.kind == "module":
        return ""
    if operation.kind == "function":
        return operation.symbol
    if operation.name == "scf.for" and operation.regions and operation.regions[0].blocks:
        first, last, step = (value.name for value in operation.operands[:3])
        index = operation.regions[0].blocks[0].arguments[0].name
        return f"for {index} = {first} to {last} step {step}"
    if operation.name == "scf.if" and (condition := operation.operand("condition")) is not None:
        return f"if {condition.name}: {scope.title}"
    return scope.title or scope.name


# %12 = load <4 x float>, ptr addrspace(1) %11      %9 = add nsw i32 %8, 1      %14 = icmp slt i32 %1, %2
_TYPE = re.compile(
    r"(?P<type><\d[^>]*>|\{ [^}]*\}|ptr addrspace\(\d+\)|ptr\b|[if]\d+\b|bfloat\b|half\b|float\b|double\b)"
)


def read_llvm_dataflow(text: str) -> Dataflow:
    """The definitions and uses of an LLVM module. Never raises."""
    body = read_body(text, "llvm", frozenset({"locations"}))
    reader = _LlvmReader(body)
    for line in range(len(body.lines)):
        reader.line(line)
    return reader.flow()


class _LlvmReader:
    def __init__(self, body: Body) -> None:
        self.body = body
        self.nodes: list[Node] = []
        self.scopes: list[Scope] = [Scope(0, -1, "")]
        self.function = self.block = 0
        self.node_of: dict[int, int] = {}

    def line(self, line: int) -> None:
        """Take in one line."""
        shape = self.body.shapes[line]
        number = self.body.numbers[line]
        if shape.name == "define":
            self.function = self._scope(0, "llvm.func", symbol_of(self.body.lines[line]), number)
            self.block = self._scope(self.function, "^entry", "entry", number)
            for value in self.body.values[line]:
                self._node(line, "", (value,), "argument", "", self.function)
        elif shape.closes:
            self.function = self.block = 0
        elif not self.function:
            return
        elif shape.name == "^":
            label = self.body.lines[line].strip().partition(" ")[0].rstrip(":")
            self.block = self._scope(self.function, "^block", f"block {label}", number)
        elif shape.name[:1].isalpha():
            self._instruction(line)

    def _instruction(self, line: int) -> None:
        shape, text = self.body.shapes[line], self.body.lines[line].strip()
        values = tuple(self.body.values[line][place] for place in shape.defines)
        name = operation_name(shape.name, text)
        qualified = f"{name} addrspace(3)" if shape.name in ("load", "store") and "addrspace(3)" in text else name
        role = llvm_role(qualified)
        converts = shape.name.endswith(("cast", "ext", "trunc", "tofp"))
        kind = _TYPE.search(text, max(text.find(" to "), 0) if converts else 0)
        self._node(line, name, values, role, kind["type"] if kind and values else "", self.block)

    def _node(self, line: int, name: str, values: tuple[int, ...], role: Role, kind: str, region: int) -> None:
        number = len(self.nodes)
        names = tuple(self.body.names[value] for value in values[:1])
        text = self.body.lines[line].strip()
        self.nodes.append(Node(number, name, names, region, self.body.numbers[line], text, kind, role))
        if name:
            self.node_of[line] = number
        for one in values:
            self.node_of.setdefault(-1 - one, number)

    def _scope(self, parent: int, name: str, title: str, line: int) -> int:
        self.scopes.append(Scope(len(self.scopes), parent, name, title, line))
        return len(self.scopes) - 1

    def flow(self) -> Dataflow:
        """The finished graph."""
        edges: list[Edge] = []
        for line, target in self.node_of.items():
            if line < 0:
                continue
            place = 0
            for value in self.body.uses[line]:
                source = self.node_of.get(-1 - value)
                if source is None:
                    continue  # a label, or a value that nothing defines
                kind = self.nodes[source].type
                carried = self.nodes[target].name == "phi" and source >= target
                edges.append(Edge(source, target, self.body.names[value], place, kind, carried))
                place += 1
        return Dataflow(tuple(self.nodes), tuple(edges), tuple(self.scopes))
