"""Compares two captures: their inputs, stages, resources, and Python lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any, Literal

from irscope.analysis.diff.texts import Ignored, TextDiff, diff_texts
from irscope.analysis.resources import instruction_families, resource_rows, stage_operations
from irscope.analysis.source.map import source_map
from irscope.ir.asm.instructions import ControlInfo, Instruction
from irscope.ir.asm.sass import parse_sass
from irscope.model.capture import Capture, stage_named, stage_rank

# ── The schedules of two SASS texts compared: stall, yield, barriers, waits and reuse of the same instructions ──────


@dataclass(frozen=True, slots=True)
class Change:
    """One named value that differs; None if a side has none."""

    name: str
    left: Any
    right: Any

    @property
    def difference(self) -> float | None:
        """Right less left, for numbers (a missing one counts as none)."""
        left, right = self.left or 0, self.right or 0
        if isinstance(left, (int, float)) and isinstance(right, (int, float)):
            return right - left
        return None


@dataclass(frozen=True, slots=True)
class InstructionSchedule:
    """An instruction whose schedule differs."""

    text: str
    """As the left side has it, without `.reuse`."""
    left_offset: int
    """Bytes from the start of its section."""
    right_offset: int
    fields: tuple[Change, ...]
    """Of `stall`, `yield`, `write barrier`, `read barrier`, `waits` and `reuse`, as text; `–` where it has none."""


@dataclass(frozen=True, slots=True)
class ScheduleDiff:
    """How the schedules of two SASS texts differ."""

    compared: int
    """Instructions that are on both sides, whether or not their registers are called the same."""
    unpaired: int
    """Instructions of either side that have no partner: they are not compared."""
    changes: tuple[InstructionSchedule, ...]

    @property
    def is_empty(self) -> bool:
        """Whether all instructions on both sides are scheduled alike."""
        return not self.changes


def diff_schedules(left: str, right: str, text_diff: TextDiff | None) -> ScheduleDiff:
    """Compare the schedules of two SASS texts, instruction by instruction.

    Args:
        left: SASS in irscope's normal form, or as nvdisasm writes it with encodings.
        text_diff: the comparison of both, which says what are partners; None where the texts are identical.
    """
    ours, theirs = _by_line(left), _by_line(right)
    if text_diff is None:
        return ScheduleDiff(len(ours), 0, ())
    changes: list[InstructionSchedule] = []
    compared = 0
    for one, other in sorted(_partners(text_diff)):
        before, after = ours.get(one), theirs.get(other)
        if before is None or after is None:
            continue
        compared += 1
        values, new = _values(before), _values(after)
        fields = tuple([Change(name, values[name], new[name]) for name in values if values[name] != new[name]])
        if fields:
            text = before.text.replace(".reuse", "")
            changes.append(InstructionSchedule(text, before.offset, after.offset, fields))
    return ScheduleDiff(compared, len(ours) + len(theirs) - 2 * compared, tuple(changes))


def _by_line(text: str) -> dict[int, Instruction]:
    return {item.line: item for function in parse_sass(text) for item in function.instructions}


def _partners(text_diff: TextDiff) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for entry in text_diff.entries:
        right = entry.partner if entry.op == "moved" and entry.left else entry.right
        if entry.left and right is not None:
            numbers = zip(entry.left, right, strict=False)
            found += [(text_diff.left_numbers[one], text_diff.right_numbers[other]) for one, other in numbers]
    return found


def _values(item: Instruction) -> dict[str, str]:
    control = item.control or ControlInfo()
    # Which operands are kept counts by their place: registers may have other names.
    kept = [str(place) for place, operand in enumerate(item.operands, 1) if ".reuse" in operand]
    return {
        "stall": str(control.stall),
        "yield": "yes" if control.yields else "no",
        "write barrier": "–" if control.write_barrier is None else str(control.write_barrier),
        "read barrier": "–" if control.read_barrier is None else str(control.read_barrier),
        "waits": ",".join(map(str, control.waits_for)) or "–",
        "reuse": ",".join(f"operand {place}" for place in kept) or "–",
    }


_DEFAULT_IGNORE: frozenset[Ignored] = frozenset({"locations"})


@dataclass(frozen=True, slots=True)
class StageChange:
    """One stage on both sides."""

    stage: str
    state: Literal["identical", "same", "differs", "left only", "right only"]
    """`identical` byte for byte; `same` but for names, numbers and locations; else it differs."""
    operations: tuple[int, int] = (0, 0)
    """(left, right) operations or instructions."""
    largest: tuple[Change, ...] = ()
    """The operations whose count changed, the most first."""
    summary: str = ""
    """How its lines changed, in one sentence."""


@dataclass(frozen=True, slots=True)
class LineChange:
    """A Python line whose share of some stage changed."""

    file: str
    line: int
    stages: tuple[tuple[str, int], ...]
    """(stage, operations right less left)."""

    @property
    def weight(self) -> int:
        """The sum of the changes, of either sign."""
        return sum(abs(change) for _, change in self.stages)


@dataclass(frozen=True, slots=True)
class PassTime:
    """One pass on both sides."""

    label: str
    left_us: int | None
    right_us: int | None
    outcome: tuple[str, str]
    """Its outcome on each side: ran, skipped, failed, or absent."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two captures differ; the value that `irscope.diff` gives."""

    left: Capture
    right: Capture
    differences: tuple[Change, ...]
    """The inputs that differ: options, target, plan, versions, metadata."""
    stages: tuple[StageChange, ...]
    resources: tuple[Change, ...]
    instructions: tuple[Change, ...]
    lines: tuple[LineChange, ...]
    passes: tuple[PassTime, ...]
    diffs: tuple[tuple[str, TextDiff], ...]
    """(stage, its text's comparison) of every text stage that both hold and that is not identical."""
    schedule: ScheduleDiff | None = None
    """How the schedules of both SASS texts differ; None if a side has none, or they were not compared."""

    @property
    def is_empty(self) -> bool:
        """Whether every stage that both sides have is the same, and neither has one that the other lacks."""
        return all(stage.state in ("identical", "same") for stage in self.stages)

    @property
    def is_same_compile(self) -> bool:
        """Whether both sides are the same: no difference in the inputs, and none in the results."""
        return self.is_empty and not self.differences

    def diff(self, stage: str) -> TextDiff | None:
        """The comparison of one stage's texts; None if they are identical or one is missing."""
        return dict(self.diffs).get(stage)


def diff(
    left: Capture, right: Capture, *, ignore: Iterable[Ignored] = _DEFAULT_IGNORE, stages: Iterable[str] | None = None
) -> Comparison:
    """Compare two captures.

    Args:
        ignore: what does not count in texts: `locations`, `names` (of symbols), `attributes`.
        stages: compare the texts of these only; the rest is counted, not aligned. None: all of them.
    """
    wanted = None if stages is None else set(stages)
    changes: list[StageChange] = []
    diffs: dict[str, TextDiff] = {}
    for name in sorted({*left.stages, *right.stages}, key=stage_rank):
        change, text_diff = _stage(left, right, name, frozenset(ignore), wanted)
        changes.append(change)
        if text_diff is not None:
            diffs[name] = text_diff
    # What a compile that failed before its end did not come to make of its metadata is no difference.
    kept = [one if left.metadata and right.metadata else replace(one, metadata=()) for one in (left, right)]
    differences = [*_changes(*map(inputs_of, kept)), *_compiler_changes(left, right)]
    return Comparison(
        left=left,
        right=right,
        differences=tuple(differences or _source_changes(left, right, changes)),
        stages=tuple(changes),
        resources=tuple(_changes(resource_rows(left), resource_rows(right))),
        instructions=tuple(_changes(instruction_families(left), instruction_families(right))),
        lines=_lines(left, right, [change.stage for change in changes if change.state == "differs"]),
        passes=tuple(_pass_times(left, right)),
        diffs=tuple(diffs.items()),
        schedule=_schedule(left, right, diffs.get("sass")),
    )


def _stage(
    left: Capture, right: Capture, name: str, ignore: frozenset[Ignored], wanted: set[str] | None
) -> tuple[StageChange, TextDiff | None]:
    if name not in right.stages or name not in left.stages:
        only = left if name in left.stages else right
        count = stage_operations(only.artifact(name)).total()
        gone = only is left
        return StageChange(name, "left only" if gone else "right only", (count, 0) if gone else (0, count)), None
    ours, theirs = left.artifact(name), right.artifact(name)
    if ours.data == theirs.data:
        total = stage_operations(ours).total()
        return StageChange(name, "identical", (total, total)), None
    if isinstance(ours.data, bytes) or isinstance(theirs.data, bytes):
        sizes = f"{len(ours.data)} → {len(theirs.data)} bytes"
        return StageChange(name, "differs", summary=sizes), None
    before, after = stage_operations(ours), stage_operations(theirs)
    largest = sorted(_changes(before, after), key=lambda change: (-abs(change.difference or 0), change.name))
    totals = (before.total(), after.total())
    if wanted is not None and name not in wanted:
        return StageChange(name, "differs", totals, tuple(largest)), None
    text_diff = diff_texts(ours.data, theirs.data, stage_named(name).kind, ignore=ignore)
    same = "same" if text_diff.is_empty else "differs"
    return StageChange(name, same, totals, tuple(largest), text_diff.summary), text_diff


def _schedule(left: Capture, right: Capture, text_diff: TextDiff | None) -> ScheduleDiff | None:
    if "sass" not in left.stages or "sass" not in right.stages:
        return None
    ours, theirs = left.text("sass"), right.text("sass")
    if ours != theirs and text_diff is None:
        return None
    return diff_schedules(ours, theirs, text_diff)


def _changes(left: dict[str, Any] | Counter[str], right: dict[str, Any] | Counter[str]) -> list[Change]:
    names = list(dict.fromkeys([*left, *right]))
    return [Change(name, left.get(name), right.get(name)) for name in names if left.get(name) != right.get(name)]


def _source_changes(left: Capture, right: Capture, changes: Iterable[StageChange]) -> list[Change]:
    """The texts that two compiles began with, where they differ: after an edit, or in a function that is called."""
    if not (left.artifacts and right.artifacts):
        return []
    ours, theirs = left.artifacts[0].stage, right.artifacts[0].stage
    if ours != theirs:
        return [Change("compiled from", ours, theirs)]
    if any(change.stage == ours and change.state == "differs" for change in changes):
        return [Change(f"{ours} text", *(_digest(str(one.artifacts[0].data)) for one in (left, right)))]
    return []


def _digest(text: str) -> str | None:
    """The column that distinguishes a text from another in a table; None for no text."""
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8] if text else None


def _compiler_changes(left: Capture, right: Capture) -> list[Change]:
    """The sources, libraries and tools that differ, by name; of two versions or backends everything does."""
    ours, theirs = dict(left.environment.parts), dict(right.environment.parts)
    if bool(ours) != bool(theirs) and left.environment.triton_version and right.environment.triton_version:
        return [Change("compiler's contents", *("recorded" if parts else "not recorded" for parts in (ours, theirs)))]
    same_version = left.environment.triton_version == right.environment.triton_version
    if same_version and left.target.backend == right.target.backend:
        return _changes(ours, theirs)
    return []


_ENVIRONMENT_OF_RESULTS = ("irscope_version", "triton_version", "torch_version", "python_version", "gpu")


def inputs_of(capture: Capture) -> dict[str, Any]:
    """Everything that a compile's result may depend on, flat, with readable names."""
    launch, environment = capture.launch, asdict(capture.environment)
    rows: dict[str, Any] = {
        "kernel": capture.name,
        "target": str(capture.target),
        "plan": str(capture.plan) or "every pass",
        "status": capture.status,
        "language": launch.language,
        "Python text": _digest(launch.kernel.source),
    }
    rows |= {f"signature {name}": kind for name, kind in launch.signature}
    rows |= {f"constant {name}": value for name, value in launch.constants}
    rows |= {f"attribute {name}": value for name, value in launch.attributes}
    rows |= dict(launch.options)
    rows |= {name.replace("_version", ""): environment[name] for name in _ENVIRONMENT_OF_RESULTS if environment[name]}
    rows |= {f"{tool} version": version for tool, version in capture.environment.tools}
    rows |= dict(capture.environment.variables)
    options = dict(launch.options)
    rows |= {
        f"metadata {name}": value
        for name, value in capture.metadata
        if options.get(name) != value
        and name != "extern_libs"
        # Triton notes the variables here too, those that only print among them.
        and not (capture.environment.parts and name.isupper())
    }
    return rows


def _pass_times(left: Capture, right: Capture) -> list[PassTime]:
    ours = {snapshot.label: snapshot for snapshot in left.passes()}
    theirs = {snapshot.label: snapshot for snapshot in right.passes()}
    rows: list[PassTime] = []
    for label in dict.fromkeys([*ours, *theirs]):
        one, other = ours.get(label), theirs.get(label)
        outcome = one.outcome if one else "absent", other.outcome if other else "absent"
        rows.append(PassTime(label, one and one.duration_us, other and other.duration_us, outcome))
    return rows


def _lines(left: Capture, right: Capture, stages: list[str]) -> tuple[LineChange, ...]:
    changes: dict[tuple[str, int], list[tuple[str, int]]] = {}
    texts = [stage for stage in stages if not stage_named(stage).is_binary and stage != "source"]
    if not texts:
        return ()
    ours, theirs = source_map(left, texts), source_map(right, texts)
    for stage in texts:
        before, after = ours.line_counts(stage), theirs.line_counts(stage)
        for key in {*before, *after}:
            if change := after[key] - before[key]:
                changes.setdefault(key, []).append((stage, change))
    rows = [LineChange(file, line, tuple(found)) for (file, line), found in changes.items()]
    return tuple(sorted(rows, key=lambda row: (-row.weight, row.file, row.line)))
