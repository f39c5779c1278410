"""The table of captures: the worst findings, and of each its kernel, target, options, stages and resources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Any

from irscope.analysis.findings.find import worst
from irscope.analysis.findings.model import Finding
from irscope.ir.locations.model import Place
from irscope.model.capture import Capture
from irscope.model.facts import Outline
from irscope.model.launch_record import Assumption, joined, notes_of
from irscope.model.telling import parts_of, telling_columns
from irscope.render.capture import graph_texts, occupancy_text
from irscope.render.text.findings import best_fix_text, line_of_finding
from irscope.render.text.tables import duration_text, masked, milliseconds, table, wrapped

_MOST_FINDINGS = 3

Findings = dict[tuple[str, str, Place], list[tuple[str, Finding]]]
"""Findings by kernel, code and place, each with the id of its capture."""


def note_findings(capture: Capture, findings: Sequence[Finding], found: Findings) -> None:
    """Add the findings of a capture, except small ones."""
    for one in findings:
        if not one.is_small:
            found.setdefault((capture.name, one.code, one.place), []).append((capture.id[:8], one))


def _worst(found: Findings, *, several: bool) -> str:
    if not found:
        return ""

    in_order = worst
    if any(one.seconds is not None for rows in found.values() for _, one in rows):
        # Of what has costs, as `why` orders it; its module needs NumPy.
        from irscope.analysis.findings.costs import in_order
    worst_of_each = {in_order(one for _, one in rows)[0]: rows for rows in found.values()}
    lines: list[str] = []
    for one in in_order(worst_of_each)[:_MOST_FINDINGS]:
        ids = [*dict.fromkeys(id_ for id_, _ in worst_of_each[one])]
        more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
        which = f"  (of {', '.join(ids[:3])}{more})" if several else ""
        cost = f"{duration_text(one.seconds)} {one.share:.0%}  " if one.seconds is not None else ""
        lines.append(cost + masked(line_of_finding(one)) + which)
        lines += [f"    {masked(fix)}"] if (fix := best_fix_text(one)) else []
    return "".join(f"{line}\n" for line in lines) + ("\n" if lines else "")


def render_summary(
    captures: Sequence[Outline], findings: Findings, predicted: Mapping[str, float], *, width: int | None,
    color: bool,
) -> str:  # fmt: skip
    """The worst findings, and a table of captures: kernel, target, what distinguishes variants, options, resources.

    `predicted`: id → the predicted seconds of a capture, a column.
    """
    variants: list[tuple[tuple[str, str], dict[str, str]]] = []
    # As --launch counts them.
    numbers: defaultdict[str, count[int]] = defaultdict(lambda: count(1))
    rows: list[list[Any]] = []
    assumed: list[tuple[Assumption, ...]] = []
    origins: list[str] = []
    of_graphs: list[tuple[str, Capture]] = []
    for outline in captures:
        capture, facts = outline.head, outline.facts
        outcome = "" if not facts.failure else " DOES NOT FIT" if facts.failure == "fit" else " FAILED"
        row = [
            next(numbers[str(capture.target)]),
            facts.id[:8],
            capture.name,
            str(capture.target),
            "×".join(map(str, capture.launch.grid)) if capture.launch.grid else "–",
            _options_text(capture),
            " ".join(facts.stages) + outcome,
            _cell(capture.resources.registers),
            _cell(capture.resources.spilled_bytes),
            _cell(capture.resources.shared_bytes),
            occupancy_text(capture).partition(" (")[0] or "–",
            "–" if capture.compile_us is None else milliseconds(capture.compile_us),
        ]
        rows.append(row)
        variants.append(((capture.name, str(capture.target)), parts_of(capture.launch)))
        assumed.append(capture.launch.assumptions)
        origins.append(capture.environment.origin_text)
        if capture.graphs:
            of_graphs.append((facts.id, replace(capture, artifacts=(), snapshots=())))
    telling, cells = telling_columns(variants, without=_OF_OPTIONS_TEXT)
    columns = ["#", "id", "kernel", "target", "grid", *telling, "options", "stages"]
    columns += ["regs", "spill B", "shared B", "occupancy", "ms"]
    rows = [[*row[:5], *own, *row[5:]] for row, own in zip(rows, cells, strict=True)]
    if any(origins):
        columns.append("from")
        rows = [[*row, origin or "–"] for row, origin in zip(rows, origins, strict=True)]
    if predicted:
        columns.append("predicted")
        times = [predicted.get(one.facts.id) for one in captures]
        rows = [[*row, duration_text(time) if time else "–"] for row, time in zip(rows, times, strict=True)]
    if any(assumed):
        columns.append("assumed")
        rows = [[*row, _assumed(items)] for row, items in zip(rows, assumed, strict=True)]
    text = table(columns, rows, width=width, color=color)
    if graphs := graph_texts(of_graphs, detailed=len(captures) == 1):
        text += f"\n{graphs}\n"
    notes = notes_of(joined(chain.from_iterable(assumed)))
    text += "".join(f"\n{masked(note)}" for note in notes) + ("\n" if notes else "")
    text = _worst(findings, several=len(captures) > 1) + text
    hint = _hint(captures)
    return "\n".join([text, *wrapped(hint, width or len(hint))]) + "\n"


def _hint(captures: Sequence[Outline]) -> str:
    """The commands that show more of these captures; where none compiled, of what there is of them."""
    if any(row.head.has_compiled for row in captures):
        return (
            "irscope show ID --stage ttgir prints a stage; irscope passes ID lists the passes; irscope why ID "
            "reports what is slow."
        )
    reached = next((row.facts.stages[-1] for row in captures if row.facts.stages), "")
    stage = f"; irscope show ID --stage {reached} prints the last stage that was made" if reached else ""
    passes = "; irscope passes ID lists the passes up to the failure" if reached else ""
    return f"irscope show ID --json has the whole output of the compiler{stage}{passes}."


def _assumed(items: Sequence[Assumption]) -> str:
    """`n=0, m=0`: the values that the virtual GPU assumed, except those that only a check read."""
    shown = (f"{item.name}={item.value}" for item in items if not item.only_checked)
    return ", ".join(dict.fromkeys(shown)) or "–"


_OF_OPTIONS_TEXT = ("num_warps", "num_stages", "num_ctas")


def _options_text(capture: Capture) -> str:
    launch = capture.launch
    parts = [f"{launch.option('num_warps')}w" if launch.option("num_warps") else ""]
    parts.append(f"{launch.option('num_stages')}s" if launch.option("num_stages") is not None else "")
    if (launch.option("num_ctas") or 1) > 1:
        parts.append(f"{launch.option('num_ctas')}ctas")
    if (tuning := launch.autotuning) is not None:
        parts.append(f"config {tuning.number_text}{' (winner)' if tuning.winner else ''}")
    if capture.plan:
        parts.append(str(capture.plan))
    return " ".join(filter(None, parts))


def _cell(value: int | None) -> str:
    return "–" if value is None else str(value)
