"""Checks captures: each assertion of each, and what got worse than a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from irscope.analysis.checks.baseline import NotWorse, Tolerance, kept_facts
from irscope.analysis.checks.model import Assertion
from irscope.analysis.checks.results import Checked, Outcome, Report, check_subject
from irscope.analysis.checks.subject import Subject
from irscope.cli.output.talk import say
from irscope.cli.subject.stored import readable
from irscope.errors import IrscopeError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.compiles import Compiles
from irscope.record.variants.completing import update_stored, with_log, with_sass
from irscope.store.baseline import Baseline, BaselineValue, variant_names
from irscope.store.facts import CaptureFacts, differences

if TYPE_CHECKING:
    from irscope.store.shelf import CaptureFile, StoredCaptures

__all__ = ["Against", "check_captures"]


@dataclass(slots=True)
class Against:
    """A baseline that captures are compared with, or that is written anew."""

    path: Path
    baseline: Baseline
    tolerances: Mapping[str, Tolerance]
    updates: bool
    is_whole: bool
    """Whether what is checked is all that the baseline is of, so that what it has besides is gone."""
    notes: list[str]
    better: list[str]
    fresh: dict[str, dict[str, Mapping[str, BaselineValue]]]
    """The facts of what was checked."""

    def assertion(self, kernel: str, variant: str) -> NotWorse | None:
        """The assertion about one variant; None for one that the baseline has not."""
        before = self.baseline.facts(kernel, variant)
        if before is None or self.updates:
            return None
        return NotWorse(str(self.path), before, self.tolerances)


def check_captures(
    captures: StoredCaptures,
    assertions: Sequence[Assertion],
    against: Against | None,
    of_each: Sequence[Sequence[Assertion]] | None = None,
) -> Report:
    """What came of each assertion about each capture; `of_each`: what is asserted of each capture besides."""
    facts = [one.facts for one in captures.files]
    passed_over = _passed_over(facts)
    differing = differences(facts)
    names = variant_names(facts) if against is not None else [("", "")] * len(facts)
    checked: list[Checked] = []
    with Compiles() as compiles:
        for place, file in enumerate(captures.files):
            if place in passed_over or (capture := readable(file)) is None:
                continue
            completed = partial(_completed, compiles, file)
            subject = Subject(capture, completed=completed, with_log=_logging(compiles, capture))
            all_of_it = [*assertions, *(of_each[place] if of_each is not None else ())]
            if against is None:
                checked.append(check_subject(subject, all_of_it, differs=differing[place]))
            else:
                checked.append(_checked_against(subject, all_of_it, against, names[place], differing[place]))
    if against is None:
        return Report(tuple(checked))
    against.notes += _missing(against)
    return Report(tuple(checked), tuple(against.better), tuple(against.notes))


def _checked_against(
    subject: Subject, assertions: Sequence[Assertion], against: Against, name: tuple[str, str], differs: str
) -> Checked:
    kernel, variant = name
    against.fresh.setdefault(kernel, {})[variant] = subject.facts(kept_facts)
    kept = against.assertion(kernel, variant)
    if kept is None:
        if not against.updates:
            against.notes.append(f"not in the baseline: {kernel} {variant}")
        unknown = [] if against.updates else [Outcome(NotWorse.rule, f"--baseline {against.path}", None)]
        return check_subject(subject, assertions, more=unknown, differs=differs)
    found = check_subject(subject, (*assertions, kept), differs=differs)
    if not subject.capture.has_compiled or subject.capture.status != "ok":
        # It failed before too: nothing got worse.
        if kept.before.get("failure"):
            found = replace(found, outcomes=tuple(one for one in found.outcomes if one.rule != "compiles"))
        return found
    against.better += [f"{found.name}: {change.text}" for change in kept.changes(subject) if change.verdict == "better"]
    return found


def _missing(against: Against) -> list[str]:
    """What the baseline has, and was not checked."""
    if not against.is_whole or against.updates:
        return []
    return [
        f"in the baseline, and not here any more: {kernel} {variant}"
        for kernel, variants in sorted(against.baseline.kernels.items())
        for variant in sorted(variants)
        if variant not in against.fresh.get(kernel, {})
    ]


def _completed(compiles: Compiles, file: CaptureFile, capture: Capture) -> Capture:
    """The capture with its SASS; one of which no more was kept than assertions need is compiled again for the rest."""
    if capture.snapshot_level != "none" or not capture.has_compiled or not capture.environment.is_trusted:
        return with_sass(capture, file, tell=say)
    from irscope.record.process.requests import request_from_capture

    try:
        again = compiles.one(request_from_capture(capture, RecordingOptions(plan=capture.plan, disassemble=False)))
    except IrscopeError as error:
        say(f"{capture.name} could not be compiled again, to say more: {error}")
        return with_sass(capture, file, tell=say)
    if again.texts != capture.texts:
        say(f"{capture.name} came out otherwise when it was compiled again: nothing is said of its causes.")
        return capture
    full = replace(again, launch=capture.launch, sources=capture.sources, environment=capture.environment)
    update_stored(capture, full, say)
    return with_sass(full, file, tell=say)


def _logging(compiles: Compiles, capture: Capture) -> partial[Capture] | None:
    """Adds the compiler's log to a capture that was recorded here; nothing of another is compiled unasked."""
    return partial(_with_log, compiles) if capture.environment.is_trusted else None


def _with_log(compiles: Compiles, capture: Capture) -> Capture:
    try:
        return with_log(capture, run=compiles.one, tell=say)
    except IrscopeError as error:
        say(f"{capture.name}: the compiler's own log could not be had: {error}")
        return capture


def _passed_over(facts: Sequence[CaptureFacts]) -> set[int]:
    """The configurations that do not fit, of autotuned kernels of which another one does: the autotuner skips them."""
    fitting = {(one.name, one.target) for one in facts if one.autotuning is not None and one.status == "ok"}
    return {
        place
        for place, one in enumerate(facts)
        if one.status != "ok" and one.has_compiled and one.autotuning is not None and (one.name, one.target) in fitting
    }
