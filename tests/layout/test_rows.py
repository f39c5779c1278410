"""Layout rows of a module's text."""

from __future__ import annotations

import sys
from typing import Any

from irscope.layout.rows import layout_rows

_LAYOUT = "#ttg.blocked<{{sizePerThread = [{}], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}}>"


def module(operations: int) -> str:
    """A kernel that converts a value back and forth between two layouts."""
    aliases = f"#a = {_LAYOUT.format(1)}\n#b = {_LAYOUT.format(2)}\n"
    body = "".join(
        f"    %{n + 1} = ttg.convert_layout %{n} : tensor<64xf32, #{'ab'[n % 2]}> -> tensor<64xf32, #{'ba'[n % 2]}>\n"
        for n in range(operations)
    )
    first = "    %0 = arith.constant dense<0.0> : tensor<64xf32, #a>\n"
    return f"{aliases}module {{\n  tt.func public @k() {{\n{first}{body}    tt.return\n  }}\n}}\n"


def calls(text: str) -> int:
    """How many functions are called to read a text's rows."""
    count = 0

    def seen(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(seen)
    try:
        layout_rows(text)
    finally:
        sys.setprofile(None)
    return count


def test_each_layout_has_a_row_with_all_its_uses() -> None:
    found = {row.alias: {use.name: (use.values, use.lines) for use in row.operations} for row in layout_rows(module(4))}
    lines = (6, 7, 8, 9)
    assert found == {
        "#a": {"arith.constant": (("%0",), (5,)), "ttg.convert_layout": (("%2", "%4"), lines)},
        "#b": {"ttg.convert_layout": (("%1", "%3"), lines)},
    }


def test_the_work_grows_with_the_text_alone() -> None:
    assert calls(module(400)) < 2.5 * calls(module(200))
