"""Where the program reads a value: the innermost line of its own code, and the variable assigned to there."""

from __future__ import annotations

import ast
import linecache
import os
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType

import irscope

_OWN = str(Path(irscope.__file__).parent.resolve()) + os.sep
_REWRITING = str(Path(__file__).with_name("rewrite.py"))
"""Whose calls are inserted in the program: its own code is their caller."""
_STANDARD = os.path.realpath(sysconfig.get_paths()["stdlib"]) + os.sep
_PLUMBING = ("torch", "triton", "numpy", "pytest", "_pytest", "functorch", "torchgen", "sympy")
"""Packages whose lines do not count as the program's."""
_TEXT = 48


@dataclass(frozen=True, slots=True)
class ProgramPlace:
    file: str = ""
    line: int = 0
    text: str = ""
    """The statement, or the head of a compound one, shortened to a line."""
    names: tuple[str, ...] = ()
    """The variables that the statement assigns to: several for `a, b = …`."""
    name: str = ""
    """The one of them that gets the value, or an empty string."""
    returns: bool = False
    loops: bool = False
    """Whether the statement is a `while`, whose test is meant."""

    @property
    def label(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}" if self.file else ""


def place_of_reader() -> ProgramPlace:
    """The innermost line of the program that is running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_of_program(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return ProgramPlace()
    place = _place(frame)
    caller = frame.f_back
    for _ in range(_CALLERS):
        # def longest(lengths): return int(lengths.max())   |   n = longest(lengths)
        if place.name or caller is None or not place.returns:
            break
        if is_of_program(caller.f_code.co_filename):
            outer = _place(caller)
            place = replace(place, names=outer.names, name=outer.name)
            if not outer.returns:
                break
        caller = caller.f_back
    return place


_CALLERS = 4


def is_called_by_program(depth: int = 1) -> bool:
    """Whether the caller of the function that asks, or with `depth` 2 that one's, is a line of the program."""
    frame: FrameType | None = sys._getframe(depth + 1)
    while frame is not None and frame.f_code.co_filename == _REWRITING:
        frame = frame.f_back
    return frame is not None and is_followed(frame.f_code.co_filename)


@lru_cache(maxsize=4096)
def is_followed(file: str) -> bool:
    """Whether a file, in which placeholder values are followed, is the program's own or a library's with kernels."""
    if not is_of_program(file):
        return False
    if "site-packages" not in file and "dist-packages" not in file:
        return True
    try:
        return _TRITON in Path(file).read_bytes()
    except OSError:
        return False


_TRITON = b"triton"
"""A library's module is followed only if its source has this word: others do not concern kernels."""


@lru_cache(maxsize=4096)
def is_of_program(file: str) -> bool:
    """Whether a file is the program's or one of its libraries', and not of torch, Triton and the like."""
    if file == "<stdin>":
        return True
    generated = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if file.startswith(("<", _OWN)) or (generated and file.startswith(generated)):
        return False
    parts = Path(file).parts
    for folder in ("site-packages", "dist-packages"):
        if folder in parts:
            package = parts[len(parts) - 1 - parts[::-1].index(folder) + 1]
            return package.removesuffix(".py") not in _PLUMBING
    return not os.path.realpath(file).startswith(_STANDARD)


def _place(frame: FrameType) -> ProgramPlace:
    line, column = _position(frame.f_code, frame.f_lasti)
    return _described(frame.f_code.co_filename, line or frame.f_lineno, column)


@lru_cache(maxsize=4096)
def _position(code: CodeType, instruction: int) -> tuple[int | None, int | None]:
    """Line and column of an instruction; (None, None) before Python 3.11, where no column is known."""
    if not hasattr(code, "co_positions") or instruction < 0:
        return None, None
    position = next(islice(code.co_positions(), instruction // 2, None), None)
    return (None, None) if position is None else (position[0], position[2])


@lru_cache(maxsize=4096)
def _described(file: str, line: int, column: int | None) -> ProgramPlace:
    statement = _statement(file, line)
    if statement is None:
        return ProgramPlace(file, line, linecache.getline(file, line).strip()[:_TEXT])
    targets = list(_targets(statement, line, column))
    names = targets[0] if targets else ()
    name = _name(statement, names, line, column)
    returns, loops = isinstance(statement, ast.Return), isinstance(statement, ast.While)
    return ProgramPlace(file, line, _text(file, statement), names, name, returns, loops)


def _statement(file: str, line: int) -> ast.stmt | None:
    best: ast.stmt | None = None
    for node in _statements(file):
        if node.lineno <= line <= (node.end_lineno or node.lineno) and (best is None or node.lineno >= best.lineno):
            best = node
    return best


@lru_cache(maxsize=64)
def _statements(file: str) -> tuple[ast.stmt, ...]:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.stmt))


def _text(file: str, statement: ast.stmt) -> str:
    shown: ast.AST = statement
    if isinstance(statement, ast.If | ast.While):
        shown = statement.test
    elif isinstance(statement, ast.For):
        shown = statement.iter
    lines = linecache.getlines(file)
    first, last = getattr(shown, "lineno", 1), getattr(shown, "end_lineno", None)
    text = " ".join(part.strip() for part in lines[first - 1 : last or first])
    if len(text) > _TEXT:
        text = text[: _TEXT - 3] + "..."
    return text.removesuffix(":")


def _targets(statement: ast.stmt, line: int, column: int | None) -> Iterator[tuple[str, ...]]:
    for node in ast.walk(statement) if column is not None else ():
        # f(n=x.item())   |   (n := x.item())
        if isinstance(node, ast.keyword) and node.arg and _holds(node.value, line, column):
            yield (node.arg,)
        elif isinstance(node, ast.NamedExpr) and _holds(node.value, line, column):
            yield (node.target.id,)
    if isinstance(statement, ast.Assign):
        yield _written(statement.targets[0])
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        yield _written(statement.target)


def _written(target: ast.expr) -> tuple[str, ...]:
    if isinstance(target, ast.Name):
        return (target.id,)
    if isinstance(target, ast.Attribute):
        return (target.attr,)
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        return (str(target.slice.value),)
    if isinstance(target, ast.Tuple | ast.List):
        return tuple(name for item in target.elts for name in (_written(item) or ("",))[:1])
    return ()


def _name(statement: ast.stmt, names: tuple[str, ...], line: int, column: int | None) -> str:
    if len(names) == 1:
        return names[0]
    value = getattr(statement, "value", None)
    if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(names):
        # a, b = x.min().item(), x.max().item()
        for name, item in zip(names, value.elts, strict=True):
            if _holds(item, line, column):
                return name
    return ""


def _holds(node: ast.expr, line: int, column: int | None) -> bool:
    begin, end = (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)
    if column is None:
        return begin[0] <= line <= end[0]
    return begin <= (line, column) < end
