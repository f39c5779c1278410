"""Python text of a kernel that gets smaller: statements, branches, loops, parameters and parts of expressions.

Nothing of the text is run here. A node of the syntax tree has a number that copies keep, by which edits name it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass

from irscope.analysis.reduce.search import Edit, ReductionStep


@dataclass(frozen=True, slots=True)
class PythonCase:
    """One candidate: a file, and the types and values of the kernel's parameters."""

    text: str
    parameters: tuple[tuple[str, str, bool], ...]
    """(name, type as in a signature or value of a constant, whether it is a constant), in the kernel's order."""

    @property
    def signature(self) -> str:
        return ", ".join(text for _, text, is_constant in self.parameters if not is_constant)

    @property
    def constants(self) -> tuple[tuple[str, str], ...]:
        """The values, as `--constexpr` takes them."""
        return tuple((name, text) for name, text, is_constant in self.parameters if is_constant)


@dataclass(slots=True)
class PythonProgram:
    """A module with a kernel, as a tree that can be edited."""

    tree: ast.Module
    kernel: str
    parameters: tuple[tuple[str, str, bool], ...]
    """As of a `PythonCase`."""

    @staticmethod
    def of(case: PythonCase, kernel: str) -> PythonProgram:
        """The text of a case, with a kernel of that name."""
        return PythonProgram(ast.parse(case.text), kernel, case.parameters)

    def copy(self) -> PythonProgram:
        """A copy that can be edited on its own."""
        return PythonProgram(copy.deepcopy(self.tree), self.kernel, self.parameters)

    def case(self) -> PythonCase:
        return PythonCase(ast.unparse(ast.fix_missing_locations(self.tree)) + "\n", self.parameters)

    @property
    def nodes(self) -> list[ast.AST]:
        """All nodes, outer ones first, which get numbers of their own."""
        nodes = list(ast.walk(self.tree))
        for number, node in enumerate(nodes):
            node.__dict__["number"] = number
        return nodes


def _number(node: ast.AST) -> int:
    return node.__dict__.get("number", -1)


def _change(program: PythonProgram, chosen: frozenset[Edit]) -> None:
    _Changed(chosen).visit(program.tree)


def _parameters(program: PythonProgram) -> Sequence[Edit]:
    used = {node.id for node in program.nodes if isinstance(node, ast.Name)}
    return [name for name, _, _ in program.parameters if name not in used]


def _remove_parameters(program: PythonProgram, chosen: frozenset[Edit]) -> None:
    program.parameters = tuple(row for row in program.parameters if row[0] not in chosen)
    for function in program.tree.body:
        if isinstance(function, ast.FunctionDef) and function.name == program.kernel:
            given = function.args
            first_default = len(given.args) - len(given.defaults)
            kept = [(one, place) for place, one in enumerate(given.args) if one.arg not in chosen]
            given.defaults = [given.defaults[place - first_default] for _, place in kept if place >= first_default]
            given.args = [one for one, _ in kept]


def _statements(program: PythonProgram) -> Sequence[Edit]:
    """Statements to leave out, the last first: users before what they use."""
    return [(_number(node), "gone") for node in program.nodes if isinstance(node, ast.stmt)][::-1]


def _bodies(program: PythonProgram) -> Sequence[Edit]:
    """Statements with blocks, of which a block takes their place; outer ones first."""
    found: list[Edit] = []
    for node in program.nodes:
        if isinstance(node, (ast.If, ast.For, ast.While, ast.With)):
            found.append((_number(node), "body"))
            if getattr(node, "orelse", None):
                found.append((_number(node), "orelse"))
    return found


_OPERANDS: tuple[tuple[type[ast.expr], tuple[str, ...]], ...] = (
    (ast.BinOp, ("left", "right")),
    (ast.IfExp, ("body", "orelse")),
    (ast.UnaryOp, ("operand",)),
)


def _expressions(program: PythonProgram) -> Sequence[Edit]:
    """Expressions of which an operand takes the place; outer ones first."""
    found: list[Edit] = []
    for node in program.nodes:
        names = [name for kind, fields in _OPERANDS if isinstance(node, kind) for name in fields]
        if isinstance(node, ast.Call):
            names += [f"args {place}" for place, _ in enumerate(node.args)]
            names += [f"keyword {place}" for place, _ in enumerate(node.keywords)]
        found += [(_number(node), name) for name in names]
    return found


PYTHON_STEPS: tuple[ReductionStep[PythonProgram], ...] = (
    ReductionStep("statements", _statements, _change),
    ReductionStep("branches", _bodies, _change),
    ReductionStep("expressions", _expressions, _change),
    ReductionStep("statements", _statements, _change),
    ReductionStep("parameters", _parameters, _remove_parameters),
)


class _Changed(ast.NodeTransformer):
    """Makes the chosen changes."""

    def __init__(self, chosen: frozenset[Edit]) -> None:
        """`chosen`: (number of a node, what is made of it)."""
        self._by_number: dict[object, list[str]] = {}
        for number, what in sorted(edit for edit in chosen if isinstance(edit, tuple)):
            self._by_number.setdefault(number, []).append(str(what))

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt] | None:
        """The node as changed; None or a list of statements for one that goes."""
        wanted = self._by_number.get(_number(node), [])
        if "gone" in wanted:
            return None
        made = super().generic_visit(node)
        if isinstance(made, ast.stmt) and getattr(made, "body", None) == []:
            made.__dict__["body"] = [ast.Pass()]
        return self._replaced(made, wanted)

    def _replaced(self, node: ast.AST, wanted: list[str]) -> ast.AST | list[ast.stmt]:
        for what in wanted:
            name, _, place = what.partition(" ")
            if name == "keyword" and isinstance(node, ast.Call):
                node.keywords = [one for number, one in enumerate(node.keywords) if number != int(place)]
            elif name == "args" and isinstance(node, ast.Call):
                return node.args[int(place)]
            elif isinstance(node, ast.stmt):
                return _one_iteration(node) if isinstance(node, ast.For) else getattr(node, name)
            elif hasattr(node, name):
                return getattr(node, name)
        return node


def _one_iteration(loop: ast.For) -> list[ast.stmt]:
    given = loop.iter.args if isinstance(loop.iter, ast.Call) else []
    begin: ast.expr = given[0] if len(given) > 1 else ast.Constant(0)
    return [ast.Assign([loop.target], begin), *loop.body]
