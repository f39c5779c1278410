"""Python text of a kernel that gets smaller: statements, branches, loops, parameters and parts of expressions.

Nothing of the text is run here. A node of the syntax tree has a number that copies keep, by which edits name it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from irscope.analysis.reduce.search import First, halved

Change = tuple[int, str]
"""(node, what is made of it)."""
_BLOCKS = ("body", "orelse", "finalbody")


@dataclass(frozen=True, slots=True)
class PythonCase:
    """One candidate: a file, and the types and values of the kernel's parameters."""

    text: str
    parameters: tuple[tuple[str, str, bool], ...]
    """(name, type as in a signature or value of a constant, whether it is a constant), in the kernel's order."""

    @property
    def signature(self) -> str:
        """The types, as `--signature` takes them."""
        return ", ".join(text for _, text, is_constant in self.parameters if not is_constant)

    @property
    def constants(self) -> tuple[tuple[str, str], ...]:
        """The values, as `--constexpr` takes them."""
        return tuple((name, text) for name, text, is_constant in self.parameters if is_constant)


@dataclass(slots=True)
class PythonSearch:
    """A reduction of Python text under way. `best` is interesting at any moment."""

    best: PythonCase
    kernel: str
    first: First[PythonCase]
    told: Callable[[str, PythonCase], None] = lambda step, case: None
    taken: dict[str, int] = field(default_factory=dict[str, int])
    _tree: ast.Module = field(init=False)

    def __post_init__(self) -> None:
        self._tree = _numbered(ast.parse(self.best.text))

    def run(self) -> None:
        """Make it as small as the steps can."""
        for _ in range(_MOST_ROUNDS):
            before = self.best
            for name, found in _STEPS:
                self._step(name, [*found(self._tree)])
            self._parameters()
            if self.best == before:
                return

    def _step(self, name: str, changes: Sequence[Change]) -> None:
        trees: dict[frozenset[Change], ast.Module] = {}

        def shrunk(chosen: frozenset[Change]) -> PythonCase:
            tree = copy.deepcopy(self._tree)
            _Changed(chosen).visit(tree)
            trees[chosen] = tree
            return PythonCase(_text(tree), self.best.parameters)

        def taken(chosen: frozenset[Change], case: PythonCase) -> None:
            if case != self.best:
                self.best, self._tree = case, trees[chosen]
                trees.clear()
                self._note(name, len(chosen))

        halved(changes, shrunk, self.first, taken)

    def _note(self, name: str, count: int) -> None:
        self.taken[name] = self.taken.get(name, 0) + count
        self.told(name, self.best)

    def _parameters(self) -> None:
        def without(chosen: frozenset[str]) -> PythonCase:
            tree = copy.deepcopy(self._tree)
            if (function := _function(tree, self.kernel)) is not None:
                _drop_parameters(function, chosen)
            kept = tuple(row for row in self.best.parameters if row[0] not in chosen)
            return PythonCase(_text(tree), kept)

        def taken(chosen: frozenset[str], case: PythonCase) -> None:
            if case != self.best:
                self.best, self._tree = case, _numbered(ast.parse(case.text))
                self._note("parameters", len(chosen))

        used = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}
        halved([name for name, _, _ in self.best.parameters if name not in used], without, self.first, taken)


_MOST_ROUNDS = 6


def _text(tree: ast.Module) -> str:
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def _numbered(tree: ast.Module) -> ast.Module:
    for number, node in enumerate(ast.walk(tree)):
        node.__dict__["number"] = number
    return tree


def _number(node: ast.AST) -> int:
    return node.__dict__.get("number", -1)


def _function(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    return next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name), None)


def _drop_parameters(function: ast.FunctionDef, names: frozenset[str]) -> None:
    given = function.args
    first_default = len(given.args) - len(given.defaults)
    kept = [(one, place) for place, one in enumerate(given.args) if one.arg not in names]
    given.defaults = [given.defaults[place - first_default] for _, place in kept if place >= first_default]
    given.args = [one for one, _ in kept]


def _statements(tree: ast.Module) -> Iterator[Change]:
    """Statements to leave out, the last first: users before what they use."""
    found = [(_number(node), "gone") for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    return reversed(found)


def _bodies(tree: ast.Module) -> Iterator[Change]:
    """Statements with blocks, of which a block takes their place; outer ones first."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.If, ast.For, ast.While, ast.With)):
            yield _number(node), "body"
            if getattr(node, "orelse", None):
                yield _number(node), "orelse"


def _expressions(tree: ast.Module) -> Iterator[Change]:
    """Expressions of which an operand takes the place; outer ones first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp):
            yield _number(node), "left"
            yield _number(node), "right"
        elif isinstance(node, ast.IfExp):
            yield _number(node), "body"
            yield _number(node), "orelse"
        elif isinstance(node, ast.Call):
            for place, _ in enumerate(node.args):
                yield _number(node), f"args {place}"
            for place, _ in enumerate(node.keywords):
                yield _number(node), f"keyword {place}"
        elif isinstance(node, ast.UnaryOp):
            yield _number(node), "operand"


_STEPS: tuple[tuple[str, Callable[[ast.Module], Iterator[Change]]], ...] = (
    ("statements", _statements), ("branches", _bodies), ("expressions", _expressions), ("statements", _statements),
)  # fmt: skip


class _Changed(ast.NodeTransformer):
    """Makes the chosen changes."""

    def __init__(self, chosen: frozenset[Change]) -> None:
        self._by_number: dict[int, list[str]] = {}
        for number, what in sorted(chosen):
            self._by_number.setdefault(number, []).append(what)

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt] | None:
        """The node as changed; None or a list of statements for one that goes."""
        wanted = self._by_number.get(_number(node), [])
        if "gone" in wanted:
            return None
        made = super().generic_visit(node)
        for name in _BLOCKS[:1]:
            if getattr(made, name, None) == [] and isinstance(made, ast.stmt):
                setattr(made, name, [ast.Pass()])
        return self._replaced(made, wanted)

    def _replaced(self, node: ast.AST, wanted: list[str]) -> ast.AST | list[ast.stmt]:
        for what in wanted:
            name, _, place = what.partition(" ")
            if name == "keyword" and isinstance(node, ast.Call):
                node.keywords = [one for number, one in enumerate(node.keywords) if number != int(place)]
            elif name == "args" and isinstance(node, ast.Call):
                return node.args[int(place)]
            elif isinstance(node, ast.stmt):
                return _one_turn(node) if isinstance(node, ast.For) else getattr(node, name)
            elif hasattr(node, name):
                return getattr(node, name)
        return node


def _one_turn(loop: ast.For) -> list[ast.stmt]:
    """The body of a loop, for the first of its values."""
    given = loop.iter.args if isinstance(loop.iter, ast.Call) else []
    begin: ast.expr = given[0] if len(given) > 1 else ast.Constant(0)
    return [ast.Assign([loop.target], begin), *loop.body]
