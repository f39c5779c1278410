"""What is found in captures, and what a compile could add to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from irscope.analysis.checks.subject import Subject
from irscope.analysis.findings.find import LogNeeds, findings_of, log_needs
from irscope.analysis.findings.model import KINDS
from irscope.analysis.findings.studied import Studied
from irscope.model.capture import Artifact, Capture, Kernel, Launch
from irscope.target import Target
from tests.analysis.findings.cases import CASES, LOGGED, Case, Run, compiled, marked_lines, of_code
from tests.analysis.findings.every import EVERY
from tests.analysis.findings.families.launches import COSTS
from tests.analysis.findings.matrix import Row, read_rows, table, tasks_of, warm_compiler
from tests.analysis.findings.verdict import Verdict, judge
from tests.marks import sampled

pytestmark = [pytest.mark.triton, pytest.mark.newest]
ROW = Row("3.9.0", "cuda:90", "IRS101", "IRS101-row-stride", Verdict("right"))
QUICK = EVERY["IRS501-polynomial-maxnreg"]
"""The compile of the other kernels that spill takes ten times as long."""
PLANTED_ELSEWHERE = {"IRS702"}
"""Kinds that need the data of a launch: tests/machine/test_observed.py plants them."""
FIRST_OF_CODES = {case.code: case for case in (*reversed(CASES), QUICK)}.values()


def _first_target(case: Case) -> str:
    """One target for most of them: cases of one kernel share its compiles."""
    return "cuda:90" if "cuda:90" in case.targets else case.targets[0]


SAMPLE = [
    pytest.param(case, target, marks=() if is_first else pytest.mark.exhaustive, id=f"{case.name}-{target}")
    for case in (*CASES, QUICK)
    for target in case.targets
    if (is_first := case in FIRST_OF_CODES and target == _first_target(case)) or target in (case.targets[-1], "cuda:90")
]
"""`python -m tests.analysis.findings` runs these and those of `families` on every target, and prints a table."""


def _half(cases: list[Any]) -> list[Any]:
    """Every second one of those of every day; `make exhaustive` has the others."""
    daily = [one for one in cases if not one.marks]
    return [
        one if one.marks or one in daily[::2] else pytest.param(*one.values, id=one.id, marks=pytest.mark.exhaustive)
        for one in cases
    ]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    with warm_compiler() as run:
        yield run


@pytest.mark.parametrize(("case", "target"), _half(SAMPLE))
def test_a_planted_cause_is_found_on_its_line_and_its_clean_twin_has_none(case: Case, target: str, run: Run) -> None:
    verdict = judge(case, target, run)
    assert verdict.status == "right", verdict.why


@pytest.mark.parametrize(
    "case", sampled([*FIRST_OF_CODES, EVERY["IRS602-added-adjacent pairs of f16"]], 3, name=lambda case: case.name)
)
def test_what_why_finds_check_finds_too(case: Case, run: Run) -> None:
    """A check reads a lean capture, and asks for SASS and log where a code needs them."""
    full = of_code(case.planted, _first_target(case), case.code, run=run)
    subject = Subject(full, completed=lambda _: full, with_log=lambda _: full)
    assert case.code in {one.code for one in subject.findings_among(frozenset({case.code}))}


def test_every_kind_has_a_planted_kernel() -> None:
    assert {case.code for case in (*EVERY.values(), *COSTS)} | PLANTED_ELSEWHERE == KINDS.keys()


def test_findings_come_by_rank_then_by_weight(run: Run) -> None:
    case = next(one for one in CASES if one.code == "IRS201" and one.cause == "tight")
    found = findings_of(compiled(case.planted, "cuda:90", True, run=run))
    keys = [(one.kind.rank, -one.weight) for one in found]
    assert len(found) > 2
    assert keys == sorted(keys)


def test_without_the_log_only_evidence_is_missing(run: Run) -> None:
    """A reason that the log alone gives is not made up without it."""
    case = next(one for one in CASES if one.code == "IRS201" and one.cause == "tight")
    without = findings_of(compiled(case.planted, "cuda:90", False, run=run))
    assert [one.code for one in without if one.code in LOGGED] == []
    assert not any(cause.evidence == "log" for one in without for cause in one.causes)


def test_every_case_names_a_line_or_the_whole_kernel() -> None:
    for name, case in EVERY.items():
        assert case.is_of_kernel or marked_lines(case.planted.kernel, case.code, case.planted.file), name
    assert len({case.planted for case in EVERY.values()}) >= 60


def test_what_was_judged_is_not_judged_again(tmp_path: Path) -> None:
    kept = tmp_path / "rows.json"
    kept.write_text(ROW.as_line() + "\n")
    known = read_rows([kept, tmp_path / "none.json"])
    assert known == [ROW]
    left = {(target, name) for target, names in tasks_of("3.9.0", known, [], []) for name in names}
    everything = {(target, name) for target, names in tasks_of("3.8.0", known, [], []) for name in names}
    assert everything - left == {("cuda:90", "IRS101-row-stride")}
    assert {target for target, _ in tasks_of("3.9.0", (), ["row"], ["cuda:80"])} == {"cuda:80"}


def test_the_table_counts_by_kind_and_names_what_is_not_right() -> None:
    missing = Row("3.6.0", "cuda:80", "IRS101", "IRS101-gate-down", Verdict("missing"))
    assert table([ROW, missing]).split("\n") == [
        "kind    3.6.0 cuda:80  3.9.0 cuda:90",
        "IRS101  0/1            1/1",
        "missing 3.6.0 cuda:80 IRS101-gate-down",
        "1 of 2 right, 2 planted kernels; 0 figures of suggestions held",
    ]


def test_loads_that_llvm_joins_waste_nothing(run: Run) -> None:
    case = EVERY["IRS103-pairs-is 4 bytes"]
    capture = of_code(case.planted, "hip:gfx942", "IRS103", run=run)
    assert capture.texts["ttgir"].count("tt.load") == 2
    assert capture.texts["amdgcn"].count("global_load_") == 1
    assert [one.code for one in findings_of(capture)] == []


def test_a_step_is_named_where_the_layout_goes_across_it_too(run: Run) -> None:
    """`coalesce` did not choose that layout, so that there is none along the columns to try."""
    verdict = judge(EVERY["IRS103-spread-step is 2"], "hip:gfx942", run)
    assert verdict.status == "right", verdict.why


def test_the_phase_of_a_barrier_is_no_value_that_the_kernel_carries(run: Run) -> None:
    case = EVERY["IRS201-scores-pitch"]
    found = [one for one in findings_of(of_code(case.planted, "cuda:100", "IRS201", run=run)) if one.code == "IRS201"]
    assert found
    causes = [cause.text for one in found for cause in one.causes]
    assert not any("loop-carried distance" in text for text in causes)


@pytest.mark.parametrize("name", ["IRS201-unrolled-num_stages is 1", "IRS201-twice-num_stages of its loop is 1"])
def test_a_load_is_reported_once(name: str, run: Run) -> None:
    """Not for each copy that unrolling makes, nor for each of the loops that it is in."""
    found = findings_of(of_code(EVERY[name].planted, "cuda:90", "IRS201", run=run))
    assert sorted(one.code for one in found if one.code == "IRS201") == ["IRS201"] * 2
    assert not any("another loop" in cause.text for one in found for cause in one.causes)


def test_a_loop_that_waits_for_a_lock_is_not_to_be_unrolled(run: Run) -> None:
    case = EVERY["IRS201-locked-another loop is inside"]
    found = [one for one in findings_of(of_code(case.planted, "cuda:90", "IRS201", run=run)) if one.code == "IRS201"]
    assert found
    assert {way.text for one in found for way in one.suggestions} == {"do the work of the inner loop outside"}


def test_an_operand_that_tf32_cuts_off_loses_up_to_a_unit_of_its_last_place(run: Run) -> None:
    """Seen on an H200: `1 + 2**-10 - 2**-20` is 1, by wgmma and by mma.sync."""
    case = EVERY["IRS603-widened-operand 1 is exact"]
    capture = of_code(case.planted, "cuda:90", "IRS603", run=run)
    assert "cvt.rna.tf32" not in capture.texts["ptx"]
    assert [one.cost for one in findings_of(capture) if one.code == "IRS603"] == [
        "a relative error of less than 2⁻¹⁰ in operand 0"
    ]


_PENDING, _ALL = "WARPGROUP.DEPBAR.LE gsb0, 0x1 ;", "WARPGROUP.DEPBAR.LE gsb0, 0x0 ;"


def _capture(**texts: str) -> Capture:
    artifacts = tuple(Artifact(stage, text) for stage, text in texts.items())
    return Capture(Launch(Kernel("kernel", "k.py")), Target.parse("cuda:90"), artifacts=artifacts)


@pytest.mark.parametrize(
    ("ptx_waits", "sass_waits", "asked"),
    [
        ((1, 0), (_PENDING, _ALL), False),
        ((0, 0), (_ALL, _ALL), True),
        ((0,), (_ALL,), False),
        ((1, 0), (_PENDING, _ALL, _ALL), True),
    ],
    ids=("one stays begun", "each is waited for", "one wait for two", "more waits than the PTX has"),
)
def test_ptxas_is_asked_where_its_code_waits_for_all_wgmma(
    ptx_waits: tuple[int, ...], sass_waits: tuple[str, ...], asked: bool
) -> None:
    waits = [f"wgmma.wait_group.sync.aligned {one};" for one in ptx_waits]
    ptx = "\n".join([".entry kernel() {", *["wgmma.mma_async.sync.aligned;"] * 2, *waits, "}"])
    code = [*["HGMMA.64x64x16.F32 R24, R24, gdesc[UR4]"] * 2, *sass_waits]
    rows = [f"        {16 * place:04x}  -  {text.removesuffix(' ;')}" for place, text in enumerate(code)]
    sass = "\n".join([".section .text.kernel", *rows])
    capture = _capture(source="module {\n}\n", ttgir="module {\n}\n", ptx=ptx, sass=sass)
    assert log_needs(Studied(capture), ()) == LogNeeds(assembler=asked)


@pytest.mark.parametrize(("made", "asked"), [("tt.load %p", False), ("tt.trans %l", False), ("math.exp %l", True)])
def test_the_log_of_conversions_is_asked_for_where_more_than_what_was_loaded_is_converted(
    made: str, asked: bool
) -> None:
    kind = "tensor<64x64xf32, #blocked>"
    lines = [
        "#blocked = #ttg.blocked<{order = [1, 0]}>",
        "#blocked1 = #ttg.blocked<{order = [0, 1]}>",
        "module {",
        "  tt.func public @kernel(%p: tensor<64x64x!tt.ptr<f32>, #blocked>) {",
        "    %l = tt.load %p : tensor<64x64x!tt.ptr<f32>, #blocked>",
        f"    %m = {made} : {kind}",
        f"    %c = ttg.convert_layout %m : {kind} -> tensor<64x64xf32, #blocked1>",
        "    tt.return",
        "  }",
        "}",
        "",
    ]
    studied = Studied(_capture(source="module {\n}\n", ttgir="\n".join(lines)))
    (line,) = (one for one, operation in studied.operations.items() if operation.name == "ttg.convert_layout")
    needs = log_needs(studied, [studied.finding("IRS401", line, "", "", 1, ())])
    assert needs == LogNeeds(("tritongpu-remove-layout-conversions",) if asked else ())
