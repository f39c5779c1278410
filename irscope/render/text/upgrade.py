"""What another Triton changes, as a table with an explanation below each kernel, and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from irscope.analysis.diff.texts import TextDiff
from irscope.analysis.regressions import INSTRUCTION_RANK, MEASURED, FactChange
from irscope.analysis.upgrade.model import Blame, CompileTimeChange, Guilty, Upgrade, UpgradeRow
from irscope.device.measurement import Timing
from irscope.model.capture import Capture
from irscope.model.plain import picked
from irscope.model.trial import Side, other_side
from irscope.render.text.bench import error_text, microseconds
from irscope.render.text.tables import counted, table, visible

_CHANGES = 4
_LINES = 7
_DIFF_LINES = 3
_TITLES = {
    "source": "front end",
    "ttir": "source → ttir",
    "ttgir": "ttir → ttgir",
    "llir": "ttgir → llir",
    "ptx": "llir → ptx",
    "cubin": "ptx → cubin",
    "amdgcn": "llir → amdgcn",
    "hsaco": "amdgcn → hsaco",
}
_ORDER = ("worse", "better", "other", "unpaired", "same")


def render_upgrade(upgrade: Upgrade, *, every: bool, width: int | None, color: bool) -> str:
    """The table, each row that changed with its explanation, and notes; `every`: also where nothing changed."""
    return "\n".join(_parts(upgrade, every, width, color))


def _parts(upgrade: Upgrade, every: bool, width: int | None, color: bool) -> Iterator[str]:
    yield headline(upgrade) + "\n"
    rows = sorted_rows(upgrade.rows, every)
    if rows:
        columns = ["", "kernel", "target", "variant", *(["time", "result"] if upgrade.device else [])]
        cells = [
            [
                one.verdict,
                one.capture.name,
                str(one.capture.target),
                one.variant,
                *((_time_text(one), _result_text(one)) if upgrade.device else ()),
                changes_text(one, _CHANGES, measured=not upgrade.device),
                stages_text(one.blame),
            ]
            for one in rows
        ]
        columns += ["what changed", "comes in"]
        yield table(columns, cells, width=width, color=color)
    for one in rows:
        if one.verdict != "same" and (lines := [*explanation(one, upgrade.versions), *_predicted(one)]):
            name = " ".join(filter(None, [one.capture.name, one.variant]))
            yield "\n".join(visible(line) for line in [name, *(f"  {line}" for line in lines)]) + "\n"
    for note in upgrade.notes:
        yield note + "\n"


def _predicted(row: UpgradeRow) -> Iterator[str]:
    """Why the launch takes longer, or less long, by prediction; nothing where it is not predicted."""
    if row.before is not None and row.after is not None and row.before.has_compiled and row.after.has_compiled:
        # It predicts, on NumPy, which a page can do without.
        from irscope.analysis.findings.versus import versus

        found = versus(row.before, row.after)
        if found.ratio is not None:
            yield found.sentence


def sorted_rows(rows: Sequence[UpgradeRow], every: bool) -> list[UpgradeRow]:
    """What got worse first, and of that the worst; `every`: also where nothing is worse or better."""
    kept = [one for one in rows if every or one.verdict in ("worse", "better", "unpaired")]
    return sorted(kept, key=lambda one: (_ORDER.index(one.verdict), *([one.changes[0].order] if one.changes else [])))


def headline(upgrade: Upgrade) -> str:
    """`Triton 3.6.0 → 3.9.0: 44 variants of 13 kernels. 3 worse, 5 better, …`."""
    counts = Counter(one.verdict for one in upgrade.rows)
    words = {"other": "changed", "same": "the same", "unpaired": "not compared"}
    verdicts = ("worse", "better", *words)
    summary = ", ".join(f"{counts[key]} {words.get(key, key)}" for key in verdicts if counts[key])
    kernels = len({(one.capture.name, one.capture.launch.kernel.file) for one in upgrade.rows})
    before, after = upgrade.versions
    number = f"{counted(len(upgrade.rows), 'variant')} of {counted(kernels, 'kernel')}"
    said = f"Triton {before} → {after}: {number}. {summary[:1].upper()}{summary[1:]}."
    return " ".join(filter(None, [said, _compile_time_text(upgrade.compile_time)]))


def _compile_time_text(change: CompileTimeChange | None) -> str:
    """`Compiling got slower: matmul_kernel (cuda:90) 210 to 220 → 300 to 320 ms of processor time, most in ptxas`."""
    if change is None or change.verdict == "same":
        return ""
    sides = " → ".join(f"{one[0]:.0f} to {one[-1]:.0f}" for one in (change.before_ms, change.after_ms))
    part = f", most in {change.part} ({change.part_ms[0]:.0f} → {change.part_ms[1]:.0f} ms by the clock)"
    spread = f"{len(change.after_ms)} compiles each: {sides} ms of processor time"
    took = f"{change.kernel} ({change.target}) {change.ratio:.2f} times as long, {spread}"
    return f"Compiling got {change.verdict}: {took}{part}."


def _time_text(row: UpgradeRow) -> str:
    """`12.3 → 15.1 µs, 1.23x (1.21 to 1.25)`; a dash for what has no time."""
    found = row.measured
    if found is None or found.before is None or found.after is None or found.ratio is None:
        return "–"
    return f"{microseconds(found.before.median_us)} → {microseconds(found.after.median_us)} µs, {found.ratio.text}"


def _result_text(row: UpgradeRow) -> str:
    """How the result agrees in one word; a dash where that is not known."""
    found = row.measured
    return found.agreement.verdict if found is not None and found.agreement is not None else "–"


def changes_text(row: UpgradeRow, most: int, *, measured: bool = True) -> str:
    """The changes of a row in short; those of the instruction mix only where there are no others.

    `measured`: also those of the time and the result.
    """
    if row.why_not_compared:
        return row.why_not_compared
    changes = [one for one in row.changes if measured or one.name not in MEASURED]
    telling = [one for one in changes if one.fact.rank < INSTRUCTION_RANK] or changes
    said = [_shown(one) for one in telling[:most]]
    return ", ".join(said) + (f" and {len(telling) - most} more" if len(telling) > most else "")


def _shown(change: FactChange) -> str:
    """`registers 107 → 115`; of a failure, which says so itself, without its title."""
    return change.text.removeprefix(f"{change.fact.title} ") if change.name == "failure" else change.text


def stages_text(blame: Blame | None) -> str:
    """`ttgir → llir, convert_warp_pipeline#1`; a mark where it is uncertain."""
    if blame is None:
        return ""
    if not blame.stages:
        return "?"
    where = _TITLES.get(blame.stages[0], blame.stages[0])
    if len(blame.stages) > 1:
        where = f"{blame.stages[0]} … {blame.stages[-1]}"
    guilty = f": {blame.guilty.label.partition(':')[2] or blame.guilty.label}" if blame.guilty else ""
    return f"{where}{guilty}{'' if blame.is_sure else ' (uncertain)'}"


def explanation(row: UpgradeRow, versions: tuple[str, str], *, diff_lines: int = _DIFF_LINES) -> list[str]:
    """At most seven lines on a row: its launch, the grafts, the pass with `diff_lines` of its diff, finding, doubts."""
    lines: list[str] = []
    blame = row.blame
    for side, version in zip((row.before, row.after), versions, strict=True):
        if side is not None and side.failure is not None:
            lines.append(f"Triton {version} {side.failure.verdict}: {side.failure.headline}".rstrip(": "))
    lines += _measured_lines(row)
    if blame is not None:
        lines += [_probes(blame, row, versions)] if blame.telling_probes else []
        lines += [_guilty(blame.guilty, versions)] if blame.guilty else []
        lines += list(blame.doubts)
    lines += [f"{one.code} {one.kind.name}: {one.text}" for one in row.findings[:1]]
    if blame is not None and blame.guilty is not None and blame.guilty.diff is not None:
        room = min(diff_lines, _LINES - len(lines))
        lines += _diff_lines(blame.guilty.diff, room)
    return lines[:_LINES]


def _measured_lines(row: UpgradeRow) -> list[str]:
    """The time with its spread, and what is to be said of the result."""
    if row.why_not_measured:
        return [f"not run: {row.why_not_measured}"]
    found = row.measured
    if found is None:
        return []
    said: list[str] = []
    if found.before is not None and found.after is not None:
        sides = (f"{microseconds(one.median_us)} ({_spread(one)})" for one in (found.before, found.after))
        said.append(f"time {' → '.join(sides)} µs: medians and quartiles of {found.before.count} launches")
    if found.why_not_compared:
        said.append(f"results not compared: {found.why_not_compared}")
    agreement = found.agreement
    if agreement is not None and agreement.verdict != "identical":
        error = f", up to {error_text(agreement.max_abs_error)} off" if agreement.max_abs_error is not None else ""
        where = f", {agreement.differing} elements differ{error}, most in {agreement.argument}"
        said.append(
            f"result {agreement.verdict}{where if agreement.differing else ''}"
            f"{agreement.detail and f': {agreement.detail}'}"
        )
    return said


def _spread(timing: Timing) -> str:
    return f"{microseconds(timing.low_us)} to {microseconds(timing.high_us)}"


def _probes(blame: Blame, row: UpgradeRow, versions: tuple[str, str]) -> str:
    """`registers 107 → 115; grafted: ttgir of 3.6.0 by 3.9.0 115, llir of 3.6.0 by 3.9.0 107`."""
    same = versions[0] == versions[1]

    def named(side: Side) -> str:
        return side if same else versions[side == "after"]

    order = {stage: place for place, stage in enumerate(_stages_of(row))}
    said = [
        f"{one.stage} of {named(other_side(one.by))} by {named(one.by)} {one.value}"
        for one in sorted(blame.telling_probes, key=lambda one: order.get(one.stage, 0))
    ]
    return f"{_shown(blame.change)}; grafted: {', '.join(said)}"


def _stages_of(row: UpgradeRow) -> tuple[str, ...]:
    captures = [one for one in (row.before, row.after) if one is not None]
    return max((one.stages for one in captures), key=len)


def _guilty(guilty: Guilty, versions: tuple[str, str]) -> str:
    how = ""
    for before, after in (guilty.options, guilty.outcome):
        if before != after:
            how = f" ({before} → {after})"
    sure = {True: ", confirmed", False: ", or what follows it, not confirmed", None: ""}[guilty.is_confirmed]
    more = f": {guilty.diff.summary}" if guilty.diff is not None else ""
    return f"by {guilty.label}{how}{sure}{guilty.proof and f', {guilty.proof}'}{more}"


def _diff_lines(diff: TextDiff, most: int) -> list[str]:
    changed = [line for line in diff.unified(0).splitlines()[2:] if line[:1] in "+-" and line[1:2] != "#"]
    return [f"{line[0]} {line[1:].strip()}" for line in changed[: max(0, most)]]


def upgrade_json(upgrade: Upgrade) -> dict[str, Any]:
    before, after = upgrade.versions
    rows = [_row_json(one) for one in sorted_rows(upgrade.rows, every=True)]
    return picked(upgrade, "source_versions grafts device notes", before=before, after=after, rows=rows) | {
        "compile_time": upgrade.compile_time
        and picked(upgrade.compile_time, "kernel target verdict ratio before_ms after_ms part part_ms")
    }


def _row_json(row: UpgradeRow) -> dict[str, Any]:
    names = "kernel=capture.name file=capture.launch.kernel.file line=capture.launch.kernel.line variant verdict"
    return picked(
        row,
        names + " why_not_measured target=capture.target",
        before=_side_json(row.before),
        after=_side_json(row.after),
        changes=[picked(one, "fact=name before after verdict text") for one in row.changes],
        measured=None if row.measured is None else row.measured.as_json(),
        findings=[picked(one, "code name=kind.name text line") for one in row.findings],
        blame=None if row.blame is None else _blame_json(row.blame),
    )


def _side_json(capture: Capture | None) -> dict[str, Any] | None:
    if capture is None:
        return None
    return picked(capture, "id status", failure=capture.failure.verdict if capture.failure else "")


def _blame_json(blame: Blame) -> dict[str, Any]:
    guilty = blame.guilty
    fact = None
    if guilty is not None:
        diff = "" if guilty.diff is None else guilty.diff.unified()
        fact = picked(guilty, "label outcome options confirmed=is_confirmed proof", diff=diff)
    probes = [asdict(one) for one in blame.probes]
    return picked(blame, "fact=change.name stages sure=is_sure doubts", probes=probes) | {"pass": fact}
