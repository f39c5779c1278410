"""The pass to blame within a stage: the first after which the IR of the two differs, and stays different."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from irscope.analysis.diff.texts import Ignored, diff_texts
from irscope.analysis.upgrade.model import Asking, Guilty, Question, Side, other_side
from irscope.analysis.upgrade.same import same_text
from irscope.model.capture import Capture, PassSnapshot, stage_named

__all__ = ["guilty_pass"]

_OPTIMISERS = {"llir": "llvm-opt", "cubin": "ptxas-opt"}
"""What works on a stage besides MLIR's passes, and can be switched off as a whole."""
_TOOLS = {"llir": "the translation to LLVM IR", "ptx": "LLVM's code generator", "amdgcn": "LLVM's code generator"}
_TOOLS |= {"cubin": "ptxas", "hsaco": "LLVM's code generator"}
_MLIR_STAGES = ("ttir", "ttgir", "glir", "llir")


def guilty_pass(before: Capture, after: Capture, begun: str, stage: str, by: Side) -> Asking[Guilty | None]:
    """The pass of a stage to blame; both compile it from one artifact.

    Args:
        before: the compile by the one compiler.
        after: that by the other.
        begun: the stage whose artifact both begin with, which is that of the side other than `by`.
        stage: the stage to blame.
        by: who compiled on from there.
    """
    if (failed := _failed(before, after, stage)) is not None:
        return failed
    if stage not in _MLIR_STAGES:
        return _whole_stage(before, after, stage)
    giver = after if other_side(by) == "after" else before
    asked = Question("before", begun, giver.text(begun), giver, stage, "all" if stage == "llir" else "triton")
    ours = yield asked
    theirs = yield _of_side(asked, "after")
    if ours is None or theirs is None:
        return None
    ignore = _ignored(before, after)
    pair = _first_difference(ours, theirs, stage, giver.text(begun), ignore)
    if pair is None:
        return (yield from _optimiser(asked, ours, theirs, stage))
    left, right = pair
    label = (right or left).label if right or left else ""
    confirmed = yield from _without(asked, ours, theirs, stage, label, left, right, ignore)
    before_text = ours.text_after(left) if left else _text_at(ours, label)
    after_text = theirs.text_after(right) if right else _text_at(theirs, label)
    diff = None
    if before_text is not None and after_text is not None:
        diff = diff_texts(before_text, after_text, "mlir", ignore=ignore)
    return Guilty(label, _outcomes(left, right), _options(left, right), confirmed, diff)


def _of_side(question: Question, side: Side, *off: str) -> Question:
    return Question(
        side,
        question.stage,
        question.text,
        question.giver,
        question.last_stage,
        "none" if off else question.snapshots,
        off,
    )


def _ignored(before: Capture, after: Capture) -> frozenset[Ignored]:
    # Versions print attributes in other ways, and more of them.
    same = before.environment.triton_version == after.environment.triton_version
    return frozenset({"locations"}) if same else frozenset({"locations", "attributes"})


def _failed(before: Capture, after: Capture, stage: str) -> Guilty | None:
    """The pass that a compile failed in, if it did in this stage."""
    label = next(
        (
            one.failure.pass_label
            for one in (before, after)
            if one.failure is not None and one.failure.pass_label and one.failure.stage == stage
        ),
        "",
    )
    if not label:
        return None
    found = [next((one for one in side.passes() if one.label == label), None) for side in (before, after)]
    return Guilty(label, _outcomes(*found), _options(*found), None, None)


def _whole_stage(before: Capture, after: Capture, stage: str) -> Guilty:
    """The blame of a stage that has no passes of MLIR's."""
    name = _OPTIMISERS.get(stage, "")
    found = [
        next((one for one in side.passes() if (one.stage, one.name) == (stage, name)), None) for side in (before, after)
    ]
    if {one.outcome for one in found if one} == {"ran", "skipped"}:
        label = next(one.label for one in found if one)
        return Guilty(label, _outcomes(*found), ("", ""), True, None)
    skipped = [side.plan.skips(PassSnapshot(0, "llir", "llvm-opt", 1)) for side in (before, after)]
    if stage in ("ptx", "amdgcn") and skipped[0] != skipped[1]:
        outcomes = "skipped" if skipped[0] else "ran", "skipped" if skipped[1] else "ran"
        return Guilty("llir:llvm-opt#1", outcomes, ("", ""), True, None)
    return Guilty(_TOOLS.get(stage, stage), ("ran", "ran"), _tool_versions(before, after, stage), None, None)


def _tool_versions(before: Capture, after: Capture, stage: str) -> tuple[str, str]:
    tool = {"cubin": "ptxas"}.get(stage, "")
    found = [
        next((text for name, text in one.environment.tools if name.startswith(tool)), "") for one in (before, after)
    ]
    return (found[0], found[1]) if tool else ("", "")


def _optimiser(asked: Question, ours: Capture, theirs: Capture, stage: str) -> Asking[Guilty | None]:
    """The blame of what comes after MLIR's passes in the stage that makes LLVM IR."""
    name = _OPTIMISERS.get(stage)
    if name is None:
        return None
    label = f"{stage}:{name}#1"
    skips = [one.plan.skips(PassSnapshot(0, stage, name, 1)) for one in (ours, theirs)]
    outcomes = "skipped" if skips[0] else "ran", "skipped" if skips[1] else "ran"
    left = yield _of_side(asked, "before", label)
    right = yield _of_side(asked, "after", label)
    if left is not None and right is not None and stage in left.stages and stage in right.stages:
        if same_text(left.text(stage), right.text(stage), stage):
            return Guilty(label, outcomes, ("", ""), True, None)
    return Guilty(_TOOLS[stage], ("ran", "ran"), ("", ""), None, None)


def _first_difference(
    ours: Capture, theirs: Capture, stage: str, begun: str, ignore: frozenset[Ignored]
) -> tuple[PassSnapshot | None, PassSnapshot | None] | None:
    """The first passes (or the one that a side lacks) after the last point at which both have the same IR.

    None if they have it to the end of their passes.
    """
    points = list(_points(ours, theirs, stage, begun))
    for number in range(len(points) - 1, -1, -1):
        _, _, left, right = points[number]
        if (
            left is not None
            and right is not None
            and same_text(left, right, stage if stage != "llir" else "ttgir", ignore)
        ):
            if number == len(points) - 1:
                return None
            return points[number + 1][0], points[number + 1][1]
    return (points[0][0], points[0][1]) if points else None


def _points(
    ours: Capture, theirs: Capture, stage: str, begun: str
) -> Iterator[tuple[PassSnapshot | None, PassSnapshot | None, str | None, str | None]]:
    """(the pass of each side, the IR of each after it), pass by pass; only where something changed."""
    lefts, rights = ([one for one in side.passes() if one.stage == stage] for side in (ours, theirs))
    left_text = right_text = begun
    matcher = SequenceMatcher(None, [one.name for one in lefts], [one.name for one in rights], autojunk=False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        pairs: list[tuple[PassSnapshot | None, PassSnapshot | None]]
        if kind == "equal":
            pairs = list(zip(lefts[i1:i2], rights[j1:j2], strict=True))
        else:
            pairs = [*((one, None) for one in lefts[i1:i2]), *((None, one) for one in rights[j1:j2])]
        for left, right in pairs:
            new_left = _after(ours, left, left_text)
            new_right = _after(theirs, right, right_text)
            if (new_left, new_right) != (left_text, right_text) or (
                left is not None and right is not None and not left.index
            ):
                left_text, right_text = new_left, new_right
                yield left, right, left_text, right_text


def _after(capture: Capture, snapshot: PassSnapshot | None, text: str) -> str:
    if snapshot is None or snapshot.text is None:
        return text
    return snapshot.text


def _text_at(capture: Capture, label: str) -> str | None:
    """The IR of the side that lacks a pass: at the end of its stage."""
    stage = label.partition(":")[0]
    found = [one for one in capture.passes() if one.stage == stage]
    return capture.text_after(found[-1]) if found else None


def _without(
    asked: Question,
    ours: Capture,
    theirs: Capture,
    stage: str,
    label: str,
    left: PassSnapshot | None,
    right: PassSnapshot | None,
    ignore: frozenset[Ignored],
) -> Asking[bool | None]:
    """Whether the stage makes the same on both sides if the pass is off on both; None if it does not compile so."""
    texts: list[str | None] = []
    for side, capture, one in (("before", ours, left), ("after", theirs, right)):
        if one is None or one.outcome == "skipped":
            texts.append(capture.texts.get(stage))
            continue
        made = yield _of_side(asked, side, one.label)
        texts.append(None if made is None else made.texts.get(stage))
    first, second = texts
    if first is None or second is None or stage_named(stage).is_binary:
        return None
    return same_text(first, second, stage, ignore)


def _outcomes(left: PassSnapshot | None, right: PassSnapshot | None) -> tuple[str, str]:
    return left.outcome if left else "absent", right.outcome if right else "absent"


def _options(left: PassSnapshot | None, right: PassSnapshot | None) -> tuple[str, str]:
    return left.options if left else "", right.options if right else ""
