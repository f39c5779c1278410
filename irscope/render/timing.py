"""Times as text, JSON and pictures: predicted of launches and configurations, measured, of a compile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from irscope.analysis.passes.times import TimeNode, TimeTree, children, time_tree
from irscope.ir.logs.proton import MeasuredKernel, shares_of_lines
from irscope.model.capture import Capture
from irscope.model.evidence import CompileTimes
from irscope.model.plain import picked
from irscope.render.canvas import Canvas, Rect
from irscope.render.text.tables import (
    bytes_text,
    counted,
    duration_text,
    least_text,
    milliseconds,
    percent,
    shorten,
    table,
)

if TYPE_CHECKING:
    # Predictions need NumPy; the times of a compile do not.
    from irscope.timing.predict import Prediction, Share
    from irscope.timing.simulate import Span
    from irscope.timing.tuning import Ranked, Size, Tuning

_MOST_LINES = 10
_BUSY = ("execution", "issue", "integer and logic", "FMA", "special functions", "float64")
_LOOKS = {**dict.fromkeys(_BUSY, "bar"), "copies in flight": "f2", "memory latency": "f2", "DRAM": "f3", "L2": "f3",
          "barrier": "f4", "memory pipe": "f6", "shared memory": "f6"}  # fmt: skip
_MEANINGS = {
    "bar": "executes",
    "f2": "memory latency",
    "f3": "queue of L2 or DRAM",
    "f4": "barrier",
    "f6": "memory pipe, shared memory",
    "f1": "other stall",
}
"""What each colour of a timeline stands for."""


def prediction_text(
    one: Prediction, floor_s: float | None = None, *, width: int | None = None, color: bool = False
) -> str:
    """What a launch takes and why, the lines with the greatest shares, and what would change it."""
    parts = [
        f"{_head(one)}\n{_answer(one, floor_s)}\n",
        _busy(one, width, color),
        _lines(one, width, color),
        "".join(f"{item.name}: {duration_text(item.seconds)}, {item.gain:.2f} times as fast\n" for item in one.what_if),
        "".join(f"{note}\n" for note in _notes(one)),
    ]
    return "\n".join(filter(None, parts))


def _head(one: Prediction) -> str:
    grid = "×".join(map(str, one.grid))
    waves = f"{one.waves:.2f} waves of {counted(one.ctas_per_unit, 'CTA')} per multiprocessor"
    return f"{one.kernel}, grid {grid}, {one.part}: {waves}"


def _answer(one: Prediction, floor_s: float | None) -> str:
    low, high = one.interval
    floor = f" Roofline's minimum time: {least_text(floor_s, one.launch_seconds)}." if floor_s else ""
    said = f"Predicted time: {duration_text(one.seconds)} ({duration_text(low)} to {duration_text(high)})"
    return f"{said}, bound by {one.bound}.{floor}"


def _notes(one: Prediction) -> Sequence[str]:
    notes = [f"Assumed: {note}." if one.method == "simulated" else note for note in one.notes]
    if one.is_calibrated:
        notes.append(f"Constants of {one.part} as measured here by irscope time --calibrate.")
    if not one.is_validated:
        notes.append(f"Predictions for {one.part} were not compared with measured times.")
    notes.append("The L2 cache is taken to hold nothing of the operands at the start.")
    return notes


def _busy(one: Prediction, width: int | None, color: bool) -> str:
    busy, waits = _shares(one.busy), _shares(one.waits)
    rows = [
        [*(busy[number] if number < len(busy) else ["", ""]), *(waits[number] if number < len(waits) else ["", ""])]
        for number in range(max(len(waits), len(busy)))
    ]
    columns = [*_UNIT_COLUMNS, *(_STATE_COLUMNS if waits else ())]
    return f"{table(columns, [row[: len(columns)] for row in rows], width=width, color=color)}{_traffic(one)}\n"


_UNIT_COLUMNS = ("unit", "busy")
_STATE_COLUMNS = ("state of warps", "of their time")
_LINE_COLUMNS = ("Python", "share", "time", "why", "instructions")


def _shares(rows: Sequence[tuple[str, float]]) -> list[list[str]]:
    return [[name, f"{part:.0%}"] for name, part in rows[:6]]


def _traffic(one: Prediction) -> str:
    return f"DRAM traffic: {bytes_text(round(one.dram_bytes))}; L2 traffic: {bytes_text(round(one.l2_bytes))}"


def _lines(one: Prediction, width: int | None, color: bool) -> str:
    if not one.lines:
        return ""
    rows = [[_place_name(item), *_line_cells(item)] for item in one.lines[:_MOST_LINES]]
    return table(_LINE_COLUMNS, rows, width=width, color=color)


def _place_name(item: Share) -> str:
    return f"{item.file.rpartition('/')[2]}:{item.line}" if item.line else "?"


def _line_cells(item: Share) -> list[str]:
    why = ", ".join(f"{name} {part:.0%}" for name, part in item.reasons[:3])
    return [f"{item.share:.1%}", duration_text(item.seconds), why, ", ".join(name for name, _ in item.instructions[:3])]


def prediction_tables(one: Prediction) -> dict[str, Any]:
    """What the report's page shows of a prediction: sentences, and tables of texts, whose lines begin with a place."""
    lines = [[f"{item.file}:{item.line}" if item.line else "", *_line_cells(item)] for item in one.lines[:_MOST_LINES]]
    return {
        "about": [_answer(one, None), f"{_head(one)}.", f"{_traffic(one)}."],
        "units": [_UNIT_COLUMNS, _shares(one.busy)],
        "states": [_STATE_COLUMNS, _shares(one.waits)],
        "lines": [_LINE_COLUMNS, lines],
        "notes": _notes(one),
    }


def prediction_json(one: Prediction, floor_s: float | None = None) -> dict[str, Any]:
    return picked(
        one,
        "id=capture_id kernel part seconds bound method is_validated is_calibrated grid ctas_per_unit waves "
        "launch_seconds dram_bytes l2_bytes notes",
        interval_s=list(one.interval),
        roofline_s=floor_s,
        busy=dict(one.busy),
        waits=dict(one.waits),
        lines=[
            picked(item, "file line share seconds")
            | {"reasons": dict(item.reasons), "instructions": dict(item.instructions)}
            for item in one.lines
        ],
        what_if=[picked(item, "name seconds gain") for item in one.what_if],
    )


def prediction_svg(one: Prediction) -> str:
    """The lines' shares as bars, and below them the timeline of one CTA."""
    lines = one.lines[:8]
    warps = sorted({span.warp for span in one.timeline})[:16]
    if not lines:
        return _units_svg(one)
    bars_height, track = 52 + 24 * len(lines), 14
    height = 130 + bars_height + 92 + track * max(len(warps), 1)
    canvas = Canvas(None, 1000, height)
    _draw_answer(canvas, one)
    area = canvas.panel(Rect(24, 90, 952, bars_height), "Share of each line")
    canvas.bars(area, [_bar(item) for item in lines], 200, 24)
    top = 90 + bars_height + 16
    note = "cycles since its launch; skipped iterations left out"
    area = canvas.panel(Rect(24, top, 952, 88 + track * max(len(warps), 1)), "One CTA", note)
    _timeline(canvas, area, one, warps, track)
    return canvas.svg(f"{one.kernel}: {duration_text(one.seconds)} predicted")


def _units_svg(one: Prediction) -> str:
    """The time of a launch whose machine code is not modelled: how busy each unit is."""
    rows = [(name, share, f"{share:.0%}", "") for name, share in one.busy]
    canvas = Canvas(None, 1000, 190 + 24 * len(rows))
    _draw_answer(canvas, one)
    note = f"the machine code is not modelled for {one.part}: no lines, no timeline"
    area = canvas.panel(Rect(24, 90, 952, 52 + 24 * len(rows)), "Share of the time that a unit is busy", note)
    canvas.bars(area, rows, 200, 24, whole=1.0)
    return canvas.svg(f"{one.kernel}: {duration_text(one.seconds)} predicted")


def _draw_answer(canvas: Canvas, one: Prediction) -> None:
    canvas.head(one.kernel, f"{one.part}, grid {'×'.join(map(str, one.grid))}", duration_text(one.seconds))
    low, high = map(duration_text, one.interval)
    canvas.text(24, 70, f"predicted {low} to {high}, bound by {one.bound}", look="m", size=13)


def _bar(item: Share) -> tuple[str, float, str, str]:
    return _place_name(item), item.share, f"{item.share:.0%}", ", ".join(why for why, _ in item.reasons[:2])


def _timeline(canvas: Canvas, area: Rect, one: Prediction, warps: Sequence[int], track: float) -> None:
    end = max((span.end for span in one.timeline), default=0.0) or 1.0
    scale = (area.width - 56) / end
    used: set[str] = set()
    for row, warp in enumerate(warps):
        y = area.top + row * track
        canvas.text(area.left + 48, y + track - 3, f"warp {warp}", look="m", size=10, anchor="end")
        for span in _joined([span for span in one.timeline if span.warp == warp], 0.7 / scale):
            place = Rect(area.left + 56 + span.start * scale, y + 1, (span.end - span.start) * scale, track - 3)
            look = _LOOKS.get(span.why, "f1")
            used.add(look)
            canvas.rect(place, look, tip=span.why)
    base = area.top + len(warps) * track + 16
    canvas.text(area.left + 56, base, "0", look="m", size=10)
    cycles = f"{end:,.0f} cycles"
    canvas.text(area.right, base, cycles, look="m", size=10, anchor="end")
    canvas.legend(area.left + 56, base + 22, [row for row in _MEANINGS.items() if row[0] in used], area.right)


def _joined(spans: Sequence[Span], least: float) -> list[Span]:
    """Neighbours of one reason as one, and nothing shorter than can be seen."""
    found: list[Span] = []
    for span in spans:
        if (
            found
            and (found[-1].why == span.why or span.end - span.start < least)
            and span.start - found[-1].end < least
        ):
            found[-1] = replace(found[-1], end=span.end)
        else:
            found.append(span)
    return found


_MOST_ROWS = 20


def tuning_text(tuning: Tuning, top: int, *, width: int | None = None, color: bool = False) -> str:
    """The table of configurations, what failed, the best by size, and the fastest as triton.Config."""
    from irscope.timing.tuning import config_text

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
    from irscope.timing.tuning import OPTIONS

    configs = [dict(row.candidate.config) for row in tuning.rows]
    names = [one for one in configs[0] if one in OPTIONS[:2] or len({repr(row.get(one)) for row in configs}) > 1]
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
    from irscope.timing.tuning import config_text

    return picked(
        tuning,
        "kernel part",
        notes=list(tuning.notes),
        sizes=[dict(size) for size in tuning.sizes],
        configs=[
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
        failed=[{"config": dict(one.config), "reason": one.failure} for one in tuning.failed],
    )


_LEAST_SHARE = 0.005
"""Parts of a smaller share are shown as one line."""
_TILES = {"pass": 0, "front end": 1, "stage": 2, "llvm": 3, "call": 4, "tool": 5, "compile": 6}
"""The colour of each kind of part of a compile."""
_KINDS = {"llvm": "LLVM pass"}


def times_text(capture: Capture, *, width: int | None, color: bool) -> str:
    """The parts of the compile as a tree, the slowest of LLVM's passes by name, and what is not accounted for."""
    if capture.times is None:
        return ""
    tree = time_tree(capture.times)
    rows = [[f"compile of {capture.name} for {capture.target}", _ms(tree.whole_ns), "100 %", ""]]
    rows += _part_rows(tree.root, tree.whole_ns, 1)
    rows.append(["  not accounted for", _ms(tree.unaccounted_ns), percent(tree.unaccounted_ns / _whole(tree)), ""])
    said = [f"{percent(tree.accounted)} of it is accounted for"]
    said += [f"import of Triton, once in a process: {_ms(node.duration_ns)} ms" for node in tree.imports]
    said.append(f"irscope's own recording, in no part: {_ms(tree.recording_ns)} ms")
    said.append(f"processor time, all of this included: {_ms(capture.times.processor_ns)} ms")
    notes = "".join(f"{note}\n" for note in capture.times.notes)
    return table(["part", "ms", "share", "times"], rows, width=width, color=color) + f"\n{'; '.join(said)}.\n{notes}"


def _whole(tree: TimeTree) -> int:
    return tree.whole_ns or 1


def _ms(duration_ns: int) -> str:
    return milliseconds(duration_ns / 1000)


def _part_rows(node: TimeNode, whole_ns: int, depth: int) -> list[list[str]]:
    rows: list[list[str]] = []
    small: list[TimeNode] = []
    for part in children(node):
        if part.duration_ns < _LEAST_SHARE * whole_ns and part.kind != "stage":
            small.append(part)
            continue
        count = str(part.count) if part.count > 1 else ""
        rows.append([_title(part, depth), _ms(part.duration_ns), percent(part.duration_ns / (whole_ns or 1)), count])
        rows += _part_rows(part, whole_ns, depth + 1)
    if small:
        total = sum(part.duration_ns for part in small)
        what = f"{len(small)} smaller parts" if len(small) > 1 else _title(small[0], 0)
        rows.append([f"{'  ' * depth}{what}", _ms(total), percent(total / (whole_ns or 1)), ""])
    return rows


def _title(part: TimeNode, depth: int) -> str:
    name = part.name if part.kind != "llvm" else f"llvm:{part.name}"
    return f"{'  ' * depth}{f'stage {name}' if part.kind == 'stage' else name}"


def times_json(capture: Capture) -> dict[str, Any]:
    """The tree with durations in microseconds, and the share that is accounted for."""
    times = capture.times or CompileTimes(())
    tree = time_tree(times)
    return picked(
        capture,
        "id kernel=name target triton=environment.triton_version",
        whole_us=tree.whole_ns // 1000,
        accounted=round(tree.accounted, 4),
        unaccounted_us=tree.unaccounted_ns // 1000,
        import_us=sum(node.duration_ns for node in tree.imports) // 1000,
        recording_us=tree.recording_ns // 1000,
        processor_us=times.processor_ns // 1000,
        notes=list(times.notes),
        parts=[_node_json(part) for part in tree.root.parts],
    )


def _node_json(node: TimeNode) -> dict[str, Any]:
    row = {"name": node.name, "kind": node.kind, "duration_us": node.duration_ns // 1000}
    return row | {"parts": [_node_json(part) for part in node.parts]}


_ROW = 22


def times_svg(capture: Capture) -> str:
    """A flame graph: each part as wide as its time, and below it the parts within it; time goes to the right."""
    tree = time_tree(capture.times or CompileTimes(()))
    deepest = _depth(tree.root)
    canvas = Canvas(None, 1280, 148 + _ROW * deepest)
    canvas.head(capture.name, str(capture.target), f"{_ms(tree.whole_ns)} ms")
    said = f"Where the compile's time went: {percent(tree.accounted)} accounted for"
    area = canvas.panel(Rect(24, 64, 1232, 68 + _ROW * deepest), said, "irscope's own recording left out")
    _flame(canvas, tree.root, Rect(area.left, area.top, area.width, _ROW), area.width / _whole(tree))
    held = set(_kinds(tree.root))
    looks = [(f"f{tile}", _KINDS.get(kind, kind)) for kind, tile in _TILES.items() if kind in held]
    canvas.legend(area.left, area.top + _ROW * deepest + 16, looks, area.right)
    return canvas.svg(f"{capture.name}: where {_ms(tree.whole_ns)} ms of compiling went")


def _kinds(node: TimeNode) -> Iterator[str]:
    yield node.kind
    for part in node.parts:
        yield from _kinds(part)


def _depth(node: TimeNode) -> int:
    return 1 + max((_depth(part) for part in node.parts if part.kind != "llvm analysis"), default=0)


def _flame(canvas: Canvas, node: TimeNode, place: Rect, scale: float) -> None:
    name = f"llvm:{node.name}" if node.kind == "llvm" else node.name
    tip = f"{name}: {_ms(node.duration_ns)} ms"
    tile = _TILES[node.kind]
    canvas.rect(Rect(place.left, place.top, max(place.width - 1, 0.5), place.height - 2), f"f{tile}", tip=tip)
    letters = int((place.width - 8) / 7)
    if letters > 3:
        canvas.text(place.left + 4, place.top + 14, shorten(name, letters), look=f"x{tile}", size=11)
    left = place.left
    for part in node.parts:
        width = part.duration_ns * scale
        if part.kind != "llvm analysis" and width >= 0.5:
            _flame(canvas, part, Rect(left, place.top + _ROW, width, _ROW), scale)
        left += width


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
        for file, line, share, predicted in measured_lines(one, measured)[:_MOST_LINES]
    ]
    return text + (table(["Python", "Proton's samples", "predicted"], rows, width=width, color=color) if rows else "")


def measured_lines(one: Prediction, measured: MeasuredKernel) -> list[tuple[str, int, float, float | None]]:
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
            for file, line, share, predicted in measured_lines(one, measured)
        ],
    }
