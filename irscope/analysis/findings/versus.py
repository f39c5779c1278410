"""Why one compile of a kernel is slower than another: the terms of both predictions that differ, and the lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os.path import basename
from typing import Literal

from irscope.analysis.code import alike
from irscope.analysis.findings.costs import Timed, priced, timed
from irscope.analysis.findings.find import findings_of
from irscope.analysis.findings.model import LEAST_SHARE, Finding
from irscope.analysis.findings.studied import Studied
from irscope.ir.syntax import Ignored
from irscope.model.capture import Capture
from irscope.model.telling import parts_of, telling_names

_IGNORED: frozenset[Ignored] = frozenset(("locations", "names", "attributes"))
_MOST_LINES = 5


@dataclass(frozen=True, slots=True)
class Term:
    """One term of a prediction that differs."""

    kind: Literal["unit", "wait", "line", "figure"]
    name: str
    """The unit, the reason to wait, `matmul.py:14`, or the figure."""
    before: float | None
    """Seconds; of a figure its value, None if it is not known."""
    after: float | None


@dataclass(frozen=True, slots=True)
class Versus:
    """Two compiles, and the parts that take longer in the second."""

    before: Timed
    after: Timed
    terms: tuple[Term, ...]
    """Those of the prediction that differ by 3 % of the time, the most first within each kind; then figures."""
    options: tuple[str, ...]
    """`num_warps 8 → 1`, of each that differs."""
    first_pass: str
    """The first pass after which the IR differs, or `source`; empty if none does, or the passes were not kept."""
    new: tuple[Finding, ...] = ()
    """The findings of the second that the first has not, of 3 % or more."""
    removed: tuple[Finding, ...] = ()

    @property
    def ratio(self) -> float | None:
        """The second's predicted time over the first's."""
        ours, theirs = self.before.prediction, self.after.prediction
        return theirs.seconds / ours.seconds if ours is not None and theirs is not None else None

    @property
    def sentence(self) -> str:
        """`predicted time × 1.8 with num_warps 8 → 1: spills`, or why that is not known."""
        ratio = self.ratio
        if ratio is None:
            return f"not predicted: {self.before.why_not or self.after.why_not}"
        causes = [one.kind.name for one in (self.new if ratio >= 1 else self.removed)[:1]]
        grown = [one for one in self.terms if one.kind == "wait" and (one.after or 0) > (one.before or 0)]
        causes += [one.name for one in grown[:1] if ratio > 1]
        about = f": {', '.join(causes)}" if causes else ""
        with_ = f" with {', '.join(self.options)}" if self.options else ""
        where = f"; the IR first differs after {self.first_pass}" if self.first_pass else ""
        if abs(ratio - 1) < LEAST_SHARE:
            return f"predicted time unchanged{with_}{where}"
        return f"predicted time × {ratio:.3g}{with_}{about}{where}"


def versus(before: Capture, after: Capture) -> Versus:
    """Compare the predictions of two captures, which hold their SASS: of one kernel, or of two that do the same."""
    times = timed(before), timed(after)
    found = [_large(capture, time) for capture, time in zip((before, after), times, strict=True)]
    codes = [{(one.code, one.place[:1]) for one in rows} for rows in found]
    new, removed = (
        tuple(one for one in found[mine] if (one.code, one.place[:1]) not in codes[1 - mine]) for mine in (1, 0)
    )
    terms = tuple(_terms(before, after, *times))
    if before.name != after.name:
        # Their arguments are not one another's, and their IR differs from the beginning.
        return Versus(*times, terms, (), "", new, removed)
    sides = [parts_of(one.launch) | {"target": str(one.target)} for one in (before, after)]
    options = tuple(f"{name} {sides[0].get(name)} → {sides[1].get(name)}" for name in telling_names(sides))
    return Versus(*times, terms, options, _first_pass(before, after), new, removed)


def _large(capture: Capture, time: Timed) -> list[Finding]:
    studied = Studied(capture)
    return [one for one in priced(studied, findings_of(studied), time) if one.share >= LEAST_SHARE]


def _terms(before: Capture, after: Capture, ours: Timed, theirs: Timed) -> Iterator[Term]:
    left, right = ours.prediction, theirs.prediction
    if left is None or right is None:
        return
    least = LEAST_SHARE * max(left.seconds, right.seconds)
    sides = left, right
    tables: dict[Literal["unit", "wait", "line"], list[dict[str, float]]] = {
        "unit": [{name: part * (one.seconds - one.launch_seconds) for name, part in one.busy} for one in sides],
        "wait": [{name: part * (one.seconds - one.launch_seconds) for name, part in one.waits} for one in sides],
        "line": [{f"{basename(row.file)}:{row.line}": row.seconds for row in one.lines if row.line} for one in sides],
    }
    for kind, (old, new) in tables.items():
        differing = [name for name in {**old, **new} if abs(new.get(name, 0.0) - old.get(name, 0.0)) >= least]
        differing.sort(key=lambda name: -abs(new.get(name, 0.0) - old.get(name, 0.0)))
        yield from (Term(kind, name, old.get(name, 0.0), new.get(name, 0.0)) for name in differing[:_MOST_LINES])
    figures = (
        ("registers", before.resources.registers, after.resources.registers),
        ("bytes spilled", before.resources.spilled_bytes, after.resources.spilled_bytes),
        ("bytes of shared memory", before.resources.shared_bytes, after.resources.shared_bytes),
        ("CTAs per multiprocessor", left.ctas_per_unit, right.ctas_per_unit),
        ("instructions of SASS", _instructions(ours), _instructions(theirs)),
        ("bytes of DRAM", left.dram_bytes, right.dram_bytes),
        ("bytes of L2", left.l2_bytes, right.l2_bytes),
    )
    for name, was, now in figures:
        if was is not None and now is not None and abs(now - was) > 0.01 * max(was, now):
            yield Term("figure", name, was, now)


def _instructions(time: Timed) -> int | None:
    return len(time.model.execution.program.code) if time.model is not None else None


def _first_pass(before: Capture, after: Capture) -> str:
    if not alike(before.texts.get("source", ""), after.texts.get("source", ""), _IGNORED):
        return "source"
    theirs = {(one.stage, one.label): one for one in after.passes()}
    for one in before.passes():
        other = theirs.get((one.stage, one.label))
        ours, their = before.text_after(one), after.text_after(other) if other is not None else None
        if ours is not None and their is not None and ours != their and not alike(ours, their, _IGNORED):
            return one.label
    return ""
