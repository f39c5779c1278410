"""What is made of an ablation's variants: order, differences, pairs, and what counts as the same program."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest

from irscope.analysis.code import code_of
from irscope.analysis.passes.ablation import (
    Ablation,
    AblationRow,
    RowCounts,
    first_difference,
    measure_variant,
    pairs_worth_trying,
    passes_to_ablate,
    plan_without,
)
from irscope.device.measurement import Agreement, Ratio, Timing
from irscope.model.capture import Artifact, Capture, Failure, Kernel, Launch, PassSnapshot, Resources, Target
from irscope.plan import PassPlan, PassRule

BASE = AblationRow((), "", RowCounts(100, 32, None, 0, 1024, 50.0, 2), program="p")
IDLE = AblationRow(("ttgir:idle#1",), "-ttgir:idle#1", BASE.counts, program="p")
RENAMED = AblationRow(("ttgir:renames#1",), "-ttgir:renames#1", BASE.counts, program="p", differs_from="ttgir")
SMALL = AblationRow(
    ("ttgir:small#1",), "-ttgir:small#1", replace(BASE.counts, instructions=110), program="s", differs_from="ttgir"
)
LARGE = AblationRow(
    ("ttgir:large#1",),
    "-ttgir:large#1",
    replace(BASE.counts, shared=0, registers=30),
    program="l",
    differs_from="ttgir",
)
FAILS = AblationRow(("ttgir:needed#1",), "-ttgir:needed#1", RowCounts(), failed_in="llir:to_llvmir#1", message="no")
EFFECT = (FAILS, LARGE, SMALL, RENAMED, IDLE)


def ablation(*variants: AblationRow) -> Ablation:
    return Ablation("kernel", "cuda:90", ("ttgir",), BASE, variants)


def timed(variant: AblationRow, ratio: float, verdict: str = "identical") -> AblationRow:
    agreement = Agreement(verdict)  # pyright: ignore[reportArgumentType]
    return replace(
        variant,
        agreement=agreement,
        timing=Timing(10 * ratio, 9, 11, 50),
        ratio=Ratio(ratio, ratio - 0.01, ratio + 0.01),
    )


@pytest.mark.parametrize("order", list(permutations(EFFECT))[::17])
def test_by_effect_what_fails_comes_first_and_what_does_nothing_last(order: tuple[AblationRow, ...]) -> None:
    assert ablation(*order).sorted() == EFFECT
    assert ablation(*order).sorted("pass") == order


def test_by_time_the_wrong_and_then_the_slowest_come_first() -> None:
    wrong = timed(LARGE, 0.5, "different")
    rows = ablation(timed(IDLE, 1.0), timed(SMALL, 1.3), wrong, FAILS, timed(RENAMED, 1.1))
    assert [row.name for row in rows.sorted()] == [
        "ttgir:needed#1",
        "ttgir:large#1",
        "ttgir:small#1",
        "ttgir:renames#1",
        "ttgir:idle#1",
    ]
    assert rows.changes(timed(IDLE, 1.0, "nan"))


def test_by_a_count_the_largest_change_comes_first() -> None:
    rows = ablation(IDLE, SMALL, LARGE, FAILS)
    assert [row.name for row in rows.sorted("registers")][:2] == ["ttgir:needed#1", "ttgir:large#1"]
    assert [row.name for row in rows.sorted("instructions")][:2] == ["ttgir:needed#1", "ttgir:small#1"]


def test_differences_are_to_the_baseline() -> None:
    rows = ablation(*EFFECT)
    assert rows.difference(SMALL, "instructions") == 10
    assert rows.difference(LARGE, "shared") == -1024
    assert rows.difference(FAILS, "registers") is None
    assert rows.difference(SMALL, "accumulators") is None
    data = rows.as_json()
    assert [row["off"] for row in data["variants"]] == [list(row.off) for row in EFFECT]
    assert data["variants"][2]["differences"]["instructions"] == 10
    assert data["variants"][0]["compiles"] is False
    assert data["variants"][4]["identical"] is True
    assert data["variants"][3]["same_program"] is True


def test_pairs_are_of_what_changes_the_program_alone() -> None:
    rows = ablation(IDLE, RENAMED, SMALL, LARGE, FAILS)
    assert list(pairs_worth_trying(rows, named=False)) == [("ttgir:small#1", "ttgir:large#1")]
    named = list(pairs_worth_trying(rows, named=True))
    assert len(named) == 4 * 3 / 2
    assert not any("ttgir:needed#1" in pair for pair in named)


def test_a_pair_that_adds_nothing_changes_nothing() -> None:
    both = AblationRow((*SMALL.off, *LARGE.off), "", LARGE.counts, program="l", differs_from="ttgir")
    rows = ablation(SMALL, LARGE, both)
    assert rows.adds_nothing(both)
    assert not rows.changes(both)
    assert not rows.adds_nothing(LARGE)
    assert rows.changes(replace(both, program="both"))


def compiled(**changes: object) -> Capture:
    snapshots = (
        PassSnapshot(0, "ttgir", "coalesce", 1, "tritongpu-coalesce"),
        PassSnapshot(1, "ttgir", "cse", 1, "cse"),
        PassSnapshot(2, "ttgir", "cse", 2, "cse", outcome="skipped"),
        PassSnapshot(3, "cubin", "ptxas-opt", 1),
    )
    artifacts = (
        Artifact("source", "s"),
        Artifact("ttgir", "%1 = ttg.convert_layout %0\n%2 = ttg.convert_layout %1\n"),
        Artifact("ptx", "mov"),
        Artifact("cubin", b"code"),
    )
    base = Capture(
        Launch(Kernel("k")),
        Target("cuda", "90", 32),
        artifacts=artifacts,
        snapshots=snapshots,
        resources=Resources(registers=32, spill_store_bytes=8, spill_load_bytes=4, shared_bytes=0, instruction_count=9),
        metadata=(("num_warps", 4), ("shared", 0)),
    )
    return replace(base, **changes)  # pyright: ignore[reportArgumentType]


def with_artifact(capture: Capture, stage: str, data: str | bytes) -> Capture:
    return replace(
        capture, artifacts=tuple(Artifact(stage, data) if one.stage == stage else one for one in capture.artifacts)
    )


def test_counts_of_a_capture() -> None:
    counts = measure_variant(compiled(), compiled()).counts
    assert counts == RowCounts(9, 32, None, 12, 0, 100.0, 2)


def test_the_first_stage_that_differs() -> None:
    base = compiled()
    assert first_difference(compiled(), base) == ""
    assert first_difference(with_artifact(with_artifact(base, "ptx", "add"), "cubin", b"other"), base) == "ptx"
    assert first_difference(compiled(metadata=(("num_warps", 4), ("shared", 8))), base) == "metadata"


def test_a_binary_of_the_same_text_is_the_same_unless_the_assembler_was_told_otherwise() -> None:
    base = compiled()
    remade = with_artifact(base, "cubin", b"other")
    assert first_difference(remade, base) == ""
    off = replace(remade.snapshots[3], outcome="skipped")
    assert first_difference(replace(remade, snapshots=(*remade.snapshots[:3], off)), base) == "cubin"


def test_a_program_is_its_code_and_how_it_is_launched() -> None:
    base = compiled()
    assert code_of(base) == code_of(with_artifact(base, "ptx", "mov // a comment"))
    assert code_of(base) != code_of(with_artifact(base, "cubin", b"other"))
    assert code_of(base) != code_of(compiled(metadata=(("num_warps", 8), ("shared", 0))))
    assert code_of(compiled(artifacts=base.artifacts[:1])) == ""


def test_a_failure_says_what_the_capture_says() -> None:
    failure = Failure("pass", "k.py:3:4: error: not legal\nPassManager::run failed", "llir", "llir:membar#1")
    row = measure_variant(compiled(status="failed", failure=failure), compiled(), ["ttgir:cse#1"])
    assert row.failed_in == "llir:membar#1"
    assert row.message == "k.py:3:4: error: not legal\nPassManager::run failed"
    assert row.program == ""
    assert row.counts == RowCounts(convert_layouts=2)


def test_what_does_not_fit_was_compiled_and_is_counted() -> None:
    failure = Failure("fit", "shared memory: 2 bytes a block needed, 1 there are: limit exceeded by 1", "cubin")
    fits = measure_variant(compiled(), compiled(), ["ttgir:cse#1"])
    row = measure_variant(compiled(status="failed", failure=failure), compiled(), ["ttgir:cse#1"])
    assert row.compiles
    assert (row.counts, row.program) == (fits.counts, fits.program)
    assert (fits.fits, row.fits) == (True, False)
    assert row.message == failure.message


def test_the_passes_to_switch_off() -> None:
    assert passes_to_ablate(compiled(), ("ttgir",)) == ("ttgir:coalesce#1", "ttgir:cse#1")
    assert passes_to_ablate(compiled()) == ("ttgir:coalesce#1", "ttgir:cse#1", "cubin:ptxas-opt#1")
    assert passes_to_ablate(compiled(), (), [PassRule.parse("cse")]) == ("ttgir:cse#1",)
    plan = plan_without(PassPlan.parse("-ttir:combine"), ["ttgir:cse#1"])
    assert str(plan) == "-ttir:combine -ttgir:cse#1"
