"""The summary of a sweep as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from irscope.analysis.findings.model import KINDS
from irscope.analysis.sweep.summary import CRITERIA, Summary
from irscope.render.text.tables import table

__all__ = ["render_summary", "summary_json"]

_BAR = 40


def render_summary(summary: Summary, *, width: int | None, color: bool) -> str:
    """What was compiled, the best of each kernel, what fails where, and a histogram."""
    return "\n".join(_parts(summary, width, color))


def _parts(summary: Summary, width: int | None, color: bool) -> Iterator[str]:
    failed = summary.rows - summary.ok
    yield f"{summary.rows} compiles: {summary.ok} ok, {failed} failed.\n"
    if summary.foreign:
        yield f"{summary.foreign} are by another Triton than the one whose front end made the IR.\n"
    if summary.best:
        most = "most" if CRITERIA[summary.by] else "fewest"
        columns = ["kernel", "target", "constants", f"{most} {summary.by}", "with", "as it was", "as good", "of"]
        cells = [
            [
                one.row.kernel,
                one.row.target,
                one.row.constants,
                _number(getattr(one.row, summary.by)),
                one.row.vs or "the capture's own options",
                _number(one.own),
                one.tied,
                one.compiles,
            ]
            for one in summary.best
        ]
        yield table(columns, cells, width=width, color=color)
        yield "Nothing was run: the figures are the compiler's. irscope bench times them on a GPU.\n"
    if summary.failures:
        columns = ["failure", "target", "with", "failed", "of", "kernels", "message"]
        cells = [
            [one.failure, one.target, one.vs or "–", one.count, one.of, " ".join(one.kernels), one.message]
            for one in summary.failures
        ]
        yield table(columns, cells, width=width, color=color)
    if summary.findings:
        columns = ["finding", "name", "compiles"]
        cells = [[code, KINDS[code].name if code in KINDS else "", count] for code, count in summary.findings]
        yield table(columns, cells, width=width, color=color)
    if summary.bins:
        most_in_one = max(count for _, _, count in summary.bins)
        columns = [summary.by, "compiles", ""]
        cells = [
            [f"{_number(low)} to {_number(high)}", count, "█" * round(_BAR * count / most_in_one)]
            for low, high, count in summary.bins
        ]
        yield table(columns, cells, width=width, color=color)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.6g}"


def summary_json(summary: Summary) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "by": summary.by,
        "rows": summary.rows,
        "ok": summary.ok,
        "best": [
            {
                "kernel": one.row.kernel,
                "file": one.row.file,
                "target": one.row.target,
                "capture": one.row.capture,
                "id": one.row.id,
                "vs": one.row.vs,
                "value": getattr(one.row, summary.by),
                "own": one.own,
                "tied": one.tied,
                "compiles": one.compiles,
            }
            for one in summary.best
        ],
        "failures": [asdict(one) | {"kernels": list(one.kernels)} for one in summary.failures],
        "bins": [{"least": low, "greatest": high, "compiles": count} for low, high, count in summary.bins],
        "findings": dict(summary.findings),
        "foreign": summary.foreign,
    }
