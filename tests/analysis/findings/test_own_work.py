"""What the compiler does is not blamed on a kernel: loads that LLVM joins, values that the pipeliner adds."""

from __future__ import annotations

import pytest

from irscope.analysis.findings.find import findings_of
from tests.analysis.findings.cases import of_code
from tests.analysis.findings.every import EVERY

pytestmark = [pytest.mark.triton]


def test_loads_that_llvm_joins_waste_nothing() -> None:
    case = EVERY["IRS103-pairs-4 bytes apart"]
    capture = of_code(case.planted, "hip:gfx942", "IRS103")
    assert capture.texts["ttgir"].count("tt.load") == 2
    assert capture.texts["amdgcn"].count("global_load_") == 1
    assert [one.code for one in findings_of(capture)] == []


def test_the_phase_of_a_barrier_is_no_value_that_the_kernel_carries() -> None:
    case = EVERY["IRS201-scores-pitch"]
    found = [one for one in findings_of(of_code(case.planted, "cuda:100", "IRS201")) if one.code == "IRS201"]
    assert found
    causes = [cause.text for one in found for cause in one.causes]
    assert not any("as it got it" in text for text in causes)
