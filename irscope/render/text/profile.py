"""The counters of a launch as a table and as JSON, where warps waited most first, and several launches side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from irscope.analysis.counters.operations import CountedLaunch, CountedOperation, CounterComparison, Quantity
from irscope.ir.logs.source_page import Counters
from irscope.memory.access import MOST
from irscope.model.capture import Capture
from irscope.model.plain import picked
from irscope.render.text.tables import duration_text, percent, table

if TYPE_CHECKING:
    from irscope.timing.predict import Prediction

_REASONS = {
    "barrier": "a barrier",
    "branch_resolving": "a branch",
    "dispatch": "the dispatcher",
    "drain": "stores to drain",
    "gmma": "wgmma",
    "imc": "the constant cache",
    "lg": "the queue of global accesses",
    "long_sb": "global memory",
    "math": "an arithmetic unit",
    "membar": "a memory barrier",
    "mio": "the queue of shared accesses",
    "misc": "other causes",
    "no_inst": "instructions to be fetched",
    "not_selected": "other warps to be issued",
    "short_sb": "shared memory or a special function",
    "sleep": "sleep",
    "tex": "the queue of textures",
    "wait": "a fixed latency",
}
"""What a warp waits for at each reason. Source: "Nsight Compute" documentation, "Warp Stall Reasons"."""
_MOST_REASONS = 2
_LEAST_SHARE = 0.1
"""Of a row's stalls, for a reason to be named."""
_TITLES: dict[Quantity, str] = {"instructions": "accesses", "sectors": "sectors", "lines": "lines", "ways": "conflicts"}


def render_profile(
    capture: Capture,
    counted: CountedLaunch,
    *,
    title: str = "",
    prediction: Prediction | None = None,
    width: int | None = None,
    color: bool = False,
) -> str:
    """A table with an operation a line, and below it what is not as predicted.

    `prediction`: of the same launch on the same GPU, whose share of each Python line stands next to the measured one.
    """
    total = counted.counters.stalled
    telling = [row for row in counted.operations if row.counters.stalled or row.comparisons or row.counters.sectors]
    shown: list[Quantity] = [name for name in _TITLES if any(_cell(row, name) for row in telling)]
    columns = [
        "stalls",
        "share",
        "operation" if counted.by_operation else "",
        "ttgir",
        "python",
        "layouts",
        "waits for",
    ]
    columns += ["executed", *(_TITLES[name] for name in shown)]
    if prediction is not None:
        columns.insert(2, "of line, predicted")
    shares = {(one.file, one.line): one.share for one in prediction.lines} if prediction is not None else {}
    names = {row.line: row.operation for row in counted.operations}
    rows = [
        [
            row.counters.stalled,
            percent(row.counters.stalled / total) if total else "",
            *([_predicted_share(row.place, shares)] if prediction is not None else []),
            row.operation or ("no single one" if counted.by_operation else ""),
            row.line or "",
            row.place.rpartition("/")[2],
            " ".join(row.layouts),
            _waits(row, names),
            _number(row.counters.executed),
            *(_cell(row, name) for name in shown),
        ]
        for row in telling
    ]
    notes = _notes(counted, len(counted.operations) - len(telling))
    if prediction is not None:
        low, high = (duration_text(one) for one in prediction.interval)
        notes.insert(
            0, f"Predicted by irscope time: {duration_text(prediction.seconds)} ({low} to {high}), bound by "
            f"{prediction.bound}.\n",
        )  # fmt: skip
    return f"{_head(capture, title)}{table(columns, rows, width=width, color=color)}{''.join(notes)}"


def _head(capture: Capture, title: str) -> str:
    profile = capture.profile
    device = f" on {profile.device}" if profile is not None and profile.device else ""
    tool = f", {profile.tool}" if profile is not None and profile.tool else ""
    grid = "×".join(map(str, capture.launch.grid)) if capture.launch.grid else "?"
    return f"{capture.id[:8]} {capture.name}{f' ({title})' if title else ''}, grid {grid}{device}{tool}\n"


def _notes(counted: CountedLaunch, left_out: int) -> list[str]:
    total = counted.counters
    notes = [
        f"{_number(total.executed) or '?'}{_executed(counted)} instructions of warps; {total.samples or 0} samples, "
        f"{total.stalled} of them of stalled warps.\n"
    ]
    if left_out:
        notes.append(f"Left out: {left_out} rows without stalls and accesses (--json has them).\n")
    if not counted.by_operation:
        why = f"operations of instructions are not known, {counted.why_not}"
        return [*notes, f"By line of Python, without predictions: {why}.\n"]
    if counted.uncompared:
        notes.append(f"Accesses to global memory have no predictions: {counted.uncompared}.\n")
    if counted.predicted_executed is not None or any(row.comparisons for row in counted.operations):
        notes.append("=: as predicted; (in brackets): predicted.\n")
    for row in counted.operations:
        by_cause: dict[tuple[str, str], list[str]] = {}
        for one in row.comparisons:
            if one.verdict != "equal":
                figures = f"{_TITLES[one.quantity]} {_figure(one.measured)} ({_predicted(one)})"
                by_cause.setdefault((one.verdict, one.reason), []).append(figures)
        notes += [
            f"{row.operation} (ttgir {row.line}): {', '.join(figures)}: {'; '.join(filter(None, cause))}.\n"
            for cause, figures in by_cause.items()
        ]
    return notes


def _executed(counted: CountedLaunch) -> str:
    predicted = counted.predicted_executed
    return "" if predicted is None else " =" if predicted == counted.counters.executed else f" ({predicted})"


def stall_text(counters: Counters) -> str:
    """What warps waited for most at some instructions: `global memory 89.2 %, a barrier 10.8 %`."""
    waiting = [(reason, count) for reason, count in counters.stalls if reason != "selected"]
    total = counters.stalled
    named = [
        f"{_REASONS.get(reason, reason)} {percent(count / total)}"
        for reason, count in waiting[:_MOST_REASONS]
        if count >= _LEAST_SHARE * total
    ]
    return ", ".join(named)


def _waits(row: CountedOperation, names: Mapping[int, str]) -> str:
    text = stall_text(row.counters)
    for line in row.awaited[:1]:
        others = ", …" if len(row.awaited) > 1 else ""
        text = text.replace(_REASONS["long_sb"], f"{names.get(line, '')} ({line}{others})".strip(), 1)
    return text


def _cell(row: CountedOperation, quantity: Quantity) -> str:
    comparisons = [one for one in row.comparisons if one.quantity == quantity]
    if not comparisons:
        measured = {"sectors": row.counters.sectors, "lines": row.counters.lines}
        return _number(measured.get(quantity) or None)
    return ", ".join(
        f"{_figure(one.measured)} {'=' if one.verdict == 'equal' else f'({_predicted(one)})'}" for one in comparisons
    )


def _predicted(one: CounterComparison) -> str:
    if one.least == one.most:
        return _figure(one.least)
    return f"at least {_figure(one.least)}" if one.most >= MOST else f"{_figure(one.least)}–{_figure(one.most)}"


def _figure(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.2f}"


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def render_side_by_side(
    rows: Sequence[tuple[str, CountedLaunch]], *, width: int | None = None, color: bool = False
) -> str:
    """Several profiles of one launch, by line of Python: the stalls, instructions and sectors of each."""
    by_place: dict[str, list[list[Counters]]] = {}
    for number, (_, counted) in enumerate(rows):
        for row in counted.operations:
            by_place.setdefault(row.place or "no line", [[] for _ in rows])[number].append(row.counters)
    sums = {place: [Counters.sum(own) for own in counters] for place, counters in by_place.items()}
    order = sorted(sums, key=lambda place: -max(one.stalled for one in sums[place]))
    columns = ["python", *(f"{what} {name}" for what in ("stalls", "executed", "sectors") for name, _ in rows)]
    lines = [[place.rpartition("/")[2], *_side_by_side(sums[place])] for place in order]
    lines.append(["all", *_side_by_side([counted.counters for _, counted in rows])])
    return table(columns, lines, width=width, color=color)


def _side_by_side(counters: Sequence[Counters]) -> list[object]:
    return [getattr(one, name) for name in ("stalled", "executed", "sectors") for one in counters]


def _predicted_share(place: str, shares: Mapping[tuple[str, int], float]) -> str:
    file, _, line = place.rpartition(":")
    share = shares.get((file, int(line))) if line.isdecimal() else None
    return percent(share) if share is not None else ""


def profile_json(
    capture: Capture, counted: CountedLaunch, variant: str = "", prediction: Prediction | None = None
) -> dict[str, Any]:
    profile = capture.profile
    return picked(
        capture,
        "id kernel=name grid=launch.grid target",
        variant=variant,
        device=profile.device if profile else "",
        tool=profile.tool if profile else "",
        own_binary=bool(profile and profile.own_binary),
        prediction=prediction and picked(prediction, "part seconds bound", interval_s=list(prediction.interval)),
        **picked(counted, "by_operation why_not uncompared predicted_executed"),
        counters=counters_json(counted.counters),
        operations=[_operation_json(row) for row in counted.operations],
    )


def counters_json(counters: Counters) -> dict[str, Any]:
    names = "executed threads samples stalled sectors ideal_sectors lines wavefronts"
    return picked(counters, names, stalls=dict(counters.stalls))


def _operation_json(row: CountedOperation) -> dict[str, Any]:
    return picked(
        row,
        "line operation place chain layouts awaited loops",
        counters=counters_json(row.counters),
        comparisons=[
            picked(
                one, "quantity measured verdict reason", predicted=[one.least, None if one.most >= MOST else one.most]
            )
            for one in row.comparisons
        ],
        instructions=[
            picked(one, "line offset text", counters=counters_json(one.counters)) for one in row.instructions
        ],
    )
