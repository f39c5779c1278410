"""Python text that gets smaller: what is left is what is needed, and it is Python."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from irscope.analysis.reduce.model import PYTHON_STEPS, PythonCase, PythonProgram, Search

KERNEL = """
import triton
import triton.language as tl

SIZE = 4

@triton.jit
def helper(x, y):
    if SIZE > 2:
        return x * y + SIZE
    return x

@triton.jit
def kernel(x_ptr, n, scale, BLOCK: tl.constexpr = 64):
    total = 0.0
    for k in range(0, n, BLOCK):
        if k > 3:
            x = tl.load(x_ptr + k, mask=k < n)
            total += helper(x, scale)
        else:
            total -= 1
    while total > 3:
        total = broken(total / 2, other=3)
    tl.store(x_ptr, total)
"""
PARAMETERS = (("x_ptr", "*fp32:16", False), ("n", "i32", False), ("scale", "fp32", False), ("BLOCK", "64", True))


PythonSearch = Search[PythonProgram, PythonCase]


def reduced(*words: str) -> PythonSearch:
    def holds(case: PythonCase) -> bool:
        tree = ast.parse(case.text)
        functions = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == "kernel"]
        names = {one.arg for function in functions for one in function.args.args}
        assert not functions or names == {name for name, _, _ in case.parameters}
        return bool(functions) and all(word in case.text for word in words)

    def first(cases: Iterable[PythonCase]) -> int | None:
        return next((place for place, case in enumerate(cases) if holds(case)), None)

    case = PythonCase(ast.unparse(ast.parse(KERNEL)) + "\n", PARAMETERS)
    search = PythonSearch(PythonProgram.of(case, "kernel"), case, first, PYTHON_STEPS)
    search.run()
    return search


def test_only_what_is_needed_is_left() -> None:
    best = reduced("broken(").best
    assert best.text.split() == ["def", "kernel():", "broken()"] or best.text.count("\n") <= 4
    assert best.parameters == ()
    assert best.signature == ""


def test_the_parameters_that_are_used_stay() -> None:
    best = reduced("tl.load(x_ptr", "BLOCK)").best
    # The range takes n and BLOCK.
    assert best.signature == "*fp32:16, i32"
    assert best.constants == (("BLOCK", "64"),)
    assert "helper" not in best.text
    assert "while" not in best.text


def test_a_loop_is_its_first_turn() -> None:
    best = reduced("helper(", "x_ptr").best
    assert "for " not in best.text
    assert "if " not in best.text


def test_the_same_again_finds_nothing() -> None:
    search = reduced("broken(", "tl.store")
    again = PythonSearch(PythonProgram.of(search.best, "kernel"), search.best, search.first, PYTHON_STEPS)
    again.run()
    assert again.best == search.best
    assert again.taken == {}
