"""The files that `reproduce` writes of hostile captures: whatever their fields hold, only the template's calls run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from irscope.errors import RecordingError
from irscope.model.capture import (
    Artifact,
    Capture,
    Environment,
    Failure,
    Kernel,
    Launch,
    PassSnapshot,
    SourceFile,
)
from irscope.model.launch_record import Argument, LaunchRecord
from irscope.render.reproduction.program import driver_of, render_reproduction
from irscope.target import Target

PAYLOADS = (
    '"]; evil(); x["',
    "'] = 0; evil(); x['",
    'a"""\nevil()\n"""',
    "x\nevil()\n#",
    "x\revil()\r#",
    "{evil()}",
    '\\"); evil(); ("',
    "\\",
    "\x00\x1b[31m\u2028\udce9\nevil()",
    "evil()",
    "²",
    "--1",
    "__import__('os').system('evil')",
    "evil(BlockedLayout)",
    "(lambda: evil())()",
    "[evil() for _ in (1,)]",
    "9**9**9",
    "../../evil",
    "(" * 10_000,
    "",
)
KERNEL = """import triton
import triton.language as tl


@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, at < n), at < n)
"""


def full_capture(*, python: bool) -> Capture:
    """A capture that has a value in every field that a file may be made of."""
    kernel = Kernel("copy", "/k/copy.py", 6, KERNEL, 1)
    tensor = Argument("x", "tensor", "float16", None, (8,), (1,), 1, 64, 16, 0, 9, "c", "d")
    record = LaunchRecord(
        (
            tensor,
            replace(tensor, path="y", data="", result=""),
            Argument("n", "scalar", "float", "inf"),
            Argument("d", "descriptor", "float16", None, (8,), (1,), 1, 64, 16, block_shape=(8,)),
            replace(tensor, path="t[1]"),
        )
    )
    launch = Launch(
        kernel,
        signature=(
            ("x", "*fp16"),
            ("y", "*fp16"),
            ("n", "fp32"),
            ("BLOCK", "constexpr"),
            ("d", "tensordesc<fp16[8]>"),
            ("t", "(i32, *fp16)"),
        ),
        constants=(("BLOCK", "64"), ("t[0]", "7")),
        attributes=(("x", "tt.divisibility=16, a=b"),),
        options=(("num_warps", 4), ("extra", "text"), ("nested", ("a", ("b", 1)))),
        grid=(1, 1, 1),
        record=record,
    )
    variables = (("TRITON_X", "true"), ("TRITON_FILES", "0123456789abcdef"))
    skipped = PassSnapshot(999, "ttgir", "coalesce", 1, outcome="skipped", changed=False)
    return Capture(
        launch,
        Target.parse("cuda:90"),
        artifacts=(Artifact("source", "module {}\n"), Artifact("ptx", ".version 8.0\n")),
        sources=(SourceFile("/k/copy.py", KERNEL),) if python else (),
        environment=Environment("1", "3.9.0", "2", "3", "4", "5", "6", "7", variables=variables),
        snapshots=(skipped,),
    )


def texts_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every text in a value."""
    if isinstance(value, str):
        yield path
    elif is_dataclass(value):
        for item in fields(value):
            yield from texts_of(getattr(value, item.name), (*path, item.name))
    elif isinstance(value, tuple):
        # Rows of one kind are alike: of many, the first and the last.
        for index in sorted({0, 1, 2, len(value) - 2, len(value) - 1} & set(range(len(value)))):
            yield from texts_of(value[index], (*path, index))


def with_text(value: Any, path: tuple[Any, ...], text: str) -> Any:
    if not path:
        return text
    first, *rest = path
    if isinstance(first, str):
        return replace(value, **{first: with_text(getattr(value, first), tuple(rest), text)})
    return (*value[:first], with_text(value[first], tuple(rest), text), *value[first + 1 :])


def what_runs(text: str) -> set[str]:
    """What a program calls, imports and names."""
    tree = ast.parse(text.encode("utf-8", "surrogateescape"))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found.add(f"call {ast.unparse(node.func)}")
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.add(ast.unparse(node))
        elif isinstance(node, ast.Name):
            found.add(f"name {node.id}")
        elif isinstance(node, ast.Attribute):
            found.add(f"attribute {node.attr}")
        elif isinstance(node, ast.BinOp):
            found.add(f"operator {type(node.op).__name__}")
    return found


# A constant or a scalar may be one of these; no data is random, no kernel may be launched; another way may be taken.
_HARMLESS = {"call float"}


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("python", [True, False], ids=["python", "ir"])
def test_only_the_calls_of_the_template_run(python: bool, step: int) -> None:
    good = full_capture(python=python)
    ways = [good, full_capture(python=False)]
    without_launch = [replace(one, launch=replace(one.launch, record=None)) for one in ways]
    failed = [replace(one, failure=Failure("pass", "m")) for one in ways]
    allowed = set[str]().union(*(what_runs(render_reproduction(one).text) for one in (*ways, *without_launch, *failed)))
    assert "call evil" not in allowed
    count = 0
    for number, path in enumerate(texts_of(good)):
        # The user's own Python is what the file is for.
        if path[0] == "sources" and path[-1] == "text":
            continue
        if path == ("launch", "kernel", "source"):
            continue
        for payload in PAYLOADS[number % step :: step]:
            try:
                text = render_reproduction(with_text(good, path, payload)).text
            except RecordingError:
                continue
            assert what_runs(text) <= allowed | _HARMLESS, (path, payload)
            count += 1
    assert count > 1000 // step


def test_a_driver_of_an_edit_runs_nothing_else() -> None:
    good = full_capture(python=True)
    allowed = what_runs(driver_of(good, Path("/tmp/a.py")))
    for number, path in enumerate(texts_of(good.launch)):
        if path[:2] == ("kernel", "source"):
            continue
        for payload in PAYLOADS[number % 6 :: 6]:
            hostile = replace(good, launch=with_text(good.launch, path, payload))
            try:
                text = driver_of(hostile, Path(f"/tmp/{payload}.py"))
            except RecordingError:
                continue
            assert what_runs(text) <= allowed | _HARMLESS, (path, payload)
