"""Compiles captures by two compilers, compares what they make and how long that takes, and has the blame found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

from irscope.analysis.code import alike, code_of
from irscope.analysis.findings.find import findings_of
from irscope.analysis.findings.model import Finding
from irscope.analysis.passes.times import own_times
from irscope.analysis.regressions import OF_ONE_SOURCE, changed_facts, facts_of
from irscope.analysis.upgrade.blame import blame_of
from irscope.analysis.upgrade.model import Asking, Blame, CompileTimeChange, Upgrade, UpgradeCompiler, UpgradeRow
from irscope.device.measurement import Measurement
from irscope.errors import DAMAGE
from irscope.ir.mlir.attributes import Encoding, read_aliases, read_encoding
from irscope.ir.syntax import Ignored
from irscope.model.capture import Capture
from irscope.model.telling import parts_of, telling_texts
from irscope.model.trial import Graft, Side
from irscope.verify.meaning import MeaningVerdict, compare_captures

_COMPILES = 3
_LEAST_RATIO, _LEAST_US = 1.2, 10_000
"""A change of one compile's time that is worth measuring: the factor, either way, and microseconds."""


def compile_time_change(
    rows: Sequence[UpgradeRow], before: UpgradeCompiler, after: UpgradeCompiler
) -> CompileTimeChange | None:
    """The change of the compile time that grew most, or else shrank most; None where none changed much.

    One compile of each variant is known, which says little on a busy machine: of the variant that differs most each of
    the two compiles several more, and one with a clock at every part.
    """
    found: list[tuple[int, Capture, Capture]] = []
    for row in rows:
        if row.before is None or row.after is None or not (row.before.has_compiled and row.after.has_compiled):
            continue
        was_us, now_us = row.before.processor_us, row.after.processor_us
        if not was_us or not now_us or abs(now_us - was_us) < _LEAST_US:
            continue
        if max(now_us / was_us, was_us / now_us) >= _LEAST_RATIO:
            found.append((now_us - was_us, row.before, row.after))
    if not found:
        return None
    # A slower one is said first, however much faster another is.
    _, was, now = max(found, key=lambda one: (one[0] > 0, abs(one[0])))
    ours, theirs = _times_ms(before, was), _times_ms(after, now)
    if not (ours and theirs):
        return None
    parts = own_times(before.timed(was)), own_times(after.timed(now))
    sign = 1 if min(theirs) > min(ours) else -1
    names = dict.fromkeys([*parts[0], *parts[1]])
    part = max(names, key=lambda name: sign * (parts[1].get(name, 0) - parts[0].get(name, 0)), default="")
    part_ms = tuple(one.get(part, 0) / 1e6 for one in parts)
    return CompileTimeChange(now.name, str(now.target), ours, theirs, part, (part_ms[0], part_ms[1]))


def _times_ms(compiler: UpgradeCompiler, capture: Capture) -> tuple[float, ...]:
    made = [one for _, one in compiler.compile([capture] * _COMPILES)]
    return tuple(sorted(one.processor_us / 1000 for one in made if one.processor_us is not None))


Pair = tuple[Capture | None, Capture | None]
"""(before, after); None where one of the two has no such launch."""
_Disassemble = Callable[[Capture], Capture]
"""A capture with the SASS of its binary, where that can be had."""
Progress = Callable[[str, int, int], None]
"""Called with what is done, how many are done, and of how many."""

_INSIGNIFICANT: frozenset[Ignored] = frozenset({"locations", "attributes"})
_WIDTHS = ("load_bits", "store_bits")

_OF_ONE_CTA = ("CTAsPerCGA", "CTASplitNum", "CTAOrder", "CGALayout")
"""Parameters of layouts that only some versions write."""


def _silent(what: str, done: int, total: int) -> None:
    del what, done, total


def _as_it_is(capture: Capture) -> Capture:
    return capture


def upgraded(
    captures: Sequence[Capture],
    before: UpgradeCompiler,
    after: UpgradeCompiler,
    recorded: tuple[Sequence[Capture], Sequence[Capture]] = ((), ()),
    *,
    blames: bool = True,
    progress: Progress = _silent,
) -> Upgrade:
    """Compile captures by two compilers, compare, and blame.

    Args:
        recorded: what a program launched under each of the two, which is not compiled again.
        blames: whether the stage and the pass are looked for that each change comes from.
    """
    ours, theirs = (compiled(captures, compiler, progress) for compiler in (before, after))
    pairs = [*zip(ours, theirs, strict=True), *pairs_of(*recorded)]
    sources = {id(made): origin.environment.triton_version for made, origin in zip(ours, captures, strict=True)}
    rows, grafts = rows_of(pairs, after.disassemble, sources), 0
    if blames:
        rows, grafts = blamed(rows, before, after, progress)
    versions = tuple(sorted({capture.environment.triton_version for capture in captures}))
    slower = compile_time_change(rows, before, after) if blames else None
    return Upgrade((before.version, after.version), tuple(rows), versions, grafts, compile_time=slower)


def compiled(captures: Sequence[Capture], compiler: UpgradeCompiler, progress: Progress = _silent) -> list[Capture]:
    """Each capture, compiled by a compiler; the same compile once."""
    distinct = list({capture.id: capture for capture in reversed(captures)}.values())
    made: dict[str, Capture] = {}
    for place, capture in compiler.compile(distinct):
        origin = distinct[place]
        # A compiler does not know what the launch was given.
        launch = replace(capture.launch, grid=origin.launch.grid, record=origin.launch.record)
        made[origin.id] = replace(capture, launch=launch, sources=origin.sources)
        progress(f"Triton {compiler.version}", len(made), len(distinct))
    return [made[capture.id] for capture in captures]


def rows_of(
    pairs: Sequence[Pair], disassemble: _Disassemble = _as_it_is, source_versions: Mapping[int, str] | None = None
) -> list[UpgradeRow]:
    """The rows of pairs, compared; equal pairs are one row.

    `source_versions`: of the Triton whose front end made the IR of a pair, by the `id()` of its first capture.
    """
    keys = [tuple("" if side is None else side.id for side in pair) for pair in pairs]
    distinct = dict(zip(keys, pairs, strict=True)).values()
    sources = source_versions or {}
    rows = [compared(before, after, disassemble, sources.get(id(before), "")) for before, after in distinct]
    variants = variants_of([row.capture for row in rows])
    return [replace(row, variant=variant) for row, variant in zip(rows, variants, strict=True)]


def compared(
    before: Capture | None, after: Capture | None, disassemble: _Disassemble = _as_it_is, source_version: str = ""
) -> UpgradeRow:
    """The row of a pair, without blame.

    Equal code is the same. Of other code the facts are compared, and what decides results: its arithmetic, and the
    order of its accesses to memory.
    """
    row = UpgradeRow(before, after, source_version=source_version)
    if before is None or after is None or row.why_not_compared:
        return row
    if before.has_compiled and after.has_compiled:
        code = code_of(before)
        if code and code == code_of(after):
            return row
        before, after = _disassembled(before, after, disassemble)
    ours, theirs = (facts_of(side, of_one_source=True) for side in (before, after))
    ours_found, theirs_found = _findings(before, after, any(ours.get(name) != theirs.get(name) for name in _WIDTHS))
    codes = {finding.code for finding in ours_found}
    if before.has_compiled and after.has_compiled:
        ours["findings"] = tuple(sorted(codes))
        theirs["findings"] = tuple(sorted({finding.code for finding in theirs_found}))
    new = tuple(finding for finding in theirs_found if finding.code not in codes)
    return replace(row, before=before, after=after, changes=changed_facts(ours, theirs), findings=new)


def _disassembled(before: Capture, after: Capture, disassemble: _Disassemble) -> tuple[Capture, Capture]:
    sides = [disassemble(side) for side in (before, after)]
    if all("sass" in side.stages for side in sides):
        return sides[0], sides[1]
    if any("cubin" not in side.stages for side in (before, after)):
        return before, after
    bare = [replace(side, artifacts=tuple(one for one in side.artifacts if one.stage != "sass")) for side in sides]
    return bare[0], bare[1]


def _types(one: Capture) -> tuple[Hashable, ...]:
    return (one.name, one.launch.kernel.file, str(one.target), one.launch.signature, one.launch.constants)


# From the most alike to the least: versions differ in the attributes that they give arguments, and in options.
_KEYS: tuple[Callable[[Capture], Hashable], ...] = (
    lambda one: (*_types(one), one.launch.attributes, repr(one.launch.set_options), str(one.plan)),
    lambda one: (*_types(one), repr(one.launch.set_options)),
    lambda one: (*_types(one), one.launch.option("num_warps"), one.launch.option("num_stages")),
    _types,
)


def pairs_of(before: Sequence[Capture], after: Sequence[Capture]) -> list[Pair]:
    """Each capture of `before` with its partner, in their order, then those of `after` that have none.

    Of several that are alike, the first goes with the first.
    """
    partners: dict[int, Capture] = {}
    taken: set[int] = set()
    for key in _KEYS:
        waiting: defaultdict[Hashable, list[int]] = defaultdict(list)
        for index, one in enumerate(after):
            if index not in taken:
                waiting[key(one)].append(index)
        for index, one in enumerate(before):
            if index not in partners and (found := waiting.get(key(one))):
                place = found.pop(0)
                taken.add(place)
                partners[index] = after[place]
    rows: list[Pair] = [(one, partners.get(index)) for index, one in enumerate(before)]
    return [*rows, *((None, one) for index, one in enumerate(after) if index not in taken)]


def variants_of(captures: Sequence[Capture]) -> list[str]:
    """What tells each capture from the others of its kernel: `BLOCK=64 num_warps=8`; empty for the only one."""
    return telling_texts([(one.name, {"target": str(one.target), **parts_of(one.launch)}) for one in captures])


def with_meaning(row: UpgradeRow) -> tuple[UpgradeRow, MeaningVerdict | None]:
    """A row with whether both compiles mean the same, and the verdict; None where one of both has no IR."""
    if row.before is None or row.after is None or not (row.before.has_compiled and row.after.has_compiled):
        return row, None
    known = row.before.launch if row.before.launch.record is not None else row.after.launch
    before, after = (
        replace(one, launch=replace(one.launch, grid=known.grid, record=known.record))
        if one.launch.record is None
        else one
        for one in (row.before, row.after)
    )
    verdict = compare_captures(before, after)
    if verdict.answer != "changed":
        return row, verdict
    changes = [*row.changes, *changed_facts({"meaning": ""}, {"meaning": "changed"})]
    return replace(row, changes=tuple(sorted(changes, key=lambda change: change.order))), verdict


def with_measurement(row: UpgradeRow, measured: Measurement) -> UpgradeRow:
    """A row with what its launch does on a GPU: a time that differs beyond the noise and a result that differs count.

    Whether a time is worse is judged by the median of ratios, not by the two medians.
    """
    changes = list(row.changes)
    if measured.agreement is not None and measured.agreement.verdict == "identical":
        # It is shown that what decides results changed none.
        changes = [replace(one, verdict="other") if one.name in OF_ONE_SOURCE else one for one in changes]
    if measured.computes_other and measured.agreement is not None:
        changes += changed_facts({"result": ""}, {"result": measured.agreement.verdict})
    ratio = measured.ratio
    if ratio is not None and ratio.different and measured.before is not None and measured.after is not None:
        (judged,) = changed_facts({"time_us": 1.0}, {"time_us": ratio.value})
        changes.append(replace(judged, before=measured.before.median_us, after=measured.after.median_us))
    changes.sort(key=lambda change: change.order)
    return replace(row, changes=tuple(changes), measured=measured)


def _findings(before: Capture, after: Capture, other_widths: bool) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """The findings of both; those of addresses only where layouts or widths differ, as else they are the same."""
    if not (before.has_compiled and after.has_compiled):
        return (), ()
    ours, theirs = before.texts.get("ttgir", ""), after.texts.get("ttgir", "")
    is_same = alike(ours, theirs, _INSIGNIFICANT)
    evaluates = not is_same and (other_widths or _layouts(ours) != _layouts(theirs))
    try:
        return findings_of(before, evaluates=evaluates), findings_of(after, evaluates=evaluates)
    except DAMAGE:
        # What is in a capture's file may say anything.
        return (), ()


def _layouts(text: str) -> set[tuple[object, ...]]:
    return {_without_ctas(read_encoding(alias)) for alias in read_aliases(text).values()}


def _without_ctas(layout: Encoding) -> tuple[object, ...]:
    rows = (row for row in layout.parameters if row[0] not in _OF_ONE_CTA)
    return layout.name, *((key, _without_ctas(one) if isinstance(one, Encoding) else one) for key, one in rows)


def blamed(
    rows: Sequence[UpgradeRow], before: UpgradeCompiler, after: UpgradeCompiler, progress: Progress = _silent
) -> tuple[list[UpgradeRow], int]:
    """Rows with the blame for what changed, and how many compiles that took; several kernels at once."""
    compilers: dict[Side, UpgradeCompiler] = {"before": before, "after": after}
    answered = list(rows)
    searches: dict[int, Asking[Blame | None]] = {}
    for index, row in enumerate(rows):
        if row.before is not None and row.after is not None and row.verdict in ("worse", "better", "other"):
            searches[index] = blame_of(row.before, row.after, row.changes)
    total, count = len(searches), 0
    answers: dict[int, Capture | None] = dict.fromkeys(searches)
    while searches:
        grafts: dict[int, Graft] = {}
        for index, search in list(searches.items()):
            try:
                grafts[index] = search.send(answers[index])
            except StopIteration as end:
                answered[index] = replace(answered[index], blame=end.value)
                del searches[index]
                progress("blame", total - len(searches), total)
        count += len(grafts)
        answers = dict.fromkeys(grafts)
        for side, compiler in compilers.items():
            asked = [index for index, graft in grafts.items() if graft.side == side]
            takers = [(rows[index].side(side), grafts[index]) for index in asked]
            for place, made in compiler.graft(takers):
                with_sass = made is not None and grafts[asked[place]].with_sass
                answers[asked[place]] = compiler.disassemble(made) if made is not None and with_sass else made
    return answered, count
