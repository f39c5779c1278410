"""The edits of a Python file that make a suggested change: of a launch, of the decorator's lists, or of the kernel."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irscope.analysis.findings.model import Finding, FixChange, is_alone
from irscope.analysis.findings.search import grid_with
from irscope.model.capture import Capture, Launch
from irscope.model.plain import python_tree

_LISTS = ("do_not_specialize", "do_not_specialize_on_alignment")


@dataclass(frozen=True, slots=True)
class _SourceEdit:
    """A part of a text, and its replacement."""

    line: int
    """1-based, as `end_line`."""
    column: int
    """In characters from 1, as `end_column`, which is behind the last."""
    end_line: int
    end_column: int
    text: str


def source_edits(
    text: str, kernel: str, changes: Sequence[FixChange], launch: Launch | None = None
) -> tuple[_SourceEdit, ...]:
    """The edits of a file that make all changes of a suggestion; empty where one of them is not known to have one.

    An autotuned kernel takes its options and tiles from its configurations: Triton refuses them in a launch.

    Args:
        text: of the Python file.
        kernel: the name of the function that is launched.
        launch: the one that is changed, of several that state other numbers. Tiles of it are an edit only where its
            grid follows from them, or is stated in numbers, which are edited too.
        changes: options and constants that each launch of it in the file states as numbers (an option that it does not
            state is added), arguments that its decorator keeps from being specialised, masks of `<= n - 1`, hints on
            products with an argument, stages of a loop, and operands that are widened.
    """
    tree = python_tree(text)
    lines = text.split("\n")
    launches = [one for one in ast.walk(tree) if isinstance(one, ast.Call) and _is_launch(one, kernel, launch)]
    kernels = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name == kernel]
    is_tuned = any("autotune" in ast.unparse(each) for one in kernels for each in one.decorator_list)
    found: list[_SourceEdit] = []
    tiles = {one.name: str(one.value) for one in changes if one.kind == "constant"}
    grid = grid_with(launch, tiles) if launch is not None and tiles else None
    if launch is not None and grid is not None and grid != launch.grid:
        moved = [name for name, value in tiles.items() if grid_with(launch, {name: value}) != launch.grid]
        for one in launches:
            if not all(_follows(tree, one, name) for name in moved):
                edit = _of_grid(lines, one, grid)
                if edit is None:
                    return ()
                found.append(edit)
    for change in changes:
        if is_tuned and change.kind in ("option", "constant"):
            return ()
        if change.kind in ("option", "constant") or (change.kind == "factor" and change.name != str(change.was)):
            edits = [_argument(lines, one, change) for one in launches]
        elif change.kind == "divisible":
            edits = [*_unlisted(lines, kernels, change.name)]
        elif change.kind in ("compare", "hint"):
            edits = [*_in_kernel(lines, kernels, change)]
        elif change.kind in ("stages", "narrow"):
            edits = [*_at_line(lines, tree, change)]
        else:
            return ()
        if not edits or any(one is None for one in edits):
            return ()
        found += [one for one in edits if one is not None]
    return tuple(dict.fromkeys(found))


def with_edits(text: str, edits: Sequence[_SourceEdit]) -> str:
    lines = text.split("\n")
    for one in sorted(edits, key=lambda one: (one.line, one.column), reverse=True):
        before, after = lines[one.line - 1][: one.column - 1], lines[one.end_line - 1][one.end_column - 1 :]
        lines[one.line - 1 : one.end_line] = (before + one.text + after).split("\n")
    return "\n".join(lines)


def with_fixes(text: str, launch: Launch, findings: Sequence[Finding]) -> str:
    """A Python file with the best fix of each finding that is an edit of it, the first one's before the others'.

    Behind another fix, one that was compiled without those of other findings is left out: both may be worse than one.
    """
    subjects: set[tuple[str, str]] = set()
    for best in (one.best_fix for one in findings):
        if best is None or (subjects and is_alone(best.changes)):
            continue
        mine = {(one.kind, one.name) for one in best.changes}
        if mine.isdisjoint(subjects) and (edits := source_edits(text, launch.kernel.name, best.changes, launch)):
            text, subjects = with_edits(text, edits), subjects | mine
    return text


def patch_of(capture: Capture, findings: Sequence[Finding]) -> str:
    """A unified diff of the kernel's file with the fixes of its findings; empty where none is an edit of it."""
    kernel = capture.launch.kernel
    text = next((one.text for one in capture.sources if one.path == kernel.file), "")
    before, after = (one.splitlines(keepends=True) for one in (text, with_fixes(text, capture.launch, findings)))
    return "".join(difflib.unified_diff(before, after, kernel.file, kernel.file, n=1))


def _in_kernel(lines: Sequence[str], kernels: Sequence[ast.FunctionDef], change: FixChange) -> Iterator[_SourceEdit]:
    """The edits of a kernel's own lines: `i < n` for `i <= n - 1`, and `tl.multiple_of(i * n, 16)` for `i * n`."""
    for one in (each for function in kernels for each in ast.walk(function)):
        if change.kind == "compare" and isinstance(one, ast.Compare) and [type(each) for each in one.ops] == [ast.LtE]:
            right = one.comparators[0]
            if isinstance(right, ast.BinOp) and isinstance(right.op, ast.Sub) and ast.unparse(right.right) == "1":
                yield _replaced(lines, one, f"{ast.unparse(one.left)} < {ast.unparse(right.left)}")
        if change.kind != "hint" or not isinstance(one, ast.BinOp) or not isinstance(one.op, ast.Mult):
            continue
        if change.name in (ast.unparse(one.left), ast.unparse(one.right)):
            yield _replaced(lines, one, f"tl.multiple_of({ast.unparse(one)}, {change.value})")


def _at_line(lines: Sequence[str], tree: ast.Module, change: FixChange) -> Iterator[_SourceEdit]:
    """The edit of one line: `tl.range(…, num_stages=3)` of a loop, or an operand without `.to(tl.float32)`."""
    for one in ast.walk(tree):
        if change.kind == "stages" and isinstance(one, ast.For) and one.lineno == int(change.name):
            called = ast.unparse(one.iter.func) if isinstance(one.iter, ast.Call) else ""
            if isinstance(one.iter, ast.Call) and called in ("range", "tl.range") and not one.iter.keywords:
                arguments = ", ".join(ast.unparse(each) for each in one.iter.args)
                yield _replaced(lines, one.iter, f"tl.range({arguments}, num_stages={change.value})")
        if change.kind != "narrow" or not isinstance(one, ast.Call) or not isinstance(one.func, ast.Attribute):
            continue
        place = one.lineno, _characters(lines, one.lineno, one.col_offset)
        if one.func.attr == "to" and place == (int(change.name), change.was):
            yield _replaced(lines, one, ast.unparse(one.func.value))


def _is_launch(call: ast.Call, kernel: str, launch: Launch | None) -> bool:
    """Whether a call is `kernel[grid](…)`, or `module.kernel[grid](…)`, and states no other value than a launch has."""
    if not isinstance(call.func, ast.Subscript):
        return False
    launched = call.func.value
    if (launched.attr if isinstance(launched, ast.Attribute) else getattr(launched, "id", "")) != kernel:
        return False
    known = {name: str(value) for name, value in (*launch.constants, *launch.options)} if launch is not None else {}
    stated = [one for one in call.keywords if isinstance(one.value, ast.Constant)]
    return all(known.get(one.arg or "", text := ast.unparse(one.value)) == text for one in stated)


def _follows(tree: ast.Module, launch: ast.Call, name: str) -> bool:
    """Whether the grid of a launch is computed from a tl.constexpr of it: `lambda META: (cdiv(n, META["BLOCK"]),)`."""
    assert isinstance(launch.func, ast.Subscript)
    given = launch.func.slice
    grids: list[ast.AST] = [given]
    if isinstance(given, ast.Name):
        for one in ast.walk(tree):
            is_function = isinstance(one, ast.FunctionDef) and one.name == given.id
            if is_function or (isinstance(one, ast.Assign) and given.id in map(ast.unparse, one.targets)):
                grids.append(one)
    return any(isinstance(one, ast.Constant) and one.value == name for grid in grids for one in ast.walk(grid))


def _of_grid(lines: Sequence[str], launch: ast.Call, grid: tuple[int, int, int]) -> _SourceEdit | None:
    """The edit of a launch whose grid is stated in numbers; None for another one."""
    assert isinstance(launch.func, ast.Subscript)
    given = launch.func.slice
    axes = given.elts if isinstance(given, ast.Tuple) else ()
    if not axes or not all(isinstance(one, ast.Constant) for one in axes) or any(one > 1 for one in grid[len(axes) :]):
        return None
    return _replaced(lines, given, f"({', '.join(map(str, grid[: len(axes)]))}{',' * (len(axes) == 1)})")


def _argument(lines: Sequence[str], call: ast.Call, change: FixChange) -> _SourceEdit | None:
    """The edit of one launch; None where it computes the argument, or may state it in `**options`."""
    named = next((one for one in call.keywords if one.arg == change.name), None)
    if named is not None:
        if not isinstance(named.value, ast.Constant):
            return None
        return _replaced(lines, named.value, str(change.value))
    if change.kind != "option" or any(one.arg is None for one in call.keywords):
        return None
    last = max((*call.args, *(one.value for one in call.keywords)), key=_end, default=None)
    if last is None:
        return None
    end_line, end = _end(last)
    column = _characters(lines, end_line, end)
    return _SourceEdit(end_line, column, end_line, column, f", {change.name}={change.value}")


def _unlisted(lines: Sequence[str], kernels: Sequence[ast.FunctionDef], name: str) -> Iterator[_SourceEdit]:
    keywords = [
        word
        for one in kernels
        for decorator in one.decorator_list
        if isinstance(decorator, ast.Call)
        for word in decorator.keywords
    ]
    for word in keywords:
        listed = word.value
        if word.arg not in _LISTS or not isinstance(listed, (ast.List, ast.Tuple)):
            continue
        kept = [one for one in listed.elts if not (isinstance(one, ast.Constant) and one.value == name)]
        if len(kept) < len(listed.elts):
            yield _replaced(lines, listed, f"[{', '.join(map(ast.unparse, kept))}]")


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _replaced(lines: Sequence[str], node: ast.expr, text: str) -> _SourceEdit:
    end_line, end = _end(node)
    begin = _characters(lines, node.lineno, node.col_offset)
    return _SourceEdit(node.lineno, begin, end_line, _characters(lines, end_line, end), text)


def _characters(lines: Sequence[str], line: int, offset_bytes: int) -> int:
    """The column, from 1, of a byte of a line: Python counts bytes of UTF-8."""
    return len(lines[line - 1].encode()[:offset_bytes].decode("utf-8", "ignore")) + 1
