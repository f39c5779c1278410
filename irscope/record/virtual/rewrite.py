"""Rewrites programs so that placeholder values can be followed through conversions, loops and checks.

`int()` returns a plain number, an assertion that fails ends the program, and a loop may wait for a value that no kernel
writes. So these calls are inserted in the files of
the program as they are compiled, each at the place of the original:

    int(x)             → __irscope__.convert(int, x)
    range(n)           → __irscope__.loop(range, n)
    datetime.now()     → __irscope__.date(datetime.now)
    assert test        → assert __irscope__.settle(True, __irscope__.mark(), test)
    if test: raise …   → if __irscope__.settle(False, __irscope__.mark(), test): raise …
    while test: …      → while __irscope__.bound(False, __irscope__.mark(), test): …
    if test: break     → if __irscope__.bound(True, __irscope__.mark(), test): break

Lines and columns do not change, and Triton reads the file itself. Without a placeholder value, each returns what the
original does.
"""

from __future__ import annotations

import ast
import builtins
import runpy
import sys
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any

from irscope.record.triton.patches import Patches
from irscope.record.virtual.clock import ClockReading, read_date
from irscope.record.virtual.numbers import Placeholder, carry, plain, reads_of
from irscope.record.virtual.placeholders import PlaceholderText, current_following
from irscope.record.virtual.places import is_followed, is_of_program

NAME = "__irscope__"


def install_rewriting(patches: Patches) -> None:
    # A module's own name comes before the built-in one: `runpy.run_path` compiles with this.
    patches.set(runpy, "compile", _compile)
    get_code = SourceFileLoader.get_code

    def rewritten_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
        path = loader.get_filename(fullname)
        if not is_followed(path):
            return get_code(loader, fullname)
        # Not through the cache of compiled files, in which rewritten code must not get.
        try:
            return _compile(loader.get_data(path), path, "exec")
        except RecursionError:
            return get_code(loader, fullname)

    patches.set(SourceFileLoader, "get_code", rewritten_code)


def _compile(source: Any, filename: Any, mode: str, *args: Any, **kwargs: Any) -> Any:
    if mode != "exec" or not isinstance(source, str | bytes) or not is_of_program(str(filename)):
        return builtins.compile(source, filename, mode, *args, **kwargs)
    return builtins.compile(rewrite(source, str(filename)), filename, mode, *args, dont_inherit=True)


def rewrite(source: str | bytes, filename: str) -> ast.Module:
    """A program's syntax tree with the calls inserted; raises SyntaxError as `compile` does."""
    tree = ast.parse(source, filename)
    changed = rewrite_tree(tree)
    at = 0 if ast.get_docstring(changed) is None else 1
    while at < len(changed.body) and _is_future(changed.body[at]):
        at += 1
    import_calls = ast.parse(f"from irscope.record.virtual.rewrite import calls as {NAME}").body[0]
    for node in ast.walk(import_calls):
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = 1  # type: ignore[attr-defined]
    changed.body.insert(at, import_calls)
    return ast.fix_missing_locations(changed)


def rewrite_tree(tree: Any) -> Any:
    return ast.fix_missing_locations(_Rewriter().visit(tree))


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


class _Rewriter(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _DATES:
            node.args.insert(0, node.func)
            node.func = _call("date", [], node.func).func
            return node
        if not isinstance(node.func, ast.Name) or node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            return node
        if node.func.id in ("int", "float", "len") and len(node.args) == 1:
            return _call("convert", [node.func, *node.args], node)
        if node.func.id == "range" and node.args:
            return _call("loop", [node.func, *node.args], node)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        node.test = _tested_by("settle", True, node.test)
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        ends, ends_else = _ends(node.body), _ends(node.orelse)
        self.generic_visit(node)
        if ends != ends_else:
            node.test = _tested_by("settle", not ends, node.test)
        elif isinstance(node.body[-1], ast.Break | ast.Return):
            node.test = _tested_by("bound", True, node.test)
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.test, ast.Constant):
            node.test = _tested_by("bound", False, node.test)
        return node


_DATES = ("now", "utcnow", "today", "fromtimestamp", "utcfromtimestamp")


def _ends(body: list[ast.stmt]) -> bool:
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.Raise):
        return True
    if not isinstance(last, ast.Expr) or not isinstance(last.value, ast.Call):
        return False
    called = last.value.func
    return (isinstance(called, ast.Name) and called.id in ("exit", "quit")) or (
        isinstance(called, ast.Attribute) and called.attr in ("exit", "_exit", "fail")
    )


def _tested_by(name: str, outcome: bool, test: ast.expr) -> ast.expr:
    constant = ast.copy_location(ast.Constant(outcome), test)
    return _call(name, [constant, _call("mark", [], test), test], test)


def _call(name: str, arguments: list[ast.expr], at: ast.expr) -> ast.Call:
    function = ast.Attribute(ast.Name(NAME, ast.Load()), name, ast.Load())
    call = ast.Call(function, arguments, [])
    for node in (call, function, function.value):
        ast.copy_location(node, at)
    return call


class Calls:
    """The inserted calls; without a virtual GPU, they do what the originals do."""

    def convert(self, kind: Any, value: Any) -> Any:
        following = current_following()
        if kind is len and following.is_on and _is_tensor(value) and value.dim():
            return value.shape[0]
        if isinstance(value, PlaceholderText):
            return value.number(kind)
        if kind is not int and kind is not float:
            return kind(value)
        if isinstance(value, ClockReading):
            return value.converted(kind)
        if following.is_on and _is_scalar_tensor(value):
            value = value.item()
        if isinstance(value, Placeholder) and following.is_on:
            converted = kind(plain(value))
            return carry(converted, following.converted(value.reads, plain(value), converted))
        return kind(value)

    def date(self, function: Any, /, *args: Any, **options: Any) -> Any:
        return read_date(function, args, options)

    def loop(self, kind: Any, *bounds: Any) -> Any:
        if kind is range and (reads := reads_of(bounds)):
            current_following().decide("loop", reads)
            bounds = plain(bounds)
        return kind(*bounds)

    def mark(self) -> int:
        return current_following().mark()

    def settle(self, required: bool, mark: int, value: Any) -> Any:
        """After a test, whose outcome must be `required` for the program to go on."""
        return current_following().settle(mark, _tested(value), required)

    def bound(self, ends: bool, mark: int, value: Any) -> Any:
        """After a test, whose outcome `ends` leaves a loop."""
        return current_following().bound(mark, _tested(value), ends)


calls = Calls()


def _tested(value: Any) -> Any:
    # The question of a tensor or a placeholder number must belong to this test.
    return bool(value) if reads_of(value) or _is_scalar_tensor(value) else value


def _is_tensor(value: Any) -> bool:
    # A rewritten module may run while torch is still being imported.
    tensor_class = getattr(sys.modules.get("torch"), "Tensor", None)
    return tensor_class is not None and isinstance(value, tensor_class)


def _is_scalar_tensor(value: Any) -> bool:
    return _is_tensor(value) and value.numel() == 1
