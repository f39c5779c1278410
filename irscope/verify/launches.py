"""Verifies all launches of one compile: the first, and those with other arguments or another grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from irscope.machine.values import Array
from irscope.model.capture import Capture
from irscope.model.launch_record import LaunchRecord
from irscope.verify.safety import DEFAULT_ELEMENTS, QUICK_ELEMENTS, verify_launch
from irscope.verify.verdict import SafetyVerdict

MOST_BRIEFLY = 4
"""Launches that are verified for a line among others: each takes up to a second."""


def verify_launches(
    capture: Capture,
    *,
    elements: int | None = DEFAULT_ELEMENTS,
    values: Mapping[str, Array] | None = None,
    earlier: Sequence[Capture] = (),
) -> SafetyVerdict:
    """Verify the launches of a capture as `verify_launch` does, up to the first that is wrong.

    `values` are of the first launch, which is then the only one that is verified. Returns the verdict on that launch
    which is wrong, else on all; a note names the launch, or how many there were.
    """
    program = [launch for one in earlier for launch in _launches_of(one)]
    first, *others = _launches_of(capture)
    verdict: SafetyVerdict = verify_launch(first, elements=elements, values=dict(values or {}), earlier=program)
    verified = [_compared(first)]
    for launch in () if values else others:
        if _compared(launch) in verified:
            continue
        if verdict.answer == "wrong":
            return verdict
        verified.append(_compared(launch))
        differences = ", ".join(_differences(first, launch)) or "other launches before it"
        label = f"launch {len(verified)} of the compile, with {differences}"
        found = verify_launch(launch, elements=elements, earlier=program)
        if found.answer == "wrong":
            return replace(found, notes=(f"this is {label}", *found.notes))
        if found.answer == "not decided":
            reasons = found.undecided or (found.scope,)
            undecided = dict.fromkeys((*verdict.undecided, *(f"{label}: {reason}" for reason in reasons)))
            verdict = replace(verdict, undecided=tuple(undecided))
    if len(verified) > 1:
        verdict = replace(
            verdict, notes=(*verdict.notes, f"this is the verdict on {len(verified)} launches of the compile")
        )
    return verdict


def verify_briefly(capture: Capture, earlier: Sequence[Capture], most: int = MOST_BRIEFLY) -> SafetyVerdict:
    """Verify up to so many launches of a capture, with a lower limit; a note states how many were not verified."""
    several = len(capture.launch.others) + 1
    if several <= most:
        return verify_launches(capture, elements=QUICK_ELEMENTS, earlier=earlier)
    first = verify_launch(capture, elements=QUICK_ELEMENTS, earlier=earlier)
    note = f"of {several} launches of the compile the first; irscope verify checks the others"
    return replace(first, notes=(note, *first.notes))


def _launches_of(capture: Capture) -> Iterator[Capture]:
    yield capture
    for other in capture.launch.others:
        yield replace(capture, launch=replace(capture.launch, grid=other.grid, record=other.record, others=()))


def _compared(capture: Capture) -> tuple[object, ...]:
    """What the verdict on a launch depends on: which new memory was allocated does not decide it."""
    record = capture.launch.record or LaunchRecord()
    rows = [one if one.launches_before else replace(one, empty_storage=0) for one in record.arguments]
    return capture.launch.grid, *rows


def _differences(first: Capture, other: Capture) -> Iterator[str]:
    """What is not as in the first launch: arguments, whose memory is unwritten, and the grid."""
    before, after = (
        [replace(row, empty_storage=0, launches_before=0) for row in one.launch.record.arguments]
        for one in (first, other)
        if one.launch.record is not None
    )
    for row in sorted(set(after) - set(before), key=lambda row: row.path):
        is_same = replace(row, is_unwritten=not row.is_unwritten) in before
        yield f"{row.path} {'un' if row.is_unwritten else ''}written" if is_same else f"another {row.path}"
    if first.launch.grid != other.launch.grid:
        yield f"the grid {other.launch.grid}"
