"""The pass to blame within a stage: grafts within it, and the stage without the pass, tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from irscope.analysis.diff.texts import Ignored, diff_texts
from irscope.analysis.upgrade.model import Asking, Guilty, Question, Side, other_side
from irscope.analysis.upgrade.points import Point, differing_points, points_of
from irscope.analysis.upgrade.same import STRICT, alike, same_text
from irscope.model.capture import Capture, PassSnapshot

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
    before: Capture, after: Capture, begun: str, stage: str, by: Side, judge: _Judge
) -> Asking[Guilty | None]:
    """The pass of a stage to blame; both compile it from one artifact.

    Args:
        before: the compile by the one compiler.
        after: that by the other.
        begun: the stage whose artifact both begin with, which is that of the side other than `by`.
        stage: the stage to blame.
        by: who has the change if it compiles on from there, and has not from the stage after.
        judge: whose fact came of a compile.
    """
    failed = _failed(before, after, stage)
    if stage not in _MLIR_STAGES:
        return failed or _whole_stage(before, after, stage)
    giver = after if other_side(by) == "after" else before
    level = "all" if stage == "llir" else "triton"
    asked = Question("before", begun, giver.text(begun), giver, last_stage=stage, snapshots=level)
    ours = yield asked
    theirs = yield replace(asked, side="after")
    if ours is None or theirs is None:
        return failed
    within = _Within(ours, theirs, stage, asked, by, judge, _ignored(before, after))
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
    point = Point(found[0], found[1], ("", ""), (0, 0))
    return Guilty(label, point.outcomes, point.options, None, None)


def _whole_stage(before: Capture, after: Capture, stage: str) -> Guilty:
    """The blame of a stage that has no passes of MLIR's."""
    name = _OPTIMISERS.get(stage, "")
    home = "llir" if name == _LLVM_OPTIMISER else stage
    outcomes = _switched(before, after, home, name)
    if name and outcomes[0] != outcomes[1]:
        return Guilty(f"{home}:{name}#1", outcomes, ("", ""), True, None, "it is off on one side")
    return Guilty(_TOOLS.get(stage, stage), ("ran", "ran"), _tool_versions(before, after, stage), None, None)


def _switched(before: Capture, after: Capture, stage: str, name: str) -> tuple[str, str]:
    """Whether an optimiser runs on each side."""
    one = PassSnapshot(0, stage, name, 1)
    found = ["skipped" if side.plan.skips(one) else "ran" for side in (before, after)]
    return found[0], found[1]


def _tool_versions(before: Capture, after: Capture, stage: str) -> tuple[str, str]:
    """The versions of the assembler, which is a program of its own."""
    if stage != "cubin":
        return "", ""
    found = [next((text for name, text in one.environment.tools if "ptxas" in name), "") for one in (before, after)]
    return found[0], found[1]


@dataclass(slots=True)
class _Within:
    """A search within a stage that both compiled from one artifact."""

    ours: Capture
    theirs: Capture
    stage: str
    asked: Question
    by: Side
    judge: _Judge
    ignore: frozenset[Ignored]
    whole: int = 0
    """Grafts that were compiled to the end."""

    def search(self) -> Asking[Guilty | None]:
        """The pass; what comes after the passes of the stage if these leave the same IR."""
        points = points_of(self.ours, self.theirs, self.stage, self.asked.text)
        differing = differing_points(points, self.ignore)
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

    def _grafted(self, differing: Sequence[Point]) -> Asking[tuple[Point | None, bool]]:
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

    def _has_change(self, point: Point) -> Asking[bool | None]:
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
        whole = yield replace(asked, last_stage="")
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

    def _without(self, point: Point) -> Asking[bool | None]:
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
