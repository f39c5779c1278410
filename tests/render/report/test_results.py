"""Results in the report: the rows, figures and links of an ablation and a bench."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irscope.device.measurement import Agreement
from irscope.render.report.results import Cell, Table, ablation_results, bench_results
from tests.render.text.test_bench import bench
from tests.render.text.test_searches import ABLATION, BASE, CHANGED, IDLE, on_gpu
from tests.report_browser.captures import softmax

pytestmark = pytest.mark.newest
LABEL = next(one.label for one in softmax().snapshots if one.changed)


def table_of(ablation: object) -> Table:
    table = ablation_results(ablation, softmax()).sections[0].table  # type: ignore[arg-type]
    assert table is not None
    return table


def named(table: Table, name: str) -> list[Cell]:
    return next(list(row) for row in table.rows if row[0].text == name)


def test_an_ablation_has_all_rows_with_their_differences() -> None:
    linked = replace(IDLE, off=(LABEL,))
    results = ablation_results(replace(ABLATION, variants=(CHANGED, linked, *ABLATION.variants[2:])), softmax())
    (section,) = results.sections
    table = section.table
    assert table is not None
    assert [row[0].text for row in table.rows] == ["every pass on", "ttgir:<script>#1", "ttgir:coalesce#1", LABEL]
    assert table.has_baseline
    assert [cell.text + cell.note for cell in named(table, "ttgir:coalesce#1")][:3] == [
        "ttgir:coalesce#1", "from ttgir", "250+150",
    ]  # fmt: skip
    assert section.details == (("ttgir:<script>#1", "error: a < b & c\nand more"),)
    assert dict(zip((row[0].text for row in table.rows), table.tones, strict=True))[LABEL] == "idle"
    # A pass of the capture is linked to what it did.
    number = [one.label for one in softmax().snapshots].index(LABEL) + 1
    assert named(table, LABEL)[0].view == {"tab": "passes", "pass": number}
    assert named(table, "ttgir:coalesce#1")[0].view == {}
    missing = ablation_results(replace(ABLATION, missing=7), softmax())
    assert "7 more were not compiled" in " ".join(missing.about)


def test_only_a_time_that_was_measured_has_a_tone() -> None:
    """Fewer instructions without the pipeliner are no gain: the launch takes longer."""
    fewer = replace(CHANGED, counts=replace(CHANGED.counts, instructions=40, registers=16, occupancy=75.0))
    tones = [cell.tone for row in table_of(replace(ABLATION, variants=(fewer, CHANGED))).rows for cell in row]
    assert set(tones) == {""}
    for ratio, tone in ((1.5, "worse"), (0.7, "better"), (1.0, "")):
        timed = replace(ABLATION, baseline=on_gpu(BASE, 1.0), variants=(on_gpu(fewer, ratio),))
        row = named(table_of(timed), "ttgir:coalesce#1")
        assert f"{ratio:.2f}x" in row[3].text
        assert row[3].tone == tone
        assert next(cell for cell in row if cell.text == "40").tone == ""
    wrong = replace(on_gpu(fewer, 0.7), agreement=Agreement("different", max_abs_error=0.25))
    row = named(table_of(replace(ABLATION, baseline=on_gpu(BASE, 1.0), variants=(wrong,))), "ttgir:coalesce#1")
    assert (row[2].tone, row[3].tone) == ("bad", "")


def test_a_bench_is_its_table() -> None:
    results = bench_results(bench())
    table = results.sections[0].table
    assert table is not None
    assert [row[0].text for row in table.rows] == ["baseline", "-coalesce", "-cse", "-inliner"]
    assert [row[1].key for row in table.rows] == [71.683, 143.4, 71.7, None]
    assert [row[1].tone for row in table.rows] == ["", "worse", "", ""]
    assert results.about[0] == "copy_kernel, launch 2, grid 256×64×1, on Some GPU"
    assert "-inliner: it does not compile: ttir:inliner#1: no" in results.about
