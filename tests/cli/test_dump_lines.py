"""`irscope dump --lines` of assembly: what a line of Python became there, and nothing of the others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from irscope.cli.commands import main_group

KERNELS = Path(__file__).parents[1] / "analysis" / "kernels" / "marked.py"
SIGNATURE = "*i32:16, *i32:16, 128"


def line_with(text: str) -> int:
    (line,) = [number for number, row in enumerate(KERNELS.read_text().split("\n"), 1) if text in row]
    return line


def dumped(target: str, stage: str, lines: str, *more: str) -> str:
    arguments = ["dump", f"{KERNELS}::inlined", "--signature", SIGNATURE, "--target", target, "--stage", stage]
    result = CliRunner().invoke(main_group(), [*arguments, "--lines", lines, *more])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.newest
@pytest.mark.triton
@pytest.mark.parametrize(("target", "stage"), [("hip:gfx942", "amdgcn"), ("cuda:90", "sass")])
def test_a_line_of_python_in_assembly(target: str, stage: str) -> None:
    # Every number of marked.py stands on one line alone.
    text = dumped(target, stage, str(line_with("x = x ^ 2101")))
    assert re.findall(r"\b0x(?!0)[0-9a-f]{3,4}\b", text) == ["0x835"]
    assert ".loc" not in text
    assert "//## File" not in text
    # A location that is hidden neither counts among the lines left out nor parts two runs of them.
    assert not re.search(r"… \d+ lines?\n\s*(?:;|//) …", text)


@pytest.mark.triton
def test_a_call_holds_what_became_of_the_helpers() -> None:
    text = dumped("hip:gfx942", "amdgcn", str(line_with("x = outer(x)")), "--loc")
    inside = [1407, 1203, 1101, 1305, 1509]
    assert [int(one, 16) for one in re.findall(r"^\s+v_.*\b0x([0-9a-f]{3,4})\b", text, re.MULTILINE)] == inside
    assert ".loc" in text
