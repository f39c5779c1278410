"""What got worse, and what better, than a baseline: the facts of a kernel that were written down before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from irscope.analysis.checks.breaches import at_finding, at_line, of_kernel
from irscope.analysis.checks.model import Breach
from irscope.analysis.checks.resources import with_largest_buffer, with_registers
from irscope.analysis.checks.subject import Subject
from irscope.analysis.regressions import (
    FACTS,
    MEASURED,
    OF_ONE_SOURCE,
    FactChange,
    Facts,
    Value,
    changed_facts,
    facts_of,
)
from irscope.errors import UsageError, did_you_mean

__all__ = ["NotWorse", "Tolerance", "compared", "kept_facts", "read_tolerances"]

# registers=4   instruction_count=10%
_TOLERANCE = re.compile(r"(?P<name>[a-z_]{1,40})=(?P<number>\d{1,9}(?:\.\d{1,6})?)(?P<percent>%?)")
_EXPLAINED_BY = {
    "spilled_bytes": ("IRS501",),
    "stack_bytes": ("IRS501",),
    "matrix_unit": ("IRS301", "IRS601"),
    "load_bits": ("IRS101",),
    "store_bits": ("IRS102",),
    "pipeline_buffers": ("IRS201", "IRS202"),
    "occupancy_percent": ("IRS502", "IRS504"),
}


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How much worse a fact may be."""

    number: float
    is_relative: bool
    """Of the value before, in percent; else in the fact's own unit."""

    def __str__(self) -> str:
        return f"{self.number:g}{'%' if self.is_relative else ''}"


def read_tolerances(texts: Iterable[str]) -> dict[str, Tolerance]:
    """`registers=4` or `instruction_count=10%`, by fact; raises UsageError."""
    found: dict[str, Tolerance] = {}
    for text in texts:
        match = _TOLERANCE.fullmatch(text.strip())
        if match is None:
            raise UsageError(f"--tolerance {text!r}: write FACT=NUMBER or FACT=PERCENT%, such as registers=4.")
        if match["name"] not in FACTS:
            raise UsageError(f"--tolerance {text!r}: no fact is named so.{did_you_mean(match['name'], FACTS)}")
        found[match["name"]] = Tolerance(float(match["number"]), bool(match["percent"]))
    return found


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
    shared = before.keys() & after.keys()
    was = {name: value for name, value in before.items() if name in shared}
    now = {name: value for name, value in after.items() if name in shared}
    relative = {name: one.number / 100 for name, one in tolerances.items() if one.is_relative}
    for name, one in tolerances.items():
        first, second = was.get(name), now.get(name)
        if one.is_relative or not isinstance(first, (int, float)) or not isinstance(second, (int, float)):
            continue
        relative[name] = 0.0
        if abs(second - first) <= one.number:
            now[name] = first
    return tuple(one for one in changed_facts(was, now, relative) if one.verdict != "other")


@dataclass(frozen=True, slots=True)
class NotWorse:
    """Nothing is worse than in a baseline."""

    path: str
    before: Facts
    tolerances: Mapping[str, Tolerance]
    rule: ClassVar[str] = "baseline"

    def __str__(self) -> str:
        return f"--baseline {self.path}"

    def changes(self, subject: Subject) -> tuple[FactChange, ...]:
        """What got worse, or better."""
        return compared(self.before, subject.facts(kept_facts), self.tolerances)

    def breaches(self, subject: Subject) -> Sequence[Breach]:
        """Each fact that is worse, with its line and cause."""
        found: list[Breach] = []
        for change in self.changes(subject):
            if change.verdict == "worse":
                found += self._explained(subject, change)
        return found

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
