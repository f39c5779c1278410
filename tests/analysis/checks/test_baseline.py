"""What is worse than a baseline fails, what is better is told, and what is within its tolerance is neither."""

from __future__ import annotations

import pytest

from irscope.analysis.checks.baseline import compared, kept_facts, read_tolerances
from irscope.analysis.checks.subject import Subject
from irscope.analysis.regressions import Value
from irscope.errors import UsageError
from tests.analysis.checks.test_code import ATTENTION, MATMUL, capture

BEFORE: dict[str, Value] = {
    "registers": 100, "spilled_bytes": 0, "load_bits": 128.0, "matrix_unit": "wgmma", "findings": ("IRS101",),
    "pipeline_buffers": 3, "shared_bytes": 1000, "occupancy_percent": 25.0, "instruction_count": 500,
}  # fmt: skip
WORSE: dict[str, Value] = {
    "registers": 106, "spilled_bytes": 8, "load_bits": 64.0, "matrix_unit": "mma", "findings": ("IRS101", "IRS201"),
    "pipeline_buffers": 1, "shared_bytes": 1051, "occupancy_percent": 12.5, "instruction_count": 551,
}  # fmt: skip
BETTER: dict[str, Value] = {
    "registers": 90, "load_bits": 256.0, "matrix_unit": "tcgen05", "findings": (), "pipeline_buffers": 4,
    "shared_bytes": 900, "occupancy_percent": 50.0, "instruction_count": 400,
}  # fmt: skip


@pytest.mark.parametrize("name", WORSE)
def test_each_fact_that_is_worse(name: str) -> None:
    (change,) = compared(BEFORE, {**BEFORE, name: WORSE[name]}, {})
    assert (change.name, change.verdict) == (name, "worse")


@pytest.mark.parametrize("name", BETTER)
def test_each_fact_that_is_better(name: str) -> None:
    (change,) = compared(BEFORE, {**BEFORE, name: BETTER[name]}, {})
    assert (change.name, change.verdict) == (name, "better")


@pytest.mark.parametrize(
    ("tolerance", "after", "is_worse"),
    [
        ("registers=4", 104, False),
        ("registers=4", 105, True),
        ("registers=0", 101, True),
        ("registers=10%", 110, False),
        ("registers=10%", 111, True),
        ("spilled_bytes=16", 16, False),
        ("spilled_bytes=16", 20, True),
    ],
)
def test_tolerances(tolerance: str, after: int, is_worse: bool) -> None:
    name = tolerance.partition("=")[0]
    found = compared(BEFORE, {**BEFORE, name: after}, read_tolerances([tolerance]))
    assert [one.verdict for one in found] == ["worse"] * is_worse


@pytest.mark.parametrize("text", ["registers", "registers=-1", "registers=4px", "rgisters=4"])
def test_a_tolerance_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match="registers"):
        read_tolerances([text])


def test_facts_that_one_side_lacks_are_not_compared_but_new_findings_are() -> None:
    before: dict[str, Value] = {"registers": 100}
    assert compared(before, {"registers": 100, "load_bits": 8.0, "findings": ()}, {}) == ()
    (change,) = compared(before, {"registers": 100, "findings": ("IRS101",)}, {})
    assert change.verdict == "worse"


def test_a_compile_that_fails_now_is_worse_and_one_that_failed_before_is_not() -> None:
    (change,) = compared(BEFORE, {"failure": "failed in ptxas"}, {})
    assert (change.name, change.verdict) == ("failure", "worse")
    assert compared({"failure": "failed in ptxas"}, {"failure": "failed in ptxas"}, {}) == ()


def test_the_facts_of_captures() -> None:
    """As their texts say: 24 wgmma, three buffers of two operands, copies of 128 bits."""
    facts = kept_facts(Subject(capture(ATTENTION)))
    assert facts["matrix_unit"] == "wgmma"
    facts = kept_facts(Subject(capture(MATMUL)))
    assert (facts["matrix_unit"], facts["load_bits"], facts["store_bits"]) == ("mma", 128.0, 128.0)
    assert not any(name.startswith("count.") for name in facts)
