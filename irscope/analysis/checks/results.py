"""Checks captures: which assertions hold of which, what is worse than a baseline, and what the baseline lacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from irscope.analysis.checks.assertions import Compiles
from irscope.analysis.checks.baseline import NotWorse, Tolerance, kept_facts, launch_changes, paired_variants
from irscope.analysis.checks.subject import Assertion, Breach, Subject
from irscope.model.evidence import Baseline, BaselineFacts

__all__ = ["Against", "BreachGroup", "Checked", "Outcome", "Report", "Variant", "check_against", "check_subject"]

Variant = tuple[str, str]
"""(`KERNEL TARGET`, the variant of it), as a baseline names it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One assertion about one capture."""

    rule: str
    assertion: str
    breaches: tuple[Breach, ...] | None
    """None if it says nothing of such a kernel."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One capture, with what came of each assertion; or a variant of the baseline that is not launched any more."""

    id: str
    """Empty for a variant that is not launched any more."""
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
    """What else there is: variants that the baseline has not."""
    facts: Mapping[str, Mapping[str, BaselineFacts]] = field(default_factory=dict[str, Mapping[str, BaselineFacts]])
    """Of what was checked with a baseline: `KERNEL TARGET` → variant → its facts."""

    @property
    def vacuous(self) -> tuple[str, ...]:
        """The assertions that say nothing of any of the captures."""
        launched = [checked for checked in self.captures if checked.id]
        rows = [(one.assertion, one.breaches is None) for checked in launched for one in checked.outcomes]
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


@dataclass(frozen=True, slots=True)
class Against:
    """A baseline that captures are compared with."""

    path: str
    baseline: Baseline
    tolerances: Mapping[str, Tolerance]
    is_whole: bool
    """Whether what is checked is all that the baseline is of, so that what it has besides is not launched any more."""
    is_written: bool = False
    """Whether it is written anew, so that nothing is compared with it."""


def check_against(
    subjects: Iterable[tuple[Subject, Sequence[Assertion], Variant, str]], variants: Sequence[Variant], against: Against
) -> Report:
    """Check captures, also by a baseline.

    Args:
        subjects: each capture with what is asserted of it, its variant, and what distinguishes it within its kernel.
        variants: those of all captures, with those that are not among the subjects.
        against: the baseline.
    """
    kernels: Mapping[str, Mapping[str, BaselineFacts]] = {} if against.is_written else against.baseline.kernels
    by_kernel: defaultdict[str, list[str]] = defaultdict(list)
    for kernel, variant in variants:
        by_kernel[kernel].append(variant)
    pairs = {kernel: paired_variants(kernels.get(kernel, {}), now) for kernel, now in by_kernel.items()}
    checked: list[Checked] = []
    better: list[str] = []
    notes: list[str] = []
    facts: defaultdict[str, dict[str, BaselineFacts]] = defaultdict(dict)
    for subject, assertions, (kernel, variant), differs in subjects:
        facts[kernel][variant] = subject.facts(kept_facts)
        if against.is_written:
            checked.append(check_subject(subject, assertions, differs=differs))
            continue
        partner = pairs[kernel].get(variant)
        if partner is None:
            notes.append(f"not in the baseline: {kernel} {variant}")
            unknown = Outcome(NotWorse.rule, f"--baseline {against.path}", None)
            checked.append(check_subject(subject, assertions, more=[unknown], differs=differs))
            continue
        worse, gained = launch_changes(partner, variant)
        not_worse = NotWorse(against.path, kernels[kernel][partner], against.tolerances, worse)
        result = check_subject(subject, (*assertions, not_worse), differs=differs)
        if subject.capture.has_compiled and subject.capture.status == "ok":
            gained = (*gained, *(change.text for change in not_worse.changes(subject) if change.verdict == "better"))
            better += [f"{result.name}: {text}" for text in gained]
        elif not_worse.before.get("failure"):
            # It failed before too: nothing got worse.
            retained = tuple(outcome for outcome in result.outcomes if outcome.rule != "compiles")
            result = replace(result, outcomes=retained)
        checked.append(result)
    if against.is_whole:
        checked += _missing(kernels, pairs, against)
    return Report(tuple(checked), tuple(better), tuple(notes), facts)


def _missing(
    kernels: Mapping[str, Mapping[str, BaselineFacts]], pairs: Mapping[str, Mapping[str, str]], against: Against
) -> Iterable[Checked]:
    """The variants of a baseline that nothing was compared with: one for each kernel that is not launched at all."""
    assertion = f"--baseline {against.path}"
    for name, variants in sorted(kernels.items()):
        compared_with = set(pairs.get(name, {}).values())
        missing = sorted(variants.keys() - compared_with)
        kernel, _, target = name.rpartition(" ")
        count = f"{len(variants)} variant{'s' * (len(variants) != 1)}"
        texts = [f"it is in the baseline, and is not launched any more: {variant}".rstrip(": ") for variant in missing]
        if missing and not compared_with:
            texts = [f"the kernel is in the baseline ({count}), and is not launched any more"]
        for text, variant in zip(texts, missing, strict=False):
            outcome = Outcome(NotWorse.rule, assertion, (Breach(NotWorse.rule, assertion, text),))
            yield Checked("", kernel, target, "", 0, variant if compared_with else "", (outcome,))


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
