"""What Proton measured of a kernel next to its prediction: as text, as JSON, and in one Chrome trace with both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irscope.ir.logs.proton import MeasuredKernel, MeasuredSpan, shares_of_lines
from irscope.model.capture import Capture
from irscope.render.text.tables import duration_text, table
from irscope.render.times import times_trace
from irscope.render.timing import prediction_trace
from irscope.timing.predict import Prediction

_MOST_LINES = 10


def measured_text(one: Prediction, measured: MeasuredKernel | None, *, width: int | None, color: bool) -> str:
    """The mean time of a launch next to the predicted one, and of each line its part of both."""
    if measured is None:
        return f"Proton measured no kernel {one.kernel}.\n"
    text = ""
    if measured.launches:
        mean = measured.seconds / measured.launches
        ratio = f"{mean / one.seconds:.2f} of the predicted time"
        text = f"Proton: {measured.launches:,} launches of {duration_text(mean)}, {ratio}.\n"
    if measured.scopes:
        totals: dict[str, float] = {}
        for span in measured.scopes:
            totals[span.name] = totals.get(span.name, 0.0) + span.duration_us
        whole = sum(totals.values()) or 1.0
        rows = [[name, f"{total / whole:.1%}"] for name, total in sorted(totals.items(), key=lambda row: -row[1])]
        text += table(["scope", "part of all scopes' time"], rows[:_MOST_LINES], width=width, color=color)
    rows = [
        [f"{file.rpartition('/')[2]}:{line}", f"{share:.1%}", "–" if predicted is None else f"{predicted:.1%}"]
        for file, line, share, predicted in _lines(one, measured)[:_MOST_LINES]
    ]
    return text + (table(["Python", "Proton's samples", "predicted"], rows, width=width, color=color) if rows else "")


def _lines(one: Prediction, measured: MeasuredKernel) -> list[tuple[str, int, float, float | None]]:
    """(file, line, part of the samples, predicted part): a file is the same by its name, wherever it lay."""
    predicted: dict[tuple[str, int], float] = {}
    for item in one.lines:
        key = item.file.rpartition("/")[2], item.line
        predicted[key] = predicted.get(key, 0.0) + item.share
    return [
        (file, line, share, predicted.get((file.rpartition("/")[2], line)))
        for file, line, share in shares_of_lines(measured)
    ]


def measured_json(one: Prediction, measured: MeasuredKernel | None) -> dict[str, Any] | None:
    """As JSON; None where Proton measured no such kernel."""
    if measured is None:
        return None
    return {
        "launches": measured.launches,
        "seconds": measured.seconds,
        "lines": [
            {"file": file, "line": line, "share": share, "predicted": predicted}
            for file, line, share, predicted in _lines(one, measured)
        ],
    }


def joined_trace(
    captures: Sequence[Capture], predicted: Mapping[str, Prediction], measured: Sequence[MeasuredKernel]
) -> dict[str, Any]:
    """One Chrome trace: of each capture its compile and one predicted CTA, and what Proton measured of its kernel.

    Each is a process with a clock of its own, which begins at 0. A measured span has the capture, its predicted time
    and a line's predicted share as arguments. Of a tree of hatchet, which has no times of launches, each launch takes
    the mean, one after another, and lines follow by their samples.
    """
    events: list[dict[str, Any]] = []
    processes = 0

    def add(name: str, rows: Sequence[dict[str, Any]]) -> None:
        nonlocal processes
        processes += 1
        events.append({"name": "process_name", "ph": "M", "pid": processes, "args": {"name": name}})
        events.extend(row | {"pid": processes} for row in rows if row["name"] != "process_name")

    for capture in captures:
        one = predicted[capture.id]
        if capture.times is not None:
            add(f"{capture.name}: compile", times_trace(capture)["traceEvents"])
        add(f"{capture.name}: one CTA, predicted", prediction_trace(one)["traceEvents"])
        for kernel in (item for item in measured if item.is_of(capture.name)):
            for title, rows in _measured_rows(capture, one, kernel):
                add(title, rows)
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _measured_rows(capture: Capture, one: Prediction, kernel: MeasuredKernel) -> list[tuple[str, list[dict[str, Any]]]]:
    joined = {"capture": capture.id[:16], "predicted_us": one.seconds * 1e6}
    found: list[tuple[str, list[dict[str, Any]]]] = []
    spans = kernel.spans or _spread(kernel)
    if spans:
        found.append((f"{kernel.name}: launches, measured by Proton", _rows(spans, "measured", joined)))
    by_process: dict[str, list[MeasuredSpan]] = {}
    for span in kernel.scopes:
        by_process.setdefault(span.process, []).append(span)
    found += [(f"{name}: scopes, measured by Proton", _rows(rows, "measured", {})) for name, rows in by_process.items()]
    mean_us = kernel.seconds / kernel.launches * 1e6 if kernel.launches else float(sum(kernel.samples.values()))
    start, lines = 0.0, list[dict[str, Any]]()
    for file, line, share, predicted in _lines(one, kernel):
        title = f"{file.rpartition('/')[2]}:{line}"
        arguments: dict[str, Any] = {"file": file, "line": line, "share": share, "predicted_share": predicted}
        lines += _rows([MeasuredSpan(title, "lines, by samples", start, share * mean_us)], "line", arguments)
        start += share * mean_us
    if lines:
        found.append((f"{kernel.name}: lines, measured by Proton", lines))
    return found


def _spread(kernel: MeasuredKernel) -> list[MeasuredSpan]:
    if not kernel.launches:
        return []
    mean_us = kernel.seconds / kernel.launches * 1e6
    shown = min(kernel.launches, 1000)
    return [MeasuredSpan(kernel.name, "mean", number * mean_us, mean_us) for number in range(shown)]


def _rows(spans: Sequence[MeasuredSpan], category: str, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    tracks = {name: number for number, name in enumerate(dict.fromkeys(span.track for span in spans), 1)}
    rows: list[dict[str, Any]] = [
        {"name": "thread_name", "ph": "M", "tid": number, "args": {"name": name}} for name, number in tracks.items()
    ]
    rows += [
        {"name": span.name, "cat": category, "ph": "X", "tid": tracks[span.track], "ts": span.start_us,
         "dur": span.duration_us, "args": {**arguments}}
        for span in spans
    ]  # fmt: skip
    return rows
