"""Layouts along a dimension are those that the compiler's own builder gives; one access gets them, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from irscope.analysis.findings.changed import edited, laid_along
from irscope.analysis.findings.model import FixChange
from irscope.analysis.findings.studied import Studied
from irscope.memory.machine import ACCESSES
from irscope.model.capture import Artifact, Capture, Kernel, Launch, PassSnapshot
from irscope.store.file import load
from irscope.target import Target

DATA = Path(__file__).parents[2] / "data" / "layouts"
_NUMBERS = r"{} = \[([\d, ]+)\]"


@pytest.mark.parametrize("name", sorted(file.stem for file in DATA.glob("*.irscope")))
def test_a_layout_along_its_own_dimension_is_itself(name: str) -> None:
    """Those of accesses are what `coalesce` had built for their shapes."""
    studied = Studied(load(DATA / f"{name}.irscope"))
    seen = set[str]()
    for operation in studied.operations.values():
        layout = studied.layout_of(operation) if operation.opcode in ACCESSES else None
        if layout is None or layout.threads is None or not layout.encoding.text.startswith("#ttg.blocked<"):
            continue
        text = layout.encoding.text
        sizes, order = (
            [int(one) for one in match[1].split(", ")]
            for each in ("sizePerThread", "order")
            if (match := re.search(_NUMBERS.format(each), text))
        )
        if all(size == 1 for axis, size in enumerate(sizes) if axis != order[0]):
            assert laid_along(text, layout.threads, order[0], sizes[order[0]]) == text
            seen.add(text)
    assert seen


def _after_coalesce(*lines: str) -> Capture:
    head = "#blocked = #ttg.blocked<{order = [1, 0]}>\n#blocked1 = #ttg.blocked<{order = [0]}>\nmodule {"
    text = "\n".join([head, *lines, "}", ""])
    passed = PassSnapshot(0, "ttgir", "coalesce", 1, outcome="ran", text=text)
    launch = Launch(Kernel("kernel", "k.py"))
    return Capture(
        launch, Target.parse("cuda:90"), artifacts=(Artifact("source", "module {\n}\n"),), snapshots=(passed,)
    )


def _edited(capture: Capture, line: int) -> list[str]:
    text = edited(
        capture, FixChange("snapshot", "#ttg.blocked<{order = [1, 0]}>", "#ttg.blocked<{order = [0, 1]}>", line)
    )
    return [] if text is None else text.split("\n")[3:-2]


def test_one_access_gets_another_layout_and_is_converted_to_and_from() -> None:
    plain = "  %v = tt.load %p, %m, %o {evict = 1 : i32} : tensor<4x8x!tt.ptr<f16>, #blocked> loc(#loc7)"
    other = "#ttg.blocked<{order = [0, 1]}>"
    new = "ttg.convert_layout"
    pointers = "tensor<4x8x!tt.ptr<f16>"
    assert _edited(_after_coalesce(plain, plain), 4) == [
        f"  %relaid_4_0 = {new} %p : {pointers}, #blocked> -> {pointers}, {other}> loc(#loc7)",
        f"  %relaid_4_1 = {new} %m : tensor<4x8xi1, #blocked> -> tensor<4x8xi1, {other}> loc(#loc7)",
        f"  %relaid_4_2 = {new} %o : tensor<4x8xf16, #blocked> -> tensor<4x8xf16, {other}> loc(#loc7)",
        "  %relaid_4 = tt.load %relaid_4_0, %relaid_4_1, %relaid_4_2 {evict = 1 : i32} : "
        f"{pointers}, {other}> loc(#loc7)",
        f"  %v = {new} %relaid_4 : tensor<4x8xf16, {other}> -> tensor<4x8xf16, #blocked> loc(#loc7)",
        plain,
    ]


def test_a_store_is_converted_to_and_what_is_no_access_stays() -> None:
    capture = _after_coalesce("  tt.store %p, %v, %m : tensor<4x!tt.ptr<i32, 1>, #blocked>", "  %x = tt.other %v")
    other = "#ttg.blocked<{order = [0, 1]}>"
    assert _edited(capture, 4)[1:4] == [
        f"  %relaid_4_1 = ttg.convert_layout %v : tensor<4xi32, #blocked> -> tensor<4xi32, {other}>",
        f"  %relaid_4_2 = ttg.convert_layout %m : tensor<4xi1, #blocked> -> tensor<4xi1, {other}>",
        f"  tt.store %relaid_4_0, %relaid_4_1, %relaid_4_2 : tensor<4x!tt.ptr<i32, 1>, {other}>",
    ]
    assert _edited(capture, 5) == []
