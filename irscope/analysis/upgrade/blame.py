"""Blame by grafting: the stage that a change comes from, as the text of one compiler is compiled on by the other.

Each artifact of the one before, compiled on by the one after, has the change as long as the stage that makes it is
still to come; and the other way round where the one after does not read it. So the stage is found by bisection, and a
graft stops as soon as its text is one whose outcome is known. A graft is valid if a version that is grafted onto itself
there goes on as it did.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from irscope.analysis.code import STRICT, alike, same_text
from irscope.analysis.diff.texts import Ignored, diff_texts
from irscope.analysis.findings.find import findings_of
from irscope.analysis.regressions import OF_ONE_SOURCE, FactChange, Facts, Value, facts_of
from irscope.analysis.upgrade.model import Asking, Blame, Guilty, Probe
from irscope.model.capture import Capture, PassSnapshot
from irscope.model.trial import Graft, Side, other_side

# ── The pass to blame within a stage: grafts within it, and the stage without the pass, tell ────────────────────────

_LLVM_OPTIMISER = "llvm-opt"
_OPTIMISERS = {"llir": _LLVM_OPTIMISER, "ptx": _LLVM_OPTIMISER, "amdgcn": _LLVM_OPTIMISER, "cubin": "ptxas-opt"}
"""What works on a stage besides MLIR's passes, and can be switched off as a whole."""
_TOOLS = {
    "llir": "the translation to LLVM IR",
    "ptx": "LLVM's code generator",
    "amdgcn": "LLVM's code generator",
    "cubin": "ptxas",
    "hsaco": "the AMD assembler",
}
_MLIR_STAGES = ("ttir", "ttgir", "glir", "llir")
_EARLY_STAGES = ("ttir", "ttgir", "glir")
_MOST_WHOLE_GRAFTS = 2
"""How many grafts within a stage are compiled to the end: each costs nearly a whole compile."""

_Judge = Callable[[Capture], Side | None]
"""Whose fact came of a compile."""


def _guilty_pass(
    before: Capture, after: Capture, begun: str, stage: str, by: Side, judge: _Judge, *, with_sass: bool = False
) -> Asking[Guilty | None]:
    """The pass of a stage to blame; both compile it from one artifact.

    Args:
        begun: the stage whose artifact both begin with, which is that of the side other than `by`.
        by: who has the change if it compiles on from there, and has not from the stage after.
        judge: whose fact came of a compile.
    """
    failed = _failed(before, after, stage)
    if stage not in _MLIR_STAGES:
        return failed or _whole_stage(before, after, stage)
    giver = after if other_side(by) == "after" else before
    level = "all" if stage == "llir" else "triton"
    asked = Graft("before", begun, giver.text(begun), giver, last_stage=stage, snapshots=level)
    ours = yield asked
    theirs = yield replace(asked, side="after")
    if ours is None or theirs is None:
        return failed
    # Versions print attributes in other ways, and more of them.
    same = before.environment.triton_version == after.environment.triton_version
    ignored = STRICT if same else frozenset[Ignored]({"locations", "attributes"})
    within = _Within(ours, theirs, stage, asked, by, judge, with_sass, ignored)
    found = yield from within.search()
    return failed if failed is not None and (found is None or not found.is_confirmed) else found


def _failed(before: Capture, after: Capture, stage: str) -> Guilty | None:
    failures = [one.failure for one in (before, after) if one.failure is not None]
    label = next((one.pass_label for one in failures if one.pass_label and one.stage == stage), "")
    if not label:
        return None
    found = [next((one for one in side.passes() if one.label == label), None) for side in (before, after)]
    point = _Point(found[0], found[1], ("", ""), (0, 0))
    return Guilty(label, point.outcomes, point.options, None, None)


def _whole_stage(before: Capture, after: Capture, stage: str) -> Guilty:
    name = _OPTIMISERS.get(stage, "")
    home = "llir" if name == _LLVM_OPTIMISER else stage
    outcomes = _switched(before, after, home, name)
    if name and outcomes[0] != outcomes[1]:
        return Guilty(f"{home}:{name}#1", outcomes, ("", ""), True, None, "it is off on one side")
    return Guilty(_TOOLS.get(stage, stage), ("ran", "ran"), _tool_settings(before, after, stage), None, None)


def _switched(before: Capture, after: Capture, stage: str, name: str) -> tuple[str, str]:
    one = PassSnapshot(0, stage, name, 1)
    found = ["skipped" if side.plan.skips(one) else "ran" for side in (before, after)]
    return found[0], found[1]


def _tool_settings(before: Capture, after: Capture, stage: str) -> tuple[str, str]:
    """What differs in how a tool was run: the version of the assembler, and the options of the two launches."""
    sides: list[str] = []
    options = [dict(side.launch.options) for side in (before, after)]
    common = options[0].keys() & options[1].keys()
    differing = sorted(name for name in common if options[0][name] != options[1][name])
    for side, own in zip((before, after), options, strict=True):
        settings = [f"{name}={own[name]}" for name in differing]
        if stage == "cubin":
            settings = [*(text for name, text in side.environment.tools if "ptxas" in name), *settings]
        sides.append(" ".join(settings))
    return sides[0], sides[1]


@dataclass(slots=True)
class _Within:
    """A search within a stage that both compiled from one artifact."""

    ours: Capture
    theirs: Capture
    stage: str
    asked: Graft
    by: Side
    judge: _Judge
    with_sass: bool
    ignore: frozenset[Ignored]
    whole: int = 0

    def search(self) -> Asking[Guilty | None]:
        """The pass; what comes after the passes of the stage if these leave the same IR."""
        points = _points_of(self.ours, self.theirs, self.stage, self.asked.text)
        differing = _differing_points(points, self.ignore)
        if not differing:
            # Where one fails, it is in the pass that comes next.
            has_both = self.stage in self.ours.stages and self.stage in self.theirs.stages
            return (yield from self._optimiser()) if has_both else None
        point, sure = yield from self._grafted(differing)
        if point is None:
            return (yield from self._optimiser())
        proof = "resuming from its IR gives no change" if sure else ""
        confirmed: bool | None = sure
        if not sure and (confirmed := (yield from self._without(point))):
            proof = "without it both are the same"
        diff = diff_texts(*point.texts, "mlir", ignore=self.ignore)
        return Guilty(point.label, point.outcomes, point.options, confirmed, diff, proof)

    def _side(self, side: Side) -> Capture:
        return self.ours if side == "before" else self.theirs

    def _grafted(self, differing: Sequence[_Point]) -> Asking[tuple[_Point | None, bool]]:
        """The first point at which the IR of the one, compiled on by the other, has no change any more.

        With whether it is sure that it is the first; None if it has at all of them.
        """
        lowest, highest, at = -1, len(differing), 0
        while lowest + 1 < highest:
            has_change = yield from self._has_change(differing[at])
            if has_change is None and at > lowest + 1:
                # What the one writes so late the other may not read: nearer to what it has read.
                at = lowest + 1
                continue
            if has_change is None:
                return differing[lowest + 1 if highest == len(differing) else highest], False
            if has_change:
                lowest = at
            else:
                highest = at
            at = (lowest + highest) // 2
        return (None, True) if highest == len(differing) else (differing[highest], True)

    def _has_change(self, point: _Point) -> Asking[bool | None]:
        """Whether the IR of the giver after a pass, compiled on by the other, has the change; None if not told."""
        text, taker = point.text(other_side(self.by)), self._side(self.by)
        behind = point.behind[self.by == "after"]
        asked = replace(
            self.asked,
            side=self.by,
            stage=self.stage,
            text=text,
            resumed=behind,
            last_stage=self.stage,
            snapshots="none",
        )
        if self.stage in _EARLY_STAGES:
            # The stage alone is cheap, and often tells.
            made = yield asked
            if made is None:
                return None
            if self.stage not in made.stages:
                return self._judged(made)
            if (known := self._known(made.text(self.stage), taker)) is not None:
                return known
        if self.whole == _MOST_WHOLE_GRAFTS:
            return None
        self.whole += 1
        whole = yield replace(asked, last_stage="", with_sass=self.with_sass)
        return None if whole is None else self._judged(whole)

    def _judged(self, made: Capture) -> bool | None:
        like = self.judge(made)
        return None if like is None else like == self.by

    def _known(self, text: str, taker: Capture) -> bool | None:
        """Whether a text that the stage made has the change, if it is one of which that is known."""
        if self.stage in taker.stages and same_text(text, taker.text(self.stage), self.stage):
            return True
        giver = self._side(other_side(self.by))
        return False if self.stage in giver.stages and self._is_same(text, giver.text(self.stage)) else None

    def _is_same(self, left: str, right: str) -> bool:
        if self.ignore == STRICT or self.stage not in _EARLY_STAGES:
            return same_text(left, right, self.stage)
        return alike(left, right, self.ignore)

    def _without(self, point: _Point) -> Asking[bool | None]:
        """Whether the stage makes the same on both sides if the pass is off on both; None if it does not compile so."""
        texts: list[str | None] = []
        rows: tuple[tuple[Side, PassSnapshot | None], ...] = (("before", point.before), ("after", point.after))
        for side, one in rows:
            made: Capture | None = self._side(side)
            if one is not None and one.outcome != "skipped":
                made = yield replace(self.asked, side=side, snapshots="none", off=(one.label,))
            texts.append(None if made is None else made.texts.get(self.stage))
        first, second = texts
        return None if first is None or second is None else self._is_same(first, second)

    def _optimiser(self) -> Asking[Guilty | None]:
        """The blame of what comes after MLIR's passes in the stage that makes LLVM IR."""
        name = _OPTIMISERS.get(self.stage)
        if name is None:
            return None
        label = f"{self.stage}:{name}#1"
        outcomes = _switched(self.ours, self.theirs, self.stage, name)
        without = replace(self.asked, snapshots="none", off=(label,))
        left = yield without
        right = yield replace(without, side="after")
        texts = [None if one is None else one.texts.get(self.stage) for one in (left, right)]
        if texts[0] is not None and texts[1] is not None and same_text(texts[0], texts[1], self.stage):
            return Guilty(label, outcomes, ("", ""), True, None, "without it both are the same")
        return Guilty(_TOOLS[self.stage], ("ran", "ran"), ("", ""), None, None)


@dataclass(frozen=True, slots=True)
class _Point:
    """A pass of both, or one that a side lacks, and the IR of each side after it."""

    before: PassSnapshot | None
    after: PassSnapshot | None
    texts: tuple[str, str]
    """(before, after)."""
    behind: tuple[int, int]
    """How many passes of the stage are behind by then: (before, after)."""

    @property
    def label(self) -> str:
        one = self.after or self.before
        return "" if one is None else one.label

    @property
    def outcomes(self) -> tuple[str, str]:
        found = [one.outcome if one else "absent" for one in (self.before, self.after)]
        return found[0], found[1]

    @property
    def options(self) -> tuple[str, str]:
        found = [one.options if one else "" for one in (self.before, self.after)]
        return found[0], found[1]

    def text(self, side: Side) -> str:
        return self.texts[side == "after"]


def _points_of(before: Capture, after: Capture, stage: str, begun: str) -> list[_Point]:
    """The passes of a stage in their order, where either side's IR changed; `begun`: the text that both began with."""
    sides = [[one for one in side.passes() if one.stage == stage] for side in (before, after)]
    names = [[one.name for one in side] for side in sides]
    matcher = SequenceMatcher(None, names[0], names[1], autojunk=False)
    found: list[_Point] = []
    texts = [begun, begun]
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        left: list[tuple[int | None, int | None]] = [(i, None) for i in range(i1, i2)]
        right: list[tuple[int | None, int | None]] = [(None, j) for j in range(j1, j2)]
        rows = list(zip(range(i1, i2), range(j1, j2), strict=True)) if kind == "equal" else [*left, *right]
        at = [i1, j1]
        for pair in rows:
            changed = False
            for number, place in enumerate(pair):
                if place is None:
                    continue
                at[number] = place + 1
                if (text := sides[number][place].text) is not None:
                    changed = changed or text != texts[number]
                    texts[number] = text
            if changed:
                ours, theirs = (None if place is None else side[place] for side, place in zip(sides, pair, strict=True))
                found.append(_Point(ours, theirs, (texts[0], texts[1]), (at[0], at[1])))
    return found


def _differing_points(points: Sequence[_Point], ignore: frozenset[Ignored]) -> Sequence[_Point]:
    """Those after the last at which both have the same IR; none if they have at the end.

    `ignore`: what does not count; if that is the locations alone, the order of operations counts.
    """
    is_strict = ignore == STRICT
    for number in range(len(points) - 1, -1, -1):
        # The dialects of every one are MLIR's, whatever the stage makes in the end.
        left, right = points[number].texts
        if same_text(left, right, "ttgir") if is_strict else alike(left, right, ignore):
            return points[number + 1 :]
    return points


_EARLY = ("source", "ttir", "glir")
"""Stages after which one alone is compiled at first: it costs a tenth of what is left, and often tells."""
_ORDER = ("llir", "ptx", "amdgcn", "ttgir", "ttir", "glir", "source")
"""Where the first graft is put: what is left from here on, and what it tells, are in balance in the middle."""


_OF_ASSEMBLY = ("arithmetic", "order")
"""The facts that are read from the lowest assembly there is."""
_CLEAR = 1 / 3
"""How far from a side's figure, as a share of the change, that of a graft may be and still be that side's."""


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
        held = [tuple(stage for stage in one.stages if stage != "sass") for one in self.captures.values()]
        return max(held, key=len)

    def run(self) -> Asking[Blame]:
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
        guilty = yield from _guilty_pass(
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
            refused = "rejected" if facts is None else _value_text(self.change, facts)
            if facts is not None and like is None and facts.get("failure"):
                refused = f"{facts['failure']}"
            self.probes.append(Probe(self.stages[at], by, like, refused))
            if like is not None:
                if facts is not None and not _is_clear(self.change, facts):
                    self.doubts.append(
                        f"With the {self.stages[at]} of the other it is {refused}, the figure of neither version: "
                        "several stages contribute."
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
            f"Triton {version} does not reproduce the result of a complete compile from its own {stage}, so grafts at "
            "that stage are less conclusive."
        )


def _value(change: FactChange, side: Side) -> Value | None:
    return change.before if side == "before" else change.after


def _graft_facts(capture: Capture, change: FactChange) -> Facts:
    wants_findings = change.name == "findings" and capture.has_compiled
    codes = [finding.code for finding in findings_of(capture)] if wants_findings else None
    return facts_of(capture, codes, of_one_source=change.name in OF_ONE_SOURCE)


def _like_of(change: FactChange, facts: Facts) -> Side | None:
    """Whose fact it is: the nearer one of numbers; None if it is neither's, or not known."""
    if change.name != "failure" and set(facts) == {"failure"}:
        return None
    value = facts.get(change.name)
    if change.name == "failure":
        # A failure is a side's only if it is the same: another is of the graft itself, such as a text that is not read.
        value = str(value or "")
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
    if change.name in OF_ONE_SOURCE:
        like = _like_of(change, facts)
        return f"as {like}" if like is not None else "as neither"
    one = FactChange(change.name, facts.get(change.name), None, "other").text
    return one.removeprefix(change.fact.title).rpartition(" → ")[0].strip() or one
