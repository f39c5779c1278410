"""Measurements as text: the times of launches, and whether variants compute the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from irscope.device.measurement import Agreement, Ratio, Timing
from irscope.model.plain import picked
from irscope.render.text.tables import percent, scaled, table


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


def render_reports(reports: Sequence[Sequence[object]], *, width: int | None = None, color: bool = False) -> str:
    """A table of what a sanitizer reported: (what, `FILE:LINE`, program, thread, how many threads); empty without."""
    cells = [[place or "–", what, *others] for what, place, *others in reports]
    columns = ["line", "report", "first program", "thread", "threads"]
    return table(columns, cells, width=width, color=color) if cells else ""


_RATES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


@dataclass(frozen=True, slots=True)
class BenchRow:
    name: str
    """`baseline`, or what makes it another: a plan, an option, a capture."""
    timing: Timing | None
    """None if it could not be timed."""
    ratio: Ratio | None
    """Its time over the baseline's; None for the baseline."""
    agreement: Agreement | None
    """Its outputs against the baseline's; None for the baseline."""
    same_binary: bool = False
    """Whether its binary is the baseline's, byte by byte."""
    predicted_us: float | None = None
    """By `irscope time` for this GPU; None where that does not know it."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What was measured of one launch."""

    kernel: str
    launch: int
    grid: tuple[int, int, int] | None
    device: str
    rows: tuple[BenchRow, ...]
    bytes: int | None = None
    """Bytes that a launch moves; None if not known."""
    bytes_source: str = ""
    flops: int | None = None
    flops_source: str = ""
    """Where the number comes from, or why there is none."""
    dtype: str = ""
    """Of the dots' operands, for the ceiling."""
    ceiling_bytes_per_s: float | None = None
    ceiling_flops_per_s: float | None = None
    l2_bytes: int | None = None
    noise: str = ""
    """How the baseline's own runs differ."""


def bench_json(bench: Bench) -> dict[str, Any]:
    variants = [
        picked(
            row,
            "name same_binary predicted_us",
            time=row.timing and row.timing.as_json(),
            ratio=row.ratio and row.ratio.as_json(),
            result=row.agreement and row.agreement.as_json(),
            bytes_per_s=_per_second(bench.bytes, row.timing),
            flops_per_s=_per_second(bench.flops, row.timing),
        )
        for row in bench.rows
    ]
    ceilings = picked(bench, "bytes_per_s=ceiling_bytes_per_s flops_per_s=ceiling_flops_per_s dtype")
    names = "kernel launch grid device bytes bytes_source flops flops_source noise"
    return picked(bench, names, ceilings=ceilings, variants=variants)


def render_bench(bench: Bench, *, width: int | None = None, color: bool = False) -> str:
    rows = [row_cells(bench, row) for row in bench.rows]
    text = table(bench_columns(bench), rows, width=width, color=color)
    return f"{bench_title(bench)}\n{text}" + "".join(f"{note}\n" for note in bench_notes(bench))


def bench_title(bench: Bench) -> str:
    grid = "×".join(map(str, bench.grid)) if bench.grid is not None else "?"
    return f"{bench.kernel}, launch {bench.launch}, grid {grid}, on {bench.device}"


def bench_columns(bench: Bench) -> list[str]:
    columns = ["variant", "median", *_predicted_columns(bench), "quartiles", "n", "against the baseline", "result"]
    columns += ["bytes/s", "of copy"] if bench.bytes else []
    return columns + (["FLOP/s", "of matmul"] if bench.flops else [])


def row_cells(bench: Bench, row: BenchRow) -> list[object]:
    median, *others = _time_cells(row)
    predicted = f"{microseconds(row.predicted_us)} µs" if row.predicted_us is not None else "–"
    predicted_cells = [predicted] * len(_predicted_columns(bench))
    return [row.name, median, *predicted_cells, *others, _result(row), *_rates(bench, row.timing)]


def _predicted_columns(bench: Bench) -> list[str]:
    return ["predicted"] if any(row.predicted_us is not None for row in bench.rows) else []


def bench_notes(bench: Bench) -> list[str]:
    details = [f"{row.name}: {row.agreement.detail}" for row in bench.rows if row.agreement and row.agreement.detail]
    return [*details, *_notes(bench)]


def _time_cells(row: BenchRow) -> list[object]:
    if row.timing is None:
        return ["–", "–", "–", "–"]
    median, low, high = map(microseconds, (row.timing.median_us, row.timing.low_us, row.timing.high_us))
    return [f"{median} µs", f"{low} to {high}", row.timing.count, row.ratio.text if row.ratio else ""]


def microseconds(value: float) -> str:
    """A time in digits that fit its size."""
    return f"{value:.2f}" if value < 100 else f"{value:.1f}" if value < 10_000 else f"{value:.0f}"


def _result(row: BenchRow) -> str:
    if row.agreement is None:
        return ""
    agreement = row.agreement
    if row.same_binary:
        return f"{agreement.verdict}, same binary"
    if agreement.verdict in ("close", "different"):
        return f"{agreement.verdict}, max rel {error_text(agreement.max_rel_error)}"
    return agreement.verdict


def _rates(bench: Bench, timing: Timing | None) -> list[object]:
    cells: list[object] = []
    for amount, unit, ceiling in (
        (bench.bytes, "B/s", bench.ceiling_bytes_per_s),
        (bench.flops, "FLOP/s", bench.ceiling_flops_per_s),
    ):
        if not amount:
            continue
        rate = _per_second(amount, timing)
        share = percent(rate / ceiling) if rate is not None and ceiling else "–"
        cells += [rate_text(rate, unit) if rate is not None else "–", share]
    return cells


def _per_second(amount: int | None, timing: Timing | None) -> float | None:
    return None if not amount or timing is None else amount / (timing.median_us * 1e-6)


def rate_text(rate: float, unit: str) -> str:
    """A rate with three digits: `4.18 TB/s`."""
    return scaled(rate, [(factor, f"{prefix}{unit}") for factor, prefix in _RATES])


def _notes(bench: Bench) -> Sequence[str]:
    timed = [row.timing for row in bench.rows if row.timing is not None]
    cold = timed[0].cold if timed else True
    size = f" of {bench.l2_bytes >> 20} MiB" if bench.l2_bytes else ""
    notes = [
        f"Times: between two events around one launch, the L2{size} "
        + ("flushed before each." if cold else "warm from the previous launch.")
        + " Ratios: of launches of one round, with the 95 % confidence interval of their median."
    ]
    if _predicted_columns(bench):
        notes.append("Predicted: by irscope time, with a cold L2 cache, before the launch.")
    if bench.noise:
        notes.append(f"Baseline: {bench.noise}.")
    for what, amount, source in (
        ("Bytes", bench.bytes, bench.bytes_source),
        ("FLOPs", bench.flops, bench.flops_source),
    ):
        notes.append(f"{what}: {amount:,}, {source}." if amount else f"{what}: {source}.")
    ceilings: list[str] = []
    if bench.bytes and bench.ceiling_bytes_per_s:
        ceilings.append(f"a large copy moves {rate_text(bench.ceiling_bytes_per_s, 'B/s')}")
    if bench.flops and bench.ceiling_flops_per_s:
        ceilings.append(f"torch.matmul of {bench.dtype} makes {rate_text(bench.ceiling_flops_per_s, 'FLOP/s')}")
    if ceilings:
        notes.append(f"Ceilings, measured in this run: {'; '.join(ceilings)}.")
    return notes
