"""The results of an upgrade: a section for each kernel, its explanation, and the IR behind a click."""

from __future__ import annotations

from irscope.analysis.upgrade.model import Row, Upgrade
from irscope.model.capture import Capture
from irscope.render.report.results.model import Cell, Results, Section, Table, Tone, View
from irscope.render.text.upgrade import changes_text, explanation, headline, sorted_rows, stages_text

__all__ = ["upgrade_captures", "upgrade_results"]

_SHOWN_LINES = 5
"""Of the explanation, below the name and what changed: seven lines in all before a click."""
_MOST_SHOWN = 8
"""Kernels whose two captures the page holds: the worst ones."""
_TONES: dict[str, Tone] = {"worse": "worse", "better": "better", "same": "idle", "unpaired": "bad"}


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


def _section(row: Row, versions: tuple[str, str], numbers: dict[str, int]) -> Section:
    capture = row.capture
    where = stages_text(row.blame)
    changed = changes_text(row, 4) + (f" — comes in {where}" if where else "")
    lines = [line for line in explanation(row, versions, diff_lines=0) if line][:_SHOWN_LINES]
    guilty = row.blame.guilty if row.blame is not None else None
    details: tuple[tuple[str, str], ...] = ()
    if guilty is not None and guilty.diff is not None and not guilty.diff.is_empty:
        text = guilty.diff.unified(left_name=f"Triton {versions[0]}", right_name=f"Triton {versions[1]}")
        details = ((f"the IR after {guilty.label}: {guilty.diff.summary}", text),)
    return Section(
        " ".join(filter(None, [capture.name, str(capture.target), row.variant])),
        (changed, *lines),
        verdict=row.verdict,
        tone=_TONES.get(row.verdict, ""),
        table=_facts(row),
        view=_view(row, numbers),
        details=details,
    )


def _view(row: Row, numbers: dict[str, int]) -> View:
    sides = [numbers.get(one.id) if one is not None else None for one in (row.before, row.after)]
    one, other = sides
    return {"tab": "compare", "a": one, "b": other} if one is not None and other is not None else {}


def _facts(row: Row) -> Table | None:
    """All that changed, where it is more than one fact."""
    if len(row.changes) < 2:
        return None
    tones: tuple[Tone, ...] = tuple(_TONES.get(one.verdict, "") for one in row.changes)
    rows = tuple(
        (Cell(one.verdict, tone=tone, key=one.verdict), Cell(one.text, key=one.text))
        for one, tone in zip(row.changes, tones, strict=True)
    )
    return Table(("", "fact"), rows, tuple[Tone, ...]("" for _ in rows))
