"""The dataflow of LLVM IR: its values as nodes and edges of a graph."""

from __future__ import annotations

import re

from irscope.analysis.flow.dataflow import Dataflow, Edge, Node, Role, Scope
from irscope.ir.asm.readers import llvm_role, operation_name, symbol_of
from irscope.ir.columns import read_body
from irscope.ir.syntax import Body

# %12 = load <4 x float>, ptr addrspace(1) %11      %9 = add nsw i32 %8, 1      %14 = icmp slt i32 %1, %2
_TYPE = re.compile(
    r"(?P<type><\d[^>]*>|\{ [^}]*\}|ptr addrspace\(\d+\)|ptr\b|[if]\d+\b|bfloat\b|half\b|float\b|double\b)"
)


def read_llvm_dataflow(text: str) -> Dataflow:
    """The definitions and uses of an LLVM module. Never raises."""
    body = read_body(text, "llvm", frozenset({"locations"}))
    reader = _Reader(body)
    for line in range(len(body.lines)):
        reader.line(line)
    return reader.flow()


class _Reader:
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
