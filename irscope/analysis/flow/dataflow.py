"""The dataflow of a text: operations and block arguments as nodes, definitions and uses as edges, regions as a tree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from irscope.ir.mlir.model import Block
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
