"""The parent of a recording: starts the child, follows its events, and turns any end into captures.

Nothing here imports triton or torch: both live in the child, which may be another interpreter's.
"""

from __future__ import annotations

import re
import select
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from irscope.errors import IrscopeError, RecordingError
from irscope.interruption import Interrupted, Noted, noted_signals
from irscope.ir.logs.cache import utc_date
from irscope.ir.logs.dump import without_talk
from irscope.model.capture import Capture, Failure, Launch, stage_named
from irscope.model.recording_options import RecordingOptions
from irscope.record.process.annotations import LayoutServer
from irscope.record.process.assembly import Assembly
from irscope.record.process.child import (
    LONGEST_WAIT_S,
    TORCH,
    TRITON,
    Child,
    Outcome,
    child_process,
    imports_torch_ahead,
    last_lines,
    warm_children,
)
from irscope.record.process.events import Done, HandedOver, RecordingEvent, ScriptEnd
from irscope.record.process.gathering import RECORDING, CompileWorkers, Completion, Gathering, Keep, gathering
from irscope.record.process.own_folder import own_folder
from irscope.record.process.requests import KnownCompile, RecordRequest, one_for_each_target, request_from_capture
from irscope.store.shelf import StoredCaptures

_LONGEST_END_S = 30.0
_SHORT_WAIT_S = 0.02
"""Between looks at a process that closed the descriptor of its events."""
# import torch   from torch.nn import functional
_IMPORTS_TORCH = re.compile(r"^\s*(import|from) torch\b", re.MULTILINE)

Ending = Literal["end", "timeout", "interrupt"]
"""Why a recording process is no longer followed."""


@dataclass(frozen=True, slots=True)
class Recording:
    captures: StoredCaptures
    """Those of the first target, then those of the next."""
    script_ends: tuple[ScriptEnd, ...]
    """How the script ended, for each target that it ran to an end for."""
    notes: tuple[str, ...]
    output: str
    signal_number: int = 0
    refusals: tuple[tuple[str, IrscopeError], ...] = ()
    """(target, why) for each of several targets that nothing was recorded for."""
    stored: Mapping[str, Launch] = field(default_factory=dict[str, Launch])
    """The ids of captures that were stored before, of compiles that were not made again, and their launches."""
    known: Mapping[str, KnownCompile] = field(default_factory=dict[str, KnownCompile])
    """By the id of a capture, how its compile can be left out of another recording."""

    @property
    def interrupted(self) -> bool:
        return self.signal_number != 0

    def whole(self) -> Recording:
        """The recording itself; raises Interrupted where a signal ended it."""
        if self.interrupted:
            raise Interrupted(self.signal_number)
        return self

    @property
    def stopped(self) -> tuple[ScriptEnd, ...]:
        """The ends that came before the script's own."""
        return tuple(end for end in self.script_ends if end.stopped)


Progress = Callable[[str], None]


def compiled(request: RecordRequest) -> Capture:
    return record_request(request).captures[0]


def record_request(
    request: RecordRequest,
    *,
    progress: Progress | None = None,
    echo: Callable[[str], None] | None = None,
    keep: Keep | None = None,
) -> Recording:
    """Do a request in a child process, one for each of its targets: the script runs as on a machine that has it.

    `keep` gets each capture when its compile ends, and again when more is known of it. Raises what the child refused
    with, and RecordingError where it died before it began; of several targets, where that happened for each.
    """
    recordings: list[Recording] = []
    refusals: list[tuple[str, IrscopeError]] = []
    with warm_children(persistent=False):
        for target_request in one_for_each_target(replace(request, began=utc_date(time.time()))):
            try:
                recordings.append(_record_one(target_request, progress, echo, keep))
            except IrscopeError as error:
                refusals.append((" ".join(target_request.targets), error))
                continue
            if recordings[-1].interrupted:
                break
    if not recordings:
        raise refusals[0][1]
    return Recording(
        StoredCaptures(file for recording in recordings for file in recording.captures.files),
        tuple(end for recording in recordings for end in recording.script_ends),
        tuple(dict.fromkeys(note for recording in recordings for note in recording.notes)),
        "".join(recording.output for recording in recordings),
        recordings[-1].signal_number,
        tuple(refusals),
        {id_: launch for recording in recordings for id_, launch in recording.stored.items()},
        {id_: known for recording in recordings for id_, known in recording.known.items()},
    )


def _record_one(
    request: RecordRequest, progress: Progress | None, echo: Callable[[str], None] | None, keep: Keep | None
) -> Recording:
    with noted_signals() as noted:
        with ExitStack() as stack:
            followed = _Followed(request, progress, echo, keep, noted, stack)
            ending, outcome = followed.follow()
            output = followed.child.output()
            assembly, others, workers = followed.assembly, followed.others, followed.workers
            if request.way == "command" and assembly.refusal is None and ending == "end":
                text = "" if outcome.code == 0 else f"it {outcome}"
                assembly.feed(ScriptEnd(outcome.code, text, complete=outcome.code > 0))
                assembly.feed(Done())
            if workers.failed and ending == "end":
                assembly.ends_at(min(workers.failed))
            check_end(assembly, ending, outcome, output, request.timeout_s, noted.number)
            output += workers.output
        _end_others(others, ending, request.timeout_s)
        completions = followed.completions
        finished = [completion.finish() for completion in completions]
    stopped_by = noted.number
    for completion, captures in zip(completions, finished, strict=True):
        stopped_by = stopped_by or _complete_failures(request, completion, captures)
    ends = () if assembly.script_end is None else (assembly.script_end,)
    notes = tuple(dict.fromkeys(note for completion in completions for note in completion.assembly.notes))
    text = output.decode("utf-8", "replace")
    if request.watches_llvm:
        text = without_talk(text)
    known = {
        file.facts.id: assembly.known(number)
        for number, file in zip(assembly.numbers, finished[0].files, strict=True)
        if file.facts.status == "ok"
    }
    return Recording(_joined(finished), ends, notes, text, stopped_by, stored=assembly.stored, known=known)


def _joined(recordings: list[StoredCaptures]) -> StoredCaptures:
    files = [*recordings[0].files]
    for captures in recordings[1:]:
        known = {file.facts.id for file in files}
        files += [file for file in captures.files if file.facts.id not in known]
    return StoredCaptures(files)


def _end_others(others: Gathering, ending: Ending, timeout_s: float) -> None:
    for completion in others.completions:
        assembly = completion.assembly
        if assembly.refusal is not None:
            assembly.notes.append(f"A process was not recorded: {assembly.refusal.message}")
        if ending == "timeout" and assembly.longest_s > timeout_s:
            assembly.time_out(timeout_s)
        else:
            why = "the script had ended, and irscope ended this process during its compile."
            assembly.fail_open("interrupt", "interrupted." if ending == "interrupt" else why)


def _complete_failures(request: RecordRequest, completion: Completion, captures: StoredCaptures) -> int:
    if request.snapshots != "triton":
        return 0
    try:
        for index, file in enumerate(captures.files):
            if file.facts.status == "failed":
                failed = file.load()
                left_s = request.timeout_s - completion.assembly.seconds_of(index)
                full = _with_text_before_failure(failed, left_s, request.interpreter)
                if full is not failed:
                    completion.replace(file, full)
    except Interrupted as error:
        return error.number
    return 0


def _imports_of(request: RecordRequest) -> tuple[str, ...]:
    if request.times:
        return ()
    if request.mode != "text" and imports_torch_ahead():
        with suppress(OSError):
            if _IMPORTS_TORCH.search(Path(request.path).read_text("utf-8", "replace")):
                return TORCH
    return TRITON


def _with_text_before_failure(capture: Capture, left_s: float, interpreter: str | None) -> Capture:
    """A capture that failed in a pass, with that pass and the IR just before it, by another compile in the time left.

    The passes on the LLVM dialect run together and are not printed.
    """

    failed = next((snapshot for snapshot in capture.snapshots if snapshot.outcome == "failed"), None)
    if capture.failure is None or "source" not in capture.stages or not capture.snapshots:
        return capture
    if failed is not None:
        is_missing = capture.text_before(failed) is None
    else:
        is_missing = _may_have_failed_in_a_pass(capture.failure)
    if not is_missing or left_s <= 0:
        return capture
    asked = RecordingOptions(plan=capture.plan, snapshots="all", timeout_s=left_s, interpreter=interpreter)
    again = record_request(request_from_capture(capture, asked)).whole().captures[0]
    if again.failure is None or again.failure.kind == "timeout":
        # What ended it is not what ended this one.
        return capture
    if failed is not None and again.failure.pass_label != failed.label:
        return capture
    return replace(capture, snapshots=again.snapshots, failure=again.failure, snapshot_level="all")


def _may_have_failed_in_a_pass(failure: Failure) -> bool:
    kind = stage_named(failure.stage).kind if failure.stage else "binary"
    return kind in ("mlir", "llvm") and failure.kind in ("pass", "abort") and not failure.pass_label


class _Followed:
    def __init__(
        self,
        request: RecordRequest,
        progress: Progress | None,
        echo: Callable[[str], None] | None,
        keep: Keep | None,
        noted: Noted,
        stack: ExitStack,
    ) -> None:
        self._progress = progress
        self._noted = noted
        server = self._server = stack.enter_context(LayoutServer(request.interpreter))
        self.completion = Completion(request, keep, server)
        self.assembly = self.completion.assembly
        folder = stack.enter_context(own_folder())
        self.child: Child = stack.enter_context(
            child_process(RECORDING, folder, interpreter=request.interpreter, echo=echo, ahead=_imports_of(request))
        )
        request = replace(request, log_path=str(self.child.log), limit_s=request.timeout_s)
        self._timeout_s = request.timeout_s
        self.workers = stack.enter_context(CompileWorkers(self.completion, request, folder, echo))

        def joined(process: str) -> Completion:
            return Completion(request, keep, server, process)

        self.others = stack.enter_context(gathering(folder, request, self.child.pid, self._feed, joined))
        self.child.send(request)

    def follow(self) -> tuple[Ending, Outcome]:
        ending = self._follow_program()
        self.others.are_killed = ending != "end"
        outcome = self.child.end()
        for event in self.child.rest():
            self._feed(event)
        self._read()
        try:
            while not (self.workers.is_done or self._noted.number):
                self._wait()
                self._read()
            for completion in self.completions:
                completion.annotations.finish(lambda: self._noted.number)
        except KeyboardInterrupt:
            self._noted.number = self._noted.number or signal.SIGINT
        return "interrupt" if self._noted.number else ending, outcome

    def _follow_program(self) -> Ending:
        longest_end_s: float | None = None
        try:
            while not (self._noted.number or self.child.is_over):
                self._wait()
                if not self.workers.is_full:
                    # Otherwise the program waits, as soon as it has more to report.
                    for event in self.child.read(0):
                        self._feed(event)
                self._read()
                if max(completion.assembly.longest_s for completion in self.completions) > self._timeout_s:
                    return "timeout"
                if self.assembly.done:
                    # It has sent all that it will.
                    now = time.monotonic()
                    longest_end_s = longest_end_s or now + _LONGEST_END_S
                    if now > longest_end_s:
                        break
        except KeyboardInterrupt:
            # From a handler of the caller's own.
            self._noted.number = self._noted.number or signal.SIGINT
        return "interrupt" if self._noted.number else "end"

    def _feed(self, event: RecordingEvent) -> None:
        self.completion(event)
        if isinstance(event, HandedOver):
            self.workers.take(event)

    def _read(self) -> None:
        self.workers.read()
        self.others.read()
        for completion in self.completions:
            completion.settle()
        if self._progress is not None:
            texts = (completion.assembly.working_on for completion in self.completions)
            self._progress(next(filter(None, texts), ""))

    def _wait(self) -> None:
        descriptors = [*self.workers.descriptors(), *self.others.descriptors()]
        if not (self.workers.is_full or self.child.at_end):
            descriptors.append(self.child.fileno())
        if (layouts := self._server.fileno()) is not None:
            descriptors.append(layouts)
        poll = select.poll()
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        # Of the end of a process that closed its descriptors nothing tells.
        poll.poll((_SHORT_WAIT_S if self.child.at_end and not self.child.is_over else LONGEST_WAIT_S) * 1000)

    @property
    def completions(self) -> list[Completion]:
        return [self.completion, *self.others.completions]


def check_end(
    assembly: Assembly,
    ending: Ending,
    outcome: Outcome,
    output: bytes,
    timeout_s: float,
    stopped_by: int = signal.SIGINT,
) -> None:
    """Turn the end of a recording process into failures of what it was compiling; raises what it refused with."""
    if ending == "timeout":
        assembly.time_out(timeout_s, output)
    elif ending == "interrupt":
        by = "Ctrl-C" if stopped_by == signal.SIGINT else signal.Signals(stopped_by).name
        assembly.fail_open("interrupt", f"interrupted ({by}).", output)
    elif assembly.refusal is not None:
        raise assembly.refusal.as_error()
    elif not assembly.done:
        if not assembly.compiling:
            if not assembly.numbers:
                why = f"the recording process {outcome} before any kernel was compiled.\n{last_lines(output)}"
                raise RecordingError(why.rstrip())
            assembly.notes.append(f"The recording process {outcome} after this compile.")
        why = ", as when the system is out of memory" if outcome.code == -signal.SIGKILL else ""
        assembly.fail_open("abort", f"the compiler {outcome}{why}.", output)
