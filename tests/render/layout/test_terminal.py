"""The tables of layouts and costs."""

from __future__ import annotations

from pathlib import Path

import pytest

from irscope.memory.costs import costs_of
from irscope.render.layout.terminal import cost_table
from irscope.store.file import load

DATA = Path(__file__).parents[2] / "data" / "layouts"


@pytest.mark.parametrize(("name", "is_of_ptx"), [("matmul-cuda-80", True), ("matmul-hip-gfx942", False)])
def test_what_an_assembler_may_change_is_said(name: str, is_of_ptx: bool) -> None:
    """ptxas merges equal accesses of a thread; the assembler of AMD leaves instructions as they are."""
    table = cost_table(costs_of(load(DATA / f"{name}.irscope")), width=200)
    assert ("Counts are of the PTX: " in table) == is_of_ptx
