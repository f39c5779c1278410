"""Blame by grafting: the stage that a change comes from, as the text of one compiler is compiled on by the other.

Each artifact of the one before, compiled on by the one after, has the change as long as the stage that makes it is
still to come; and the other way round where the one after does not read it. So the stage is found by bisection, and a
graft stops as soon as its text is one whose outcome is known. A graft is valid if a version that is grafted onto itself
there goes on as it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from irscope.analysis.code import same_text
from irscope.analysis.findings.find import findings_of
from irscope.analysis.regressions import OF_ONE_SOURCE, FactChange, Facts, Value, facts_of
from irscope.analysis.upgrade.model import Asking, Blame, Probe
from irscope.analysis.upgrade.passes import guilty_pass
from irscope.model.capture import Capture
from irscope.model.trial import Graft, Side, other_side

__all__ = ["blame_of", "graft_stages"]

_EARLY = ("source", "ttir", "glir")
"""Stages after which one alone is compiled at first: it costs a tenth of what is left, and often tells."""
_ORDER = ("llir", "ptx", "amdgcn", "ttgir", "ttir", "glir", "source")
"""Where the first graft is put: what is left from here on, and what it tells, are in balance in the middle."""


_OF_ASSEMBLY = ("arithmetic", "order")
"""The facts that are read from the lowest assembly there is."""
_CLEAR = 1 / 3
"""How far from a side's figure, as a share of the change, that of a graft may be and still be that side's."""


def graft_stages(capture: Capture) -> tuple[str, ...]:
    """The stages of a capture that another compiler can go on from, and the binary."""
    return tuple(one for one in capture.stages if one != "sass")


def blame_of(before: Capture, after: Capture, changes: Sequence[FactChange]) -> Asking[Blame | None]:
    """Find the stage and the pass that the first of the changes comes from; None where there is none to follow."""
    followed = next((change for change in changes if change.verdict != "other"), None)
    if followed is None:
        # Nothing is worse or better: what is followed is the code itself.
        followed = next((change for change in changes if change.name == "machine_code"), None)
    if followed is None:
        return None
    search = _Search({"before": before, "after": after}, followed)
    return (yield from search.run())


@dataclass(slots=True)
class _Search:
    captures: dict[Side, Capture]
    change: FactChange
    probes: list[Probe] = field(default_factory=list[Probe])
    doubts: list[str] = field(default_factory=list[str])
    _known: list[tuple[Side, str, str, Facts]] = field(default_factory=list[tuple[Side, str, str, Facts]])
    """(who compiles on, stage, its text, the facts that come of it)."""

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages of the capture that has most of them."""
        return max((graft_stages(one) for one in self.captures.values()), key=len)

    def run(self) -> Asking[Blame]:
        """The bisection, then the pass."""
        stages = self.stages
        # Up to `same` the artifacts, compiled on by the other, have the change; from `other` on they have not.
        lowest, highest = self._same_up_to(), self._last_stage()
        has_change, has_none, unknown = lowest, highest, set[int]()
        while open_ := [at for at in range(has_change + 1, has_none) if at not in unknown]:
            at = min(open_, key=lambda one: _ORDER.index(stages[one]) if stages[one] in _ORDER else len(_ORDER))
            probe = yield from self._probe(at)
            if probe is None:
                unknown.add(at)
            elif probe:
                has_change = at
            else:
                has_none = at
        for at, is_known in ((has_change, has_change == lowest), (has_none, has_none == highest)):
            if not is_known:
                yield from self._validate(at)
        found = stages[has_change + 1 : has_none + 1]
        blame = Blame(self.change, found, tuple(self.probes), None, tuple(dict.fromkeys(self.doubts)))
        if len(found) != 1 or has_change < 0:
            return blame
        guilty = yield from guilty_pass(
            self.captures["before"],
            self.captures["after"],
            stages[has_change],
            found[0],
            self._by(has_change),
            lambda made: _like_of(self.change, _graft_facts(made, self.change)),
            with_sass=self._needs_sass("before"),
        )
        return replace(blame, guilty=guilty)

    def _same_up_to(self) -> int:
        """The place of the last artifact that both have the same; -1 for none."""
        before, after = self.captures["before"], self.captures["after"]
        for at, stage in reversed([*enumerate(self.stages)]):
            ours, theirs = before.texts.get(stage), after.texts.get(stage)
            if ours is not None and theirs is not None and same_text(ours, theirs, stage):
                return at
        return -1

    def _last_stage(self) -> int:
        """The place of the last stage that may be to blame: that in which a side fails, else the binary's."""
        failures = [one.failure for one in self.captures.values() if one.failure is not None and not one.has_compiled]
        places = [self.stages.index(one.stage) for one in failures if one.stage in self.stages]
        return min([*places, len(self.stages) - 1])

    def _by(self, at: int) -> Side:
        """Who compiled on from a stage, so that the other one's artifact is read by both."""
        stage = self.stages[at]
        found: list[Side] = [one.by for one in self.probes if one.stage == stage and one.like]
        return found[-1] if found else "after"

    def _probe(self, at: int) -> Asking[bool | None]:
        """Whether the artifact of a stage of the one before, compiled on by the one after, has the change.

        Where it cannot be, the artifact of the one after compiled on by the one before tells the same. None if neither.
        """
        for by in ("after", "before"):
            if self.stages[at] not in self.captures[other_side(by)].texts:
                continue
            facts = yield from self._grafted(at, by)
            like = None if facts is None else _like_of(self.change, facts)
            refused = "does not compile on" if facts is None else _value_text(self.change, facts)
            if facts is not None and like is None and facts.get("failure"):
                refused = f"{facts['failure']}"
            self.probes.append(Probe(self.stages[at], by, like, refused))
            if like is not None:
                if facts is not None and not _is_clear(self.change, facts):
                    self.doubts.append(
                        f"With the {self.stages[at]} of the other it is {refused}, which is neither's figure: "
                        "several stages have a part in it."
                    )
                return like == by
        return None

    def _grafted(self, at: int, by: Side) -> Asking[Facts | None]:
        """The facts of an artifact of the other one's, compiled on by `by`; None where there is no text."""
        giver, taker = self.captures[other_side(by)], self.captures[by]
        text = giver.texts.get(self.stages[at])
        if text is None:
            return None
        while True:
            stage = self.stages[at]
            if (facts := self._facts_of(by, stage, text)) is not None:
                return facts
            if stage not in _EARLY:
                break
            # One stage, to see whether its text is known.
            following = self.stages[at + 1]
            made = yield Graft(by, stage, text, giver, last_stage=following)
            if made is None or (next_text := made.texts.get(following)) is None:
                return self._judged(made, taker)
            # From here on it is the taker's.
            text, at, giver = next_text, at + 1, taker
        made = yield Graft(by, self.stages[at], text, giver, with_sass=self._needs_sass(by))
        facts = self._judged(made, taker)
        if facts is not None:
            self._known.append((by, self.stages[at], text, facts))
        return facts

    def _needs_sass(self, side: Side) -> bool:
        """Whether the fact that is followed was read from the SASS of both."""
        return self.change.name in _OF_ASSEMBLY and "sass" in self.captures[side].stages

    def _judged(self, made: Capture | None, taker: Capture) -> Facts | None:
        if made is None:
            return None
        if not made.has_compiled and taker.has_compiled and self.change.name != "failure":
            return {"failure": made.failure.verdict if made.failure else ""}
        return _graft_facts(made, self.change)

    def _facts_of(self, by: Side, stage: str, text: str) -> Facts | None:
        """What is known to come of a text."""
        own = self.captures[by].texts.get(stage)
        if own is not None and same_text(own, text, stage):
            value = _value(self.change, by)
            return {} if value is None else {self.change.name: value}
        return next(
            (facts for who, name, known, facts in self._known if (who, name) == (by, stage) and known == text), None
        )

    def _validate(self, at: int) -> Asking[None]:
        """Graft a version onto itself, one stage far: it must make what it made in one go."""
        stage, by = self.stages[at], self._by(at)
        capture = self.captures[by]
        text, following = capture.texts.get(stage), self.stages[at + 1]
        if text is None or following not in capture.stages:
            return
        made = yield Graft(by, stage, text, capture, last_stage=following)
        wanted = capture.artifact(following).data
        found = made.artifact(following).data if made is not None and following in made.stages else None
        if isinstance(wanted, str) and isinstance(found, str) and same_text(wanted, found, following):
            return
        if isinstance(wanted, bytes) and found is not None and made is not None:
            facts = _graft_facts(made, self.change)
            if wanted == found or facts.get(self.change.name) == _value(self.change, by):
                return
        version = capture.environment.triton_version
        self.doubts.append(
            f"Triton {version} does not go on from its own {stage} as it did in one compile, so grafts there tell less."
        )


def _value(change: FactChange, side: Side) -> Value | None:
    return change.before if side == "before" else change.after


def _graft_facts(capture: Capture, change: FactChange) -> Facts:
    """The facts of a graft; its findings only where the change is one of them."""
    wants_findings = change.name == "findings" and capture.has_compiled
    codes = [finding.code for finding in findings_of(capture)] if wants_findings else None
    return facts_of(capture, codes, of_one_source=change.name in OF_ONE_SOURCE)


def _like_of(change: FactChange, facts: Facts) -> Side | None:
    """Whose fact it is: the nearer one of numbers; None if it is neither's, or not known."""
    if change.name != "failure" and set(facts) == {"failure"}:
        return None
    value = facts.get(change.name)
    if change.name == "failure":
        return _like_failure(change, str(value or ""))
    if value == change.before:
        return "before"
    if value == change.after:
        return "after"
    if isinstance(change.before, tuple) or isinstance(change.after, tuple):
        return _like_codes(change, value)
    before, after = _number(change.before), _number(change.after)
    found = _number(value)
    if before is None or after is None or found is None:
        return None
    away = abs(found - before) - abs(found - after)
    return None if away == 0 else "before" if away < 0 else "after"


def _is_clear(change: FactChange, facts: Facts) -> bool:
    """Whether it is one side's fact, and no number far from both."""
    before, after = _number(change.before), _number(change.after)
    found = _number(facts.get(change.name)) if change.name in facts else None
    if before is None or after is None or found is None or change.name == "failure":
        return True
    return min(abs(found - before), abs(found - after)) <= _CLEAR * abs(after - before)


def _like_failure(change: FactChange, value: str) -> Side | None:
    """A failure is a side's only if it is the same: another is of the graft itself, such as a text that is not read."""
    return "before" if value == change.before else "after" if value == change.after else None


def _like_codes(change: FactChange, value: Value | None) -> Side | None:
    before, after, found = (
        set(one) if isinstance(one, tuple) else set[str]() for one in (change.before, change.after, value)
    )
    telling = before ^ after
    as_before, as_after = len((found ^ after) & telling), len((found ^ before) & telling)
    return None if as_before == as_after else "before" if as_before > as_after else "after"


def _number(value: Value | None) -> float | None:
    # A count of none is not held.
    return 0.0 if value is None else float(value) if isinstance(value, (int, float)) else None


def _value_text(change: FactChange, facts: Facts) -> str:
    """The fact of a graft as text: `115`."""
    if change.name in OF_ONE_SOURCE:
        like = _like_of(change, facts)
        return f"as {like}" if like is not None else "as neither"
    one = FactChange(change.name, facts.get(change.name), None, "other").text
    return one.removeprefix(change.fact.title).rpartition(" → ")[0].strip() or one
