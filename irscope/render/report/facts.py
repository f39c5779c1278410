"""The facts of a capture that a report holds outside of its texts: resources, passes, findings, lives, places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from itertools import groupby
from types import MappingProxyType
from typing import Any

from irscope.analysis.counters.operations import counted_launch
from irscope.analysis.findings.model import Finding
from irscope.analysis.lives.operations import OperationLife
from irscope.analysis.movie.make import FollowedOperations, follow
from irscope.analysis.passes.effects import PassEffect, pass_effects
from irscope.analysis.resources import WRITTEN, assembly_of, instruction_families, resource_rows
from irscope.device.occupancy import excesses_of, occupancy_of
from irscope.errors import undamaged
from irscope.ir.locations.model import Chain, Frame, line_text
from irscope.ir.locations.stages import capture_locations
from irscope.ir.logs.source_page import Counters
from irscope.ir.mlir.reader import parse_mlir
from irscope.layout.described import DescribedLayout
from irscope.layout.rows import layout_rows
from irscope.memory.access import Cost
from irscope.memory.allocation import AllocatedMemory, Buffer
from irscope.memory.conflicts import first_request
from irscope.memory.costs import as_json
from irscope.model.capture import Artifact, Capture, Kernel, Launch, stage_named
from irscope.model.layout import LayoutRefusal, layout_to_json
from irscope.model.plain import picked
from irscope.render.layout.figure import between_facts, memory_facts, thread_facts
from irscope.render.layout.timeline import headline, owner_text, peak_line, timeline_svg
from irscope.render.poster.facts import known_allocations
from irscope.render.report.pictures import for_page
from irscope.render.text.findings import BAD_BELOW, told_of
from irscope.render.text.profile import stall_text
from irscope.render.text.tables import percent

_MOST = 8
_MOST_WORST = 3
_SLOW_SHARE = 0.2
_LOW_OCCUPANCY = 0.5


def findings_of(
    capture: Capture, costs: Sequence[Cost], found: Sequence[Finding], *, among: Sequence[Capture] | None
) -> list[dict[str, Any]]:
    """Rows: the failure, what `irscope verify` says, the three worst findings of `irscope why`, what else stands out.

    Each has a `level` (bad, warn, note), its `text`, the `code` of a finding, and where to look: `stage` and `line`,
    `place` (`kernel.py:23`), `pass`. Launches of the captures `among` are executed as far as their addresses need it.
    """
    others = [*_occupancy(capture), *_costs(costs), *_slow_passes(capture)]
    ranks = {"bad": 0, "warn": 1, "note": 2}
    others.sort(key=lambda row: ranks[row["level"]])
    shown = [one for one in found if not one.is_small][:_MOST_WORST]
    worst = [_row(one) for one in shown if capture.failure is None or one.code != "IRS503"]
    is_launched = capture.failure is None and capture.launch.record is not None
    safety = _safety(capture, among) if among is not None and is_launched else []
    return [*_failure(capture), *safety, *worst, *others][: 2 * _MOST]


def _row(finding: Finding) -> dict[str, Any]:
    row: dict[str, Any] = {
        "level": "bad" if finding.kind.rank < BAD_BELOW else "warn",
        "code": f"{finding.code} {finding.kind.name}",
        "text": told_of(finding),
    }
    if finding.line:
        row |= {"stage": "ttgir", "line": finding.line}
    if place := line_text(finding.place):
        row["place"] = place
    return row


def _safety(capture: Capture, earlier: Sequence[Capture]) -> list[dict[str, Any]]:
    from irscope.verify.launches import verify_briefly

    verdict = verify_briefly(capture, earlier)
    told = "; ".join((verdict.summary, *(verdict.notes if capture.launch.others else ())))
    rows: list[dict[str, Any]] = []
    for violation in verdict.violations:
        text = ". ".join([violation.detail, *violation.evidence])
        row = {"level": "bad", "code": f"{violation.code} {violation.kind}", "text": f"{violation.title}: {text}"}
        rows.append(row | ({"place": line_text(violation.place)} if violation.place else {}))
    return rows or [{"level": "note", "text": f"irscope verify: {told}."}]


def _failure(capture: Capture) -> list[dict[str, Any]]:
    failure = capture.failure
    if failure is None:
        return []
    text = f"The compile {failure.verdict}: {failure.headline}"
    return [{"level": "bad", "text": text, "pass": failure.pass_label}]


def _occupancy(capture: Capture) -> list[dict[str, Any]]:
    if excesses := excesses_of(capture):
        # A failure of the capture, except in one that was recorded before that was judged.
        rows = [{"level": "bad", "text": f"It does not fit: {row}."} for row in excesses]
        return [] if capture.failure is not None else rows
    found = occupancy_of(capture)
    if found is None or found.fraction > _LOW_OCCUPANCY:
        return []
    return [{"level": "warn", "text": f"Occupancy is {percent(found.fraction)}: {found}."}]


def _costs(costs: Sequence[Cost]) -> list[dict[str, Any]]:
    rows = [row for row in costs if row.excess]
    return [
        {"level": "warn", "text": f"{row.operation}: {row.summary}", "stage": "ttgir", "line": row.line}
        for row in rows[:_MOST]
    ]


def _slow_passes(capture: Capture) -> list[dict[str, Any]]:
    timed = [(item.duration_us, item.label) for item in capture.passes() if item.duration_us]
    total = sum(duration for duration, _ in timed)
    return [
        {"level": "note", "text": f"{label} takes {percent(duration / total)} of all passes' time.", "pass": label}
        for duration, label in sorted(timed, reverse=True)[:2]
        if duration > _SLOW_SHARE * total
    ]


_LARGEST = 8


def facts_of(
    capture: Capture, costs: Sequence[Cost], found: Sequence[Finding], *, among: Sequence[Capture] | None
) -> dict[str, Any]:
    """All but the texts of a capture, as JSON holds it; `found` are its findings, `among` as of `findings_of`."""
    launch = capture.launch
    occupancy = occupancy_of(capture)
    kernel = "kernel=name file=launch.kernel.file line=launch.kernel.line firstLine=launch.kernel.first_line"
    compiled = "language=launch.language signature=launch.signature constants=launch.constants grid=launch.grid"
    return picked(
        capture,
        f"id {kernel} {compiled} attributes=launch.attributes options=launch.options warpSize=target.warp_size status "
        "target plan metadata notes compileUs=compile_us snapshotLevel=snapshot_level",
        failure=asdict(capture.failure) | {"verdict": capture.failure.verdict} if capture.failure else None,
        autotuning=asdict(launch.autotuning) if launch.autotuning else None,
        resources=resource_rows(capture),
        occupancy=occupancy and picked(occupancy, "limits fraction", text=str(occupancy)),
        families=instruction_families(capture),
        environment={key: value for key, value in asdict(capture.environment).items() if value != ()},
        stages=[_stage(item) for item in capture.artifacts],
        passes=[_pass(effect) for effect in pass_effects(capture)],
        findings=findings_of(capture, costs, found, among=among),
    )


def _stage(item: Artifact) -> dict[str, Any]:
    is_text = isinstance(item.data, str)
    return picked(
        stage_named(item.stage),
        "kind title",
        stage=item.stage,
        us=item.duration_us,
        bytes=len(item.data),
        lines=item.text.count("\n") if is_text else None,
        digest=sha256(item.data).hexdigest()[:16] if isinstance(item.data, bytes) else None,
    )


def _pass(effect: PassEffect) -> dict[str, Any]:
    names = "stage name n=occurrence index argument options outcome changed us=duration_us group scope"
    row = picked(effect.snapshot, names, leftOut=effect.snapshot.text_left_out)
    counts = [effect.lines, effect.operations, effect.layouts, effect.convert_layouts]
    if any(counts):
        row |= {"counts": counts, "byOperation": list(effect.by_operation[:_LARGEST])}
    return {name: value for name, value in row.items() if value not in ("", None, False) or name == "changed"}


NO_LIVES: dict[str, Any] = {"steps": [], "changes": [], "texts": {}}
"""Of a capture whose operations are not followed."""
_NO_STEP, _FIRST, _UNCLEAR = -1, -2, -3


def packed_lives(
    capture: Capture, number_of: Callable[[str], int], followed: FollowedOperations | None = None
) -> dict[str, Any]:
    """The lives of a capture's operations, but those of the LLVM dialects.

    `steps`: (first pass, last pass) by their places among the MLIR passes: one, or several whose texts between were not
    kept. `changes`: for each step (operation, made, removed). `texts`: by the number of a text, for its lines the step
    that made the operation and the one that removes it, each as (step, lines) again and again: -1 for none, -2 for what
    was there before the first step, -3 where it is one of several that cannot be told apart.
    """
    lives = (followed or follow(capture)).lives
    trail = lives.trail
    if trail.first is None:
        return NO_LIVES
    places = {one.label: place for place, one in enumerate(capture.passes())}
    changes: list[Counter[tuple[str, int]]] = [Counter() for _ in trail.steps]
    made: list[dict[int, int]] = [{} for _ in range(len(trail.steps) + 1)]
    gone: list[dict[int, int]] = [{} for _ in range(len(trail.steps) + 1)]
    for life in lives.lives:
        if life.counted_from >= 0:
            changes[life.counted_from][life.first.name, 1] += 1
        if life.removal is not None:
            changes[life.removal.step][life.last.name, 2] += 1
        for step, line in life.lines:
            made[step + 1][line] = _maker(life)
            gone[step + 1][line] = _remover(life)
    texts = [trail.first, *(step.right for step in trail.steps)]
    return {
        "steps": [[places[step.passes[0].label], places[step.passes[-1].label]] for step in trail.steps],
        "changes": [
            [[name, counts[name, 1], counts[name, 2]] for name in dict.fromkeys(name for name, _ in counts)]
            for counts in changes
        ],
        "texts": {
            number_of(text): [_runs(text, made[index]), _runs(text, gone[index])]
            for index, text in enumerate(texts)
            if made[index]
        },
    }


def _maker(life: OperationLife) -> int:
    (step, *others) = life.made_by
    return _UNCLEAR if others else _FIRST if step < 0 else step


def _remover(life: OperationLife) -> int:
    if life.removal is None:
        return _NO_STEP
    return _UNCLEAR if life.removal.among > 1 else life.removal.step


def _runs(text: str, by_line: dict[int, int]) -> list[int]:
    steps: Iterable[int] = (by_line.get(line, _NO_STEP) for line in range(1, text.count("\n") + 2))
    return [item for step, run in groupby(steps) for item in (step, sum(1 for _ in run))]


def heat_of(capture: Capture) -> dict[str, Any] | None:
    """`stalled`: samples of stalled warps, in all; `lines`: stage, or file of Python → (line, samples, tip).

    None for a capture without a profile, or with one that is not of its code.
    """
    counted = undamaged(lambda: counted_launch(capture), None) if capture.profile is not None else None
    if counted is None:
        return None
    parts: dict[tuple[str, int], list[Counters]] = {}
    for row in counted.operations:
        file, _, line = row.place.rpartition(":")
        if file:
            parts.setdefault((file, int(line)), []).append(row.counters)
        if row.line:
            parts.setdefault(("ttgir", row.line), []).append(row.counters)
        for one in row.instructions:
            parts.setdefault(("sass", one.line), []).append(one.counters)
    lines: dict[str, list[tuple[int, int, str]]] = {}
    for (stage, line), found in sorted(parts.items()):
        total = Counters.sum(found)
        lines.setdefault(stage, []).append((line, total.stalled, _tip(total)))
    return {"stalled": counted.counters.stalled, "lines": lines}


def _tip(counters: Counters) -> str:
    stalls = f"{counters.stalled} samples of stalled warps for {stall_text(counters)}" if counters.stalled else ""
    executed = f"executed {counters.executed} times by warps" if counters.executed is not None else ""
    sectors = f"{counters.sectors} sectors in {counters.lines} lines" if counters.sectors else ""
    return "; ".join(filter(None, (stalls, executed, sectors)))


def stage_locations(capture: Capture) -> dict[str, Any]:
    """The locations of every text stage of a capture.

    `stages`: of each the chain of its lines, as (chain, lines) again and again, -1 for no chain. `files`; `frames` as
    (file, line, column, function, name); `chains` as numbers of frames, innermost first. `operations`: of assembly the
    operation of its lines where the capture holds it, as (first line in the TTGIR or 0, lines) again and again.
    `owners`: (line, first line of its operation) for the lines of the TTGIR that continue an operation.
    """
    files: dict[str, int] = {}
    frames: dict[Frame, int] = {}
    chains: dict[Chain, int] = {}
    stages: dict[str, list[int]] = {}
    for stage, text in capture.texts.items():
        locations = capture_locations(capture, text, stage_named(stage).kind)
        for frame in (frame for chain in locations.chains for frame in chain):
            files.setdefault(frame.file, len(files))
            frames.setdefault(frame, len(frames))
        numbers = [chains.setdefault(chain, len(chains)) for chain in locations.chains]
        lines = (numbers[index] if index >= 0 else -1 for index in locations.by_line)
        stages[stage] = [item for number, run in groupby(lines) for item in (number, sum(1 for _ in run))]
    return {
        "stages": stages,
        "files": list(files),
        "frames": [[files[one.file], one.line, one.column, one.function, one.name] for one in frames],
        "chains": [[frames[frame] for frame in chain] for chain in chains],
        "operations": {row.stage: [item for run in row.runs for item in run] for row in capture.operations if row.runs},
        "owners": _owners(capture) if any(row.runs for row in capture.operations) else [],
    }


def _owners(capture: Capture) -> list[tuple[int, int]]:
    operations = parse_mlir(capture.texts.get("ttgir", "")).walk()
    return sorted((line, one.first_line) for one in operations for line in one.lines if line != one.first_line)


_TENSOR_MEMORY_BANKS = 32
_NOT_RECORDED = LayoutRefusal("unasked", "the capture holds no answer of the compiler: record it again")


@dataclass(frozen=True, slots=True)
class Between:
    """What the page says of two layouts beside each other."""

    facts: tuple[str, ...]
    request: tuple[int, ...]
    """The row-major elements that the first lanes of warp 0 access together, of an access of shared memory."""


NO_PAIRS: Mapping[tuple[int, int], Between] = MappingProxyType({})


def packed_layouts(
    capture: Capture, costs: Iterable[Cost], between: Mapping[tuple[int, int], Between] = NO_PAIRS
) -> dict[str, Any]:
    """`rows`, one per layout, `conversions`, the costs of each one, and `between`, what is known of some pairs.

    A row is that of the capture file, with `name`, `parameters` and `facts` for people. The rows of a capture that was
    made without the compiler's answers say so in `reason`.
    """
    rows = capture.layouts
    if not rows:
        text = next((item.data for item in capture.artifacts if item.stage == "ttgir"), "")
        rows = [replace(row, answer=_NOT_RECORDED) for row in layout_rows(text)] if isinstance(text, str) else []
    conversions = as_json(cost for cost in costs if cost.kind == "conversion")
    return {
        "rows": [_packed_layout(DescribedLayout(row, capture.target)) for row in rows],
        "conversions": conversions,
        "between": {f"{one} {other}": asdict(found) for (one, other), found in between.items()},
    }


def between_layouts(
    first: DescribedLayout, second: DescribedLayout, compiler_ways: int | None = None
) -> tuple[Between, Between]:
    """What moves from one layout to another, or how one accesses the other: from each side."""
    threads, memory = first.threads or second.threads, first.memory or second.memory
    store = first.threads is not None
    request = first_request(threads, memory, store=store, target=first.target) if threads and memory else ()
    framed = tuple(sorted(request))
    return (
        Between(tuple(between_facts(first, second, compiler_ways)), framed),
        Between(tuple(between_facts(second, first, compiler_ways)), framed),
    )


def capture_of_layouts(layouts: Sequence[DescribedLayout]) -> Capture:
    """A capture of layouts alone, such as those that were given as text: it has no stage and no pass."""
    names = ", ".join(dict.fromkeys(item.name for item in layouts))
    return Capture(
        launch=Launch(Kernel(names)),
        target=layouts[0].target,
        layouts=tuple(item.row for item in layouts),
        notes=("This page holds layouts alone, without a compile.",),
    )


def _packed_layout(described: DescribedLayout) -> dict[str, Any]:
    threads, memory = described.threads, described.memory
    names = "name title=encoding.title space=encoding.space shapeText=shape_text parameters elementBits=element_bits"
    return layout_to_json(described.row) | picked(
        described,
        names + " reason=row.reason",
        vector=max((threads.contiguous(at) for at in range(len(threads.shape))), default=1) if threads else 1,
        banks=memory.banks if memory else _TENSOR_MEMORY_BANKS,
        facts=[*thread_facts(described), *memory_facts(described)],
    )


@dataclass(frozen=True, slots=True)
class Holder:
    title: str
    """`%a 3×128×64×f16`."""
    at_peak: bool
    buffer: Buffer


@dataclass(frozen=True, slots=True)
class MemoryOverTime:
    space: str
    unit: str
    total: int
    limit: int | None
    held_at_peak: int
    headline: str
    peak: str
    holders: tuple[Holder, ...]
    """In the order of the program, as the boxes of the picture are numbered."""


@dataclass(frozen=True, slots=True)
class Memory:
    costs: tuple[Cost, ...]
    """The rows of global and shared memory of `irscope layout --costs`."""
    assembly: str
    """`ptx` or `amdgcn`, whose instructions the rows may count; an empty string if the capture has neither."""
    reasons: tuple[str, ...]
    """Why it could not be found out which operation each instruction is from, if that was tried."""
    memories: tuple[MemoryOverTime, ...]
    picture: str
    """All of them over time, as SVG for the page; empty if the capture does not hold the IR after the allocation."""


def packed_memory(capture: Capture, costs: Iterable[Cost]) -> dict[str, Any]:
    """The memory of a capture as JSON holds it; `costs` are those of the capture."""
    allocations = known_allocations(capture)
    memory = Memory(
        tuple(cost for cost in costs if cost.kind != "conversion"),
        assembly_of(capture, WRITTEN),
        tuple(dict.fromkeys(row.reason for row in capture.operations if row.reason)),
        tuple(map(_over_time, allocations)),
        for_page(timeline_svg(f"{capture.name} {capture.target}", allocations)) if allocations else "",
    )
    return asdict(memory)


def _over_time(memory: AllocatedMemory) -> MemoryOverTime:
    return MemoryOverTime(
        memory.space,
        memory.unit,
        memory.total,
        memory.limit,
        memory.held_at_peak,
        headline(memory),
        peak_line(memory) if memory.buffers else "",
        tuple(Holder(owner_text(one), one.is_live(memory.peak), one) for one in memory.buffers),
    )
