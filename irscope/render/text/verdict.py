"""Verdicts of `irscope verify` as text: of a launch, of passes, and of two compiles."""

from __future__ import annotations

from collections import Counter
from os.path import basename
from typing import TYPE_CHECKING

from irscope.render.text.tables import duration_text
from irscope.verify.bits import BitsVerdict
from irscope.verify.meaning import Difference, MeaningVerdict, PassMeaning
from irscope.verify.verdict import SafetyVerdict

if TYPE_CHECKING:
    from irscope.analysis.better import BetterVerdict
    from irscope.verify.proof import ArgumentsVerdict


def render_verdict(verdict: SafetyVerdict | ArgumentsVerdict, *, color: bool = False) -> str:
    """The answer, what the launch was taken to mean, each violation, then what was not decided, and why."""
    assumed = () if isinstance(verdict, SafetyVerdict) else verdict.assumed
    answer = f"\x1b[1m{verdict.answer}\x1b[0m" if color else verdict.answer
    lines = [f"{answer}: {verdict.scope}"]
    for violation in verdict.violations:
        places = "".join(f"  {basename(file)}:{line}" for file, line in violation.place)
        lines += [f"  {violation.code} {violation.title}{places}", f"    {violation.detail}."]
        lines += [f"    {row}" for row in violation.evidence]
    lines += [f"  assumed: {row}." for row in assumed]
    lines += [f"  not decided: {reason}." for reason in verdict.undecided]
    lines += [f"  note: {note}." for note in verdict.notes]
    return "\n".join(lines) + "\n"


def render_meaning(verdict: MeaningVerdict, *, color: bool = False) -> str:
    """The answer, then what changed the meaning with its witness, then what is not decided, and why."""
    answer = f"\x1b[1m{verdict.answer}\x1b[0m" if color else verdict.answer
    if verdict.reason:
        return f"{answer}: {verdict.reason}.\n"
    counts = Counter(row.answer for row in verdict.rows)
    shown = ", ".join(f"{counts[word]} {word}" for word in ("same", "changed", "not decided") if counts[word])
    what = "the pass" if len(verdict.rows) == 1 else f"{len(verdict.rows)} passes that changed the IR"
    if verdict.rows and "→" in verdict.rows[0].label:
        what = verdict.rows[0].label
    lines = [f"{answer}: {what}: {shown or 'none changed the IR'}; {_scope(verdict)}"]
    reasons: dict[str, list[PassMeaning]] = {}
    for row in verdict.rows:
        if row.answer == "not decided":
            reasons.setdefault(row.detail, []).append(row)
    for row in verdict.rows:
        alike = reasons.pop(row.detail, []) if row.answer == "not decided" else [row]
        if len(alike) > 1:
            lines.append(f"  {row.answer}  {len(alike)} passes, {alike[0].label} to {alike[-1].label}: {row.detail}.")
        elif alike and (row.answer != "same" or row.arithmetic != "ring"):
            lines += _row(row)
    if verdict.lowering is not None:
        lines += _row(verdict.lowering)
    return "\n".join(lines) + "\n"


def render_better(verdict: BetterVerdict, *, color: bool = False) -> str:
    """The answer, both times with the minimum, what costs most in the second, and the next command."""
    answer = f"\x1b[1m{verdict.answer}\x1b[0m" if color else verdict.answer
    lines = [f"{answer}: {'; '.join(verdict.reasons) or 'the same result in less time'}"]
    if not verdict.meaning.reason:
        lines.append(f"  result: {verdict.meaning.answer}, {_scope(verdict.meaning)}")
    if verdict.before is not None and verdict.after is not None:
        times = [duration_text(one.seconds) for one in (verdict.before, verdict.after)]
        least = f"; {verdict.over_minimum:.3g} times its minimum" if verdict.over_minimum is not None else ""
        lines.append(
            f"  predicted on {verdict.after.part}: {times[0]} → {times[1]}, {verdict.ratio:.3g} times; bound by "
            f"{verdict.after.bound}{least}"
        )
    if verdict.measured is not None and verdict.measured.ratio is not None:
        lines.append(f"  measured on {verdict.measured.device}: {verdict.measured.ratio.text}")
    if verdict.finding is not None:
        lines.append(f"  next to improve: {verdict.finding.code} {verdict.finding.kind.name}: {verdict.finding.text}")
    tool, arguments = verdict.then
    lines.append(f"  next: irscope {' '.join([tool, *map(str, arguments.values())])}")
    return "\n".join(lines) + "\n"


def render_bits(verdict: BitsVerdict, *, color: bool = False) -> str:
    """The answer, and the first place that sums in another order."""
    answer = f"\x1b[1m{verdict.answer}\x1b[0m" if color else verdict.answer
    scope = f"; {_scope(verdict)}" if verdict.all_programs else ""
    lines = [f"{answer}: {verdict.detail}{scope}"]
    if verdict.orders is not None:
        lines += [f"  {verdict.place}", *(f"    {order}" for order in verdict.orders)]
    return "\n".join(lines) + "\n"


def _scope(verdict: MeaningVerdict | BitsVerdict) -> str:
    if verdict.programs == verdict.all_programs:
        return f"all {verdict.programs} programs" if verdict.programs != 1 else "its one program"
    return f"{verdict.programs} of {verdict.all_programs} programs (--all-programs runs the others)"


def _row(row: PassMeaning) -> list[str]:
    since = f" (since {row.since})" if row.since else ""
    lines = [f"  {row.answer}  {row.label}{since}: {row.detail}."]
    if row.answer == "changed" and row.difference is not None:
        lines.append(f"    {_witness(row.difference)}")
    return lines


def _witness(difference: Difference) -> str:
    words = ["the programs together" if difference.program is None else f"program {difference.program}"]
    words.append(f"{difference.tensor}{list(difference.element) if difference.element else ''}")
    if difference.before is not None and difference.after is not None:
        words.append(f"{difference.before:.9g} before, {difference.after:.9g} after")
    words.append(f"inputs: {difference.inputs}")
    return "  ".join(words)
