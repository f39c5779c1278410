"""What passes did as text and as JSON: a table, the lives of operations and values, and the log of the compiler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from irscope.analysis.lives.identity import Origin, Trail
from irscope.analysis.lives.operations import Lives, OperationLife, ValueEvent
from irscope.analysis.passes.effects import PassEffect
from irscope.ir.locations.model import Chain, chain_texts, line_text, place_of
from irscope.ir.logs.decisions import LogDecision
from irscope.ir.logs.reasons import read_decisions, read_entries
from irscope.model.capture import Capture
from irscope.model.evidence import PassLog
from irscope.model.plain import picked
from irscope.render.text.tables import milliseconds, table

_MOST_NAMES = 4


def render_lives(lives: Lives, at: int, where: str, file: str, *, width: int | None, color: bool) -> str:
    """The lives of operations; those that are there after the step `at`, which is named `where`, count as surviving.

    `file`: the kernel's, which never counts as Triton's library.
    """
    trail = lives.trail
    counts = lives.counts()
    first = sum(life.counted_from < 0 for life in lives.lives)
    rows: list[list[object]] = [[_step_text(trail, -1), first, "", ""]] if first else []
    for one in counts:
        unclear = "" if one.is_certain else "one of several equal operations"
        rows.append([_step_text(trail, one.step), one.count, *_changes(one.made, one.removed), unclear])
    totals = _changes(sum(one.made for one in counts), sum(one.removed for one in counts))
    rows.append(["total", counts[-1].count if counts else first, *totals])
    parts = [table(["pass", "count", "added", "removed", ""], rows, width=width, color=color)]
    there = sorted((life for life in lives.lives if life.is_there(at)), key=lambda life: life.line_after(at))
    parts.append(f"\nPresent after {where}: {len(there) or 'none'}\n")
    if there:
        parts.append(_survivors(trail, there, at, file, width, color))
    later = [life for life in lives.lives if life.counted_from > at]
    before = [life for life in lives.lives if life.counted_from <= at and not life.is_there(at)]
    for title, some in ((f"Removed before the end of {where}", before), (f"Added after {where}", later)):
        if some:
            parts.append(f"\n{title}: {len(some)}\n{_grouped(trail, some, file, width, color)}")
    return "".join(parts) + _notes(trail)


def _changes(made: int, removed: int) -> tuple[str, str]:
    return f"+{made}" if made else "", f"-{removed}" if removed else ""


def _survivors(trail: Trail, lives: Sequence[OperationLife], at: int, file: str, width: int | None, color: bool) -> str:
    lines = (trail.text_after(at) or "").split("\n")
    rows = [
        [
            life.line_after(at),
            _python(life.chain, file),
            _makers(trail, life) + (_origin_text(life.births[0].origin) if len(life.births) == 1 else ""),
            _removed_text(trail, life),
            lines[life.line_after(at) - 1].strip().partition(" loc(")[0],
        ]
        for life in lives
    ]
    columns = ["line", "Python", "added by", "later removed by", "operation"]
    return table(columns, rows, width=width, color=color)


def _grouped(trail: Trail, lives: Sequence[OperationLife], file: str, width: int | None, color: bool) -> str:
    rows = Counter(
        (life.last.name, _python(life.chain, file), _makers(trail, life), _remover(trail, life)) for life in lives
    )
    cells = [[count, *row] for row, count in rows.items()]
    return table(["", "operation", "Python", "added by", "removed by"], cells, width=width, color=color)


def render_value(trail: Trail, events: Sequence[ValueEvent], file: str, *, width: int | None, color: bool) -> str:
    """The life of a value: a row for each step that did something with it."""
    rows = [
        [
            _step_text(trail, event.step),
            _event_text(event),
            event.value,
            event.sighting.line,
            _python(event.sighting.chain, file),
            event.sighting.text,
        ]
        for event in events
    ]
    columns = ["pass", "", "value", "line", "Python", "operation"]
    return table(columns, rows, width=width, color=color) + _notes(trail)


def _notes(trail: Trail) -> str:
    """What the recording did not keep, and so is not known."""
    groups = [step.passes for step in trail.steps if not step.is_exact]
    if trail.behind:
        groups.append(trail.behind)
    if not groups:
        return ""
    names = ", ".join(" to ".join(dict.fromkeys((group[0].label, group[-1].label))) for group in groups)
    behind = f" What is there after {trail.behind[-1].label} is not known." if trail.behind else ""
    return f"\nThe IR after some passes was not kept ({names}): --snapshots all keeps it.{behind}\n"


def _step_text(trail: Trail, step: int) -> str:
    """`ttgir:coalesce#1`; of several passes together that it was one of them."""
    if step < 0:
        return f"in or before {trail.before[-1].label}" if trail.before else "the source"
    one = trail.steps[step]
    return one.label if one.is_exact else f"one of {one.label}"


def _makers(trail: Trail, life: OperationLife) -> str:
    makers = " or ".join(_step_text(trail, step) for step in life.made_by)
    return makers if len(life.made_by) == 1 else f"{makers} (one of several equal operations)"


def _removed_text(trail: Trail, life: OperationLife) -> str:
    new = f" (now {_some(life.removal.replacements)})" if life.removal and life.removal.replacements else ""
    return _remover(trail, life) + new


def _remover(trail: Trail, life: OperationLife) -> str:
    if life.removal is None:
        return ""
    among = f" (one of {life.removal.among} equal ones)" if life.removal.among > 1 else ""
    return f"{_step_text(trail, life.removal.step)}{among}"


def _origin_text(origin: Origin | None) -> str:
    if origin is None:
        return ""
    words = {"replaces": "instead of", "copies": "a copy of", "beside": "at"}
    return f" ({words[origin.relation]} {_some(origin.names)})"


def _event_text(event: ValueEvent) -> str:
    if event.what == "unclear":
        return f"one of {event.among} equal ones: not followed"
    if event.what == "removed" and event.replacements:
        return f"removed (now {_some(event.replacements)})"
    return f"{event.what}{_origin_text(event.origin)}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} other kinds" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _python(chain: Chain, file: str) -> str:
    return line_text(place_of(chain, file)).rpartition("/")[2] or "–"


# ── JSON ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def lives_json(lives: Lives, at: int, where: str, file: str) -> dict[str, Any]:
    trail = lives.trail
    return {
        "where": where,
        "first_count": sum(life.counted_from < 0 for life in lives.lives),
        "counts": [
            picked(one, "count made removed certain=is_certain", passes=_labels(trail, one.step))
            for one in lives.counts()
        ],
        "operations": [_life_json(trail, life, at, file) for life in lives.lives],
        "not_kept": [one.label for one in trail.behind],
    }


def _life_json(trail: Trail, life: OperationLife, at: int, file: str) -> dict[str, Any]:
    removal = life.removal
    return picked(
        life,
        "name=last.name text=last.text certain=is_certain",
        survives=life.is_there(at),
        line=life.line_after(at) if life.is_there(at) else None,
        made_by=[_labels(trail, step) for step in life.made_by],
        origin=_origin_json(life.births[0].origin) if len(life.births) == 1 else None,
        removed_by=None if removal is None else _labels(trail, removal.step),
        removed_among=None if removal is None else removal.among,
        replacements=[] if removal is None else list(removal.replacements),
        **_place_json(life.chain, file),
    )


def value_json(trail: Trail, events: Sequence[ValueEvent], file: str) -> list[dict[str, Any]]:
    names = "what value operation=sighting.name line=sighting.line text=sighting.text replacements among"
    return [
        picked(event, names, passes=_labels(trail, event.step), origin=_origin_json(event.origin))
        | _place_json(event.sighting.chain, file)
        for event in events
    ]


def _place_json(chain: Chain, file: str) -> dict[str, Any]:
    return {"python": line_text(place_of(chain, file)), "chain": list(chain_texts(chain))}


def _origin_json(origin: Origin | None) -> dict[str, Any] | None:
    return None if origin is None else asdict(origin)


def _labels(trail: Trail, step: int) -> list[str]:
    """The passes of a step; none for what was there before the first."""
    return [one.label for one in trail.steps[step].passes] if step >= 0 else []


def log_text(
    capture: Capture, logs: Sequence[PassLog], *, width: int | None = None, color: bool = False
) -> str:  # fmt: skip
    """What was decided, then what was printed; what an entry has beside its first line is counted."""
    labels = _pass_labels(capture)
    rows: dict[tuple[str, str, str], int] = {}
    for item in logs:
        for decision in read_decisions(item):
            key = (_pass_label(labels, item), _place(decision.chain, capture), decision.said)
            rows[key] = rows.get(key, 0) + 1
    decided = [[*key, f"×{count}" if count > 1 else ""] for key, count in rows.items()]
    parts = [table(["pass", "line", "decided", ""], decided, width=width, color=color)] if decided else []
    parts += [f"{_pass_label(labels, item)}\n{_printed(item, capture, width)}" for item in logs]
    return "\n".join(parts) or "The compiler printed nothing about these passes.\n"


def _printed(item: PassLog, capture: Capture, width: int | None) -> str:
    rows: dict[tuple[int, str, str, str, str], int] = {}
    for entry in read_entries(item.text):
        more = f"+{entry.lines - 1} lines" if entry.lines > 1 else ""
        # LLVM says the same of each of many instructions.
        number = 0 if entry.kind == "llvm" else entry.line
        key = (number, entry.type, _place(entry.chain, capture), entry.first, more)
        rows[key] = rows.get(key, 0) + 1
    lines = [[*shown, f"×{count}" if count > 1 else ""] for (_, *shown), count in rows.items()]
    if item.lines_left_out:
        lines.append(["", "", f"{item.lines_left_out:,} more lines were not kept"])
    return table([""] * 5, lines, width=width)


def entries_text(item: PassLog) -> str:
    """All that was printed, without the locations of operations."""
    rows = [(entry, line_text(place_of(entry.chain))) for entry in read_entries(item.text)]
    left_out = [f"{item.lines_left_out:,} more lines were not kept"] if item.lines_left_out else []
    return "\n".join([" ".join(filter(None, [entry.type, place, entry.text])) for entry, place in rows] + left_out)


def log_json(capture: Capture, logs: Sequence[PassLog]) -> list[dict[str, Any]]:
    labels = _pass_labels(capture)
    return [
        picked(item, "stage index lines_left_out")
        | {"pass": labels.get((item.stage, item.index))}
        | {"decisions": [_decision_json(decision) for decision in read_decisions(item)]}
        | {"entries": [asdict(entry) | _chain_json(entry.chain) for entry in read_entries(item.text)]}
        for item in logs
    ]


def _decision_json(decision: LogDecision) -> dict[str, Any]:
    left_out = ("stage", "index", "line", "operation")
    facts = {field.name: getattr(decision, field.name) for field in fields(decision) if field.name not in left_out}
    operation = decision.operation
    named = {"operation": operation.name, "value": operation.value} if operation else {"operation": "", "value": ""}
    return picked(decision, "kind line text=said", facts=facts, **named, **_chain_json(decision.chain))


def _chain_json(chain: Sequence[object]) -> dict[str, Any]:
    return {"chain": [str(frame) for frame in chain]}


def _pass_labels(capture: Capture) -> dict[tuple[str, int | None], str]:
    return {(snapshot.stage, snapshot.index): snapshot.label for snapshot in capture.passes()}


def _pass_label(labels: dict[tuple[str, int | None], str], item: PassLog) -> str:
    return labels.get((item.stage, item.index), item.stage)


def _place(chain: Chain, capture: Capture) -> str:
    return line_text(place_of(chain, capture.launch.kernel.file)).rpartition("/")[2]


_SLOW_FACTOR = 10
"""A pass that takes this many times the median of those that ran is marked as slow."""


def render_passes(capture: Capture, effects: list[PassEffect], *, width: int | None, color: bool) -> str:
    """Passes as a table: time, whether each changed the IR, and by how much."""
    times = sorted(effect.snapshot.duration_us for effect in effects if effect.snapshot.duration_us is not None)
    slow = max(times[len(times) // 2] * _SLOW_FACTOR, 5000) if times else None
    rows = [_cells(effect, slow) for effect in effects]
    columns = ["stage", "#", "pass", "ms", "", "ops ±", "lines ±", "layouts ±", "convert ±"]
    columns.append("MLIR argument and options")
    return table(columns, rows, width=width, color=color) + _footer(effects)


def _footer(effects: list[PassEffect]) -> str:
    ran = [effect.snapshot for effect in effects if effect.snapshot.outcome == "ran"]
    total = milliseconds(sum(snapshot.duration_us or 0 for snapshot in ran))
    parts = [f"{len(effects)} passes", f"{sum(1 for item in ran if item.changed)} changed the IR"]
    unknown = sum(1 for item in ran if item.changed is None)
    if unknown:
        parts.append(f"{unknown} not compared (? – --snapshots all does)")
    skipped = sum(1 for effect in effects if effect.snapshot.outcome == "skipped")
    if skipped:
        parts.append(f"{skipped} switched off")
    return f"\n{', '.join(parts)}; {total} ms.\n"


def _cells(effect: PassEffect, slow_us: float | None) -> list[str]:
    snapshot = effect.snapshot
    marks = {"skipped": "OFF", "failed": "FAILED"}
    mark = marks.get(snapshot.outcome) or {True: "changed", False: "", None: "?"}[snapshot.changed]
    duration = snapshot.duration_us
    time = "" if duration is None else milliseconds(duration)
    if duration is not None and slow_us is not None and duration >= slow_us:
        time += " SLOW"
    arguments = snapshot.argument + (f"{{{snapshot.options}}}" if snapshot.options else "")
    return [
        effect.stage_title,
        str(snapshot.index),
        effect.title,
        time,
        mark,
        _signed(effect.operations),
        _signed(effect.lines),
        _signed(effect.layouts),
        _signed(effect.convert_layouts),
        arguments + (f" on {snapshot.scope}" if snapshot.scope else ""),
    ]


def _signed(value: int | None) -> str:
    return "" if not value else f"{value:+d}"


def passes_json(capture: Capture, effects: list[PassEffect]) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for effect in effects:
        row = asdict(effect.snapshot)
        del row["text"]
        row["plan_name"] = effect.snapshot.label
        row["text_left_out"] = effect.snapshot.text_left_out
        row |= {
            "lines_change": effect.lines,
            "operations_change": effect.operations,
            "layouts_change": effect.layouts,
            "convert_layouts_change": effect.convert_layouts,
            "by_operation": dict(effect.by_operation),
        }
        rows.append(row)
    return picked(capture, "id kernel=name target", passes=rows)
