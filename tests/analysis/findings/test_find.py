"""Kernels with a planted cause, and their clean twins: a finding names the right cause and line, or is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from irscope.analysis.findings.find import findings_of
from irscope.analysis.findings.model import KINDS
from irscope.analysis.findings.studied import Studied
from irscope.cli.why.compiles import Compiles
from irscope.cli.why.prove import proven
from tests.analysis.findings.cases import CASES, LOGGED, Case, compiled, found_in, marked_lines

pytestmark = [pytest.mark.triton, pytest.mark.newest]
FIRST_OF_CODES = {case.code: case for case in reversed(CASES)}.values()
SAMPLE = [
    pytest.param(case, target, marks=() if is_first else pytest.mark.exhaustive, id=f"{case.name}-{target}")
    for case in CASES
    for target in case.targets
    if (is_first := case in FIRST_OF_CODES and target == case.targets[0]) or target in (case.targets[-1], "cuda:90")
]
"""`python -m tests.analysis.findings` runs every case on every target."""


def misfits(case: Case, target: str) -> list[str]:
    """What is wrong with the findings of a case on a target."""
    found = found_in(case.planted, target, case.code)
    if not found:
        return ["nothing found"]
    wrong: list[str] = []
    if not any(case.cause in cause.text for cause in found[0].causes):
        wrong.append(f"causes: {[cause.text for cause in found[0].causes]}")
    if not case.is_of_kernel:
        lines = {one.place[0][1] if one.place else 0 for one in found}
        if lines - marked_lines(case.planted.kernel, case.code):
            wrong.append(f"lines: {lines}")
    if twins := found_in(case.clean, target, case.code):
        wrong.append(f"the clean twin has it: {twins[0].causes}")
    if case.helps:
        studied = Studied(compiled(case.planted, target, case.code in LOGGED))
        with Compiles() as compiles:
            (one,) = proven(studied, found[:1], compiles, 8)
        if not any(
            each.proof is not None and each.proof.helps and each.tried == case.helps for each in one.suggestions
        ):
            wrong.append(f"suggestions: {one.suggestions}")
    return wrong


@pytest.mark.parametrize(("case", "target"), SAMPLE)
def test_a_planted_cause_is_found_on_its_line_and_its_clean_twin_has_none(
    case: Case, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IRSCOPE_HOME", str(tmp_path))
    assert misfits(case, target) == []


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
