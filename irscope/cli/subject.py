"""What the command line names → captures: recorded now, loaded, or compiled again from a capture's own source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from irscope.capture import Artifact, Capture
from irscope.cli.endings import nothing_recorded, tell_end, tell_refusals
from irscope.cli.keeping import kept_captures
from irscope.cli.talk import echo, progress, say
from irscope.errors import CaptureNotFound, RecordingError, UsageError, did_you_mean
from irscope.interruption import Interrupted
from irscope.plan import PassPlan
from irscope.recent import CaptureStore
from irscope.store import SUFFIX, load

if TYPE_CHECKING:
    from irscope.record.completion import Keep
    from irscope.record.request import RecordRequest
    from irscope.record.session import Recording

_FRAMES_OF_OUTPUT = 15

# kernels.py:24:1: error: Failures have been detected   |   ptxas fatal   : Unresolved extern function
_LABEL = re.compile(r"\b(?:error|fatal|warning|remark|note|LLVM ERROR) *: |Assertion [`']")
_SAYS_NOTHING = ("Failures have been detected while processing", "Pipeline failed while executing")
_TELLING_COLUMNS = 60
_DIAGNOSTIC = re.compile(r":\d+: (?:error|warning|remark|note): |^(?:ptxas|error|LLVM ERROR)\b|: error: |Assertion ")


@dataclass(frozen=True, slots=True)
class How:
    """The options of a recording, as the command line gives them."""

    targets: tuple[str, ...] = ()
    launch: int | None = None
    virtual: bool = False
    signature: str | None = None
    constexprs: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    config: str = "first"
    assume: tuple[tuple[str, str], ...] = ()
    """What the virtual GPU takes unknown values to be, by name or FILE:LINE."""
    plan: PassPlan = field(default_factory=PassPlan)
    snapshots: str = "triton"
    llvm_passes: bool = False
    timeout_s: float = 300.0
    verbose: bool = False
    arguments: tuple[str, ...] = ()
    interpreter: str | None = None
    disassemble: bool = True
    """Whether the captures shall hold their SASS; nvdisasm takes half a second."""
    constants: tuple[tuple[str, str], ...] = ()
    """tl.constexpr values that replace a launch's own, where it has them."""
    incomplete: list[str] = field(default_factory=list[str])
    """What was named and not recorded to its end: filled in as the command goes, whose exit code it makes 1."""

    @property
    def changes_a_capture(self) -> bool:
        """Whether a capture must be compiled again to be what is asked for."""
        return bool(self.plan or self.targets or self.options or self.llvm_passes or self.snapshots != "triton")


def named_values(rows: Sequence[str] | None, option: str) -> list[tuple[str, str]]:
    """The pairs of a repeatable NAME=VALUE option; raises UsageError."""
    pairs: list[tuple[str, str]] = []
    for row in rows or ():
        name, equals, value = row.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {row!r}: write NAME=VALUE.")
        pairs.append((name.strip(), value.strip()))
    return pairs


def option_value(text: str) -> Any:
    """A compile option's value: a number, true or false, none, or the text itself."""
    named: dict[str, Any] = {"true": True, "false": False, "none": None}
    if text.lower() in named:
        return named[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def captures_of(subject: str | None, asked: How) -> list[Capture]:
    """The captures that a subject names, recorded and stored where they are new; never empty."""
    file, _, kernel = (subject or "last").partition("::")
    captures = _again(_stored(file), asked) if is_capture(file) else _recorded(file, kernel, asked)
    if kernel:
        named = [capture for capture in captures if capture.name == kernel]
        if not named:
            names = sorted({capture.name for capture in captures})
            raise RecordingError(f"{file} launched no kernel {kernel!r}.{did_you_mean(kernel, names)}")
        captures = named
    if asked.launch is not None:
        captures = nth_launch(captures, asked)
    if not is_capture(file):
        # What was chosen of several launches is what a command without a subject means next.
        # Where there is no store, that was said.
        with suppress(OSError):
            store = CaptureStore()
            store.mark_last(store.path_of(captures[-1]))
    return [with_sass(capture) for capture in captures] if asked.disassemble else captures


def with_sass(capture: Capture) -> Capture:
    """A capture with its SASS, made of the cubin where the recording left it out, and stored with it."""
    if "cubin" not in capture.stages or "sass" in capture.stages:
        return capture
    from irscope.record.binaries import disassemble, installed_nvdisasm

    cubin = capture.artifact("cubin").data
    text = disassemble(cubin, installed_nvdisasm()) if isinstance(cubin, bytes) else None
    if text is None:
        say("The recording left the SASS out, and no nvdisasm is here to make it (pip install triton brings one).")
        return capture
    place = capture.stages.index("cubin") + 1
    full = replace(capture, artifacts=(*capture.artifacts[:place], Artifact("sass", text), *capture.artifacts[place:]))
    # Read often, made once.
    with suppress(OSError):
        CaptureStore().update(full)
    return full


def is_capture(file: str) -> bool:
    """Whether a subject's file is a capture: one's file, its id, or `last`."""
    path = Path(file)
    if path.suffix == SUFFIX:
        return True
    return not path.exists() and not path.suffix and "/" not in file


def _stored(text: str) -> Capture:
    path = Path(text)
    if path.suffix == SUFFIX:
        return load(path)
    try:
        return CaptureStore().load(text)
    except CaptureNotFound as error:
        raise CaptureNotFound(str(error)) from None


def _again(capture: Capture, asked: How) -> list[Capture]:
    if not asked.changes_a_capture:
        return [capture]
    return compiled_for_each(capture, asked)


def compiled_again(capture: Capture, asked: How, *, becomes_last: bool = True) -> Capture:
    """A capture's own source compiled again under other passes, options or one other target; stored.

    `becomes_last`: whether `last` names it from now on; a variant made for a comparison does not.
    """
    asked = replace(asked, targets=asked.targets[:1])
    return compiled_for_each(capture, asked, becomes_last=becomes_last)[0]


def compiled_for_each(capture: Capture, asked: How, *, becomes_last: bool = True) -> list[Capture]:
    """As `compiled_again`, for each of the targets."""
    from irscope.record.requests import request_from_capture

    tell_origin(capture)
    request = request_from_capture(
        capture,
        targets=asked.targets,
        plan=str(asked.plan),
        options=asked.options,
        snapshots=cast("Any", asked.snapshots),
        llvm_passes=asked.llvm_passes,
    )

    def of_this_launch(fresh: Capture) -> Capture:
        return replace(fresh, sources=capture.sources, launch=replace(fresh.launch, grid=capture.launch.grid))

    with kept_captures(becomes_last=becomes_last) as keep:

        def keep_it(fresh: Capture) -> None:
            keep(of_this_launch(fresh))

        # A plan is checked first: one that names no pass leaves nothing behind.
        request = replace(request, disassemble=asked.disassemble)
        recording = run_request(request, asked, None if asked.plan else keep_it)
        tell_refusals(recording, asked)
        for note in recording.notes:
            say(note)
        captures = [of_this_launch(fresh) for fresh in recording.captures]
        check_plan(asked.plan, captures)
        for fresh in captures:
            keep(fresh)
    return captures


def tell_origin(capture: Capture) -> None:
    """Say, once a process, that a capture that is compiled again is not one that was recorded here."""
    try:
        known = CaptureStore().path_of(capture).is_file()
    except OSError:
        # There is no place for captures: whether it was recorded here cannot be told.
        known = False
    if not known:
        _tell_foreign(capture.name, capture.id[:8])


@cache
def _tell_foreign(name: str, id_: str) -> None:
    say(
        f"{name} ({id_}) is not among the captures that were recorded here: compiling it again runs Triton, LLVM and "
        "the assembler on text that somebody else may have written (docs/security.md)."
    )


def nth_launch(captures: Sequence[Capture], asked: How) -> list[Capture]:
    """The launch that `--launch` names, for each target; raises UsageError where there is none."""
    number = asked.launch or 1
    by_target: dict[str, list[Capture]] = {}
    for capture in captures:
        by_target.setdefault(str(capture.target), []).append(capture)
    chosen = [rows[number - 1] for rows in by_target.values() if number <= len(rows)]
    missing = {target: len(rows) for target, rows in by_target.items() if number > len(rows)}
    if not chosen:
        raise UsageError(f"--launch {number}: there are {max(missing.values())}.")
    for target, count in missing.items():
        say(f"--launch {number}: there are {count} on {target}.")
        asked.incomplete.append(target)
    return chosen


def _recorded(file: str, kernel: str, asked: How) -> list[Capture]:
    from irscope.record.requests import request_for

    request = request_for(
        file,
        kernel=kernel,
        targets=asked.targets,
        plan=str(asked.plan),
        signature=asked.signature,
        constexprs=dict(named_values(asked.constexprs, "--constexpr")),
        options=asked.options,
        arguments=asked.arguments,
        configs=asked.config,
        snapshots=cast("Any", asked.snapshots),
        llvm_passes=asked.llvm_passes,
        virtual=asked.virtual,
        assume=dict(asked.assume),
    )
    request = replace(request, constants=asked.constants, disassemble=asked.disassemble)
    with kept_captures() as keep:
        recording = run_request(request, asked, keep)
    captures = list(recording.captures)
    tell_end(file, recording, asked)
    if not captures:
        raise RecordingError(nothing_recorded(file, kernel, recording))
    check_plan(asked.plan, captures)
    return captures


def run_request(request: RecordRequest, asked: How, keep: Keep | None = None) -> Recording:
    """Run a recording process, telling on a terminal what is under way; raises Interrupted where a signal ended it.

    `keep` is given each capture when it is complete, and again when more is known of it.
    """
    from irscope.record.session import record_request

    with progress() as tell:
        recording = record_request(
            request,
            timeout_s=asked.timeout_s,
            interpreter=asked.interpreter,
            progress=tell,
            echo=echo if asked.verbose else None,
            keep=keep,
        )
    if recording.interrupted:
        if keep is not None and (kept := sum(capture.has_compiled for capture in recording.captures)):
            say(f"Compiled so far, and kept: {kept} (irscope ls).")
        raise Interrupted(recording.signal_number)
    return recording


def check_plan(plan: PassPlan, captures: Sequence[Capture]) -> None:
    """Raise PlanError for a rule that matched no pass of any capture; where all failed, only say so."""
    passes = [snapshot for capture in captures for snapshot in capture.passes()]
    if any(capture.has_compiled for capture in captures):
        plan.check(passes)
        return
    # None ran to its end: a rule that was not reached may name a pass all the same, and why it failed comes first.
    for rule in plan.unmatched(passes):
        say(f"no pass '{rule}' was reached before the compile failed.")


def failure_text(capture: Capture) -> str:
    """Why a compile failed, as the command line says it."""
    failure = capture.failure
    if failure is None:
        return ""
    text = f"{capture.name} ({capture.target}) {failure.verdict}: {failure.message}".rstrip()
    more = [line for line in diagnostic_lines(failure.diagnostics) if not _is_said(line, text)]
    return "\n".join([text, *more])


def tell_failures(captures: Sequence[Capture]) -> int:
    """Say why compiles failed, and return the exit code.

    A configuration that does not fit, beside one of the same kernel that does, is what Triton's autotuner passes over:
    it is told of, and fails nothing.
    """
    fitting = {(one.name, one.target) for one in captures if one.launch.autotuning is not None and one.status == "ok"}
    code = 0
    for capture in captures:
        failure = capture.failure
        if failure is None:
            continue
        say(failure_text(capture))
        passed_over = failure.kind == "fit" and capture.launch.autotuning is not None
        if not (passed_over and (capture.name, capture.target) in fitting):
            code = 1
    return code


def _is_said(line: str, text: str) -> bool:
    """Whether a line of diagnostics says nothing that the text does not."""
    said = _LABEL.split(line)[-1].strip()
    return said[:_TELLING_COLUMNS] in text or said.startswith(_SAYS_NOTHING)


def diagnostic_lines(diagnostics: str) -> list[str]:
    """What a reader needs of a compiler's output: each diagnostic with its source line and caret, not the IR it prints.

    Where there is no such line, the last ones. `irscope show ID --json` has all of it.
    """
    lines = diagnostics.splitlines()
    kept: list[str] = []
    for number, line in enumerate(lines):
        if _DIAGNOSTIC.search(line):
            caret = number + 2 < len(lines) and lines[number + 2].strip() == "^"
            kept += lines[number : number + 3] if caret else [line]
    return list(dict.fromkeys(kept)) or lines[-_FRAMES_OF_OUTPUT:]
