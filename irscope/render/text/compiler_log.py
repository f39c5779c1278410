"""A compiler's log as text and as JSON: what was decided, and what was printed, pass by pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

from irscope.ir.locations.model import line_text, place_of
from irscope.ir.logs.decisions import Decision
from irscope.ir.logs.reasons import LogEntry, read_decisions, read_entries
from irscope.model.capture import Capture
from irscope.model.evidence import PassLog
from irscope.render.text.tables import table

__all__ = ["entries_text", "log_json", "log_text"]


def log_text(
    capture: Capture, logs: Sequence[PassLog], *, width: int | None = None, color: bool = False
) -> str:  # fmt: skip
    """What was decided, then what was printed; what an entry has beside its first line is counted."""
    labels = _labels(capture)
    rows: dict[tuple[str, str, str], int] = {}
    for item in logs:
        for decision in read_decisions(item):
            key = (_label(labels, item), _place(decision.chain, capture), decision.said)
            rows[key] = rows.get(key, 0) + 1
    decided = [[*key, f"×{count}" if count > 1 else ""] for key, count in rows.items()]
    parts = [table(["pass", "line", "decided", ""], decided, width=width, color=color)] if decided else []
    parts += [f"{_label(labels, item)}\n{_printed(item, capture, width)}" for item in logs]
    return "\n".join(parts) or "The compiler printed nothing of these passes.\n"


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
    """As docs/json.md describes it."""
    labels = _labels(capture)
    return [
        {
            "stage": item.stage,
            "index": item.index,
            "pass": labels.get((item.stage, item.index)),
            "lines_left_out": item.lines_left_out,
            "decisions": [_decision_json(decision) for decision in read_decisions(item)],
            "entries": [_entry_json(entry) for entry in read_entries(item.text)],
        }
        for item in logs
    ]


def _decision_json(decision: Decision) -> dict[str, Any]:
    facts = {field.name: getattr(decision, field.name) for field in fields(decision)}
    for name in ("stage", "index", "line", "operation"):
        del facts[name]
    operation = decision.operation
    return {
        "kind": decision.kind,
        "line": decision.line,
        "operation": operation.name if operation is not None else "",
        "value": operation.value if operation is not None else "",
        "chain": [str(frame) for frame in decision.chain],
        "said": decision.said,
        "facts": facts,
    }


def _entry_json(entry: LogEntry) -> dict[str, Any]:
    return asdict(entry) | {"chain": [str(frame) for frame in entry.chain]}


def _labels(capture: Capture) -> dict[tuple[str, int | None], str]:
    return {(snapshot.stage, snapshot.index): snapshot.label for snapshot in capture.passes()}


def _label(labels: dict[tuple[str, int | None], str], item: PassLog) -> str:
    return labels.get((item.stage, item.index), item.stage)


def _place(chain: tuple[Any, ...], capture: Capture) -> str:
    place = place_of(chain, capture.launch.kernel.file)
    return f"{place[0][0].rpartition('/')[2]}:{place[0][1]}" if place else ""
