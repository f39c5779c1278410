"""How variants agree with the empty plan, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from irscope.device.measurement import Agreement
from irscope.render.text.tables import table


def error_text(value: float | None) -> str:
    """An error, short: `0`, `1.2e-07`; a dash for None."""
    if value is None:
        return "–"
    return "0" if value == 0 else f"{value:.2g}"


def render_agreements(
    rows: Sequence[tuple[int, str, tuple[int, int, int] | None, int, Agreement]],
    *,
    width: int | None = None,
    color: bool = False,
) -> str:
    """A table of launches: (number of the compile, kernel, grid, which of its launches, how it agrees).

    "noise": how far the empty plan's own runs deviate at most; "of noise": the largest ratio of an element's error to
    what that element's own noise allows, above 1 where it is more.
    """
    several = any(count > 1 for _, _, _, count, _ in rows)
    columns = ["launch", "kernel", "grid", "result", "differing", "max abs", "max rel"]
    columns += ["noise", "of noise", "argument", ""]
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
                error_text(agreement.noise),
                error_text(agreement.over_noise),
                agreement.argument or "–",
                agreement.detail,
            ]
        )
    return table(columns, cells, width=width, color=color)
