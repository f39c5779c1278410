"""The summary of a sweep against counting by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.analysis.sweep import CRITERIA, summary_of
from irscope.model.trial import SweepRow
from tests.store.test_table import ROW

rows = st.lists(
    st.builds(
        replace,
        st.just(ROW),
        kernel=st.sampled_from(["one", "two"]),
        capture=st.sampled_from(["a", "b"]),
        target=st.sampled_from(["cuda:80", "cuda:90"]),
        vs=st.sampled_from(["", "num_warps=8", "num_warps=2 plan=-combine"]),
        status=st.sampled_from(["ok", "ok", "failed"]),
        failure=st.sampled_from(["fit", "pass"]),
        message=st.sampled_from(["", "too large\nmore"]),
        registers=st.none() | st.integers(0, 255),
        occupancy_percent=st.none() | st.floats(0, 100),
        findings=st.lists(st.sampled_from(["IRS101", "IRS402"]), unique=True).map(tuple),
        triton=st.sampled_from(["3.9.0", "3.6.0", ""]),
    ),
    max_size=12,
)


@pytest.mark.parametrize("by", ["registers", "occupancy_percent"])
@given(rows)
def test_against_counting(by: str, found: list[SweepRow]) -> None:
    summary = summary_of(found, by)
    good = [one for one in found if one.status == "ok"]
    assert (summary.rows, summary.ok) == (len(found), len(good))
    pick = max if by == "occupancy_percent" else min
    for one in summary.best:
        group = [row for row in found if (row.kernel, row.target) == (one.row.kernel, one.row.target)]
        values = [value for row in group if row.status == "ok" and (value := getattr(row, by)) is not None]
        assert getattr(one.row, by) == pick(values)
        assert (one.tied, one.compiles) == (values.count(pick(values)) - 1, len(group))
        own = [row for row in group if row.status == "ok" and not row.vs and getattr(row, by) is not None]
        # A program that is recorded again with another constant is another capture of the same kernel.
        own = own if len(own) == 1 else [row for row in own if row.capture == one.row.capture]
        assert one.own in [getattr(row, by) for row in own] if own else one.own is None
    assert len(summary.best) == len({(row.kernel, row.target) for row in good if getattr(row, by) is not None})
    failed = Counter((row.failure, row.target, row.vs) for row in found if row.status != "ok")
    assert {(one.failure, one.target, one.vs): one.count for one in summary.failures} == failed
    for one in summary.failures:
        assert one.of == sum((row.target, row.vs) == (one.target, one.vs) for row in found)
        assert "\n" not in one.message
    assert [one.count for one in summary.failures] == sorted((one.count for one in summary.failures), reverse=True)
    figures = [getattr(row, by) for row in good if getattr(row, by) is not None]
    assert sum(count for _, _, count in summary.bins) == len(figures)
    if figures:
        assert summary.bins[0][0] == min(figures)
        assert summary.bins[-1][1] == pytest.approx(max(figures))
    assert dict(summary.findings) == Counter(code for row in found for code in row.findings)
    assert summary.foreign == sum(row.triton == "3.6.0" for row in found)


def test_every_criterion_is_a_column() -> None:
    for by in CRITERIA:
        assert summary_of([replace(ROW, **{by: 3})], by).bins == ((3.0, 3.0, 1),)


def test_the_spread_of_compiles_that_were_made_several_times() -> None:
    found = [replace(ROW, status="ok", processor_us=100, processor_most_us=most) for most in (100, 150, 110, None)] + [
        replace(ROW, status="failed", processor_us=100, processor_most_us=900)
    ]
    assert summary_of(found, "processor_us").spread == (1.1, 1.5)
    assert summary_of([replace(ROW, status="ok", processor_us=100)], "registers").spread is None
