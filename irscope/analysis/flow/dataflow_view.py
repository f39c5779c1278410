"""The dataflow as a reader expects it: loops and branches are frames, a yielded value goes on to where it is used."""

from __future__ import annotations

from dataclasses import replace

from irscope.analysis.flow.dataflow import Dataflow, Edge, Node, Role, Scope
from irscope.ir.mlir.model import Operation
from irscope.ir.mlir.operations import OperationKind

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
        titled = (replace(one, title=_title(one, self.owners.get((one.name, one.line)))) for one in self.raw.scopes)
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


def _title(scope: Scope, owner: Node | None) -> str:
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
