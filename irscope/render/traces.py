"""Chrome traces, which Perfetto opens: the predicted timeline, the times of a compile, and what Proton measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from irscope.ir.logs.proton import MeasuredKernel, MeasuredSpan
from irscope.model.capture import Capture
from irscope.model.evidence import CompileTimes
from irscope.render.timing import measured_lines

if TYPE_CHECKING:
    from irscope.timing.predict import Prediction


class _Span(NamedTuple):
    name: str
    category: str
    track: str
    start_us: float
    end_us: float
    arguments: dict[str, Any]


_Process = tuple[str, list[_Span]]


def prediction_trace(one: Prediction) -> dict[str, Any]:
    """The predicted timeline of one CTA: a track for each warp."""
    return _chrome_trace([_predicted_process(one)])


def times_trace(capture: Capture) -> dict[str, Any]:
    """The times of a compile: nested parts stand on one track."""
    return _chrome_trace([(f"{capture.name} for {capture.target}", _compile_spans(capture))])


def joined_trace(
    captures: Sequence[Capture], predicted: Mapping[str, Prediction], measured: Sequence[MeasuredKernel]
) -> dict[str, Any]:
    """Of each capture its compile and one predicted CTA, and what Proton measured of its kernel, as one trace.

    Each is a process with a clock of its own, which begins at 0. A measured span has the capture, its predicted time
    and a line's predicted share as arguments. Of a tree of hatchet, which has no times of launches, each launch takes
    the mean, one after another, and lines follow by their samples.
    """
    processes: list[_Process] = []
    for capture in captures:
        one = predicted[capture.id]
        if capture.times is not None:
            processes.append((f"{capture.name}: compile", _compile_spans(capture)))
        processes.append(_predicted_process(one))
        for kernel in (item for item in measured if item.is_of(capture.name)):
            processes += _measured_processes(capture, one, kernel)
    return _chrome_trace(processes)


def _chrome_trace(processes: Iterable[_Process]) -> dict[str, Any]:
    """Processes in Chrome's trace format.

    Perfetto counts whole nanoseconds, and drops a span that overlaps another one of its track and does not lie in it.
    So starts and ends are rounded, which keeps neighbours apart, and a span that overlaps is put on a further track.
    A track has a number of its own: Perfetto takes 0 for no thread, and that of the process for its main thread.
    """
    events: list[dict[str, Any]] = []
    for number, (process, spans) in enumerate(processes, 1):
        events.append({"name": "process_name", "ph": "M", "pid": number, "args": {"name": process}})
        ends: dict[str, list[int]] = {span.track: [] for span in spans}
        complete: list[dict[str, Any]] = []
        for span in sorted(spans, key=lambda span: (span.start_us, -span.end_us)):
            start, end = round(span.start_us * 1000), round(span.end_us * 1000)
            track = 100 * number + _place(ends, span.track, start, end)
            event = {"name": span.name, "cat": span.category, "ph": "X", "pid": number, "args": span.arguments}
            complete.append(event | {"tid": track, "ts": start / 1000, "dur": (end - start) / 1000})
        for track, name in enumerate(ends, 100 * number):
            events.append({"name": "thread_name", "ph": "M", "pid": number, "tid": track, "args": {"name": name}})
        events += complete
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _place(ends: dict[str, list[int]], track: str, start: int, end: int) -> int:
    """Note the end of a span on the first track of that name where it overlaps none; the track's place."""
    name, further = track, 1
    while True:
        around = ends.setdefault(name, [])
        while around and around[-1] <= start:
            around.pop()
        if not around or end <= around[-1]:
            around.append(end)
            return list(ends).index(name)
        further += 1
        name = f"{track} ({further})"


def _predicted_process(one: Prediction) -> _Process:
    per_us = one.clock_hz / 1e6 or 1.0
    spans: list[_Span] = []
    for span in sorted(one.timeline, key=lambda span: span.warp):
        arguments = {"instruction": span.index}
        track = f"warp {span.warp}"
        spans.append(_Span(span.why, "predicted", track, span.start / per_us, span.end / per_us, arguments))
    return f"{one.kernel}: one CTA, predicted", spans


def _compile_spans(capture: Capture) -> list[_Span]:
    spans: list[_Span] = []
    for span in (capture.times or CompileTimes(())).spans:
        end_ns = span.start_ns + span.duration_ns
        arguments = {"depth": span.depth}
        spans.append(_Span(span.name, span.kind, "compile", span.start_ns / 1000, end_ns / 1000, arguments))
    return spans


def _measured_processes(capture: Capture, one: Prediction, kernel: MeasuredKernel) -> Iterator[_Process]:
    joined = {"capture": capture.id[:16], "predicted_us": one.seconds * 1e6}
    if spans := kernel.spans or _spread(kernel):
        yield _measured_process(f"{kernel.name}: launches", spans, joined)
    by_process: dict[str, list[MeasuredSpan]] = {}
    for span in kernel.scopes:
        by_process.setdefault(span.process, []).append(span)
    for name, scopes in by_process.items():
        yield _measured_process(f"{name}: scopes", scopes, {})
    mean_us = kernel.seconds / kernel.launches * 1e6 if kernel.launches else float(sum(kernel.samples.values()))
    start, lines = 0.0, list[_Span]()
    for file, line, share, predicted in measured_lines(one, kernel):
        arguments = {"file": file, "line": line, "share": share, "predicted_share": predicted}
        end = start + share * mean_us
        lines.append(_Span(f"{file.rpartition('/')[2]}:{line}", "line", "lines, by samples", start, end, arguments))
        start = end
    if lines:
        yield f"{kernel.name}: lines, measured by Proton", lines


def _spread(kernel: MeasuredKernel) -> list[MeasuredSpan]:
    if not kernel.launches:
        return []
    mean_us = kernel.seconds / kernel.launches * 1e6
    shown = min(kernel.launches, 1000)
    return [MeasuredSpan(kernel.name, "mean", number * mean_us, mean_us) for number in range(shown)]


def _measured_process(name: str, spans: Sequence[MeasuredSpan], arguments: dict[str, Any]) -> _Process:
    rows = [
        _Span(span.name, "measured", span.track, span.start_us, span.start_us + span.duration_us, arguments)
        for span in spans
    ]
    return f"{name}, measured by Proton", rows
