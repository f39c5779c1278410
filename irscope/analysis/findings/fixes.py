"""Selects fixes among suggestions: those of one kind together, if they are faster and compute the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from irscope.analysis.findings.costs import in_order
from irscope.analysis.findings.model import LEAST_SHARE, Finding, FixChange, Proof, Suggestion, is_alone
from irscope.analysis.findings.search import LEAST_GAIN
from irscope.analysis.findings.studied import Studied
from irscope.analysis.findings.tries import Budget, Changes, Predict, Reconfigured, Tries
from irscope.errors import IrscopeError
from irscope.machine.launch import SMALL_WORK
from irscope.model.capture import Capture
from irscope.model.trial import CompileTrials
from irscope.verify.meaning import DEFAULT_PROGRAMS, MeaningVerdict, compare_captures

FixTimer = Callable[[Sequence[Finding], Mapping[Changes, Capture]], tuple[Finding, ...]]
"""Adds the times of successful fixes, from the findings and the captures of all changes that were compiled."""


def tried(
    studied: Studied,
    findings: Sequence[Finding],
    compile_trials: CompileTrials,
    budget: Budget,
    timer: FixTimer | None = None,
    predicted: Predict | None = None,
    whole: float | None = None,
    reconfigured: Reconfigured | None = None,
    minimum: float = 0.0,
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The findings with what each suggestion that can be tried gave, and notes of what was not tried.

    Each change is compiled once. Of a finding that one suggestion fixes, no other is tried, and other options are left
    out.

    Args:
        timer: measures the fixes, in place of their predicted times.
        predicted: gives the predicted seconds of the launch of a compile; with it a fix is one only if it is faster.
        whole: those of the launch as it is.
        reconfigured: compiles the kernel's Python with other tl.constexpr values; None where that cannot be done.
        minimum: the roofline's seconds: no configuration is believed to be faster.
    """
    if budget.compiles == 0:
        return tuple(findings), ()
    if predicted is not None and budget == Budget():
        budget = _PREDICTED
    tries, proven = Tries(studied, compile_trials, budget), _with_all_of_a_kind(findings)
    notes: list[str] = []
    try:
        while chosen := tries.choose(proven):
            tries.compile(chosen)
            proven = tuple(tries.told(one) for one in proven)
            if predicted is not None and whole is not None:
                # Where a GPU measures the fixes, their predicted times decide nothing.
                decides = timer is None
                proven = tuple(_faster(one, tries.captures, predicted, whole, decides) for one in proven)
        if whole is not None and timer is None:
            proven = in_order(_with_gain(one, whole) for one in proven)
        if predicted is not None and whole is not None and budget.search:
            least = _WORTH_A_SEARCH if budget is _PREDICTED else LEAST_SHARE

            def believed(capture: Capture) -> float | None:
                seconds = predicted(capture)
                return seconds if seconds is not None and seconds >= minimum else None

            proven = _with_search(proven, tries, believed, whole, reconfigured, least)
    except IrscopeError as error:
        notes.append(f"No fix was compiled: {error}")
    if tries.left_out:
        changes = "change" if tries.left_out == 1 else "changes"
        notes.append(
            f"{studied.capture.name}: {tries.left_out} more {changes} could fix it and were not compiled; --tries all "
            "compiles them."
        )
    if timer is not None:
        proven = timer(proven, tries.captures)
    proven = tuple(without_refuted(_without_alternatives(one)) for one in proven)
    return _verified(studied.capture, proven, tries.captures), tuple(notes)


def _with_all_of_a_kind(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Findings of one kind with, before all other suggestions, the first ones of all of them together."""
    first = {
        id(one): next((each for each in one.suggestions if each.changes and not is_alone(each.changes)), None)
        for one in findings
    }
    result: list[Finding] = []
    for finding in findings:
        alike = [mine for one in findings if one.code == finding.code and (mine := first[id(one)]) is not None]
        together: dict[tuple[str, bool], FixChange] = {}
        for part in (part for each in alike for part in each.changes):
            together.setdefault((part.name, part.kind == "contiguous"), part)
        changes, mine = tuple(together.values()), first[id(finding)]
        if mine is None or len(changes) == len(mine.changes) or not {*mine.changes} <= {*changes}:
            result.append(finding)
            continue
        text = "; ".join(dict.fromkeys(each.text for each in alike))
        result.append(replace(finding, suggestions=(Suggestion(text, changes), *finding.suggestions)))
    return tuple(result)


def _with_search(
    findings: Sequence[Finding],
    tries: Tries,
    predicted: Predict,
    whole: float,
    reconfigured: Reconfigured | None,
    least: float,
) -> tuple[Finding, ...]:
    """The first finding of a share of the time that a configuration may fix, with the fastest that is found."""
    wanted = [one for one in findings if one.code in _OF_CONFIGURATION and one.share >= least]
    if not wanted:
        return tuple(findings)
    proofs = [(one.changes, one.proof.seconds) for each in findings for one in each.suggestions if one.proof]
    found = tries.search(predicted, whole, reconfigured, {one: seconds for one, seconds in proofs if seconds})
    fixes = [each.proof.seconds for each in wanted[0].suggestions if each.proof and each.proof.is_better]
    to_beat = min([(1 - _LEAST_OF_CONFIGURATION) * whole, *((1 - LEAST_GAIN) * one for one in fixes if one)])
    is_fix = bool(found.changes) and found.seconds < to_beat
    proof = Proof(is_fix, (found.text,), seconds=found.seconds if is_fix else None)
    text = ", ".join(map(str, found.changes)) if is_fix else "another configuration"
    if is_fix and found.grid is not None and found.grid != tries.grid:
        # Who changes the tiles alone computes a part of the result.
        text += f", and a grid of {'×'.join(map(str, found.grid))}"
    more = Suggestion(text, found.changes if is_fix else (), proof)
    first = wanted[0]
    return tuple(
        replace(one, suggestions=(*one.suggestions, more))
        if (one.code, one.text, one.place) == (first.code, first.text, first.place)
        else one
        for one in findings
    )


def _verified(
    capture: Capture, findings: Sequence[Finding], captures: Mapping[Changes, Capture]
) -> tuple[Finding, ...]:
    """Findings whose fixes were executed next to the unchanged launch: a change of the result is no fix.

    A change of the data, or of the constants that the grid follows from, is not executed, which is said; and so is a
    launch of much work, of which one program at the most is compared, for the first fix.
    """
    known: dict[Changes, MeaningVerdict] = {}

    def with_meaning(one: Suggestion) -> Suggestion:
        proof, changes = one.proof, one.changes
        after = captures.get(changes)
        if proof is None or not proof.is_better or after is None:
            return one
        if any(each.kind not in _SAME_DATA for each in changes):
            return replace(one, proof=replace(proof, effects=(*proof.effects, _NOT_COMPARED)))
        exceeded = next((verdict for verdict in known.values() if verdict.is_exceeded), None)
        if changes not in known:
            known[changes] = exceeded or compare_captures(capture, after, limits=SMALL_WORK)
        meaning = known[changes]
        if (changed := meaning.culprit) is not None:
            return replace(
                one, proof=replace(proof, is_better=False, failure=f"computes something else: {changed.detail}")
            )
        return replace(one, proof=replace(proof, effects=(*proof.effects, _said(meaning))))

    return tuple(replace(one, suggestions=tuple(map(with_meaning, one.suggestions))) for one in findings)


_NOT_COMPARED = "result not compared"


def _said(meaning: MeaningVerdict) -> str:
    if meaning.is_exceeded:
        return f"{_NOT_COMPARED}: more work than irscope does for it ('irscope verify --vs' compares)"
    if meaning.answer != "same":
        return _NOT_COMPARED
    few = meaning.programs < min(DEFAULT_PROGRAMS, meaning.all_programs)
    return f"same result ({meaning.programs} of {meaning.all_programs} programs compared)" if few else "same result"


_WORTH_A_SEARCH = 0.1
"""The share of the time that a finding costs from which on other configurations are compiled by default."""
_PREDICTED = Budget(3, 6, 8)
"""The default limit of compiles where the time of a compile can be predicted."""
_OF_CONFIGURATION = (
    "IRS202", "IRS203", "IRS205", "IRS302", "IRS304", "IRS308", "IRS501", "IRS502", "IRS504", "IRS505", "IRS506",
    "IRS507", "IRS509",
)  # fmt: skip
"""Kinds that other options and tiles may fix."""
_SAME_DATA = ("option", "hint", "contiguous", "compare", "layout", "snapshot", "stages", "narrow")
"""Changes after which the launch computes what it did on the data as they are."""


_LEAST_OF_CONFIGURATION = 0.1
"""The part of the time that other options, tiles or stages of a loop have to gain by prediction: of those that were to
gain less, a third was slower when measured (docs/timing.md)."""


def _faster(
    finding: Finding, captures: Mapping[Changes, Capture], predicted: Predict, whole: float, decides: bool
) -> Finding:
    """A finding whose fixes have predicted times; if these decide, a change that gains too little is no fix."""

    def with_seconds(one: Suggestion) -> Suggestion:
        proof = one.proof
        if proof is None or not proof.is_better or proof.seconds is not None:
            return one
        capture = captures.get(one.changes)
        seconds = predicted(capture) if capture is not None else None
        if seconds is None:
            failure = "its time cannot be compared with that of the launch as it is"
            return replace(one, proof=replace(proof, is_better=False, failure=failure)) if decides else one
        is_configured = any(part.kind in ("option", "stages") for part in one.changes)
        least = _LEAST_OF_CONFIGURATION if is_configured else LEAST_SHARE
        is_faster = not decides or seconds < (1 - least) * whole
        effects = proof.effects if is_faster else (f"predicted {seconds / whole:.2f} times the time", *proof.effects)
        return replace(one, proof=replace(proof, seconds=seconds, is_better=is_faster, effects=effects))

    return replace(finding, suggestions=tuple(map(with_seconds, finding.suggestions)))


def _with_gain(finding: Finding, whole: float) -> Finding:
    """A finding of a small share of the time, which costs no more than its fixes were predicted to gain."""
    times = [one.proof.seconds for one in finding.suggestions if one.proof is not None and one.proof.seconds]
    if finding.seconds is None or finding.share >= _WORTH_A_SEARCH or not times:
        return finding
    seconds = min(finding.seconds, max(whole - min(times), 0.0))
    return replace(finding, seconds=seconds, share=seconds / whole)


def _without_alternatives(finding: Finding) -> Finding:
    if finding.best_fix is None:
        return finding
    kept = [
        one for one in finding.suggestions if one.proof is not None or {part.kind for part in one.changes} != {"option"}
    ]
    return replace(finding, suggestions=tuple(kept))


def without_refuted(finding: Finding) -> Finding:
    """A finding about an access without what its launch is blamed for, if a compile showed that it is not to blame."""
    proofs = [one.proof for one in finding.suggestions if one.proof is not None and not one.proof.failure]
    widened = any(one.is_better or one.seconds for one in proofs)
    if finding.code not in ("IRS101", "IRS102", "IRS103") or not proofs or widened:
        # What is not faster, by prediction, may have made the access wider all the same.
        return finding
    return replace(finding, causes=tuple(one for one in finding.causes if one.evidence != "launch"))
