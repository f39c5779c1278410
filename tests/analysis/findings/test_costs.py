"""What findings cost by the model of a launch: each planted fault something, its clean twin nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from irscope.analysis.findings.costs import LEAST_SHARE, Timed, _with_consequences, in_order, priced, timed
from irscope.analysis.findings.find import findings_of
from irscope.analysis.findings.model import Finding
from irscope.analysis.findings.studied import Studied
from irscope.analysis.findings.versus import versus
from irscope.model.capture import Capture
from irscope.record.variants.completing import with_layouts, with_sass
from irscope.render.text.findings import render_versus, versus_json
from tests.analysis.findings.cases import Case, Run, Variant, compiled
from tests.analysis.findings.families.launches import COSTS
from tests.analysis.findings.matrix import warm_compiler
from tests.marks import sampled

pytestmark = [pytest.mark.triton, pytest.mark.newest]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    with warm_compiler() as run:
        yield run


def _compiled(variant: Variant, run: Run) -> Capture:
    return with_sass(with_layouts(compiled(variant, "cuda:90", False, True, run)))


def _priced(variant: Variant, run: Run) -> tuple[Timed, tuple[Finding, ...]]:
    capture = _compiled(variant, run)
    time = timed(capture)
    assert time.model is not None, time.why_not
    studied = Studied(capture)
    return time, priced(studied, findings_of(studied), time)


@pytest.mark.parametrize("case", sampled(COSTS, 6, name=lambda case: case.name))
def test_a_planted_fault_costs_time_and_its_twin_has_none(case: Case, run: Run) -> None:
    time, found = _priced(case.planted, run)
    mine = [one for one in found if one.code == case.code]
    assert mine, [(one.code, one.share) for one in found]
    assert any(case.cause in cause.text for cause in mine[0].causes), mine[0].causes
    assert mine[0].seconds is not None
    assert LEAST_SHARE <= mine[0].share < 1
    assert time.prediction is not None
    assert mine[0].seconds < time.prediction.seconds
    _, clean = _priced(case.clean, run)
    assert not [one for one in clean if one.code == case.code and one.share >= LEAST_SHARE], clean


def test_why_one_compile_is_slower_than_another(run: Run) -> None:
    case = next(one for one in COSTS if one.code == "IRS205")
    clean, planted = (_compiled(one, run) for one in (case.clean, case.planted))
    found = versus(clean, planted)
    assert found.ratio is not None
    assert found.ratio > 1 + LEAST_SHARE
    assert "IRS205" in {one.code for one in found.new}
    assert found.first_pass == "source"
    assert found.new[0].kind.name in found.sentence
    assert any(one.kind == "wait" and one.name == "barrier" for one in found.terms)
    text = render_versus(clean, planted, found, color=False)
    assert found.sentence in text
    row = versus_json(clean, planted, found)
    assert row["ratio"] == found.ratio
    same = versus(clean, clean)
    assert (same.terms, same.options, same.first_pass, same.new) == ((), (), "", ())
    assert same.sentence == "predicted time unchanged"
    kernel = replace(planted.launch.kernel, name="another")
    twin = versus(clean, replace(planted, launch=replace(planted.launch, kernel=kernel)))
    assert (twin.ratio, twin.options, twin.first_pass) == (found.ratio, (), "")


def test_findings_come_by_their_time_and_what_cannot_run_first() -> None:
    one = Finding("IRS101", "tt.load", 7, (), (), (), "", "", 5, (), (), seconds=1e-6, share=0.1)
    dear = replace(one, code="IRS205", seconds=5e-6, share=0.5)
    small = replace(one, code="IRS501", seconds=1e-8, share=0.001)
    untimed = replace(one, code="IRS303", seconds=None)
    broken = replace(one, code="IRS503", seconds=None)
    ordered = in_order([small, untimed, one, dear, broken])
    assert [each.code for each in ordered] == ["IRS503", "IRS205", "IRS101", "IRS303", "IRS501"]
    equal = in_order(replace(dear, code=code) for code in ("IRS509", "IRS205", "IRS605", "IRS505"))
    assert [each.code for each in equal] == ["IRS505", "IRS205", "IRS605", "IRS509"]


def test_what_exposes_latency_comes_before_it(run: Run) -> None:
    """A loop that is not pipelined costs what its copies would gain, and comes before the bound that it causes."""
    dots = "*fp16:16, *fp16:16, *fp32:16, i32:16"
    slow = Variant("tiles", dots, (("TILE", 64),), (("num_stages", 1),), (2048, 1, 1), (("size", 4096),))
    time, found = _priced(slow, run)
    fast, clean = _priced(replace(slow, options=(("num_stages", 3),)), run)
    assert time.prediction is not None
    assert fast.prediction is not None
    first = found[0]
    assert first.code == "IRS201"
    assert first.share > 0.1
    gain = 1 - fast.prediction.seconds / time.prediction.seconds
    assert abs(first.share - gain) < 0.1, (first.share, gain)
    assert not [one for one in clean if one.code == "IRS201"]
    exposed = replace(first, code="IRS509", line=0, place=(), share=2 * first.share, seconds=1.0)
    ordered = in_order(_with_consequences([exposed, first], {}, ("IRS201",)))
    assert [one.code for one in ordered] == ["IRS201", "IRS509"]
    assert [one.code for one in in_order(_with_consequences([exposed, first], {}, ()))] == ["IRS509", "IRS201"]
