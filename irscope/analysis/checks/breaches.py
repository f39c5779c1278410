"""Makes breaches: finds the line, the cause and the IR of what breaks an assertion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irscope.analysis.checks.model import Assertion, Breach
from irscope.analysis.checks.subject import Subject
from irscope.analysis.findings.model import Finding
from irscope.ir.locations.user import Place

__all__ = ["at_finding", "at_line", "at_place", "explained_by", "of_kernel"]


def of_kernel(assertion: Assertion, subject: Subject, text: str, codes: Sequence[str] = ()) -> Breach:
    """A breach by the whole kernel; the first finding of some codes explains it, and says the line."""
    found = next((one for code in codes for one in subject.explaining if one.code == code), None)
    if found is not None:
        return at_finding(assertion, subject, found, text)
    place = subject.kernel_place
    return Breach(assertion.rule, str(assertion), text, place, subject.python_at(place))


def at_finding(assertion: Assertion, subject: Subject, finding: Finding, text: str = "") -> Breach:
    """A breach where a finding is, with its causes; `text`: in place of the finding's own."""
    place = finding.place or subject.kernel_place
    return Breach(
        assertion.rule,
        str(assertion),
        text or f"{finding.code} {finding.kind.name}: {finding.text}",
        place,
        subject.python_at(place),
        explained_by(finding, named=bool(text)),
        finding,
        *_excerpt(subject, finding.line),
    )


def at_line(
    assertion: Assertion, subject: Subject, line: int, place: Place, text: str, codes: Sequence[str] = ()
) -> Breach:
    """A breach by an operation of the TTGIR; the findings of some codes that are about the same line of it explain it.

    The findings of the same operation come first, then those of its line of Python.
    """
    own = [one for one in subject.explaining if one.code in codes and one.place[:1] == place[:1]]
    found = min(own, key=lambda one: one.line != line, default=None)
    place = place or subject.kernel_place
    return Breach(
        assertion.rule,
        str(assertion),
        text,
        place,
        subject.python_at(place),
        explained_by(found, named=True) if found is not None else (),
        found,
        *_excerpt(subject, line),
    )


def at_place(assertion: Assertion, subject: Subject, place: Place, text: str, causes: Iterable[str] = ()) -> Breach:
    """A breach at a line of Python, with causes that are known already."""
    place = place or subject.kernel_place
    return Breach(assertion.rule, str(assertion), text, place, subject.python_at(place), tuple(causes))


def explained_by(finding: Finding, *, named: bool) -> tuple[str, ...]:
    """The causes of a finding with their evidence; `named`: the finding itself comes first."""
    causes = [f"{one.text} [{one.evidence}: {one.source}]" for one in finding.causes]
    return (f"{finding.code} {finding.kind.name}: {finding.text}", *causes) if named else tuple(causes)


def _excerpt(subject: Subject, line: int) -> tuple[str, tuple[tuple[int, str], ...], int]:
    rows = subject.around(line)
    return ("ttgir", rows, line) if rows else ("", (), 0)
