"""How variants agree with the empty plan, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.analysis.measurement import Agreement
from irscope.render.tables import table


def error_text(value: float | None) -> str:
    """An error, short: `0`, `1.2e-07`; a dash where there is none."""
    if value is None:
        return "–"
    return "0" if value == 0 else f"{value:.2g}"


def render_agreements(
    rows: Sequence[tuple[int, str, tuple[int, int, int] | None, int, Agreement]],
    *,
    width: int | None = None,
    color: bool = False,
) -> str:
    """A table of launches: (number of the compile, kernel, grid, which of its launches, how it agrees)."""
    several = any(count > 1 for _, _, _, count, _ in rows)
    columns = ["launch", "kernel", "grid", "result", "differing", "max abs", "max rel", "argument", ""]
    cells: list[list[object]] = []
    for number, kernel, grid, count, agreement in rows:
        cells.append(
            [
                f"{number}.{count}" if several and count else number or "–",
                kernel,
                "×".join(map(str, grid)) if grid is not None else "–",
                agreement.verdict,
                "–" if agreement.verdict in ("fault", "timeout", "failed") else agreement.differing,
                error_text(agreement.max_abs_error),
                error_text(agreement.max_rel_error),
                agreement.argument or "–",
                agreement.detail,
            ]
        )
    return table(columns, cells, width=width, color=color)
