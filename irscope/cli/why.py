"""`irscope why`: the findings of a kernel, the worst first, each with its cause and fixes that were compiled."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irscope.cli.captures import captures_of, tell_failures, tell_incomplete
from irscope.cli.command import Subject
from irscope.cli.launches import program_request, why_no_gpu
from irscope.cli.output import Destination, emit
from irscope.cli.recording import split_words
from irscope.cli.streams import say
from irscope.errors import NoDevice, UsageError, did_you_mean
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.store.disk import refuse_unwritable
from irscope.store.shelf import StoredCaptures

if TYPE_CHECKING:
    from irscope.analysis.findings.model import Finding, FixChange
    from irscope.analysis.variants.merges import Merge
    from irscope.analysis.variants.site import Site
    from irscope.api.explain import Explanation


def why(
    subject: Subject = None,
    other: str | None = None,
    line: int | None = None,
    operation: str | None = None,
    value: str | None = None,
    ignore: list[str] | None = None,
    size: list[str] | None = None,
    grid: str | None = None,
    tries: str | None = None,
    time: bool = False,
    variants: bool = False,
    warmup: bool = False,
    compile_time: bool = False,
    every: bool = False,
    apply_to: str | None = None,
    *,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Report what is slow in a kernel: the line, the cause, and fixes that were compiled.

    irscope why A B explains why B is slower than A: the terms of both predictions that differ, and the lines. A comment
    `# irscope: ignore[IRS101]` on a line of the kernel silences what is found there.

    Options:
        other = [FILE|CAPTURE]: Why this one is slower than the first, by prediction.
        --line (1..): Only those of this line of Python.
        operation = --op OP: Only those of these operations: load.
        --value %V: Only those of this value of the TTGIR.
        --ignore CODE[,CODE]: Not these kinds: IRS101, or narrow-load; repeatable.
        --size NAME=N: Predict for another integer argument of the launch; repeatable.
        --grid X[,Y[,Z]]: Predict for another grid, in CTAs.
        --tries 0|N|few|all: At most N compiles try fixes of a kernel; 0: compile nothing, not even for the compiler's
            log. Default: few (fixes of the worst three findings, options and tiles) for what was recorded here, else 0.
        --time: On a GPU: run each fix that is better, and report its effect.
        --variants: Why a kernel was compiled more than once: the arguments that distinguish its variants, and which
            merges cost nothing.
        --warmup: Print Python that compiles every variant ahead of its first launch.
        compile_time = --compile-time: Why compiling takes long: the lines that become many operations, by what factor,
            and a fix with the compile time after it; of several compiles, which were needed.
        every = --all: Also findings below 3 % of the time; with --variants kernels that were compiled once; with
            --compile-time every compile, not the three longest.
        apply_to = --apply-to FIXED.py: Write the FILE with the fixes that are edits of it, and compile that.
    """
    given = {
        "--time": time, "--line": line, "--op": operation, "--value": value, "--ignore": ignore, "--size": size,
        "--grid": grid, "--apply-to": apply_to,
    }  # fmt: skip
    of_variants = {"--variants": variants, "--warmup": warmup}
    if other is not None:
        compiled = {"--compile-time": compile_time, "--tries": tries, "--all": every}
        _refuse("A B, which compares two predictions,", given | of_variants | compiled)
        return _versus(subject, other, to, record_options)
    if compile_time:
        _refuse("--compile-time", given | of_variants)
        return _compile_time(subject, every, tries, to, record_options)
    if variants or warmup:
        _refuse("--variants" if variants else "--warmup", given)
        return _variants(subject, every, warmup, tries, to, record_options)
    from irscope.analysis.findings.edits import patch_of
    from irscope.analysis.findings.model import codes_of
    from irscope.analysis.findings.tries import Budget
    from irscope.api.explain import Explainer
    from irscope.api.timing import read_grid, read_sizes, with_launch
    from irscope.model.plain import picked
    from irscope.record.variants.compiles import Compiles
    from irscope.render.text.findings import findings_json, render_explanation, render_findings, time_json

    chosen = _Choice(line, operation, value, codes_of(split_words(ignore)))
    sizes, programs = read_sizes(size or ()), read_grid(grid) if grid is not None else None
    budget = Budget.parse(None if tries in ("few", "0") else tries)
    copy = Path(apply_to) if apply_to is not None else None
    if copy is not None:
        if tries == "0":
            raise UsageError("--apply-to writes fixes that were compiled, and --tries 0 compiles none.")
        if copy.is_dir():
            raise UsageError(f"--apply-to {str(copy)!r} is a folder: name the file to write.")
        refuse_unwritable(copy, "--apply-to")
    captures = captures_of(subject, record_options)
    chosen.require_known(captures)
    if copy is not None and copy.exists():
        files = {Path(one.launch.kernel.file) for one in captures}
        if any(file.exists() and copy.samefile(file) for file in files):
            raise UsageError(f"--apply-to {copy}: it is the kernel's own file; name a copy.")
    is_stated = bool(sizes) or programs is not None

    def launched(capture: Capture) -> Capture:
        return with_launch(capture, sizes, programs) if is_stated else capture

    answers: dict[str, Explanation] = {}
    with Compiles() as compiles:
        explainer = Explainer(compiles, budget, launched, chosen.has)
        for number, one in enumerate(captures, 1):
            timed = _timed(subject, record_options, one, record_options.launch or number) if time else None
            answers[one.id] = (explainer if _may_try(one, tries) else replace(explainer, compiles=None)).explain(
                one, timed
            )

    def text(capture: Capture, width: int | None, color: bool) -> str:
        answer = answers[capture.id]
        verbose = record_options.verbose
        short = render_explanation(
            answer.findings, capture, answer.time, width=width, color=color, every=every or verbose
        )
        if verbose and answer.findings:
            lines = f"\nLines of a stage are those of: irscope show {capture.id[:8]} --stage STAGE --loc\n"
            short += "\n" + render_findings(answer.findings, color=color) + lines
        return short + (f"    {answer.silenced} silenced by comments in the kernel\n" if answer.silenced else "")

    def as_json(capture: Capture) -> dict[str, Any]:
        answer = answers[capture.id]
        found = findings_json(answer.findings)
        return picked(
            capture, "id kernel=name target", time=time_json(answer.time), findings=found, silenced=answer.silenced,
            patch=patch_of(capture, answer.findings),
        )  # fmt: skip

    to.emit_each(captures, as_json, text)
    if copy is not None:
        _apply(captures, answers, copy, record_options)
    return tell_incomplete(captures)


def _refuse(mode: str, options: Mapping[str, object]) -> None:
    """Raise UsageError for options that a mode does not take."""
    if names := [name for name, value in options.items() if value not in (None, False)]:
        raise UsageError(f"{' and '.join(names)}: why {mode} takes no such option.")


def _apply(
    captures: StoredCaptures, answers: Mapping[str, Explanation], copy: Path, record_options: RecordingOptions
) -> None:
    """Write the file of the first kernel whose fixes are edits of it, with them, and print the time of its compile."""
    from irscope.analysis.findings.costs import timed
    from irscope.analysis.findings.edits import with_fixes
    from irscope.record.variants.completing import with_sass
    from irscope.render.text.tables import duration_text

    for capture in captures:
        kernel, answer = capture.launch.kernel, answers[capture.id]
        text = next((one.text for one in capture.sources if one.path == kernel.file), "")
        if (edited := with_fixes(text, capture.launch, answer.findings)) == text:
            continue
        copy.write_text(edited, "utf-8", "surrogateescape")
        found = [one for one in captures_of(str(copy), record_options, becomes_last=False) if one.name == capture.name]
        times = [timed(with_sass(one)).prediction if one.has_compiled else None for one in found[:1]]
        before, after = answer.time.prediction, times[0] if times else None
        if before is None or after is None:
            say(f"wrote {copy}: {'it compiles' if any(one.has_compiled for one in found) else 'it does not compile'}")
        else:
            say(f"wrote {copy}: predicted {duration_text(after.seconds)}, before {duration_text(before.seconds)}")
        return
    raise UsageError("--apply-to: no fix that was compiled and is faster is an edit of the kernel's file.")


def _versus(subject: str | None, other: str, to: Destination, record_options: RecordingOptions) -> int:
    from irscope.analysis.findings.versus import versus
    from irscope.cli.diff import pairs_of
    from irscope.record.variants.completing import with_layouts, with_sass
    from irscope.render.text.findings import render_versus, versus_json

    pairs = [
        tuple(with_sass(with_layouts(side)) if side.has_compiled else side for side in pair)
        for pair in pairs_of(subject, other, record_options, [])
    ]
    rows = [(one, two, versus(one, two)) for one, two in pairs]
    to.emit(
        lambda: [versus_json(*row) for row in rows],
        lambda width, color: "\n".join(render_versus(*row, color=color) for row in rows),
    )
    return 0


def _timed(
    subject: str | None, record_options: RecordingOptions, capture: Capture, number: int
) -> Callable[[Sequence[Finding], Mapping[tuple[FixChange, ...], Capture]], tuple[Finding, ...]]:
    """The timer of a launch's fixes; raises NoDevice where it cannot be run."""
    if reason := why_no_gpu(subject, record_options, capture):
        raise NoDevice(f"--time: {reason} Without --time nothing is run.")
    from irscope.api.gpu import fixes_timed

    return partial(fixes_timed, program_request(subject, record_options), number, capture)


@dataclass(frozen=True, slots=True)
class _Choice:
    line: int | None
    operation: str | None
    value: str | None
    ignored: frozenset[str]

    def has(self, finding: Finding) -> bool:
        from irscope.analysis.lives.operations import is_named

        if self.operation is not None and not is_named(finding.operation, self.operation):
            return False
        return (
            finding.code not in self.ignored
            and (self.line is None or any(line == self.line for _, line in finding.place))
            and (self.value is None or "%" + self.value.removeprefix("%") in finding.values)
        )

    def require_known(self, captures: StoredCaptures) -> None:
        """Raise UsageError for a line, an operation or a value that no kernel has."""
        if self.line is None and self.operation is None and self.value is None:
            return
        from irscope.analysis.lives.operations import is_named
        from irscope.ir.columns import operation_counts
        from irscope.ir.locations.stages import read_locations

        names, lines, values = set[str](), set[int](), ""
        for capture in captures:
            lines.add(capture.launch.kernel.line)
            for text in [capture.texts[stage] for stage in _STAGES if stage in capture.texts]:
                names.update(operation_counts(text, "mlir"))
                lines.update(frame.line for chain in read_locations(text, "mlir").chains for frame in chain)
            values += capture.texts.get("ttgir", "")
        first = captures.files[0].facts.id[:8]
        if self.line is not None and self.line not in lines:
            numbers = ", ".join(map(str, sorted(lines - {0}))) or "none that is known"
            raise UsageError(f"--line {self.line}: no operation comes from it, they come from {numbers}.")
        if self.operation is not None and not any(is_named(name, self.operation) for name in names):
            known = sorted({name.rpartition(".")[2] for name in names})
            near = did_you_mean(self.operation, known)
            raise UsageError(f"--op {self.operation!r}: no MLIR stage has such an operation.{near}")
        name = "%" + (self.value or "").removeprefix("%")
        if self.value is not None and not re.search(rf"{re.escape(name)}(?![\w.$-])", values):
            raise UsageError(f"--value {name}: no value of the TTGIR is named so: irscope show {first} --stage ttgir.")


_STAGES = "source", "ttir", "ttgir"

_LONGEST = 3
"""How many compiles are explained; a table names them all."""


def _compile_time(
    subject: str | None, every: bool, tries: str | None, to: Destination, record_options: RecordingOptions
) -> int:
    from irscope.analysis.passes.growth import needed_compiles
    from irscope.analysis.variants.site import sites_of
    from irscope.api.compile_time import long_compile
    from irscope.record.variants.compiles import Compiles
    from irscope.render.text.growth import growth_json, needed_json, render_growth, render_needed

    captures = captures_of(subject, replace(record_options, disassemble=False, layouts=False))
    times = {one.id: one.processor_us or one.compile_us or 0 for one in captures}
    needed = needed_compiles(sites_of(captures), times)
    longest = sorted(captures.files, key=lambda file: -times[file.facts.id])[: None if every else _LONGEST]
    chosen = [file.load() for file in longest]
    with Compiles() as compiles:
        rows = [(one, long_compile(one, compiles if _may_try(one, tries) else None)) for one in chosen]

    def text(width: int | None, color: bool) -> str:
        parts = [render_growth(*row, width=width, color=color) for row in rows]
        return "\n".join([render_needed(needed, width=width, color=color)] * (len(times) > 1) + parts)

    to.emit(lambda: {"needed": needed_json(needed), "compiles": [growth_json(*row) for row in rows]}, text)
    return tell_incomplete(captures)


def _may_try(capture: Capture, tries: str | None) -> bool:
    return tries != "0" if tries is not None else capture.environment.is_trusted


def _variants(
    subject: str | None, every: bool, warmup: bool, tries: str | None, to: Destination, record_options: RecordingOptions
) -> int:
    from irscope.analysis.variants.merges import warmup_code
    from irscope.analysis.variants.site import sites_of
    from irscope.render.text.variants import render_variants, variants_json

    if warmup and to.as_json:
        raise UsageError("--warmup prints Python, and --json does not: give one.")
    record_options = replace(record_options, disassemble=False, layouts=False)
    captures = captures_of(subject, record_options)
    sites = sites_of(captures)
    code = tell_failures(captures)
    if warmup:
        emit(warmup_code(sites), to.path, exact=True)
        return code
    once = [one for one in sites if len(one.variants) == 1]
    shown = sites if every or to.as_json else [one for one in sites if len(one.variants) > 1]
    rows = _proven(shown, captures, tries)

    def text(width: int | None, color: bool) -> str:
        parts = [render_variants(site, merges, width=width, color=color) for site, merges in rows]
        if once and not every:
            names = ", ".join(dict.fromkeys(one.kernel.name for one in once))
            parts.append(f"Compiled once: {names}\n")
        return "\n".join(parts)

    to.emit(lambda: [variants_json(site, merges) for site, merges in rows], text)
    return code


def _proven(
    sites: Sequence[Site], captures: StoredCaptures, tries: str | None
) -> Sequence[tuple[Site, Sequence[Merge]]]:
    from irscope.analysis.variants.merges import merges_of
    from irscope.api.merging import proven

    rows = [(one, merges_of(one)) for one in sites]
    if tries == "0":
        return rows
    files = {file.facts.id: file for file in captures.files}
    needed = {group.base for _, merges in rows for merge in merges for group in merge.groups if group.base}
    if tries is None and not all(files[one].load().environment.is_trusted for one in needed):
        say("These were not recorded on this machine, so no merge was compiled (--tries all compiles them).")
        return rows
    return proven(rows, files)
