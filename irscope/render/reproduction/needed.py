"""What of the user's Python a kernel needs: functions, constants and imports, out of the files that a capture holds."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from irscope.ir.reach import reached
from irscope.model.capture import Capture

_TUNERS = ("autotune", "heuristics")
_NOT_PARSED = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What Python raises for a text that is none of its own, or nests too deeply."""
# The names by which kernels know Triton, for a text whose file the capture does not hold.
_USUAL_IMPORTS = {
    "triton": "import triton",
    "tl": "import triton.language as tl",
    "gluon": "from triton.experimental import gluon",
    "gl": "from triton.experimental.gluon import language as gl",
    "ttgl": "from triton.experimental.gluon import language as ttgl",
    "libdevice": "from triton.language.extra import libdevice",
}


@dataclass(frozen=True, slots=True)
class _FunctionPlace:
    """Where a function stood: what its locations in the IR are made of."""

    file: str
    line: int
    module: str
    indent: int = 0
    """Columns that the function was indented by, where it is not here."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One statement of a user's file."""

    file: str
    line: int
    text: str


@dataclass(slots=True)
class NeededSource:
    """The Python text of a kernel with all that it needs."""

    imports: list[str] = field(default_factory=list[str])
    pieces: list[Piece | str] = field(default_factory=list["Piece | str"])
    """In an order in which they can run; a text is a line that joins names of two modules."""
    places: dict[str, _FunctionPlace] = field(default_factory=dict[str, _FunctionPlace])
    """Qualified name of a function → its place."""
    missing: list[str] = field(default_factory=list[str])
    """What the text uses and the capture does not hold: a name, or an import, which stays in the text."""
    obstacles: list[str] = field(default_factory=list[str])
    """Why no text can be made."""
    functions: dict[str, str] = field(default_factory=dict[str, str])
    """Constant that is a function → its name in the text."""
    other_modules: list[str] = field(default_factory=list[str])
    """The modules that are imported, beside Triton's and Python's own."""


class _File:
    """One of a capture's files, and what its top-level statements define."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.lines = text.splitlines()
        self.tree = ast.parse(text)
        self.bindings: dict[str, list[ast.stmt]] = {}
        for statement in self.tree.body:
            for name in dict.fromkeys(_bound(statement)):
                self.bindings.setdefault(name, []).append(statement)

    def defines(self, name: str) -> bool:
        return any(not isinstance(statement, (ast.Import, ast.ImportFrom)) for statement in self.bindings.get(name, ()))

    def is_module(self, name: str) -> bool:
        parts = PurePosixPath(self.path.replace("\\", "/")).with_suffix("").parts
        parts = parts[:-1] if parts[-1:] == ("__init__",) else parts
        words = tuple(name.split("."))
        return parts[-len(words) :] == words


def needed_source(capture: Capture, functions: tuple[str, ...] = ()) -> NeededSource:
    """What a kernel needs to be compiled from its Python text; `functions`: `module.name` of its constants."""
    selection = _Selection(capture)
    for function in functions:
        selection.take_constant(function)
    return selection.run()


def _bound(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test):
        return
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            continue
        waiting.extend(ast.iter_child_nodes(node))


def _globals_of(text: str) -> set[str]:
    top = symtable.symtable(text, "<piece>", "exec")
    names = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    for table in reached(top.get_children(), lambda table: table.get_children()):
        names |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() and symbol.is_referenced()}
    return names


class _Selection:
    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._result = NeededSource()
        self._files: dict[str, _File] = {}
        for source in capture.sources:
            try:
                self._files[source.path] = _File(source.path, source.text)
            except _NOT_PARSED:
                continue
        self._origins: dict[str, tuple[str, int] | str] = {}
        self._done: set[tuple[str, int]] = set()
        self._ir = next((artifact.data for artifact in capture.artifacts if isinstance(artifact.data, str)), "")

    def run(self) -> NeededSource:
        kernel = self._capture.launch.kernel
        file = self._files.get(kernel.file)
        whole = self._definition(file, kernel.name, kernel.line) if file is not None else None
        if file is not None and whole is not None:
            self._take(file, whole)
        else:
            self._take_text(file)
        return self._result

    def take_constant(self, function: str) -> None:
        module, _, name = function.rpartition(".")
        kernels = self._files.get(self._capture.launch.kernel.file)
        own = [kernels] if module == "__main__" and kernels is not None and kernels.defines(name) else []
        for file in own or self._candidates(module, name)[:1]:
            self._need(file, name, None)
            self._result.functions[function] = name
            return
        self._result.missing.append(f"{function}, which is a constant of the launch")

    @staticmethod
    def _definition(file: _File, name: str, line: int) -> ast.stmt | None:
        """The top-level statement with the kernel's definition; None where that is within another function."""
        for statement in file.bindings.get(name, ()):
            for node in ast.walk(statement):
                if isinstance(node, ast.FunctionDef) and (node.name, node.lineno) == (name, line):
                    return statement
        return None

    def _take(self, file: _File, statement: ast.stmt) -> None:
        if (key := (file.path, statement.lineno)) in self._done:
            return
        self._done.add(key)
        for name in _bound(statement):
            self._claim(name, key)
        text, first = self._text_of(file, statement)
        self._need_all(file, text, statement)
        self._result.pieces.append(Piece(file.path, first, text))
        for qualname, line in _functions(statement):
            self._result.places[qualname] = _FunctionPlace(file.path, line, self._module_of(qualname))

    def _take_text(self, file: _File | None) -> None:
        """Take the kernel's own text: it stands within a function, or in a file that the capture does not hold."""
        kernel = self._capture.launch.kernel
        text = textwrap.dedent(kernel.source)
        try:
            (statement,) = ast.parse(text).body
        except _NOT_PARSED:
            self._result.obstacles.append(f"the capture does not hold the text of {kernel.name}")
            return
        own = _File(kernel.file, text)
        cut, _ = self._text_of(own, statement)
        if file is None:
            for name in sorted(_globals_of(cut) - vars(builtins).keys()):
                if name in _USUAL_IMPORTS:
                    self._import(_USUAL_IMPORTS[name], name)
                elif name != kernel.name:
                    self._result.missing.append(f"{name}, which {kernel.name} uses")
        else:
            self._need_all(file, cut, statement, beside={kernel.name})
        indent = len(kernel.source) - len(kernel.source.lstrip())
        self._result.pieces.append(Piece(kernel.file, kernel.first_line or kernel.line, cut))
        self._result.places[kernel.name] = _FunctionPlace(kernel.file, kernel.line, "__main__", indent)

    def _text_of(self, file: _File, statement: ast.stmt) -> tuple[str, int]:
        """(text, first line) of a statement, a function without the decorators that tune it."""
        end = statement.end_lineno or statement.lineno
        if not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            return "\n".join(file.lines[statement.lineno - 1 : end]), statement.lineno
        lines: list[str] = []
        is_kernel = statement.name == self._capture.launch.kernel.name
        first = statement.lineno
        for decorator in statement.decorator_list:
            first = min(first, decorator.lineno)
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            name = ast.unparse(called).rpartition(".")[2]
            if name in _TUNERS or (is_kernel and name != "jit"):
                continue
            lines += file.lines[decorator.lineno - 1 : decorator.end_lineno or decorator.lineno]
        return "\n".join([*lines, *file.lines[statement.lineno - 1 : end]]), first

    def _need_all(
        self, file: _File, text: str, statement: ast.stmt, *, beside: set[str] | frozenset[str] = frozenset()
    ) -> None:
        for name in sorted(_globals_of(text) - beside):
            self._need(file, name, statement)

    def _need(self, file: _File, name: str, user: ast.stmt | None) -> None:
        if name not in file.bindings:
            if not hasattr(builtins, name) and name not in ("__file__", "__name__"):
                self._result.missing.append(f"{name} of {PurePosixPath(file.path).name}")
            return
        for statement in file.bindings[name]:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                self._need_import(file, statement, name, user)
            else:
                self._take(file, statement)

    def _need_import(
        self, file: _File, statement: ast.Import | ast.ImportFrom, name: str, user: ast.stmt | None
    ) -> None:
        alias = next(alias for alias in statement.names if (alias.asname or alias.name.partition(".")[0]) == name)
        as_ = f" as {alias.asname}" if alias.asname else ""
        if isinstance(statement, ast.Import):
            if _is_kept(alias.name):
                self._import(f"import {alias.name}{as_}", name, alias.name)
            elif alias.asname is None and "." in alias.name:
                self._lacks(f"import {alias.name}", name, alias.name)
            else:
                self._need_module(file, alias.name, name, user, f"import {alias.name}{as_}")
            return
        module = statement.module or ""
        written = f"from {module} import {alias.name}{as_}"
        if statement.level == 0 and _is_kept(module):
            self._import(written, name, module)
            return
        candidates = self._candidates(module, alias.name)
        if not candidates:
            self._need_module(file, ".".join(filter(None, [module, alias.name])), name, user, written)
            return
        self._need(candidates[0], alias.name, user)
        if name != alias.name:
            self._join(f"{name} = {alias.name}", name)

    def _candidates(self, module: str, name: str) -> list[_File]:
        """The file that a module's name comes from: the module's own, or the only one that defines it."""
        own = [file for file in self._files.values() if module and file.is_module(module) and name in file.bindings]
        if own:
            return own[:1]
        defining = [file for file in self._files.values() if file.defines(name)]
        kernel_file = self._capture.launch.kernel.file
        others = [file for file in defining if file.path != kernel_file] or defining
        return others if len(others) == 1 else []

    def _need_module(self, file: _File, module: str, name: str, user: ast.stmt | None, written: str) -> None:
        """Take what a statement uses of a module: `utils.helper`."""
        module_file = next(
            (other for other in self._files.values() if other.is_module(module) and other is not file), None
        )
        if module_file is None or user is None:
            self._lacks(written, name, module)
            return
        used = {
            node.attr
            for node in ast.walk(user)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
        }
        self._import("import types", "types")
        self._join(f'{name} = types.ModuleType("{module}")', name)
        for attribute in sorted(used):
            self._need(module_file, attribute, user)
            self._join(f"{name}.{attribute} = {attribute}", f"{name}.{attribute}")

    def _lacks(self, written: str, name: str, module: str) -> None:
        """An import of what the capture does not hold: it stays, and is said."""
        self._result.missing.append(f"{name} ({written})")
        self._import(written, name, module)

    def _import(self, line: str, name: str, module: str = "") -> None:
        self._claim(name, line)
        if line not in self._result.imports:
            self._result.imports.append(line)
        root = module.partition(".")[0]
        if root and root != "triton" and root not in sys.stdlib_module_names and root not in self._result.other_modules:
            self._result.other_modules.append(root)

    def _join(self, line: str, name: str) -> None:
        self._claim(name, line)
        if line not in self._result.pieces:
            self._result.pieces.append(line)

    def _claim(self, name: str, origin: tuple[str, int] | str) -> None:
        """Note what a name means; two meanings cannot stand in one file."""
        before = self._origins.setdefault(name, origin)
        same_file = isinstance(before, tuple) and isinstance(origin, tuple) and before[0] == origin[0]
        if before != origin and not same_file:
            self._result.obstacles.append(f"{name} has different definitions in two of its files")

    def _module_of(self, qualname: str) -> str:
        """The name of the module that a function stood in, as the front end writes it into the name of its copy."""
        # @fla.ops.utils.exp__fp32   @"__main__.helper__i32_(4,)cconstexpr"
        match = re.search(rf'@"?([\w.]+?)\.{re.escape(qualname)}__', str(self._ir))
        return match[1] if match is not None else "__main__"


def _is_kept(module: str) -> bool:
    root = module.partition(".")[0]
    return root in ("triton", "torch") or root in sys.stdlib_module_names


def _functions(statement: ast.stmt) -> Iterator[tuple[str, int]]:
    """(qualified name, line) of the functions that a statement defines, methods included."""
    waiting: list[tuple[str, ast.AST]] = [("", statement)]
    while waiting:
        prefix, node = waiting.pop()
        if isinstance(node, ast.FunctionDef):
            yield f"{prefix}{node.name}", node.lineno
            continue
        inner = f"{prefix}{node.name}." if isinstance(node, ast.ClassDef) else prefix
        waiting.extend((inner, child) for child in ast.iter_child_nodes(node))
