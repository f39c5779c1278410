"""What came of checking captures: which assertions hold of which, and the breaches of those that do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from irscope.analysis.checks.model import Assertion, Breach
from irscope.analysis.checks.resources import Compiles
from irscope.analysis.checks.subject import Subject

__all__ = ["BreachGroup", "Checked", "Outcome", "Report", "check_subject"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One assertion about one capture."""

    rule: str
    assertion: str
    breaches: tuple[Breach, ...] | None
    """None if it says nothing of such a kernel."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One capture, with what came of each assertion."""

    id: str
    kernel: str
    target: str
    file: str
    line: int
    differs: str
    """What tells it from the other captures of its kernel; empty for the only one."""
    outcomes: tuple[Outcome, ...]

    @property
    def breaches(self) -> tuple[Breach, ...]:
        """Those of all assertions."""
        return tuple(breach for one in self.outcomes for breach in one.breaches or ())

    @property
    def name(self) -> str:
        """`matmul_kernel (cuda:90)`; of several variants with the digits of its id."""
        return f"{self.kernel} ({self.target}) {self.id[:8] if self.differs else ''}".rstrip()


@dataclass(frozen=True, slots=True)
class BreachGroup:
    """The same breach of several captures of one kernel."""

    breach: Breach
    """That of the first of them."""
    captures: tuple[Checked, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What came of checking some captures."""

    captures: tuple[Checked, ...]
    better: tuple[str, ...] = ()
    """What got better than the baseline, a line each."""
    notes: tuple[str, ...] = ()
    """What else is to be said: kernels that the baseline has not, or that are gone."""

    @property
    def vacuous(self) -> tuple[str, ...]:
        """The assertions that say nothing of any of the captures."""
        rows = [(one.assertion, one.breaches is None) for checked in self.captures for one in checked.outcomes]
        said = {assertion for assertion, is_empty in rows if not is_empty}
        return tuple(dict.fromkeys(assertion for assertion, is_empty in rows if is_empty and assertion not in said))

    @property
    def groups(self) -> tuple[BreachGroup, ...]:
        """The breaches, those of one kernel that read the same as one."""
        found: dict[tuple[object, ...], list[tuple[Breach, Checked]]] = {}
        for checked in self.captures:
            for one in checked.breaches:
                key = (checked.kernel, one.assertion, one.place[:1], one.text)
                found.setdefault(key, []).append((one, checked))
        return tuple(
            BreachGroup(rows[0][0], tuple(dict.fromkeys(checked for _, checked in rows))) for rows in found.values()
        )

    @property
    def passed(self) -> bool:
        """Whether every assertion holds, and says something."""
        return not self.vacuous and not any(one.breaches for one in self.captures)


def check_subject(
    subject: Subject, assertions: Sequence[Assertion], *, more: Iterable[Outcome] = (), differs: str = ""
) -> Checked:
    """Check one capture; if it has no binary, that alone is said.

    `more`: outcomes that were found otherwise. `differs`: what tells it from the other captures of its kernel.
    """
    capture = subject.capture
    asked: Sequence[Assertion] = (Compiles(), *assertions) if capture.has_compiled else (Compiles(),)
    outcomes = [_outcome(one, subject) for one in asked]
    kernel = capture.launch.kernel
    return Checked(
        capture.id,
        capture.name,
        str(capture.target),
        kernel.file,
        kernel.line,
        differs,
        (*outcomes, *more),
    )


def _outcome(assertion: Assertion, subject: Subject) -> Outcome:
    found = assertion.breaches(subject)
    return Outcome(assertion.rule, str(assertion), None if found is None else tuple(found))
