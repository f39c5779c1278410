"""The texts of a capture's passes, each with the one before it."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.model.capture import Capture, PassSnapshot, StageKind

__all__ = ["Step", "Trail", "trail_of"]


@dataclass(frozen=True, slots=True)
class Step:
    """What one pass made of a text; or several passes together, where the texts between them were not kept."""

    passes: tuple[PassSnapshot, ...]
    left: str
    right: str
    kind: StageKind

    @property
    def label(self) -> str:
        """`ttgir:coalesce#1`; of several passes, the first and the last."""
        first, last = self.passes[0].label, self.passes[-1].label
        return first if len(self.passes) == 1 else f"{first} … {last}"

    @property
    def is_exact(self) -> bool:
        """Whether it is one pass."""
        return len(self.passes) == 1


@dataclass(frozen=True, slots=True)
class Trail:
    """The texts of one group of passes, in the order of the pipeline."""

    first: str | None
    """The text that the first step found; None where no text was kept."""
    before: tuple[PassSnapshot, ...]
    """The passes before the first text, where the recording did not keep what they found."""
    steps: tuple[Step, ...]
    """Those that changed the text."""
    behind: tuple[PassSnapshot, ...]
    """The passes after the last text, whose own texts were not kept."""
    kind: StageKind
    passes: tuple[PassSnapshot, ...]
    """All that may have changed the text; optimisers that are one step as a whole (`llvm-opt`) have none."""

    def text_after(self, step: int) -> str | None:
        """The text after a step, by its index; -1 is the first text."""
        return self.first if step < 0 else self.steps[step].right

    def step_at(self, snapshot: PassSnapshot) -> int | None:
        """The step whose text is the one after a pass, -1 for the first text; None where that text was not kept."""
        at = -1
        for index, step in enumerate(self.steps):
            if snapshot.index < step.passes[0].index:
                break
            if snapshot.index < step.passes[-1].index:
                return None
            at = index
        unknown = any(one.index <= snapshot.index for one in self.behind) or (
            at < 0 and any(one.index > snapshot.index for one in self.before)
        )
        return None if unknown or self.first is None else at


def trail_of(capture: Capture, group: str = "mlir") -> Trail:
    """The texts of a capture's passes of one group."""
    passes = tuple([one for one in capture.passes(group) if one.argument or one.text is not None or group == "llvm"])
    kind: StageKind = "llvm" if group == "llvm" else "mlir"
    first = capture.text_before(passes[0]) if passes else None
    before: tuple[PassSnapshot, ...] = ()
    steps: list[Step] = []
    pending: list[PassSnapshot] = []
    text = first
    for snapshot in passes:
        if snapshot.text is None:
            if snapshot.text_left_out:
                pending.append(snapshot)
            continue
        if text is None:
            first, before = snapshot.text, (*pending, snapshot)
        elif snapshot.text != text:
            steps.append(Step((*pending, snapshot), text, snapshot.text, kind))
        text, pending = snapshot.text, []
    return Trail(first, before, tuple(steps), tuple(pending), kind, passes)
