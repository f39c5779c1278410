"""What is worse than a baseline fails, what is better is told, and what is within its tolerance is neither."""

from __future__ import annotations

import pytest

from irscope.analysis.checks.assertions import MaxCompileTime
from irscope.analysis.checks.results import (
    Against,
    Report,
    check_against,
    compared,
    kept_facts,
    launch_changes,
    paired_variants,
    read_tolerances,
)
from irscope.analysis.checks.subject import Subject
from irscope.analysis.regressions import Value
from irscope.errors import UsageError
from irscope.model.evidence import Baseline
from tests.analysis.checks.test_assertions import ATTENTION, MATMUL, capture

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


@pytest.mark.parametrize(
    ("before", "now", "worse", "better"),
    [
        ("x=*fp16%16 n=i32%16", "x=*fp16%16 n=i32", ("n is not divisible by 16 any more",), ()),
        ("x=*fp16 n=i32", "x=*fp16%16 n=i32", (), ("x is divisible by 16",)),
        ("n=i32%16 num_warps=4", "n=i32%16 num_warps=16", ("num_warps 4 → 16",), ()),
        ("n=i32%16", "n=i32%16 num_warps=16", ("num_warps not set → 16",), ()),
        ("n=i32%16", "n=1", ("n i32%16 → 1",), ()),
        ("x=*fp16%16 n=i32%16", "x=*fp32%16 n=i32", ("x *fp16%16 → *fp32%16", "n is not divisible by 16 any more"), ()),
        ("SHAPE=(64, 64) BLOCK=8", "SHAPE=(64, 32) BLOCK=8", ("SHAPE (64, 64) → (64, 32)",), ()),
        ("n=i32%16 BLOCK=64", "n=i32%16 BLOCK=64", (), ()),
        ("n=i32 plan=-coalesce", "n=i32", ("plan -coalesce → not set",), ()),
    ],
)
def test_what_changed_of_a_launch(before: str, now: str, worse: tuple[str, ...], better: tuple[str, ...]) -> None:
    assert launch_changes(before, now) == (worse, better)
    assert paired_variants([before], [now]) == {now: before}


def test_launches_are_paired_with_the_nearest_that_nothing_else_is_compared_with() -> None:
    before = ["n=i32%16 BLOCK=64", "n=i32%16 BLOCK=128", "n=i32%16 BLOCK=256 num_warps=8"]
    now = ["n=i32 BLOCK=128", "n=i32%16 BLOCK=64", "n=i32 BLOCK=64", "n=i32%16 BLOCK=256 num_warps=16"]
    assert paired_variants(before, now) == {
        "n=i32%16 BLOCK=64": before[0],
        "n=i32 BLOCK=128": before[1],
        "n=i32%16 BLOCK=256 num_warps=16": before[2],
    }
    # Everything of the baseline is there: what else there is, is new.
    assert paired_variants(before, [*before, "n=i32 BLOCK=64"]) == dict(zip(before, before, strict=True))


def test_compile_time_by_the_shortest_of_several() -> None:
    variant = ("attention cuda:90", "n=i32")
    limit = MaxCompileTime.parse("1.5x")

    def checked(times_us: tuple[int, ...], baseline: Baseline, *, is_written: bool = False) -> Report:
        subject = Subject(capture(ATTENTION), compile_times=lambda _: times_us)
        against = Against("b.json", baseline, {}, True, is_written)
        return check_against([(subject, [limit], variant, "")], [variant], against)

    written = checked((120_000, 100_000, 130_000), Baseline(), is_written=True)
    assert written.facts[variant[0]][variant[1]]["compile_ms"] == 100.0
    known = Baseline(written.facts)
    # One compile that is disturbed says nothing.
    assert checked((400_000, 149_000, 300_000), known).passed
    (group,) = checked((160_000, 151_000, 170_000), known).groups
    assert "151 ms of processor time (the shortest of 3 compiles, the longest 170 ms)" in group.breach.text
    assert "1.51 times the baseline's 100 ms; 150 ms are allowed" in group.breach.text
    # Whoever asks for it and has nothing to compare with is not told that all is well.
    facts = {name: value for name, value in known.kernels[variant[0]][variant[1]].items() if name != "compile_ms"}
    (group,) = checked((1,), Baseline({variant[0]: {variant[1]: facts}})).groups
    assert "holds no compile time" in group.breach.text
    (group,) = checked((), known).groups
    assert "could not be measured" in group.breach.text


@pytest.mark.parametrize(("text", "passes"), [("99ms", False), ("100ms", True), ("0.05s", False), ("2s", True)])
def test_compile_time_by_itself(text: str, passes: bool) -> None:
    subject = Subject(capture(ATTENTION), compile_times=lambda _: (120_000, 100_000))
    assert bool(MaxCompileTime.parse(text).breaches(subject)) is not passes


@pytest.mark.parametrize("text", ["", "fast", "1.5", "0x", "-1s", "1.5 x s"])
def test_a_compile_time_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match=r"500ms, 2s"):
        MaxCompileTime.parse(text)
