"""`irscope upgrade`: what another Triton version changes in kernels, and which stage and pass is to blame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from irscope.cli.captures import captures_of, is_program, is_script, readable
from irscope.cli.command import Subject
from irscope.cli.keeping import note_incomplete
from irscope.cli.launches import program_request
from irscope.cli.output import Destination, emit_report, is_page
from irscope.cli.recording import interpreter_at, ptxas_at, refuse_options, split_words
from irscope.cli.streams import counted, progress_bar, say
from irscope.errors import IrscopeError, RecordingError, UsageError, did_you_mean
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.completing import tell_origin

if TYPE_CHECKING:
    from irscope.analysis.upgrade.model import Upgrade, UpgradeRow
    from irscope.record.variants.pool import Compiler


WORSE = 3
"""The exit code for "something got worse"."""


@dataclass(frozen=True, slots=True)
class _Timing:
    rounds: int
    cold: bool


def upgrade(
    subject: Subject = None,
    from_python: str | None = None,
    to_python: str | None = None,
    blame: bool = True,
    every: bool = False,
    verify: bool = False,
    time: bool = False,
    rounds: int = 100,
    warm: bool = False,
    fail_on: str = "worse",
    *,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Compile kernels with two Triton versions, rank what changed, and find the stage and pass to blame.

    Grafting finds the blame: one version resumes from the artifact of a stage that the other version made.

    Options:
        from_python = --from ENV: An environment with a Triton, or its Python. Default: this one.
        to_python = --to ENV|ptxas=PATH: An environment with the other Triton, or its Python; or another ptxas for the
            same Triton.
        --blame/--no-blame: Find the stage and the pass that a change comes from.
        every = --all: Also the variants in which nothing got worse or better.
        --verify: Run the IR of both on the CPU, and compare its meaning; docs/verify.md.
        --time: On a GPU: run each launch of a FILE with both, compare the results and the times.
        --rounds (6..): With --time: launches of each.
        --warm: With --time: do not flush the L2 cache before each launch.
        --fail-on FACT[,FACT]|worse|never: What ends with exit code 3: any fact that got worse, or one of these:
            spilled_bytes, ….
    """
    from irscope.render.text.upgrade import render_upgrade, upgrade_json

    if to_python is None:
        raise UsageError("--to ENV is missing: the environment with the other Triton, such as --to .venv-new.")
    refuse_options(record_options, "upgrade compares complete compiles of all launches", "launch", "plan")
    facts = _facts(fail_on)
    ours = None if from_python is None else str(interpreter_at(from_python, "--from"))
    kind, _, path = to_python.partition("=")
    ptxas = ptxas_at(path, "--to") if kind == "ptxas" else ""
    pythons = (ours, ours if ptxas else str(interpreter_at(to_python, "--to")))
    if time and ptxas:
        raise UsageError("--time launches by the Triton of two environments: leave it out with --to ptxas=.")
    if time:
        _require_launches(subject, record_options, pythons)
    timing = _Timing(rounds, cold=not warm) if time else None
    found = _upgraded(subject, record_options, pythons, ptxas, blame, timing)
    if verify:
        found = _verified(found)
    if is_page(to.path) and not to.as_json:
        from irscope.render.report.results import upgrade_captures, upgrade_results

        captures = upgrade_captures(found, every=every)
        emit_report(captures, {"tab": "results"}, to.path, results=upgrade_results(found, every=every))
        say(f"wrote {to.path}")
    else:
        to.emit(partial(upgrade_json, found), partial(render_upgrade, found, every=every))
    return 0 if facts is None or not found.regressions(facts) else WORSE


def _verified(found: Upgrade) -> Upgrade:
    """The same with whether the compiles of each row mean the same; what is not decided is printed."""
    from irscope.analysis.upgrade.compare import with_meaning

    rows: list[UpgradeRow] = []
    counts: Counter[str] = Counter()
    with counted("runs the IR", len(found.rows)) as advance:
        for one in found.rows:
            row, verdict = with_meaning(one)
            rows.append(row)
            advance()
            if verdict is None:
                continue
            counts[verdict.answer] += 1
            if verdict.answer != "same":
                reason = verdict.reason or "; ".join(part.detail for part in verdict.rows)
                say(f"{row.capture.name} ({row.capture.target}): the meaning is {verdict.answer}: {reason}")
    say(f"meaning: {', '.join(f'{count} {answer}' for answer, count in counts.items()) or 'nothing was compared'}")
    return replace(found, rows=tuple(rows))


def _require_launches(subject: str | None, record_options: RecordingOptions, pythons: Sequence[str | None]) -> None:
    """Raise UsageError where --time has no launches to make, and what `require_gpu` raises."""
    from irscope.api.gpu import require_gpu

    if not is_script(subject, record_options):
        raise UsageError("--time makes the launches of a script: give the FILE, not a capture, a signature or IR.")
    refuse_options(record_options, "--time makes launches on the GPU that is there", "targets", "virtual")
    for python, option in zip(pythons, ("--from", "--to"), strict=True):
        require_gpu(python, option)


def _facts(fail_on: str) -> tuple[str, ...] | None:
    """The facts that fail; empty for all, None for none. Raises UsageError."""
    from irscope.analysis.regressions import FACTS

    if fail_on in ("worse", "never"):
        return () if fail_on == "worse" else None
    names = tuple(split_words([fail_on]))
    for name in names:
        if name not in FACTS:
            nearest = did_you_mean(name, FACTS, or_all=False)
            raise UsageError(f"--fail-on {name!r}: write worse, never or {', '.join(FACTS)}.{nearest}")
    return names


def _upgraded(
    subject: str | None,
    record_options: RecordingOptions,
    pythons: tuple[str | None, str | None],
    ptxas: str,
    blames: bool,
    timing: _Timing | None,
) -> Upgrade:
    from irscope.analysis.upgrade.compare import upgraded
    from irscope.record.variants.pool import Compiler

    asked = replace(record_options, snapshots="none", disassemble=False, layouts=False)
    own = replace(asked, targets=(), options=())
    with (
        Compiler(pythons[0], own, asked.jobs) as before,
        Compiler(pythons[1], own, asked.jobs, ptxas) as after,
        progress_bar() as bar,
    ):
        if before.version == after.version and not ptxas:
            _tell_same_version(before, after)
        task = bar.add_task("compiles", total=None)

        def progress(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        stored: list[Capture] = []
        ours: list[Capture] = []
        theirs: list[Capture] = []
        if is_program(subject, asked) and ptxas:
            stored += captures_of(subject, replace(asked, interpreter=pythons[0]))
        elif is_program(subject, asked):
            one_will_do = timing is None and is_script(subject, asked)
            ours, theirs = _recorded_by_both(subject, asked, pythons, stored, one_will_do)
        else:
            # Its snapshots are not asked for, and it is not compiled again for want of them.
            kept = replace(asked, snapshots=record_options.snapshots)
            files = captures_of(subject, kept).files
            stored += [capture for file in files if (capture := readable(file)) is not None]
        for one in stored:
            tell_origin(one)
        found = upgraded(stored, before, after, (ours, theirs), blames=blames, progress=progress)
        note_incomplete(*(row.capture.name for row in found.rows if not row.capture.artifacts))
        if timing is None:
            return found
        from irscope.api.gpu import PairTimer

        first, second = (program_request(subject, replace(asked, interpreter=python)) for python in pythons)
        timer = PairTimer((first, second), (ours, theirs), timing.rounds, timing.cold)
        return timer.measured(found, progress)


def _tell_same_version(before: Compiler, after: Compiler) -> None:
    """Say of two environments with one version of Triton whether they hold the same Triton, by its files."""
    version, digests = before.version, [compiler.pool.compiler[1] for compiler in (before, after)]
    if digests[0] == digests[1]:
        say(f"--from and --to hold the same Triton {version} ({digests[0]}): one IR gives the same code in both.")
    else:
        say(f"--from and --to hold two builds of Triton {version}, {digests[0]} and {digests[1]}.")


def _recorded_by_both(
    subject: str | None,
    asked: RecordingOptions,
    pythons: tuple[str | None, str | None],
    stored: list[Capture],
    one_will_do: bool,
) -> tuple[list[Capture], list[Capture]]:
    """The captures of a program under both; if it runs under one alone, and that will do, those go to `stored`."""
    sides: list[list[Capture]] = []
    errors: list[IrscopeError] = []
    for python in pythons:
        try:
            sides.append(list(captures_of(subject, replace(asked, interpreter=python))))
        except RecordingError as error:
            errors.append(error)
    if len(errors) == len(pythons):
        raise errors[0]
    if errors and one_will_do:
        first = str(errors[0]).strip().splitlines()
        name = subject or asked.program
        say(f"{name} does not run under both, so both compile the IR of one of them: {first[-1] if first else ''}")
        stored += sides[0]
        return [], []
    if errors:
        raise errors[0]
    return sides[0], sides[1]
