"""Verdicts of `irscope verify` as text."""

from __future__ import annotations

from os.path import basename
from typing import TYPE_CHECKING

from irscope.verify.verdict import SafetyVerdict, Violation

if TYPE_CHECKING:
    from irscope.verify.proof import ArgumentsVerdict


def render_verdict(verdict: SafetyVerdict, *, color: bool = False) -> str:
    """The answer, then each violation with its accesses, then what was not decided, and why."""
    answer = f"\x1b[1m{verdict.answer}\x1b[0m" if color else verdict.answer
    lines = [f"{answer}: {verdict.scope}"]
    for violation in verdict.violations:
        lines += _violation(violation)
    lines += [f"  not decided: {reason}." for reason in verdict.undecided]
    lines += [f"  note: {note}." for note in verdict.notes]
    return "\n".join(lines) + "\n"


def render_proof(verdict: ArgumentsVerdict, *, color: bool = False) -> str:
    """The answer for all arguments, what the launch was taken to mean, and what a counterexample shows."""
    answer = f"\x1b[1m{verdict.answer}\x1b[0m" if color else verdict.answer
    lines = [f"{answer}: {verdict.scope}"]
    for violation in verdict.violations:
        lines += _violation(violation)
    lines += [f"  assumed: {row}." for row in verdict.assumed]
    lines += [f"  not decided: {reason}." for reason in verdict.undecided]
    lines += [f"  note: {note}." for note in verdict.notes]
    return "\n".join(lines) + "\n"


def _violation(violation: Violation) -> list[str]:
    head = f"  {violation.code} {violation.title}"
    for file, line in violation.place:
        head += f"  {basename(file)}:{line}"
    return [head, f"    {violation.detail}.", *(f"    {row}" for row in violation.evidence)]
