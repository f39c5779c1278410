"""The history of an operation or a value through the passes of a capture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from irscope.analysis.lives.identity import PassStep, Trail, trail_of
from irscope.analysis.lives.operations import Lives, OperationLife, ValueEvent, is_named, operation_lives, value_lives
from irscope.api.texts import one_pass, with_texts
from irscope.errors import PlanError, StageNotFound, UsageError, did_you_mean
from irscope.ir.columns import operation_counts
from irscope.ir.locations.model import is_library
from irscope.model.capture import Capture, PassSnapshot
from irscope.model.plain import picked
from irscope.record.variants.completing import with_all_texts
from irscope.render.text.history import lives_json, render_lives, render_value, value_json


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be followed: operations of a name, or the values of one."""

    operation: str | None
    line: int | None
    """Of the Python, that the operations come from."""
    value: str | None
    stage: str | None
    """At whose end an operation counts as surviving, or a value is looked for; None for that of TTGIR."""
    at: str | None
    """The same after a pass."""
    shows_diff: bool

    def __post_init__(self) -> None:
        if self.operation is not None and self.value is not None:
            raise UsageError("--op and --value do not go together: give one.")
        if self.line is not None and self.operation is None:
            raise UsageError("--line goes with --op: it names the line of Python that the operations come from.")
        if self.stage is not None and self.at is not None:
            raise UsageError("--stage and --at both choose a place: give one.")


class Followed:
    """The answer for one capture."""

    def __init__(self, capture: Capture, question: Question) -> None:
        self.question = question
        capture = with_texts(capture, "nothing can be followed through them")
        self.capture, self.trail, self.at, self.where = _placed(capture, question)

    @property
    def _file(self) -> str:
        return self.capture.launch.kernel.file

    @cached_property
    def lives(self) -> Lives:
        """The lives of the operations that are asked for; raises UsageError if there never was one."""
        name, line = self.question.operation or "", self.question.line
        lives = operation_lives(self.capture, lambda other: is_named(other, name))
        if not lives.lives:
            texts = [self.trail.first or "", *(step.right for step in self.trail.steps)]
            names = {other for text in texts for other in operation_counts(text, "mlir")}
            known = sorted(names | {other.rpartition(".")[2] for other in names})
            raise UsageError(
                f"no pass of {self.capture.name} left an operation {name!r}.{did_you_mean(name, known, or_all=False)}"
            )
        if line is None:
            return lives
        chosen = tuple(life for life in lives.lives if any(frame.line == line for frame in self._frames(life)))
        if not chosen:
            lines = sorted({frame.line for life in lives.lives for frame in self._frames(life)})
            known = ", ".join(map(str, lines)) or "none that is known"
            raise UsageError(f"no {name} comes from line {line}: they come from {known}.")
        return replace(lives, lives=chosen)

    def _frames(self, life: OperationLife) -> list[Any]:
        return [frame for frame in life.chain if frame.file == self._file or not is_library(frame.file)]

    @cached_property
    def values(self) -> list[list[ValueEvent]]:
        """The lives of the values that are asked for."""
        return value_lives(self.trail, self.at, self.question.value or "")

    def as_json(self) -> dict[str, Any]:
        body: dict[str, Any]
        head = picked(self.capture, "id kernel=name target")
        if self.question.operation is not None:
            body = lives_json(self.lives, self.at, self.where, self._file)
            body = {"operation": self.question.operation, "python_line": self.question.line, **body}
        else:
            values = [value_json(self.trail, events, self._file) for events in self.values]
            body = {"value": self.question.value, "where": self.where, "values": values}
        if self.question.shows_diff:
            body["diffs"] = [
                {"passes": [one.label for one in step.passes], "hunks": text} for step, text in self._hunks(False)
            ]
        return head | body

    def as_text(self, width: int | None, color: bool) -> str:
        if self.question.operation is not None:
            text = render_lives(self.lives, self.at, self.where, self._file, width=width, color=color)
        else:
            parts = [render_value(self.trail, one, self._file, width=width, color=color) for one in self.values]
            text = "\n".join(parts)
        if self.question.shows_diff:
            text += "".join(f"\n{step.label}\n{hunks}" for step, hunks in self._hunks(color))
        return text

    def _hunks(self, color: bool) -> Iterator[tuple[PassStep, str]]:
        from irscope.analysis.diff.texts import diff_texts
        from irscope.render.text.diff import render_around

        lines = self._lines_of_steps()
        for index, (lefts, rights) in sorted(lines.items()):
            step = self.trail.steps[index]
            diff = diff_texts(step.left, step.right, "mlir")
            yield step, render_around(diff, lefts, rights, color=color)

    def _lines_of_steps(self) -> dict[int, tuple[set[int], set[int]]]:
        """Step -> lines of its left and of its right text where something was removed, and where it was made."""
        lines: dict[int, tuple[set[int], set[int]]] = {}
        if self.question.operation is not None:
            for life in self.lives.lives:
                if life.counted_from >= 0:
                    lines.setdefault(life.counted_from, (set(), set()))[1].add(life.first.line)
                if life.removal is not None:
                    lines.setdefault(life.removal.step, (set(), set()))[0].add(life.last.line)
            return lines
        for event in (event for events in self.values for event in events if event.step >= 0):
            side = lines.setdefault(event.step, (set(), set()))
            side[event.what != "removed"].add(event.sighting.line)
        return lines


def _placed(capture: Capture, question: Question) -> tuple[Capture, Trail, int, str]:
    """The capture, compiled again if it must be, its texts, and the place in them that a question names."""
    trail = trail_of(capture)
    if question.at is not None:
        snapshot = one_pass(capture, question.at)
        where = snapshot.label
        if snapshot not in trail.passes:
            raise PlanError(f"--at {question.at}: it is a pass of LLVM's or ptxas's, and only MLIR's are followed.")
    else:
        stages = list(dict.fromkeys(one.stage for one in trail.passes))
        # The passes of llir leave Triton's dialects: what they lower is what a reader asks for.
        where = question.stage or next((stage for stage in reversed(stages) if stage != "llir"), stages[-1])
        known = [one for one in trail.passes if one.stage == where]
        if not known:
            raise PlanError(f"no pass of MLIR ran in stage {where!r}: there are {', '.join(stages)}.")
        snapshot = known[-1]
    at = trail.step_at(snapshot)
    if at is None:
        capture = with_all_texts(capture)
        trail = trail_of(capture)
        at = trail.step_at(_same_pass(capture, snapshot))
        if at is None:
            raise StageNotFound(f"the IR after {snapshot.label} is not in the capture.")
    return capture, trail, at, where


def _same_pass(capture: Capture, snapshot: PassSnapshot) -> PassSnapshot:
    same = next((one for one in capture.passes() if one.label == snapshot.label), None)
    if same is None:
        raise StageNotFound(f"compiled again, {capture.name} has no pass {snapshot.label}.")
    return same
