"""The names of the kernels that a program may launch, read without running it: a wrong one is refused at once."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from irscope.errors import RecordingError, did_you_mean

__all__ = ["refuse_unknown_kernel"]

_WITHOUT_KERNELS = frozenset(sys.stdlib_module_names) | {"torch", "triton", "numpy", "pytest", "irscope"}
"""Modules from outside of the program that launch no kernel of their own, unless torch compiles one."""
_DYNAMIC = frozenset({
    "exec", "eval", "compile", "__import__", "importlib", "runpy", "inductor", "flex_attention", "__name__",
    "__qualname__", "setattr", "globals", "TritonTemplate", "subprocess", "system", "popen", "execv", "execvp",
})  # fmt: skip
"""Names that a program which makes or renames functions uses."""
_MOST_FILES = 200


def refuse_unknown_kernel(path: Path, kernel: str) -> None:
    """Raise RecordingError where no function that a program could launch has the name of a kernel.

    What cannot be decided by reading is left to the run: a program that imports other packages, or makes functions.
    """
    functions: dict[str, bool] = {}
    waiting, seen = [path], set[Path]()
    while waiting:
        file = waiting.pop().resolve()
        if file in seen:
            continue
        seen.add(file)
        try:
            tree = ast.parse(file.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                functions[node.name] = functions.get(node.name, False) or any(map(_is_jit, node.decorator_list))
            elif _name_of(node) in _DYNAMIC and not _is_main_test(node, tree):
                return
        for modules in _imports(tree):
            found = [one for name in modules for one in _files_of(name, path.parent)]
            if not found and modules[0].partition(".")[0] not in _WITHOUT_KERNELS:
                return
            waiting += found
        if len(seen) > _MOST_FILES:
            return
    if kernel not in functions:
        jitted = sorted(name for name, is_kernel in functions.items() if is_kernel)
        known = f" Its kernels are {', '.join(jitted)}." if jitted else " It has no kernel."
        raise RecordingError(f"{path} holds no kernel {kernel!r}.{did_you_mean(kernel, jitted, or_all=False)}{known}")


def _name_of(node: ast.AST) -> str:
    """What a node of a program reads: a name, an attribute, or a module that it imports."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _is_main_test(node: ast.AST, tree: ast.Module) -> bool:
    """Whether a node is the left side of `if __name__ == "__main__":`."""
    tests = (one.test for one in tree.body if isinstance(one, ast.If))
    return any(isinstance(test, ast.Compare) and test.left is node for test in tests)


def _is_jit(decorator: ast.expr) -> bool:
    text = ast.unparse(decorator)
    return text.partition("(")[0].rpartition(".")[2] in ("jit", "autotune", "heuristics")


def _imports(tree: ast.Module) -> Iterator[list[str]]:
    """The module of each import, and those that it may mean besides: `a.b` and `a.b.c` of `from a.b import c`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ([alias.name] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield [base, *(f"{base}{'' if base.endswith('.') else '.'}{alias.name}" for alias in node.names)]


def _files_of(module: str, folder: Path) -> Iterator[Path]:
    """The files beside the program that a module may be."""
    if module.startswith("."):
        folder = folder.joinpath(*[".."] * (len(module) - len(module.lstrip(".")) - 1))
    place = folder.joinpath(*module.lstrip(".").split("."))
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            yield path
