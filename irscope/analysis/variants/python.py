"""The Python of a kernel: its parameters, and where each is read."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from irscope.model.capture import Kernel

__all__ = ["KernelText", "read_kernel"]


@dataclass(frozen=True, slots=True)
class KernelText:
    """What the Python text of a kernel says of its parameters; empty where there is no text that can be read."""

    constexprs: frozenset[str] = frozenset()
    """Those annotated as `tl.constexpr`."""
    reads: tuple[tuple[str, int], ...] = ()
    """(parameter, line of the file) of each place where one is read."""
    guards: tuple[tuple[str, int, int], ...] = ()
    """(parameter, axis, line of the file) of each `if pid >= PARAMETER: return` for a program id along an axis."""
    is_known: bool = False

    def is_constexpr(self, name: str) -> bool | None:
        """Whether a parameter is declared a constant; None where that is not known."""
        return name in self.constexprs if self.is_known else None

    def lines_of(self, name: str) -> tuple[int, ...]:
        """The lines that read a parameter."""
        return tuple(dict.fromkeys(line for other, line in self.reads if other == name))

    def guard_of(self, name: str) -> tuple[int, int] | None:
        """(axis, line) if a parameter is read once, to stop the programs whose id along that axis is not below it."""
        if len([one for one, _ in self.reads if one == name]) != 1:
            return None
        return next(((axis, line) for other, axis, line in self.guards if other == name), None)


def read_kernel(kernel: Kernel) -> KernelText:
    """Read the text of a kernel; one that cannot be read gives an empty KernelText."""
    try:
        module = ast.parse(textwrap.dedent(kernel.source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return KernelText()
    function = next((one for one in module.body if isinstance(one, ast.FunctionDef)), None)
    if function is None:
        return KernelText()
    spec = function.args
    parameters = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
    names = {one.arg for one in parameters}
    before = max(kernel.first_line, 1) - 1
    constexprs = {one.arg for one in parameters if one.annotation and "constexpr" in ast.unparse(one.annotation)}
    reads = [
        (node.id, before + node.lineno)
        for statement in function.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names
    ]
    guards = [(name, axis, before + line) for name, axis, line in _guards(function, names)]
    return KernelText(frozenset(constexprs), tuple(reads), tuple(guards), True)


def _guards(function: ast.FunctionDef, names: set[str]) -> Iterator[tuple[str, int, int]]:
    ids: dict[str, int] = {}
    assigned: list[str] = []
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            assigned.append(node.id)
        # pid = tl.program_id(0)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            axis = _axis_of(node.value)
            if axis is not None:
                ids[node.targets[0].id] = axis
    for node in ast.walk(function):
        if not (isinstance(node, ast.If) and not node.orelse and isinstance(node.test, ast.Compare)):
            continue
        if not (len(node.body) == 1 and isinstance(node.body[0], ast.Return) and len(node.test.ops) == 1):
            continue
        left, right = node.test.left, node.test.comparators[0]
        if isinstance(node.test.ops[0], ast.LtE):
            left, right = right, left
        elif not isinstance(node.test.ops[0], ast.GtE):
            continue
        axis = _axis_of(left)
        if isinstance(left, ast.Name) and assigned.count(left.id) == 1:
            axis = ids.get(left.id)
        if axis is not None and isinstance(right, ast.Name) and right.id in names and right.id not in assigned:
            yield right.id, axis, node.test.lineno


def _axis_of(node: ast.expr) -> int | None:
    """The axis of `tl.program_id(0)`; None for anything else."""
    if not (isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "program_id"):
        return None
    given = [*node.args, *(one.value for one in node.keywords if one.arg == "axis")]
    if len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value in (0, 1, 2):
        return int(given[0].value)
    return None
