"""Checks captures: each assertion of each, and regressions from a baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from irscope.analysis.checks.results import Against, Report, check_against, check_subject
from irscope.analysis.checks.subject import Assertion, Subject
from irscope.analysis.sweep import COMPILES_FOR_TIME
from irscope.errors import IrscopeError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.compiles import Compiles
from irscope.record.variants.completing import tell, update_stored, with_log, with_sass
from irscope.store.baseline import variant_names
from irscope.store.shelf import CaptureFile, StoredCaptures, differences, passed_over

Read = Callable[[CaptureFile], Capture | None]
"""The capture of a file, or None."""


def check_captures(
    captures: StoredCaptures,
    assertions: Sequence[Assertion],
    against: Against | None,
    of_each: Sequence[Sequence[Assertion]] | None = None,
    *,
    read: Read = CaptureFile.load,
) -> Report:
    """Check captures: each assertion of each, and with a baseline what got worse.

    Args:
        of_each: what is asserted of each capture besides.
        read: reads a capture; None where it cannot be read, and is left out.
    """
    facts = [one.facts for one in captures.files]
    left_out = passed_over(facts)
    differing = differences(facts)
    names = variant_names(facts) if against is not None else [("", "")] * len(facts)
    with Compiles() as compiles:

        def subjects() -> Iterator[tuple[Subject, Sequence[Assertion], tuple[str, str], str]]:
            for place, file in enumerate(captures.files):
                if place in left_out or (capture := read(file)) is None:
                    continue
                completed = partial(_completed, compiles, file)
                more = of_each[place] if of_each is not None else ()
                with_log, timed = _logging(compiles, capture), partial(_compile_times, compiles)
                subject = Subject(capture, completed=completed, with_log=with_log, compile_times=timed)
                yield subject, (*assertions, *more), names[place], differing[place]

        if against is not None:
            return check_against(subjects(), names, against)
        return Report(tuple(check_subject(one, asked, differs=differs) for one, asked, _, differs in subjects()))


def _completed(compiles: Compiles, file: CaptureFile, capture: Capture) -> Capture:
    """The capture with its SASS; one of which no more was kept than assertions need is compiled again for the rest."""
    if capture.snapshot_level != "none" or not capture.has_compiled or not capture.environment.is_trusted:
        return with_sass(capture, file)
    from irscope.record.process.requests import request_from_capture

    try:
        again = compiles.one(request_from_capture(capture, RecordingOptions(plan=capture.plan, disassemble=False)))
    except IrscopeError as error:
        tell(f"{capture.name} could not be compiled again for its causes: {error}")
        return with_sass(capture, file)
    if again.texts != capture.texts:
        tell(f"{capture.name} gave another result when compiled again, so no causes are reported.")
        return capture
    full = replace(again, launch=capture.launch, sources=capture.sources, environment=capture.environment)
    update_stored(capture, full)
    return with_sass(full, file)


def _logging(compiles: Compiles, capture: Capture) -> partial[Capture] | None:
    """Adds the compiler's log to a capture that was recorded here; nothing of another is compiled unasked."""
    return partial(_with_log, compiles) if capture.environment.is_trusted else None


def _with_log(compiles: Compiles, capture: Capture) -> Capture:
    try:
        return with_log(capture, run=compiles.one)
    except IrscopeError as error:
        tell(f"{capture.name}: the compiler's own log could not be obtained: {error}")
        return capture


def _compile_times(compiles: Compiles, capture: Capture) -> tuple[int, ...]:
    """The microseconds of processor time of several compiles; none where it was not recorded here, or fails."""
    from irscope.record.process.requests import request_from_capture

    if not capture.environment.is_trusted:
        return ()
    asked = RecordingOptions(plan=capture.plan, snapshots="none", disassemble=False, layouts=False)
    try:
        made = [*compiles.fresh([request_from_capture(capture, asked)] * COMPILES_FOR_TIME)]
    except IrscopeError as error:
        tell(f"{capture.name} could not be compiled again, to measure its compile time: {error}")
        return ()
    return tuple(one.processor_us for one in made if one.processor_us is not None)
