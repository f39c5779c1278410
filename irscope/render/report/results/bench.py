"""The results of a bench."""

from __future__ import annotations

from irscope.render.report.results.model import Cell, Results, Section, Table, Tone
from irscope.render.text.bench import Bench, BenchRow, bench_columns, bench_notes, bench_title, row_cells

__all__ = ["bench_results"]


def bench_results(bench: Bench) -> Results:
    """The rows of a bench, the baseline first."""
    rows = tuple(tuple(_cells(bench, row)) for row in bench.rows)
    table = Table(tuple(bench_columns(bench)), rows, tuple[Tone, ...]("" for _ in rows), has_baseline=True)
    return Results(
        f"Times of {bench.kernel}", (bench_title(bench), *bench_notes(bench)), (Section("Variants", table=table),)
    )


def _cells(bench: Bench, row: BenchRow) -> list[Cell]:
    name, median, *others = row_cells(bench, row)
    time = row.timing.median_us if row.timing else None
    cells = [Cell(str(name), key=str(name)), Cell(str(median), tone=_judged(row), key=time)]
    return [*cells, *(Cell(str(one), key=str(one)) for one in others)]


def _judged(row: BenchRow) -> Tone:
    """The tone of a time beyond the noise."""
    if row.ratio is None or not row.ratio.different:
        return ""
    return "worse" if row.ratio.value > 1 else "better"
