"""Results as the page shows them: sections with tables, of an ablation, a bench, an upgrade.

The dataclasses are the page's data: `frontend/src/data/results.ts` has the same as types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Literal

from irscope.analysis.passes.ablation import Ablation, AblationRow, SortKey
from irscope.analysis.upgrade.model import Upgrade, UpgradeRow
from irscope.device.measurement import Ratio
from irscope.machine import has_machine
from irscope.model.capture import Capture
from irscope.render.text.bench import Bench, BenchRow, bench_columns, bench_notes, bench_title, row_cells
from irscope.render.text.searches import about, cell, column_title, columns, idle, measured, outcome
from irscope.render.text.upgrade import changes_text, explanation, headline, sorted_rows, stages_text

if TYPE_CHECKING:
    from irscope.machine.observed import ObservedValue

_Tone = Literal["", "better", "worse", "idle", "bad"]
"""How a row or a cell is meant: `idle` changes nothing, `bad` fails or computes something else."""
_View = dict[str, str | int]
"""What a click shows, as the page's fragment has it; empty for no link."""


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    note: str = ""
    """What stands beside it, such as the difference to the first row."""
    tone: _Tone = ""
    key: float | str | None = None
    """What the column is sorted by; None for nothing, which comes last."""
    view: _View = field(default_factory=dict[str, str | int])


@dataclass(frozen=True, slots=True)
class Table:
    """A table; its first row may be what the others are compared with, and stays the first when it is sorted."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    tones: tuple[_Tone, ...]
    has_baseline: bool = False


@dataclass(frozen=True, slots=True)
class _Section:
    title: str
    lines: tuple[str, ...] = ()
    verdict: str = ""
    tone: _Tone = ""
    table: Table | None = None
    view: _View = field(default_factory=dict[str, str | int])
    details: tuple[tuple[str, str], ...] = ()
    """(summary, text) of what stands behind a click."""


@dataclass(frozen=True, slots=True)
class Results:
    title: str
    about: tuple[str, ...]
    sections: tuple[_Section, ...]


_MEANING = (
    "Each row is the compile without that pass, behind each number its difference to the first row. Converts are the "
    "ttg.convert_layout operations at the end of the ttgir stage."
)


def ablation_results(ablation: Ablation, capture: Capture, sort: SortKey | None = None) -> Results:
    """The rows of an ablation; a pass is linked to what it did in `capture`, the first of the page."""
    sentences = [what for what, _ in idle(ablation)]
    sentences += [f"{ablation.missing} more were not compiled"] if ablation.missing else []
    counted = [f"Of {len(ablation.variants)} variants, {'; '.join(sentences)}."] if sentences else []
    variants = (ablation.baseline, *ablation.sorted(sort))
    names = columns(ablation)
    optional = {"result": any(one.agreement for one in variants), "time": any(one.timing for one in variants)}
    measures = [name for name, is_known in optional.items() if is_known]
    numbers = {snapshot.label: number for number, snapshot in enumerate(capture.snapshots, 1)}
    heads = ("off", "artifacts", *measures, *(column_title(ablation, n) for n in names))
    rows = tuple(tuple(_cells(ablation, variant, names, measures, numbers)) for variant in variants)
    table = Table(heads, rows, tuple(_tone(ablation, variant) for variant in variants), has_baseline=True)
    failed = tuple((one.name, one.message) for one in ablation.variants if one.message)
    show = f"irscope diff {ablation.capture[:8]} --disable-pass PASS shows what a row changes."
    return Results(
        f"Passes of {ablation.kernel}, {ablation.target}",
        (f"{about(ablation)}.", *counted),
        (_Section("Without each pass", (_MEANING, show), table=table, details=failed),),
    )


def _cells(
    ablation: Ablation, variant: AblationRow, names: list[str], measures: list[str], numbers: dict[str, int]
) -> list[Cell]:
    number = numbers.get(variant.off[0]) if len(variant.off) == 1 else None
    view: _View = {} if number is None else {"tab": "passes", "pass": number}
    result = outcome(ablation, variant)
    failing: _Tone = "" if variant.compiles else "bad"
    cells = [
        Cell(variant.name or "every pass on", key=variant.name, view=view),
        Cell(result, tone=failing, key=result),
    ]
    agreement, time = measured(variant)
    if "result" in measures:
        verdict = variant.agreement.verdict if variant.agreement else None
        cells.append(Cell(agreement, tone="bad" if variant.is_wrong else "", key=verdict))
    if "time" in measures:
        cells.append(Cell(time, tone=_judged(variant), key=variant.ratio.value if variant.ratio else None))
    for name in names:
        one = cell(ablation, variant, name)
        cells.append(Cell(one.value, one.difference, key=getattr(variant.counts, name)))
    return cells


def _tone(ablation: Ablation, variant: AblationRow) -> _Tone:
    return "idle" if variant.off and variant.compiles and not ablation.changes(variant) else ""


def _judged(variant: AblationRow) -> _Tone:
    """The tone of a time that was measured, and lies beyond the noise; none for what computes something else.

    Fewer instructions are not a gain by themselves, only a shorter time is.
    """
    return "" if not variant.off or variant.is_wrong else _tone_of(variant.ratio)


def _tone_of(ratio: Ratio | None) -> _Tone:
    if ratio is None or not ratio.different:
        return ""
    return "worse" if ratio.value > 1 else "better"


def bench_results(bench: Bench) -> Results:
    """The rows of a bench, the baseline first."""
    rows = tuple(tuple(_cells_of_bench(bench, row)) for row in bench.rows)
    table = Table(tuple(bench_columns(bench)), rows, tuple[_Tone, ...]("" for _ in rows), has_baseline=True)
    return Results(
        f"Times of {bench.kernel}", (bench_title(bench), *bench_notes(bench)), (_Section("Variants", table=table),)
    )


def _cells_of_bench(bench: Bench, row: BenchRow) -> list[Cell]:
    name, median, *others = row_cells(bench, row)
    time = row.timing.median_us if row.timing else None
    cells = [Cell(str(name), key=str(name)), Cell(str(median), tone=_tone_of(row.ratio), key=time)]
    return [*cells, *(Cell(str(one), key=str(one)) for one in others)]


_MOST_VALUES = 400
_MOST_LAUNCHES = 8
_MOST_ELEMENTS = 16


def values_results(captures: Sequence[Capture]) -> Results | None:
    """The values of the first small launches whose tensors their captures hold; None without any, or without NumPy."""
    if not has_machine():
        return None
    sections = tuple(filter(None, map(_values_section, islice(captures, _MOST_LAUNCHES))))
    if not sections:
        return None
    about = "What each operation of the TTGIR gave, with the launch's own tensors, as the CPU computes it."
    return Results("Values", (about,), sections)


def _values_section(capture: Capture) -> _Section | None:
    from irscope.machine.observed import recorded_observation
    from irscope.render.text.values import COLUMNS, nonfinite_text

    observed = recorded_observation(capture)
    if observed is None:
        return None
    rows = tuple(tuple(_cells_of_value(one)) for one in observed.values[:_MOST_VALUES])
    tones = tuple[_Tone, ...]("bad" if one.nans or one.infinities else "" for one in observed.values[:_MOST_VALUES])
    lines = [nonfinite_text(one) for one in observed.nonfinite]
    if len(observed.values) > _MOST_VALUES:
        lines.append(f"{len(observed.values) - _MOST_VALUES} more values: irscope show {capture.id[:8]} --values")
    table = Table((*COLUMNS, "first elements"), rows, tones)
    return _Section(f"{capture.name} {capture.target} {capture.id[:8]}", tuple(lines), table=table)


def _cells_of_value(value: ObservedValue) -> Iterator[Cell]:
    from irscope.render.text.values import elements_text, value_cells

    numbers = (value.minimum, value.maximum, value.nans, value.infinities)
    keys = (value.line, value.name, value.operation, value.type, value.executions, *numbers)
    for text, key in zip(value_cells(value), keys, strict=True):
        # JSON has no infinity.
        is_odd = isinstance(key, float) and not isfinite(key)
        yield Cell(str(text), key=str(key) if is_odd else key)
    yield Cell(elements_text(value, _MOST_ELEMENTS))


_SHOWN_LINES = 5
"""Of the explanation, below the name and what changed: seven lines in all before a click."""
_MOST_SHOWN = 8
"""Kernels whose two captures the page holds: the worst ones."""
_TONES: dict[str, _Tone] = {"worse": "worse", "better": "better", "same": "idle", "unpaired": "bad"}


def upgrade_captures(upgrade: Upgrade, *, every: bool) -> list[Capture]:
    """The captures of the worst rows, before and after; at least one."""
    rows = sorted_rows(upgrade.rows, every)[:_MOST_SHOWN] or upgrade.rows[:1]
    sides = (side for row in rows for side in (row.before, row.after) if side is not None)
    return list({side.id: side for side in sides}.values())


def upgrade_results(upgrade: Upgrade, *, every: bool) -> Results:
    """The rows, of which those whose captures the page holds are linked to their comparison."""
    before, after = upgrade.versions
    numbers = {one.id: number for number, one in enumerate(upgrade_captures(upgrade, every=every), 1)}
    sections = tuple(_section(row, upgrade.versions, numbers) for row in sorted_rows(upgrade.rows, every))
    about = (headline(upgrade).partition(": ")[2], *upgrade.notes)
    return Results(f"Triton {before} → {after}", about, sections)


def _section(row: UpgradeRow, versions: tuple[str, str], numbers: dict[str, int]) -> _Section:
    capture = row.capture
    where = stages_text(row.blame)
    changed = changes_text(row, 4) + (f" — comes in {where}" if where else "")
    lines = [line for line in explanation(row, versions, diff_lines=0) if line][:_SHOWN_LINES]
    guilty = row.blame.guilty if row.blame is not None else None
    details: tuple[tuple[str, str], ...] = ()
    if guilty is not None and guilty.diff is not None and not guilty.diff.is_empty:
        text = guilty.diff.unified(left_name=f"Triton {versions[0]}", right_name=f"Triton {versions[1]}")
        details = ((f"the IR after {guilty.label}: {guilty.diff.summary}", text),)
    return _Section(
        " ".join(filter(None, [capture.name, str(capture.target), row.variant])),
        (changed, *lines),
        verdict=row.verdict,
        tone=_TONES.get(row.verdict, ""),
        table=_facts(row),
        view=_view(row, numbers),
        details=details,
    )


def _view(row: UpgradeRow, numbers: dict[str, int]) -> _View:
    sides = [numbers.get(one.id) if one is not None else None for one in (row.before, row.after)]
    one, other = sides
    return {"tab": "compare", "a": one, "b": other} if one is not None and other is not None else {}


def _facts(row: UpgradeRow) -> Table | None:
    if len(row.changes) < 2:
        return None
    tones: tuple[_Tone, ...] = tuple(_TONES.get(one.verdict, "") for one in row.changes)
    rows = tuple(
        (Cell(one.verdict, tone=tone, key=one.verdict), Cell(one.text, key=one.text))
        for one, tone in zip(row.changes, tones, strict=True)
    )
    return Table(("", "fact"), rows, tuple[_Tone, ...]("" for _ in rows))
