"""The dataflow as a reader expects it: loops and branches are frames, a yielded value goes on to where it is used."""

from __future__ import annotations

import re
from dataclasses import replace

from irscope.analysis.flow.dataflow import Dataflow, Edge, Node, Role, Scope
from irscope.analysis.flow.dataflow_types import pointee, result_types
from irscope.ir.mlir.tokens import split_commas, types_of

# Operations that only prepare indices, masks and shapes, and constants.
_TRIVIAL = re.compile(
    r"arith\.(?:constant|add[if]|sub[if]|mul[if]|div\w*|rem\w*|cmp[if]|and[iu]|or[iu]|xor\w*|ext\w*|trunc\w*|select|shl\w*|shr\w*"
    r"|index_cast\w*|m(?:ax|in)\w*|neg\w*|sitofp|uitofp|fptosi|fptoui|bitcast)$"
    r"|tt\.(?:splat|broadcast|expand_dims|make_range|addptr|get_program_id|get_num_programs|bitcast|reshape|unsplat|trans"
    r"|int_to_ptr|ptr_to_int|clampf)$|ub\.poison|math\.\w+|llvm\.|ttg\.(?:memdesc\w*|warp_id)$|gpu\.|amdg\.extract_slice"
)
_ROLES: tuple[tuple[re.Pattern[str], Role], ...] = (
    (re.compile(r"arith\.constant|ub\.poison|llvm\.mlir\.(?:constant|undef|poison)"), "constant"),
    (re.compile(r"ttg\.convert_layout|amdg\.convert"), "convert"),
    (re.compile(r".*(?:\bdot\w{0,60}|warp_group_dot(?!_wait)|mma\w{0,60}|dot_scaled)$"), "dot"),
    (re.compile(r"tt\.(?:reduce|scan|histogram|gather|sort)$"), "reduce"),
    (re.compile(r".*(?:wait|barrier|fence|commit|arrive|expect)\w*"), "sync"),
    (re.compile(r"ttg\.(?:local_\w+|async_copy_local\w*)|ttng\.(?:tmem_\w+)"), "shared"),
    (
        re.compile(
            r"tt\.(?:load|store|atomic\w*|descriptor\w*|experimental_descriptor\w*)|ttg\.async_copy_global\w*"
            r"|ttng\.async_tma\w*|amdg\.(?:buffer|async|masked)\w*|llvm\.(?:load|store)"
        ),
        "memory",
    ),
    (re.compile(r"scf\.|cf\.|tt\.(?:return|call)|ttg\.warp_\w+"), "control"),
)
_COLLAPSED = re.compile(r"tt\.(?:reduce|scan|map_elementwise|elementwise\w*)$|tt\.extern\w*")
# {axis = 1 : i32}
_AXIS = re.compile(r"\baxis = (\d+)")
# {num = 0 : i32}     {pendings = 0 : i32}
_NUMBER = re.compile(r"\b(?:num|pendings) = (\d+)")


def role_of(name: str) -> Role:
    """The role of an operation in a picture."""
    for pattern, role in _ROLES:
        if pattern.match(name):
            return role
    return "trivial" if _TRIVIAL.match(name) else "plain"


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
        self.places = {one.number: place for nodes in self.arguments.values() for place, one in enumerate(nodes)}
        self.hidden: set[int] = set()
        self.edges: list[Edge] = []
        self.results: dict[str, list[tuple[int, str]]] = {}
        self.passed: dict[tuple[int, str], list[tuple[int, str]]] = {}
        """(operation, its value) -> where that value was made, within its regions."""

    def build(self) -> Dataflow:
        for node in self.raw.nodes:
            if node.name in ("builtin.module", "tt.func", "llvm.func"):
                self.hidden.add(node.number)
            elif _COLLAPSED.match(node.name):
                self._collapse(node)
        for node in self.raw.nodes:
            if node.name == "scf.for":
                self._loop(node)
            elif node.name == "scf.if":
                self._branch(node)
            elif node.name in ("cf.br", "cf.cond_br", "llvm.br", "llvm.cond_br"):
                self._jump(node)
        nodes = [self._named(node) for node in self.raw.nodes if node.number not in self.hidden]
        types = {(node.number, value): kind for node in self.raw.nodes for value, kind in self._types(node)}
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

    def _jump(self, node: Node) -> None:
        """The operands of a branch go to the arguments of the block, in order."""
        labels = re.findall(r"\^[\w$.-]+(?:\([^)]*\))?", node.text)
        home = self.raw.scopes[node.region].parent
        blocks = self.blocks.get(home, {})
        operands = sorted(self.inputs.get(node.number, []), key=lambda edge: edge.operand)
        taken = 1 if node.name.endswith("cond_br") else 0
        moved: set[int] = set()
        for label in labels:
            arguments = self.arguments.get(blocks.get(label.partition("(")[0], -1), [])
            count = len(re.findall(r"%[\w$.#-]+", label))
            for argument, edge in zip(arguments, operands[taken : taken + count], strict=False):
                back = argument.line <= node.line and argument.region <= node.region
                self.edges.append(replace(edge, target=argument.number, operand=0, carried=back))
                moved.add(edge.operand)
            taken += count
        self.inputs[node.number] = [edge for edge in operands if edge.operand not in moved]
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

    def _types(self, node: Node) -> list[tuple[str, str]]:
        if node.name:
            return list(zip(node.values, result_types(node.name, node.text, len(node.values)), strict=False))
        return [(node.values[0], kind)] if (kind := self._argument_type(node)) else []

    def _argument_type(self, node: Node) -> str:
        """The type of a loop's argument is that of the result in its place; else the one after its name."""
        scope = self.raw.scopes[node.region]
        owner = self.owners.get((scope.name, scope.line))
        if owner is not None and owner.name == "scf.for":
            place = self.places[node.number] - 1
            types = result_types(owner.name, owner.text, max(len(owner.values), place + 1))
            return types[place] if 0 <= place < len(types) else "i32"
        head = owner.text if owner is not None else ""
        match = re.search(re.escape(node.values[0]) + r": (!tt\.ptr<[^<>]*>|tensor<[^{}]*?>(?=[,) ])|[\w.!]+)", head)
        return match[1] if match else ""

    def _named(self, node: Node) -> Node:
        role: Role = role_of(node.name) if node.name else "argument"
        types = dict(self._types(node))
        kind = types.get(node.values[0], "") if node.values else _stored(node)
        return replace(node, role=role, type=kind, detail=_detail(node))


def _stored(node: Node) -> str:
    """The type of what an operation without a result works on."""
    parts = split_commas(types_of(node.text.rpartition("\n")[2]).partition(" -> ")[0])
    return pointee(parts[0]) if parts and parts[0] else ""


def _detail(node: Node) -> str:
    if node.name in ("tt.reduce", "tt.scan"):
        axis = _AXIS.search(node.text)
        return f"axis {axis[1]}" if axis else ""
    if "wait" in node.name:
        number = _NUMBER.search(node.text)
        return f"{number[1]} left in flight" if number else ""
    if node.name == "arith.constant":
        return node.text.partition("arith.constant ")[2].partition(" : ")[0]
    return ""


# scf.for %i = %c0_i32 to %n step %c128_i32 iter_args(
_FOR = re.compile(r"scf\.for (?P<index>%\S+) = (?P<first>\S+) to (?P<last>\S+) step (?P<step>\S+)")
# tt.func public @softmax_kernel(
_FUNC = re.compile(r"func(?: \w+){0,4} @\"?([\w.$-]+)")


def _title(scope: Scope, owner: Node | None) -> str:
    if scope.name.startswith("^"):
        return scope.title
    if owner is None:
        return ""
    loop = _FOR.search(owner.text) if scope.name == "scf.for" else None
    if loop is not None:
        return f"for {loop['index']} = {loop['first']} to {loop['last']} step {loop['step']}"
    function = _FUNC.search(owner.text) if scope.name.endswith("func") else None
    if function is not None:
        return function[1]
    if scope.name == "builtin.module":
        return ""
    condition = re.search(r"scf\.if (%\S+)", owner.text)
    return f"if {condition[1]}: {scope.title}" if condition else scope.title or scope.name
