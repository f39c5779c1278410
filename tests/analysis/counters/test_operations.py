"""Counters summed by operation: nothing is lost, and the worst is first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irscope.analysis.counters.matched import matched_instructions
from irscope.analysis.counters.operations import counted_launch
from irscope.ir.logs.source_page import Counters
from irscope.model.evidence import OperationLines
from tests.analysis.counters.measured import NAMES, capture, counted


@pytest.mark.parametrize("name", NAMES)
def test_every_instruction_is_in_one_row(name: str) -> None:
    found = counted(name)
    whole = matched_instructions(capture(name))
    assert sorted(one.line for row in found.operations for one in row.instructions) == [one.line for one in whole]
    assert Counters.sum([row.counters for row in found.operations]) == found.counters
    assert found.by_operation
    stalled = [row.counters.stalled for row in found.operations]
    assert stalled == sorted(stalled, reverse=True)


def test_an_operation_has_its_line_and_layouts() -> None:
    (row,) = [one for one in counted("transposed").operations if one.operation == "tt.load"]
    text = capture("transposed").text("ttgir").splitlines()[row.line - 1]
    assert "tt.load" in text
    assert row.layouts
    assert all(layout in text for layout in row.layouts)
    assert row.place.startswith("accessing.py:")


def test_without_operations_a_row_is_a_line_of_python_and_says_why() -> None:
    one = capture("transposed")
    found = counted_launch(replace(one, operations=(OperationLines("sass", reason="the code is another"),)))
    assert not found.by_operation
    assert found.why_not == "the code is another"
    assert found.predicted_executed is None
    assert all(not row.line and not row.comparisons for row in found.operations)
    assert {row.place for row in found.operations} == {row.place for row in counted("transposed").operations}
    assert found.counters == counted("transposed").counters
