"""The configurations of a kernel by predicted time: as text and as JSON."""

from __future__ import annotations

from typing import Any

from irscope.render.text.figures import duration_text
from irscope.render.text.tables import table
from irscope.timing.tuning import Ranked, Size, Tuning, config_text

__all__ = ["tuning_json", "tuning_text"]

_MOST_ROWS = 20


def tuning_text(tuning: Tuning, top: int, *, width: int | None = None, color: bool = False) -> str:
    """The table of configurations, what failed, the best by size, and the fastest as triton.Config."""
    if not tuning.rows:
        return _failed(tuning)
    parts = [
        f"{tuning.kernel} on {tuning.part}: {len(tuning.rows)} configurations by predicted time, "
        f"{len(tuning.failed)} failed\n",
        _table(tuning, width, color),
        _by_size(tuning, width, color) if len(tuning.sizes) > 1 else "",
        _failed(tuning),
        "".join(f"{note}\n" for note in tuning.notes),
        "".join(
            f"{row.candidate.name}: not measured: {row.why_not_measured}\n"
            for row in tuning.rows
            if row.why_not_measured
        ),
        "".join(f"{config_text(row.candidate)},  # {_time_text(row)}\n" for row in tuning.fastest_first[:top]),
    ]
    return "\n".join(filter(None, parts))


def _time_text(row: Ranked) -> str:
    if row.measured is None:
        return f"{duration_text(row.seconds)} predicted"
    return f"{duration_text(row.measured.median_us * 1e-6)} measured, {duration_text(row.seconds)} predicted"


def _measured_cells(row: Ranked) -> list[object]:
    if row.measured is None:
        return ["–", "–"]
    return [duration_text(row.measured.median_us * 1e-6), f"{row.seconds * 1e6 / row.measured.median_us:.2f}"]


def _size_text(size: Size) -> str:
    return " ".join(f"{name}={value}" for name, value in size) or "time"


def _table(tuning: Tuning, width: int | None, color: bool) -> str:
    names = [name for name, _ in tuning.rows[0].candidate.config]
    is_measured = any(row.measured is not None for row in tuning.rows)
    times = [*map(_size_text, tuning.sizes)]
    times = ["predicted", "measured", "predicted / measured"] if is_measured else times
    columns = [*names, *times, "bound", "waves", "registers", "shared"]
    rows: list[list[object]] = []
    for row in tuning.rows[:_MOST_ROWS]:
        config, held = dict(row.candidate.config), row.candidate.capture
        first = row.predictions[0]
        resources = held.resources if held is not None else None
        rows.append(
            [
                *(config.get(name, "") for name in names), *(duration_text(one.seconds) for one in row.predictions),
                *(_measured_cells(row) if is_measured else ()), first.bound, f"{first.waves:.2f}",
                resources and resources.registers, resources and resources.shared_bytes,
            ]
        )  # fmt: skip
    rest = (
        f"… and {len(tuning.rows) - len(rows)} slower ones; --json has all.\n" if len(tuning.rows) > len(rows) else ""
    )
    return table(columns, rows, width=width, color=color) + rest


def _by_size(tuning: Tuning, width: int | None, color: bool) -> str:
    rows = [
        [_size_text(size), tuning.best(number).candidate.name,
         duration_text(tuning.best(number).predictions[number].seconds)]
        for number, size in enumerate(tuning.sizes)
    ]  # fmt: skip
    return table(["size", "fastest by prediction", "time"], rows, width=width, color=color)


def _failed(tuning: Tuning) -> str:
    lines = [f"  {one.name}: {one.failure.splitlines()[0]}\n" for one in tuning.failed]
    return "Not timed:\n" + "".join(lines) if lines else ""


def tuning_json(tuning: Tuning) -> dict[str, Any]:
    """As JSON."""
    return {
        "kernel": tuning.kernel,
        "part": tuning.part,
        "sizes": [dict(size) for size in tuning.sizes],
        "configs": [
            {
                "config": dict(row.candidate.config),
                "id": row.candidate.capture.id if row.candidate.capture is not None else "",
                "seconds": [one.seconds for one in row.predictions],
                "bounds": [one.bound for one in row.predictions],
                "measured": row.measured and row.measured.as_json(),
                "why_not_measured": row.why_not_measured,
                "triton": config_text(row.candidate),
            }
            for row in tuning.rows
        ],
        "notes": list(tuning.notes),
        "failed": [{"config": dict(one.config), "reason": one.failure} for one in tuning.failed],
    }
