"""The pass to blame within a stage: grafts within it, and the stage without the pass, tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from irscope.analysis.code import STRICT, alike, same_text
from irscope.analysis.diff.texts import Ignored, diff_texts
from irscope.analysis.upgrade.model import Asking, Guilty
from irscope.model.capture import Capture, PassSnapshot
from irscope.model.trial import Graft, Side, other_side

__all__ = ["guilty_pass"]

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
_EARLY = ("ttir", "ttgir", "glir")
_MOST_WHOLE_GRAFTS = 2
"""How many grafts within a stage are compiled to the end: each costs nearly a whole compile."""

_Judge = Callable[[Capture], Side | None]
"""Whose fact came of a compile."""


def guilty_pass(
    before: Capture, after: Capture, begun: str, stage: str, by: Side, judge: _Judge, *, with_sass: bool = False
) -> Asking[Guilty | None]:
    """The pass of a stage to blame; both compile it from one artifact.

    Args:
        before: the compile by the one compiler.
        after: that by the other.
        begun: the stage whose artifact both begin with, which is that of the side other than `by`.
        stage: the stage to blame.
        by: who has the change if it compiles on from there, and has not from the stage after.
        judge: whose fact came of a compile.
        with_sass: whether that needs the SASS.
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
    within = _Within(ours, theirs, stage, asked, by, judge, with_sass, _ignored(before, after))
    found = yield from within.search()
    return failed if failed is not None and (found is None or not found.is_confirmed) else found


def _ignored(before: Capture, after: Capture) -> frozenset[Ignored]:
    # Versions print attributes in other ways, and more of them.
    same = before.environment.triton_version == after.environment.triton_version
    return STRICT if same else frozenset({"locations", "attributes"})


def _failed(before: Capture, after: Capture, stage: str) -> Guilty | None:
    """The pass that a compile failed in, if it did in this stage."""
    failures = [one.failure for one in (before, after) if one.failure is not None]
    label = next((one.pass_label for one in failures if one.pass_label and one.stage == stage), "")
    if not label:
        return None
    found = [next((one for one in side.passes() if one.label == label), None) for side in (before, after)]
    point = _Point(found[0], found[1], ("", ""), (0, 0))
    return Guilty(label, point.outcomes, point.options, None, None)


def _whole_stage(before: Capture, after: Capture, stage: str) -> Guilty:
    """The blame of a stage that has no passes of MLIR's."""
    name = _OPTIMISERS.get(stage, "")
    home = "llir" if name == _LLVM_OPTIMISER else stage
    outcomes = _switched(before, after, home, name)
    if name and outcomes[0] != outcomes[1]:
        return Guilty(f"{home}:{name}#1", outcomes, ("", ""), True, None, "it is off on one side")
    return Guilty(_TOOLS.get(stage, stage), ("ran", "ran"), _tool_settings(before, after, stage), None, None)


def _switched(before: Capture, after: Capture, stage: str, name: str) -> tuple[str, str]:
    """Whether an optimiser runs on each side."""
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
    """Grafts that were compiled to the end."""

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
        proof = "its IR, compiled on, has no change" if sure else ""
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
        if self.stage in _EARLY:
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
        """Whether two texts that the stage made are the same, by one compiler or by two."""
        if self.ignore == STRICT or self.stage not in _EARLY:
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
        """Of the pass: `ttgir:coalesce#1`."""
        one = self.after or self.before
        return "" if one is None else one.label

    @property
    def outcomes(self) -> tuple[str, str]:
        """(before, after): `ran`, `skipped`, `failed` or `absent`."""
        found = [one.outcome if one else "absent" for one in (self.before, self.after)]
        return found[0], found[1]

    @property
    def options(self) -> tuple[str, str]:
        """(before, after)."""
        found = [one.options if one else "" for one in (self.before, self.after)]
        return found[0], found[1]

    def text(self, side: Side) -> str:
        """The IR of a side."""
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
