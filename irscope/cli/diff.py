"""`irscope diff`: compares two compilations, or one before and after a pass, or a file with itself as it was saved."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from irscope.api.texts import one_pass as find_pass
from irscope.api.texts import snapshot_text
from irscope.cli.captures import (
    captures_of,
    compiled_again,
    is_capture,
    is_program,
    refuse_empty,
    say_failures,
    split_subject,
)
from irscope.cli.command import Context, Subject
from irscope.cli.keeping import noted_incomplete
from irscope.cli.output import (
    JSON_VERSION,
    Destination,
    emit,
    emit_json,
    emit_report,
    is_page,
    is_terminal,
    table_width,
)
from irscope.cli.recording import option_value, ptxas_at, split_words, versus_pair
from irscope.cli.streams import say, standard_output
from irscope.cli.texts import with_named_passes
from irscope.errors import IrscopeError, UsageError
from irscope.interruption import Interrupted
from irscope.model.capture import Capture, StageKind, Target, stage_named
from irscope.model.plain import picked
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.render.text.terminal import harmless
from irscope.store.collection import is_collection

if TYPE_CHECKING:
    from irscope.analysis.diff.captures import Comparison
    from irscope.analysis.diff.texts import Ignored, TextDiff
    from irscope.api.watching import KernelRound, LastGood

_IGNORABLE = ("locations", "names", "attributes")


def diff(
    left: Subject = None,
    right: str | None = None,
    versus: list[str] | None = None,
    one_pass: str | None = None,
    between: tuple[str, str] | None = None,
    stage: list[str] | None = None,
    schedule: bool = False,
    side_by_side: bool = False,
    stat: bool = False,
    context: Context = 3,
    ignore: str = "locations",
    exit_code: bool = False,
    watch: bool = False,
    recordings: int | None = None,
    *,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Compare two compilations structurally: names, locations and the order of independent operations do not count.

    irscope diff --disable-pass combine compares the launch recorded last with the same launch without that pass.

    Options:
        right = [FILE|CAPTURE|FOLDER]: The other side, unless it is a variant of the first.
        versus = --vs KEY=VALUE: A variant that differs in one thing: target=cuda:80, num_warps=8, BLOCK_K=32 (a
            tl.constexpr), config=3, kernel=OTHER, ptxas=PATH of another ptxas, triton=PATH of another interpreter;
            repeatable.
        one_pass = --pass PASS[#N]: The IR before and after this pass.
        --between PASS PASS: The IR after one pass and after another.
        --stage, -s STAGE: Diff the texts of these stages; repeatable. Default: the first that differs.
        --schedule: Compare how the SASS is scheduled: stall, yield, barriers, waits, reuse.
        --side-by-side, -y: The two texts in two columns.
        --stat: Only the tables.
        --ignore locations,names,attributes: What does not count as a difference.
        --exit-code: Exit with 1 if there is a difference, like git.
        --watch: Record the FILE again whenever it is saved, and compare it with its last good state.
        --recordings (1.., hidden): With --watch: end after N of them.
    """
    ignored = split_words([ignore])
    if unknown := [word for word in ignored if word not in _IGNORABLE]:
        raise UsageError(f"--ignore {unknown[0]!r}: write {', '.join(_IGNORABLE)}.")
    shown = _Shown(split_words(stage), frozenset(cast("list[Ignored]", ignored)), side_by_side, stat, context, schedule)
    if watch:
        if right is not None or versus or one_pass is not None or between is not None or to.path is not None:
            raise UsageError("--watch compares a FILE with its last good state: leave out a second side and -o.")
        return watched(left, shown.stages, stat, context, recordings, to, record_options)
    if one_pass is None and between is None:
        pairs = pairs_of(left, right, record_options, versus or [])
        return _compare(pairs, shown, versus or [], record_options.plan, exit_code, to)
    if one_pass is not None and between is not None:
        raise UsageError("--pass and --between do not go together: give one.")
    if right is not None:
        raise UsageError("--pass and --between compare within one capture: give one.")
    if schedule:
        raise UsageError("--schedule compares machine code, but --pass and --between compare IR: give one.")
    captures = captures_of(left, record_options)
    if is_page(to.path) and not to.as_json:
        if one_pass is None:
            raise UsageError("--between writes no page: the page shows one pass, with --pass.")
        number = captures[0].snapshots.index(find_pass(captures[0], one_pass)) + 1
        emit_report(captures, {"tab": "passes", "pass": number, **shown.toggles}, to.path)
        say(f"wrote {to.path}")
        return 0
    diffs = _diffs_around_passes(captures, one_pass, between, shown.ignored)
    to.emit(
        lambda: [one.as_json() for one in diffs],
        lambda width, color: "\n".join(
            one.as_text(side_by_side=side_by_side, context=context, width=width, color=color) for one in diffs
        ),
    )
    return int(exit_code and any(not one.text_diff.is_empty for one in diffs))


@dataclass(frozen=True, slots=True)
class _Shown:
    stages: list[str]
    ignored: frozenset[Ignored]
    side_by_side: bool
    stat: bool
    context: int
    schedule: bool

    @property
    def toggles(self) -> dict[str, int]:
        toggles = {
            "loc": "locations" not in self.ignored, "bare": "attributes" in self.ignored, "side": self.side_by_side,
        }  # fmt: skip
        return {name: 1 for name, on in toggles.items() if on}

    @property
    def view(self) -> dict[str, object]:
        stage = {"stage": self.stages[0]} if self.stages and self.stages != ["all"] else {}
        return {"tab": "compare", "a": 1, "b": 2, **stage, **self.toggles}


def _compare(
    pairs: list[_Pair], asked: _Shown, versus: Sequence[str], plan: PassPlan, exit_code: bool, to: Destination
) -> int:
    from irscope.analysis.diff.captures import diff as compare
    from irscope.render.text.diff import comparison_json, render_comparison

    has_page = is_page(to.path) and not to.as_json
    comparisons: list[tuple[Comparison, list[str]]] = []
    texts: list[str] = []
    for one, other in pairs:
        shown = _stages_shown(one, other, asked.stages)
        wanted = None if asked.stages == ["all"] or not shown else [*shown, *(["sass"] if asked.schedule else [])]
        comparison = compare(one, other, ignore=asked.ignored, stages=wanted)
        differing = [row.stage for row in comparison.stages if row.state == "differs" and comparison.diff(row.stage)]
        shown = shown or differing[:1]
        comparisons.append((comparison, shown))
        if comparison.is_same_compile and (versus or plan):
            note = _nothing_to_compare(one, versus, plan)
            texts.append(f"{note}\n")
            if to.as_json or has_page:
                say(note)
            continue
        texts.append(
            render_comparison(
                comparison,
                stages=shown,
                width=table_width(to.path),
                color=to.is_colored,
                side_by_side=asked.side_by_side,
                stat=asked.stat,
                context=asked.context,
                schedule=asked.schedule,
            )
        )
        if asked.stat and not comparison.is_empty and all(_is_timed(side) for side in (one, other)):
            from irscope.analysis.findings.versus import versus as predicted

            texts[-1] += f"time  {predicted(one, other).sentence}\n"
    if has_page:
        emit_report((one for pair in pairs for one in pair), asked.view, to.path)
        say(f"wrote {to.path}")
    elif to.as_json:
        emit_json([comparison_json(comparison, shown) for comparison, shown in comparisons], to.path)
    else:
        emit("\n".join(texts), to.path, painted=to.is_colored)
    both = [capture for pair in pairs for capture in pair]
    say_failures(both)
    differs = any(
        not comparison.is_empty
        or (asked.schedule and comparison.schedule is not None and not comparison.schedule.is_empty)
        for comparison, _ in comparisons
    )
    return int(any(one.status == "failed" for one in both) or (exit_code and differs))


def _is_timed(capture: Capture) -> bool:
    """Whether the time of its launch can be predicted from what it holds."""
    return capture.has_compiled and capture.launch.grid is not None and "sass" in capture.stages


@dataclass(frozen=True, slots=True)
class _PassDiff:
    capture: Capture
    title: str
    """`before and after ttgir:coalesce#1`."""
    text_diff: TextDiff

    def as_json(self) -> dict[str, Any]:
        from irscope.render.text.diff import text_diff_json

        head = picked(self.capture, "id kernel=name target", title=self.title, empty=self.text_diff.is_empty)
        return head | text_diff_json(self.text_diff)

    def as_text(self, *, side_by_side: bool, context: int, width: int | None, color: bool) -> str:
        from irscope.render.text.diff import render_diff

        body = render_diff(self.text_diff, side_by_side=side_by_side, width=width, color=color, context=context)
        capture = self.capture
        return f"{capture.id[:8]} {capture.name} {capture.target}: {self.title}: {self.text_diff.summary}\n{body}"


def _diffs_around_passes(
    captures: Sequence[Capture], one_pass: str | None, between: tuple[str, str] | None, ignore: frozenset[Ignored]
) -> list[_PassDiff]:
    from irscope.analysis.diff.texts import diff_texts

    found: list[_PassDiff] = []
    for capture in captures:
        title, before, after, kind = _sides(capture, one_pass, between)
        found.append(_PassDiff(capture, title, diff_texts(before, after, kind, ignore=ignore)))
    return found


def _sides(capture: Capture, one_pass: str | None, between: tuple[str, str] | None) -> tuple[str, str, str, StageKind]:
    capture = with_named_passes(capture, *(between or (one_pass or "",)))
    if between is not None:
        first, second = find_pass(capture, between[0]), find_pass(capture, between[1])
        title = f"after {first.label} versus after {second.label}"
    else:
        first = second = find_pass(capture, one_pass or "")
        title = f"before and after {first.label}"
    left = snapshot_text(capture, first, before=between is None)
    return title, left, snapshot_text(capture, second, before=False), first.group


_Pair = tuple[Capture, Capture]

# These need another run of the script.
_SCRIPT_AGAIN = ("config", "triton")


def pairs_of(
    left: str | None, right: str | None, record_options: RecordingOptions, versus: Sequence[str]
) -> list[_Pair]:
    """The pairs of captures to compare.

    With two subjects: theirs, paired by kernel and signature. With one: each of its captures against the variant that
    the plan and `versus` describe. Raises UsageError if neither is given.
    """
    for one in (left, right):
        refuse_empty(one)
    variant = _variant(versus)
    if right is not None:
        if variant or record_options.plan:
            raise UsageError("two sides are given already: leave out --vs and --disable-pass, or the second side.")
        return paired(_side(left or "last", record_options), _side(right, record_options))
    if not variant and not record_options.plan:
        raise UsageError(
            "there is nothing to compare it with: give a second FILE or CAPTURE, --disable-pass, --vs or --pass."
        )
    base = replace(record_options, plan=PassPlan())
    if "ptxas" in variant:
        return _assembled_again(left, base, variant)
    if "kernel" in variant:
        return _against_other_kernel(left, base, variant["kernel"])
    if any(key in variant for key in _SCRIPT_AGAIN):
        return _recorded_again(left, base, record_options, variant)
    captures = captures_of(left, base)
    constants = {name for one in captures for name in one.launch.constexprs}
    if constexprs := {key: value for key, value in variant.items() if key in constants}:
        return _with_other_constexprs(left, base, captures, constexprs)
    options = tuple((key, option_value(value)) for key, value in variant.items() if key != "target")
    targets = (variant["target"],) if "target" in variant else ()
    if targets and not is_capture(split_subject(left, base)[0]):
        # The program may behave differently there: it runs again, as on that target.
        there = replace(base, targets=targets, plan=record_options.plan)
        others: Sequence[Capture] = captures_of(left, there, becomes_last=False)
        if options:
            how = replace(base, plan=record_options.plan, options=options)
            others = [compiled_again(other, how) for other in others]
        return paired(captures, others)
    how = replace(base, plan=record_options.plan, targets=targets, options=options)
    return [(one, compiled_again(one, replace(how, plan=one.plan.joined(record_options.plan)))) for one in captures]


def _nothing_to_compare(capture: Capture, versus: Sequence[str], plan: PassPlan) -> str:
    same = [f"{key} is {value} already" for key, value in _variant(versus).items()]
    same += [f"{rule} is off already" for rule in plan.disabled]
    same += [f"{rule} is already one of the only passes on" for rule in plan.only]
    return f"{capture.id[:8]} {capture.name} {capture.target}: {', '.join(same)}: nothing to compare"


def _variant(versus: Sequence[str]) -> dict[str, str]:
    rows = dict(versus_pair(text) for text in versus)
    if "target" in rows:
        Target.parse(rows["target"])
    return rows


def _side(subject: str, record_options: RecordingOptions) -> Sequence[Capture]:
    path = Path(subject)
    from irscope.api.importing import IR_SUFFIXES, capture_of_files, capture_of_folder

    if path.is_dir() and not is_collection(path):
        return [capture_of_folder(path)]
    # An IR file is compared as it is, and not compiled.
    if path.is_file() and path.suffix in IR_SUFFIXES:
        return [capture_of_files(path.stem, [path])]
    return captures_of(subject, record_options)


def paired(left: Sequence[Capture], right: Sequence[Capture]) -> list[_Pair]:
    """Each capture of one side with the most similar of the other; raises UsageError where no kernel is on both."""
    if len(left) == 1 and len(right) == 1:
        return [(left[0], right[0])]
    rest = list(right)
    pairs: list[_Pair] = []
    for one in left:
        other = _partner(one, rest)
        if other is None:
            say(f"only on the left: {one.name} ({one.target})")
            continue
        rest.remove(other)
        pairs.append((one, other))
    for other in rest:
        say(f"only on the right: {other.name} ({other.target})")
    if not pairs:
        ours, theirs = (", ".join(sorted({capture.name for capture in side})) for side in (left, right))
        raise UsageError(f"no kernel is on both sides: {ours} versus {theirs}. Choose FILE::KERNEL on each.")
    return pairs


def _partner(one: Capture, others: Sequence[Capture]) -> Capture | None:
    """The most similar capture of the same kernel: by signature, then target, constants and options."""
    named = [other for other in others if other.name == one.name]

    def alikeness(other: Capture) -> tuple[bool, bool, bool, bool]:
        return (
            other.launch.signature == one.launch.signature,
            other.target == one.target,
            other.launch.constants == one.launch.constants,
            other.launch.options == one.launch.options,
        )

    return max(named, key=alikeness, default=None)


def _against_other_kernel(left: str | None, record_options: RecordingOptions, other: str) -> list[_Pair]:
    file, kernel = split_subject(left, record_options)
    module = record_options.module and record_options.module.partition("::")[0]
    captures = captures_of(None if record_options.program else file, replace(record_options, module=module))
    named = [capture for capture in captures if capture.name == other]
    if not named:
        names = ", ".join(sorted({capture.name for capture in captures}))
        raise UsageError(f"--vs kernel={other}: {file} launched {names}.")
    ours = [one for one in captures if (one.name == kernel if kernel else one.name != other)]
    if not ours:
        raise UsageError(f"--vs kernel={other}: there is no other kernel to compare it with.")
    return [(ours[0], named[0])]


def _recorded_again(
    left: str | None, base: RecordingOptions, record_options: RecordingOptions, variant: dict[str, str]
) -> list[_Pair]:
    if not is_program(left, base):
        raise UsageError("--vs config= and triton= run the script again: give the FILE, not a capture.")
    others = {key: value for key, value in variant.items() if key not in _SCRIPT_AGAIN}
    if others:
        raise UsageError(f"--vs {', '.join(others)} does not combine with config= or triton=: give one of them.")
    again = replace(
        base, plan=record_options.plan, config=variant.get("config", base.config), interpreter=variant.get("triton")
    )
    return paired(captures_of(left, base), captures_of(left, again, becomes_last=False))


def _assembled_again(left: str | None, base: RecordingOptions, variant: dict[str, str]) -> list[_Pair]:
    """Each capture, and the same compiled with another ptxas."""
    from irscope.record.process.child import variables_set
    from irscope.record.variants.pool import ptxas_variables

    if len(variant) > 1:
        raise UsageError(f"--vs ptxas={variant['ptxas']}: one thing at a time. Give the path of a ptxas alone.")
    path = ptxas_at(variant["ptxas"], "--vs")
    captures = captures_of(left, base)
    if others := [one for one in captures if one.target.backend != "cuda"]:
        raise UsageError(f"--vs ptxas= is for NVIDIA's GPUs, and {others[0].name} is for {others[0].target}.")
    with variables_set(ptxas_variables(path)):
        return [(one, compiled_again(one, replace(base, targets=(), plan=one.plan))) for one in captures]


def _with_other_constexprs(
    left: str | None, record_options: RecordingOptions, captures: Sequence[Capture], constexprs: dict[str, str]
) -> list[_Pair]:
    """Another constant changes the front end's IR: run the script, or compile the signature, again."""
    if not is_program(left, record_options):
        raise UsageError(f"--vs {', '.join(constexprs)} changes the IR of the front end: give the FILE, not a capture.")
    if record_options.signature is not None:
        again = replace(record_options, constexprs=tuple({**dict(record_options.constexprs), **constexprs}.items()))
    else:
        again = replace(record_options, constants=tuple(constexprs.items()))
    return paired(captures, captures_of(left, again, becomes_last=False))


def _stages_shown(left: Capture, right: Capture, record_options: Sequence[str]) -> list[str]:
    """The stages whose texts are shown: those of `--stage`, or else that of a pass that is switched off."""
    if list(record_options) == ["all"]:
        return [stage for stage in left.stages if stage in right.stages and not stage_named(stage).is_binary]
    if record_options:
        for stage in record_options:
            left.artifact(stage)
        return list(record_options)
    new_rules = [rule for rule in right.plan.disabled if rule not in left.plan.disabled]
    for rule in (*new_rules, *right.plan.only):
        for snapshot in right.passes():
            if rule.matches(snapshot) and snapshot.stage in left.stages and snapshot.stage in right.stages:
                return [snapshot.stage] if not stage_named(snapshot.stage).is_binary else ["sass"]
    return []


def watched(
    subject: str | None,
    stages: Sequence[str],
    stat: bool,
    context: int,
    recordings: int | None,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Record a file again whenever it is saved, and show what that changed, until Ctrl-C or so many recordings.

    A module next to it that it imports counts as well. Each kernel is compared with its last good state, which an error
    in the file leaves as it is. Recordings are forks of a process that has imported Triton, and torch where the file
    does.
    """
    file, kernel = split_subject(subject, record_options)
    if not is_program(subject, record_options) or file == "-":
        raise UsageError(f"{subject or 'last'!r} is not a file to watch: give a Python file, or an IR file.")
    from irscope.api.watching import LastGood, Watched, program_files
    from irscope.record.process.child import warm_children
    from irscope.record.process.requests import request_for

    # What is wrong from the start is refused; errors that edits make are told, and the watch goes on.
    request_for(file, record_options, kernel=kernel)
    asked = replace(record_options, disassemble=False)
    stages = stages or ["ttgir"]
    state, files, number = LastGood(stages), Watched(), 0
    beside: dict[Path, None] = {}
    paint = to.is_colored
    with warm_children():
        try:
            while True:
                number += 1
                beside.update(dict.fromkeys(program_files(Path(file)) if Path(file).is_file() else ()))
                # Before the recording: what is saved meanwhile is recorded next.
                files.look(beside)
                made = _recorded(subject, asked, state, beside)
                if made is not None:
                    files.look(beside)
                _emit(made, number, to.as_json, lambda made=made: _text(made or [], stages, stat, context, paint))
                if recordings is not None and number >= recordings:
                    return 0
                if is_terminal():
                    say(f"watching {len(beside)} file{'s' * (len(beside) != 1)}: save one, or end with Ctrl-C")
                changed = files.wait()
                say(f"saved: {', '.join(os.path.basename(one) for one in changed)}")
        except (Interrupted, KeyboardInterrupt):
            return 0


def _recorded(
    subject: str | None, asked: RecordingOptions, state: LastGood, beside: dict[Path, None]
) -> list[KernelRound] | None:
    """What came of one recording; None if nothing was recorded, and the last good state stays."""
    kept = "; the last good state stays" if state else ""
    with noted_incomplete() as incomplete:
        try:
            captures = list(captures_of(subject, asked))
        except IrscopeError as error:
            say(f"{error}{kept}")
            return None
    for capture in captures:
        beside.update({Path(one.path): None for one in capture.sources if _is_own(one.path)})
    return state.take(captures, is_whole=not incomplete)


def _is_own(path: str) -> bool:
    """Whether a file is one that is edited: no installed package's, and no text that never was a file."""
    return os.path.isabs(path) and "site-packages" not in path and os.path.isfile(path)


def _emit(made: Sequence[KernelRound] | None, number: int, as_json: bool, text: Callable[[], str]) -> None:
    if as_json:
        row: dict[str, Any] = {"irscope_json": JSON_VERSION, "round": number, "recorded": made is not None}
        row["kernels"] = [_as_json(one) for one in made or ()]
        print(json.dumps(row, default=str), flush=True)
    elif made is not None:
        # No pager: it would have to be left before the next save is seen.
        standard_output().write(harmless(text()))
        standard_output().flush()


def _text(made: Sequence[KernelRound], stages: Sequence[str], stat: bool, context: int, color: bool) -> str:
    from irscope.render.text.diff import render_comparison
    from irscope.render.text.findings import line_of_finding

    bold, red, green, plain = ("\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[0m") if color else ("",) * 4
    paints = {"worse": red, "better": green, "other": ""}
    lines: list[str] = []
    for one in made:
        lines.append(f"{bold}{one.kernel}{plain} {one.variant}: {one.state}")
        lines += [f"  {line}" for line in one.failure.splitlines()]
        lines += [f"  {paints[change.verdict]}{change.verdict}{plain} {change.text}" for change in one.facts]
        lines += [f"  {red}added{plain} {line_of_finding(finding)}" for finding in one.added]
        lines += [f"  {green}removed{plain} {line_of_finding(finding)}" for finding in one.removed]
        if one.comparison is not None and one.state == "changed":
            shown = [name for name in stages if one.comparison.diff(name) is not None]
            lines.append(
                render_comparison(
                    one.comparison, stages=shown, width=table_width(), color=color, stat=stat, context=context
                )
            )
    return "\n".join(lines) + "\n"


def _as_json(one: KernelRound) -> dict[str, Any]:
    from irscope.render.text.findings import findings_json

    compared = one.comparison.stages if one.comparison is not None else ()
    return picked(
        one,
        "kernel variant state failure",
        facts=[picked(change, "name before after verdict") for change in one.facts],
        findings_added=findings_json(one.added),
        findings_removed=findings_json(one.removed),
        stages=[picked(row, "stage state summary") for row in compared],
    )
