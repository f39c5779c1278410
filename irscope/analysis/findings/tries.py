"""Tries suggestions: which changes are compiled, how far, and what each of them gave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from irscope.analysis.findings.changed import edited, snapshot_of, with_changes
from irscope.analysis.findings.measures import Reach, compare, may_not_fit, reach_of, without_refuted
from irscope.analysis.findings.model import Change, Finding, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.errors import IrscopeError, UsageError
from irscope.model.capture import Capture
from irscope.model.trial import CompileTrials, Trial

__all__ = ["Budget", "Changes", "Timed", "Tries", "is_mended", "shared_compiles", "tried"]

Changes = tuple[Change, ...]
Timed = Callable[[Sequence[Finding], Mapping[Changes, Capture]], tuple[Finding, ...]]
"""Adds the times of what helped, from the findings and the captures of all changes that were compiled."""
_RANKS: dict[Reach, int] = {"ttgir": 0, "assembly": 1, "binary": 2}


@dataclass(frozen=True, slots=True)
class Budget:
    """How many compiles try what mends a kernel."""

    findings: int | None = 3
    """Only of so many findings, the worst; None for all."""
    compiles: int | None = 3
    """At most so many; None without a limit."""
    long: int | None = 1
    """At most so many that go on from the TTGIR, which takes ten times as long; None without a limit."""

    @staticmethod
    def of(most: int | None) -> Budget:
        """At most so many compiles of any length, of all findings; None for all there are."""
        return Budget(None, most, most)

    @staticmethod
    def parse(text: str | None) -> Budget:
        """What `--tries` says; raises UsageError for what is no number, nor `all`."""
        if text is None:
            return Budget()
        if text != "all" and not (text.isdecimal() and len(text) < 6):
            raise UsageError(f"--tries {text!r} is no number of compiles: write one, such as 8, or all.")
        return Budget.of(None if text == "all" else int(text))


def tried(
    studied: Studied,
    findings: Sequence[Finding],
    compile_trials: CompileTrials,
    budget: Budget,
    timed: Timed | None = None,
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The findings with what each suggestion that can be tried gave, and notes of what was not tried.

    Each change is compiled once, and as far as a finding needs that it would mend. Of a finding that one suggestion
    mends, no other is tried, and other options are left out.

    Args:
        studied: the capture.
        findings: what was found in it, the worst first.
        compile_trials: compiles them.
        budget: how many compiles there are; changes of arguments share one where there would be more.
        timed: with it, every compile makes a binary.
    """
    if budget.compiles == 0 or not any(one.changes for finding in findings for one in finding.suggestions):
        return tuple(findings), ()
    tries, proven = Tries(studied, compile_trials, budget, to_binary=timed is not None), tuple(findings)
    notes: list[str] = []
    try:
        while chosen := tries.choose(proven):
            tries.compile(chosen)
            proven = tuple(tries.told(one) for one in proven)
    except IrscopeError as error:
        notes.append(f"Nothing could be tried: {error}")
    if tries.left_out:
        changes = "change" if tries.left_out == 1 else "changes"
        notes.append(
            f"{studied.capture.name}: {tries.left_out} more {changes} could mend it and were not tried; --tries all "
            "tries them."
        )
    if timed is not None:
        proven = timed(proven, tries.captures)
    return tuple(without_refuted(_without_alternatives(one)) for one in proven), tuple(notes)


def _without_alternatives(finding: Finding) -> Finding:
    """A finding that was mended, without the options that were not tried for that."""
    if not is_mended(finding):
        return finding
    kept = [
        one for one in finding.suggestions if one.proof is not None or {part.kind for part in one.changes} != {"option"}
    ]
    return replace(finding, suggestions=tuple(kept))


@dataclass(frozen=True, slots=True)
class _Tried:
    """What is known of a change."""

    together: Changes
    """All changes of the compile that it was tried in."""
    after: Studied | None
    """The capture of that compile; None if the changes cannot be written into the source."""
    reach: Reach


@dataclass(frozen=True, slots=True)
class _Plan:
    """One compile."""

    changes: Changes
    tried: tuple[Changes, ...]
    """The changes of several suggestions, which it tries at once."""
    reach: Reach
    sectors: bool
    """Whether the sectors that an access asks for are compared, for which the layouts are needed."""


class Tries:
    """The changes of one capture that were compiled."""

    def __init__(
        self, studied: Studied, compile_trials: CompileTrials, budget: Budget, *, to_binary: bool = False
    ) -> None:
        """`to_binary`: whether every compile makes a binary."""
        self._studied = studied
        self._compile_trials = compile_trials
        self._budget = budget
        self._to_binary = to_binary
        self._known: dict[Changes, _Tried] = {}
        self._texts: dict[Changes, str | None] = {}
        self._count = 0
        self._long = 0
        self.left_out = 0
        """How many changes were not tried that the budget had no compile for, when `choose` was called last."""

    @property
    def captures(self) -> dict[Changes, Capture]:
        """All changes of each compile -> its capture."""
        return {one.together: one.after.capture for one in self._known.values() if one.after is not None}

    def choose(self, findings: Sequence[Finding]) -> list[_Plan]:
        """The compiles to do next; none if all is known, or the budget is spent."""
        wanted = dict[Changes, Reach]()
        sectors: set[Changes] = set()
        open_ = [(one, changes) for one in findings if (changes := self._next_of(one))]
        worst = [one for one in findings if any(each.changes for each in one.suggestions)][: self._budget.findings]
        for finding, changes in open_:
            if finding in worst:
                wanted[changes] = _farthest([self._reach_of(finding, changes), wanted.get(changes) or "ttgir"])
                if finding.code == "IRS103":
                    sectors.add(changes)
        compiles, long = _left(self._budget.compiles, self._count), _left(self._budget.long, self._long)
        far = shared_compiles([one for one, reach in wanted.items() if reach != "ttgir"], min(long, compiles))
        plans = [
            _Plan(changes, tuple(tried), _farthest(wanted[one] for one in tried), bool(sectors & {*tried}))
            for changes, tried in far.items()
        ]
        taken = {one for plan in plans for one in plan.tried}
        # What a longer compile would show as well is known by a short one of those that are left.
        near = {
            changes
            for finding, changes in open_
            if finding in worst and changes not in taken and self._reach_of(finding, changes) == "ttgir"
        }
        short: list[Changes] = [one for one in wanted if one in near][: compiles - len(plans)]
        plans += [_Plan(one, (one,), "ttgir", False) for one in short]
        taken.update(short)
        self.left_out = len({changes for _, changes in open_} - taken)
        return plans

    def _reach_of(self, finding: Finding, changes: Changes) -> Reach:
        # What another layout of one access is worth is known with the registers only that the conversions take.
        is_one_access = any(one.kind == "snapshot" and one.was for one in changes)
        return "binary" if self._to_binary or is_one_access else reach_of(finding)

    def _next_of(self, finding: Finding) -> Changes:
        """The changes to try next for a finding; empty if there are none, or one helped."""
        if is_mended(finding):
            return ()

        def is_open(changes: Changes) -> bool:
            known, needed = self._known.get(changes), _RANKS[self._reach_of(finding, changes)]
            return known is None or (known.after is not None and _RANKS[known.reach] < needed)

        wanted = (one.changes for one in finding.suggestions if one.changes)
        return next((changes for changes in wanted if is_open(changes) and self._text_of(changes) is not None), ())

    def _text_of(self, changes: Changes) -> str | None:
        """The source with changes; None if they cannot be written into it, as where an argument is not multiplied."""
        if changes not in self._texts and any(one.kind == "snapshot" for one in changes):
            self._texts[changes] = edited(self._studied.capture, changes[0]) if len(changes) == 1 else None
        if changes not in self._texts:
            source = self._studied.capture.begun_text
            kernel = self._studied.uses.module.kernel
            names = [value.name for value, _, _ in kernel.parameters] if kernel is not None else []
            written = any(one.kind != "option" for one in changes)
            self._texts[changes] = with_changes(source, names, changes) if written else source
        return self._texts[changes]

    def told(self, finding: Finding) -> Finding:
        """A finding with what is known of its suggestions."""

        def with_proof(one: Suggestion) -> Suggestion:
            known = self._known.get(one.changes)
            if known is None or known.after is None or one.proof is not None:
                return one
            needed = _RANKS[self._reach_of(finding, one.changes)]
            if _RANKS[known.reach] < needed and known.after.capture.failure is None:
                return one
            proof = compare(finding, self._studied, known.after, known.reach, relaid=one.is_relaid)
            return replace(one, proof=replace(proof, together=known.together if known.together != one.changes else ()))

        return replace(finding, suggestions=tuple(map(with_proof, finding.suggestions)))

    def compile(self, plans: Sequence[_Plan]) -> None:
        """Do some compiles; those to the TTGIR go on if what they made may not fit on the device."""
        made = dict(self._compiled(plans))
        self._take(plans, made)
        doubtful = [one for one in plans if one.reach == "ttgir" and one.changes in made]
        doubtful = [one for one in doubtful if may_not_fit(made[one.changes])]
        if doubtful:
            further = [replace(one, reach="assembly") for one in doubtful]
            self._take(further, dict(self._compiled(further)))

    def _take(self, plans: Sequence[_Plan], made: Mapping[Changes, Capture]) -> None:
        for plan in plans:
            is_made = plan.changes in made
            after = Studied(made[plan.changes]) if is_made else None
            self._known |= dict.fromkeys(plan.tried, _Tried(plan.changes, after, plan.reach))
            self._count += is_made
            self._long += is_made and plan.reach != "ttgir"

    def _compiled(self, plans: Iterable[_Plan]) -> Iterator[tuple[Changes, Capture]]:
        """(changes, the capture compiled with them); those that cannot be written into the source are left out."""
        capture = self._studied.capture
        trials: list[tuple[Changes, Trial]] = []
        for plan in plans:
            if (text := self._text_of(plan.changes)) is None:
                continue
            options = tuple((one.name, one.value) for one in plan.changes if one.kind == "option")
            after = snapshot_of(capture) if plan.changes[0].kind == "snapshot" else None
            last_stage = _last_stage(capture, plan.reach)
            trials.append((plan.changes, Trial(text, after, options, last_stage, layouts=plan.sectors)))
        if trials:
            for index, after in self._compile_trials(capture, [trial for _, trial in trials]):
                yield trials[index][0], after


def _farthest(reaches: Iterable[Reach]) -> Reach:
    return max(reaches, key=lambda one: _RANKS[one])


def _left(most: int | None, used: int) -> int:
    return 1 << 30 if most is None else max(0, most - used)


def _last_stage(capture: Capture, reach: Reach) -> str:
    if reach == "ttgir":
        return "ttgir"
    return {"cuda": "ptx", "hip": "amdgcn"}.get(capture.target.backend, "") if reach == "assembly" else ""


def shared_compiles(wanted: Sequence[Changes], most: int) -> dict[Changes, list[Changes]]:
    """At most so many compiles -> the changes that each tries; where there are more, arguments change together.

    The first of them is tried in any case.
    """
    if len(wanted) <= most:
        return {one: [one] for one in wanted}
    if not most:
        return {}
    options = [one for one in wanted if any(part.kind in ("option", "snapshot") for part in one)]
    shares = len(options) < len(wanted) and (most > 1 or wanted[0] not in options)
    alone = options[: most - 1] if shares else options[:most]
    together: dict[tuple[str, bool], Change] = {}
    tried: list[Changes] = []
    for one in wanted if shares else ():
        if one not in options and all(together.get(_subject(part), part) == part for part in one):
            together |= {_subject(part): part for part in one}
            tried.append(one)
    return {one: [one] for one in alone} | ({tuple(together.values()): tried} if tried else {})


def _subject(change: Change) -> tuple[str, bool]:
    """What a change is of: two of one subject contradict each other; products and remainders are two."""
    return change.name, change.kind == "contiguous"


def is_mended(finding: Finding) -> bool:
    """Whether a suggestion was tried that helps."""
    return any(one.proof is not None and one.proof.helps for one in finding.suggestions)
