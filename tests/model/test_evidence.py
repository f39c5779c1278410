"""Operations of lines, packed as runs and back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from irscope.model.evidence import OperationLines


@given(st.lists(st.integers(0, 3)))
def test_runs_hold_every_line(lines: list[int]) -> None:
    packed = OperationLines.of("ptx", lines)
    assert packed.by_line == tuple(lines)
    assert all(before[0] != after[0] for before, after in zip(packed.runs, packed.runs[1:], strict=False))
