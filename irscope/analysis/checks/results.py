"""Checks captures: the assertions that hold for each, and regressions from a baseline."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from typing import ClassVar

from irscope.analysis.checks.assertions import Compiled, MaxCompileTime, with_largest_buffer, with_registers
from irscope.analysis.checks.subject import Assertion, Breach, Subject, at_finding, at_line, at_place, of_kernel
from irscope.analysis.regressions import (
    FACTS,
    MEASURED,
    OF_ONE_SOURCE,
    FactChange,
    Facts,
    Tolerance,
    Value,
    changed_facts,
    facts_of,
)
from irscope.errors import UsageError, did_you_mean
from irscope.model.evidence import Baseline, BaselineFacts

# registers=4   instruction_count=10%
_TOLERANCE = re.compile(r"(?P<name>[a-z_]{1,40})=(?P<number>\d{1,9}(?:\.\d{1,6})?)(?P<percent>%?)")
# x=*fp16%16 n=i32 SHAPE=(64, 64) num_warps=8
_PART = re.compile(r"(?:^| )(?P<name>[^\s=]{1,200})=(?P<value>.*?)(?= [^\s=]{1,200}=|$)", re.DOTALL)
_ALIGNED = "%16"
_COMPILE_TIME = "compile_ms"
"""The fact of a baseline that only --max-compile-time measures and compares: it is that of one machine."""
_EXPLAINED_BY = {
    "spilled_bytes": ("IRS501",),
    "stack_bytes": ("IRS501",),
    "matrix_unit": ("IRS301", "IRS601"),
    "load_bits": ("IRS101",),
    "store_bits": ("IRS102",),
    "pipeline_buffers": ("IRS201", "IRS202"),
    "occupancy_percent": ("IRS502", "IRS504"),
}


def read_tolerances(texts: Iterable[str]) -> dict[str, Tolerance]:
    """`registers=4` or `instruction_count=10%`, by fact; raises UsageError."""
    found: dict[str, Tolerance] = {}
    for text in texts:
        match = _TOLERANCE.fullmatch(text.strip())
        if match is None:
            raise UsageError(f"--tolerance {text!r}: write FACT=NUMBER or FACT=PERCENT%, such as registers=4.")
        if match["name"] not in FACTS:
            raise UsageError(f"--tolerance {text!r}: no fact has this name.{did_you_mean(match['name'], FACTS)}")
        found[match["name"]] = Tolerance(float(match["number"]), bool(match["percent"]))
    return found


def paired_variants(before: Iterable[str], now: Sequence[str]) -> dict[str, str]:
    """The variant of a baseline that each variant of a kernel is compared with.

    It is the same one, or else the one that nothing is compared with yet and that differs in the fewest types,
    constants and options: a launch that lost its alignment, or has other warps, is that of the baseline all the same.
    A variant for which none is left is new, and is not among the keys.
    """
    there = dict.fromkeys(before)
    pairs = {variant: variant for variant in now if variant in there}
    unpaired = [variant for variant in dict.fromkeys(now) if variant not in there]
    unclaimed = {variant for variant in there if variant not in pairs}
    for new, old in sorted(product(unpaired, unclaimed), key=lambda row: _distance(row[1], row[0])):
        if new not in pairs and old in unclaimed:
            pairs[new] = old
            unclaimed.remove(old)
    return pairs


def _distance(before: str, now: str) -> tuple[int, int, str, str]:
    """How many parts of two launches differ in more than what they are divisible by, and how many in all."""
    was, is_ = _parts(before), _parts(now)
    differing = [name for name in {**was, **is_} if was.get(name) != is_.get(name)]
    other = [name for name in differing if _bare(was.get(name, "")) != _bare(is_.get(name, ""))]
    return len(other), len(differing), now, before


@cache
def _parts(variant: str) -> dict[str, str]:
    return {match["name"]: match["value"] for match in _PART.finditer(variant)}


def _bare(value: str) -> str:
    return value.removesuffix(_ALIGNED)


def launch_changes(before: str, now: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(what is worse, what is better) of a variant than of that of the baseline that it is compared with.

    A launch that is divisible by 16 now is better; every other change of a launch is worse until it is written down.
    """
    was, is_ = _parts(before), _parts(now)
    worse: list[str] = []
    better: list[str] = []
    for name in {**was, **is_}:
        old, new = was.get(name, ""), is_.get(name, "")
        if old == new:
            continue
        if old == f"{new}{_ALIGNED}":
            worse.append(f"{name} is not divisible by 16 any more")
        elif new == f"{old}{_ALIGNED}":
            better.append(f"{name} is divisible by 16")
        else:
            worse.append(f"{name} {old or 'not set'} → {new or 'not set'}")
    return tuple(worse), tuple(better)


def kept_facts(subject: Subject) -> dict[str, Value]:
    """The facts of a capture that a baseline holds: those of which one way is worse, without the GPU's."""
    # A damaged capture is no good baseline: what its findings raise is raised.
    codes = [one.code for one in subject.findings] if subject.capture.has_compiled else None
    facts = facts_of(subject.capture, codes)
    return {name: value for name, value in facts.items() if name in FACTS and name not in (*MEASURED, *OF_ONE_SOURCE)}


def compared(before: Facts, after: Facts, tolerances: Mapping[str, Tolerance]) -> tuple[FactChange, ...]:
    """What changed of the facts that both have, what got worse first; nothing that is within its tolerance."""
    # An empty value is left out of the file.
    before = {"failure": "", "findings": (), **before}
    was, now = ({name: side[name] for name in side if name in before and name in after} for side in (before, after))
    return tuple(one for one in changed_facts(was, now, tolerances) if one.verdict != "other")


@dataclass(frozen=True, slots=True)
class _NotWorse(Assertion):
    """Nothing is worse than in a baseline."""

    path: str
    before: Facts
    tolerances: Mapping[str, Tolerance]
    launch: tuple[str, ...] = ()
    """The regressions of the launch itself, by `launch_changes`."""
    rule: ClassVar[str] = "baseline"

    def __str__(self) -> str:
        return f"--baseline {self.path}"

    def changes(self, subject: Subject) -> tuple[FactChange, ...]:
        return compared(self.before, subject.facts(kept_facts), self.tolerances)

    def breaches(self, subject: Subject) -> Sequence[Breach]:
        breaches: list[Breach] = []
        if self.launch:
            text = f"launched with other arguments or options than in the baseline: {', '.join(self.launch)}"
            breaches.append(at_place(self, subject, (), text))
        for change in self.changes(subject):
            if change.verdict == "worse":
                breaches += self._explained(subject, change)
        return breaches

    def _explained(self, subject: Subject, change: FactChange) -> Sequence[Breach]:
        if change.name == "findings":
            was = change.before if isinstance(change.before, tuple) else ()
            fresh = {one.code: one for one in reversed(subject.findings) if one.code not in was}
            return [at_finding(self, subject, fresh[code]) for code in sorted(fresh)]
        if change.name == "registers" and not subject.capture.resources.spilled_bytes:
            return [with_registers(self, subject, change.text)]
        if change.name == "shared_bytes":
            return [with_largest_buffer(self, subject, change.text)]
        if change.name in ("load_bits", "store_bits"):
            action = change.name.removesuffix("_bits")
            narrow = min(
                (one for one in subject.accesses if one.action == action and one.width_bits),
                key=lambda one: one.width_bits,
                default=None,
            )
            if narrow is not None:
                text = f"{change.text}; the narrowest is {narrow.width_bits} bits"
                return [at_line(self, subject, narrow.line, narrow.place, text, _EXPLAINED_BY[change.name])]
        return [of_kernel(self, subject, change.text, _EXPLAINED_BY.get(change.name, ()))]


_Variant = tuple[str, str]
"""(`KERNEL TARGET`, the variant of it), as a baseline names it."""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """One assertion about one capture."""

    rule: str
    assertion: str
    breaches: tuple[Breach, ...] | None
    """None if it does not apply to the kernel."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One capture with the outcome of each assertion; or a variant of the baseline that is not launched any more."""

    id: str
    """Empty for a variant that is not launched any more."""
    kernel: str
    target: str
    file: str
    line: int
    differs: str
    """The difference from the other captures of its kernel; empty for the only one."""
    outcomes: tuple[CheckOutcome, ...]

    @property
    def breaches(self) -> tuple[Breach, ...]:
        return tuple(breach for one in self.outcomes for breach in one.breaches or ())

    @property
    def name(self) -> str:
        """`matmul_kernel (cuda:90)`; of several variants with the digits of its id."""
        return f"{self.kernel} ({self.target}) {self.id[:8] if self.differs else ''}".rstrip()


@dataclass(frozen=True, slots=True)
class BreachGroup:
    """The same breach of several captures of one kernel."""

    breach: Breach
    captures: tuple[Checked, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The result of checking captures."""

    captures: tuple[Checked, ...]
    better: tuple[str, ...] = ()
    """The improvements over the baseline, a line each."""
    notes: tuple[str, ...] = ()
    """Further remarks, such as variants that the baseline lacks."""
    facts: Mapping[str, Mapping[str, BaselineFacts]] = field(default_factory=dict[str, Mapping[str, BaselineFacts]])
    """Of what was checked with a baseline: `KERNEL TARGET` → variant → its facts."""

    @property
    def vacuous(self) -> tuple[str, ...]:
        """The assertions that apply to none of the captures."""
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
        """Whether every assertion holds, and applies to a capture."""
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
    subjects: Iterable[tuple[Subject, Sequence[Assertion], _Variant, str]],
    variants: Sequence[_Variant],
    against: Against,
) -> Report:
    """Check captures, also by a baseline.

    Args:
        subjects: each capture with what is asserted of it, its variant, and what distinguishes it within its kernel.
        variants: those of all captures, with those that are not among the subjects.
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
        factors = [one for one in assertions if isinstance(one, MaxCompileTime) and one.unit == "x"]
        assertions = [one for one in assertions if one not in factors]
        if against.is_written:
            if factors and (times := subject.compile_times_ms):
                facts[kernel][variant] = {**facts[kernel][variant], _COMPILE_TIME: round(min(times), 1)}
            checked.append(check_subject(subject, assertions, differs=differs))
            continue
        partner = pairs[kernel].get(variant)
        if partner is None:
            notes.append(f"not in the baseline: {kernel} {variant}")
            unknown = CheckOutcome(_NotWorse.rule, f"--baseline {against.path}", None)
            checked.append(check_subject(subject, assertions, more=[unknown], differs=differs))
            continue
        worse, gained = launch_changes(partner, variant)
        known = kernels[kernel][partner].get(_COMPILE_TIME)
        before_ms = float(known) if isinstance(known, (int, float)) else None
        assertions = [*assertions, *(replace(one, before_ms=before_ms) for one in factors)]
        not_worse = _NotWorse(against.path, kernels[kernel][partner], against.tolerances, worse)
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
            outcome = CheckOutcome(_NotWorse.rule, assertion, (Breach(_NotWorse.rule, assertion, text),))
            yield Checked("", kernel, target, "", 0, variant if compared_with else "", (outcome,))


def check_subject(
    subject: Subject, assertions: Sequence[Assertion], *, more: Iterable[CheckOutcome] = (), differs: str = ""
) -> Checked:
    """Check one capture; without a binary the only outcome is that.

    `more`: outcomes that were found otherwise. `differs`: what tells it from the other captures of its kernel.
    """
    capture = subject.capture
    asked: Sequence[Assertion] = (Compiled(), *assertions) if capture.has_compiled else (Compiled(),)
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


def _outcome(assertion: Assertion, subject: Subject) -> CheckOutcome:
    found = assertion.breaches(subject)
    return CheckOutcome(assertion.rule, str(assertion), None if found is None else tuple(found))
