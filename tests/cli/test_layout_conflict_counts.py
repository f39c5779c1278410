"""The compiler's own count of bank conflicts stands beside ours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irscope.api.layouts import with_compilers_count
from irscope.memory.costs import Cost
from irscope.model.capture import Target
from tests.layout.cases import blocked, swizzled

COST = Cost("shared", "ttg.local_store", 1, "k.py:1", (), (), 0, 0, "16 bits per lane", figures={"ways": 1.0})


def test_costs_that_the_compiler_cannot_be_asked_of_stay_as_they_are() -> None:
    assert with_compilers_count([COST], Target.parse("cuda:80"), 4) == [COST]


@pytest.mark.triton
def test_the_compiler_is_asked_and_a_disagreement_is_said() -> None:
    pytest.importorskip("triton", reason="the count is the installed compiler's")
    registers = f"tensor<64x64xf32, {blocked((1, 4), (8, 4), (2, 2), (1, 0))}>"
    shared = f"!ttg.memdesc<64x64xf32, {swizzled(1, 1, 1, (1, 0))}, #ttg.shared_memory, mutable>"
    asked = replace(COST, pair=(registers, shared))
    (found,) = with_compilers_count([asked], Target.parse("cuda:80"), 4)
    ways = found.figures["compiler_ways"]
    assert ways > 1
    assert found.summary == f"16 bits per lane; the compiler counts {ways}-way conflicts"
    (agreeing,) = with_compilers_count([replace(asked, figures={"ways": float(ways)})], Target.parse("cuda:80"), 4)
    assert agreeing.summary == "16 bits per lane; as the compiler counts"
