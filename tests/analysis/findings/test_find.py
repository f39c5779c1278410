"""Kernels with a planted cause, and their clean twins: a finding names the right cause and line, or is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from irscope.analysis.findings.find import findings_of
from irscope.analysis.findings.model import KINDS
from tests.analysis.findings.cases import CASES, LOGGED, Case, compiled
from tests.analysis.findings.verdict import judge

pytestmark = [pytest.mark.triton, pytest.mark.newest]
FIRST_OF_CODES = {case.code: case for case in reversed(CASES)}.values()
SAMPLE = [
    pytest.param(case, target, marks=() if is_first else pytest.mark.exhaustive, id=f"{case.name}-{target}")
    for case in CASES
    for target in case.targets
    if (is_first := case in FIRST_OF_CODES and target == case.targets[0]) or target in (case.targets[-1], "cuda:90")
]
"""`python -m tests.analysis.findings` runs these and those of `families` on every target, and prints a table."""


@pytest.mark.parametrize(("case", "target"), SAMPLE)
def test_a_planted_cause_is_found_on_its_line_and_its_clean_twin_has_none(
    case: Case, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IRSCOPE_HOME", str(tmp_path))
    verdict = judge(case, target)
    assert verdict.status == "right", verdict.why


def test_every_kind_has_a_planted_kernel() -> None:
    assert {case.code for case in CASES} == KINDS.keys()


def test_findings_come_by_rank_then_by_weight() -> None:
    case = next(one for one in CASES if one.code == "IRS201" and one.cause == "tight")
    found = findings_of(compiled(case.planted, "cuda:90", True))
    keys = [(one.kind.rank, -one.weight) for one in found]
    assert len(found) > 2
    assert keys == sorted(keys)


def test_without_the_log_only_evidence_is_missing() -> None:
    """A reason that the log alone gives is not made up without it."""
    case = next(one for one in CASES if one.code == "IRS201" and one.cause == "tight")
    without = findings_of(compiled(case.planted, "cuda:90", False))
    assert [one.code for one in without if one.code in LOGGED] == []
    assert not any(cause.evidence == "log" for one in without for cause in one.causes)
