"""The texts that a reduction may begin with: the IR before the pass that fails, or the artifact of a stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irscope.analysis.reduce.case import Pipeline
from irscope.errors import RecordingError, UsageError
from irscope.model.capture import Capture, PassSnapshot, stage_named, stage_rank

__all__ = ["Origin", "origins_of"]

_STAGES = ("source", "ttir", "ttgir")


@dataclass(frozen=True, slots=True)
class Origin:
    """A text, and the passes that run on it."""

    name: str
    text: str
    into: str
    """The stage whose passes run on it first."""
    pipeline: Pipeline


def origins_of(capture: Capture, stage: str | None, before: PassSnapshot | None) -> tuple[Origin, ...]:
    """The texts to try, the best first: the latest are those on which the fewest passes run.

    `stage`: only the artifact of this stage. `before`: only the IR before this pass. Raises UsageError and
    RecordingError where there is no such text.
    """
    if before is not None:
        if (one := _before(capture, before)) is None:
            raise RecordingError(
                f"the recording left out the IR before {before.label}: record it with --snapshots all."
            )
        return (one,)
    if stage is not None and stage not in _STAGES:
        raise UsageError(f"--stage {stage!r}: write {', '.join(_STAGES)}.")
    if stage is not None:
        capture.artifact(stage)
        found = tuple(one for one in _artifacts(capture) if one.name == f"stage {stage}")
        if not found:
            raise UsageError(f"--stage {stage}: no pass runs on it before {_where(capture)}.")
        return found
    failed = next((one for one in capture.passes() if one.outcome == "failed"), None)
    first = _before(capture, failed) if failed is not None else None
    return (*([first] if first is not None else []), *_artifacts(capture))


def _before(capture: Capture, snapshot: PassSnapshot) -> Origin | None:
    text = capture.text_before(snapshot)
    if text is None or stage_named(snapshot.stage).kind == "binary" or snapshot.argument == "":
        return None
    stages = _stages_from(capture, snapshot.stage)
    pipeline = Pipeline.of(tuple(capture.passes()), stages, snapshot.label)
    # Gluon's passes of ttgir are other ones than Triton's; its own first stage runs none, and tells them apart.
    is_gluon = capture.launch.language == "gluon" and snapshot.stage == "ttgir"
    return Origin(f"before {snapshot.label}", text, "glir" if is_gluon else snapshot.stage, pipeline)


def _artifacts(capture: Capture) -> Iterator[Origin]:
    made = [*capture.stages, *([capture.failure.stage] if capture.failure is not None else [])]
    for stage in reversed(_STAGES):
        later = [one for one in made if stage_rank(one) > stage_rank(stage)]
        if stage in capture.stages and later:
            into = min(later, key=stage_rank)
            pipeline = Pipeline.of(tuple(capture.passes()), _stages_from(capture, into))
            yield Origin(f"stage {stage}", capture.text(stage), into, pipeline)


def _stages_from(capture: Capture, first: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.stage for one in capture.passes() if stage_rank(one.stage) >= stage_rank(first)))


def _where(capture: Capture) -> str:
    return f"it {capture.failure.verdict}" if capture.failure is not None else "its end"
