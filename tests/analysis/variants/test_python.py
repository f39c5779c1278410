"""Where a kernel reads its parameters, and tests that only stop programs."""

from __future__ import annotations

import pytest

from irscope.analysis.variants.python import KernelText, read_kernel
from irscope.model.capture import Kernel

HEAD = "@triton.jit\ndef k(x, N: tl.constexpr, M: 'tl.constexpr' = 3, *, s):\n"


def of(body: str, *, indent: str = "") -> KernelText:
    text = HEAD + "\n".join(f"    {line}" for line in body.splitlines())
    source = "\n".join(indent + line for line in text.splitlines())
    return read_kernel(Kernel("k", "a.py", 11, source, 10))


def test_parameters_and_the_lines_that_read_them() -> None:
    text = of("y = x + s\nx = y\nz = lambda a: a + s")
    assert text.constexprs == {"N", "M"}
    assert (text.lines_of("x"), text.lines_of("s"), text.lines_of("N")) == ((12,), (12, 14), ())
    assert (text.is_constexpr("N"), text.is_constexpr("x")) == (True, False)
    assert of("return x", indent="        ").lines_of("x") == (12,)


@pytest.mark.parametrize("source", ["", "x = 1", "def k(:", "\0", "def k(x):\n  " + "(" * 3000])
def test_what_is_no_kernel_is_not_known(source: str) -> None:
    assert read_kernel(Kernel("k", source=source)) == KernelText()
    assert KernelText().is_constexpr("x") is None


@pytest.mark.parametrize(
    ("body", "axis"),
    [
        ("pid = tl.program_id(0)\nif pid >= N:\n    return", 0),
        ("pid = tl.program_id(axis=1)\nif N <= pid:\n    return", 1),
        ("if tl.program_id(2) >= N:\n    return", 2),
        # The test may hold, does more, or is of something else.
        ("pid = tl.program_id(0)\nif pid > N:\n    return", None),
        ("pid = tl.program_id(0)\nif pid < N:\n    return", None),
        ("pid = tl.program_id(0) + 1\nif pid >= N:\n    return", None),
        ("pid = tl.program_id(0)\npid += 1\nif pid >= N:\n    return", None),
        ("pid = tl.program_id(0)\nif pid >= N:\n    x = 1", None),
        ("pid = tl.program_id(0)\nif pid >= N:\n    return\nelse:\n    x = 1", None),
        ("pid = tl.program_id(0)\nif pid >= N:\n    return\nx += N", None),
        ("pid = tl.program_id(0)\nN = 3\nif pid >= N:\n    return", None),
        ("pid = tl.program_id(x)\nif pid >= N:\n    return", None),
        ("pid = tl.num_programs(0)\nif pid >= N:\n    return", None),
    ],
)
def test_tests_that_stop_programs(body: str, axis: int | None) -> None:
    guard = of(body).guard_of("N")
    assert (None if guard is None else guard[0]) == axis
