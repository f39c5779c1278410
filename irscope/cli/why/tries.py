"""The compiles that try suggestions: which are made, how far they go, and what is known of each change then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from irscope.analysis.findings.changed import with_changes
from irscope.analysis.findings.measures import Reach, compare, may_not_fit, reach_of
from irscope.analysis.findings.model import Change, Finding, Suggestion
from irscope.analysis.findings.relayout import edited, snapshot_of
from irscope.analysis.findings.studied import Studied
from irscope.cli.why.budget import Budget
from irscope.cli.why.compiles import Compiles
from irscope.model.capture import Capture

if TYPE_CHECKING:
    from irscope.record.process.requests import RecordRequest

__all__ = ["Changes", "Tries", "is_mended", "shared_compiles"]

Changes = tuple[Change, ...]
_RANKS: dict[Reach, int] = {"ttgir": 0, "assembly": 1, "binary": 2}


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

    def __init__(self, studied: Studied, compiles: Compiles, budget: Budget, *, to_binary: bool = False) -> None:
        """`to_binary`: whether every compile makes a binary."""
        self._studied = studied
        self._compiles = compiles
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
            kernel = self._studied.uses.module.kernel
            names = [value.name for value, _, _ in kernel.parameters] if kernel is not None else []
            written = any(one.kind != "option" for one in changes)
            self._texts[changes] = with_changes(self._source, names, changes) if written else self._source
        return self._texts[changes]

    @cached_property
    def _source(self) -> str:
        from irscope.record.process.requests import request_from_capture

        return request_from_capture(self._studied.capture).text

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
        from irscope.model.recording_options import RecordingOptions
        from irscope.record.process.requests import request_from_capture, request_resumed

        capture = self._studied.capture
        requests: list[tuple[Changes, RecordRequest]] = []
        for plan in plans:
            options = tuple((one.name, one.value) for one in plan.changes if one.kind == "option")
            asked = RecordingOptions(
                plan=capture.plan, snapshots="none", disassemble=False, options=options, layouts=plan.sectors
            )
            if (text := self._text_of(plan.changes)) is None:
                continue
            request = replace(request_from_capture(capture, asked), text=text)
            after = snapshot_of(capture) if plan.changes[0].kind == "snapshot" else None
            if after is not None:
                request = request_resumed(capture, after, text, asked)
            requests.append((plan.changes, replace(request, last_stage=_last_stage(capture, plan.reach))))
        if requests:
            for index, after in self._compiles.all([request for _, request in requests]):
                yield requests[index][0], _of_the_launch(capture, after)


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


def _of_the_launch(capture: Capture, after: Capture) -> Capture:
    """A variant with what the launch was given, from which its addresses are evaluated."""
    return replace(after, launch=replace(after.launch, grid=capture.launch.grid, record=capture.launch.record))
