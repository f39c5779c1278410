"""One compile under way: numbers its passes, keeps the latest text and what was printed, and reports it as events."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from irscope.ir.logs.dump import without_talk
from irscope.ir.logs.time_trace import Part
from irscope.model.capture import Kernel, Launch, PassSnapshot, Target
from irscope.model.evidence import MOST_LOG_BYTES, MOST_LOG_LINES, PassLog, SpanKind
from irscope.model.launch_record import Assumption
from irscope.record.compile.hand_over import Handover, LeftOut
from irscope.record.compile.launches import causes, message_of
from irscope.record.compile.stopwatch import Stopwatch, processor_ns
from irscope.record.process import events
from irscope.record.process.events import EventSink, Logged
from irscope.record.process.own_folder import parent_of_temporaries
from irscope.record.process.requests import CompileJob, RecordRequest
from irscope.record.triton import api as triton_api
from irscope.record.triton import ptxas
from irscope.record.triton.llvm import LlvmPasses
from irscope.record.triton.patches import environment_variable, replaced
from irscope.record.triton.reasons import as_printed, text_of_verified, write_errors


class _ProcessLog:
    def __init__(self, path: str, *, is_held_back: bool) -> None:
        self._path = path
        self._is_held_back = is_held_back
        self._read_to = self.size()

    def size(self) -> int:
        if self._is_held_back:
            write_errors()
        # Without a log the path is empty, and no file.
        with contextlib.suppress(OSError):
            return os.stat(self._path).st_size
        return 0

    def since(self, offset: int, end: int | None = None) -> str:
        if self._is_held_back:
            write_errors()
        sys.stderr.flush()
        with contextlib.suppress(OSError), open(self._path, "rb") as file:
            file.seek(offset)
            return file.read(-1 if end is None else end - offset).decode("utf-8", "replace")
        return ""

    def news(self) -> str:
        begun, self._read_to = self._read_to, self.size()
        text = self.since(begun, self._read_to)
        return as_printed(text) if self._is_held_back else text


class PassLogs:
    """Cuts the output of a process where passes begin and end, and reports each piece."""

    def __init__(self, number: int, read: Callable[[], str], report: Callable[[Logged], None]) -> None:
        self._number = number
        self._read = read
        self._report = report
        self._outside: list[str] = []

    def pass_begins(self) -> None:
        self._outside.append(self._read())

    def pass_ends(self, stage: str, index: int) -> None:
        self._send(stage, index, self._read())

    def stage_ends(self, stage: str, more: str) -> None:
        outside, self._outside = [*self._outside, self._read(), more], []
        self._send(stage, None, "".join(outside))

    def _send(self, stage: str, index: int | None, text: str) -> None:
        if text:
            self._report(logged(self._number, stage, index, text))


def logged(number: int, stage: str, index: int | None, text: str) -> Logged:
    """The event of what was printed in a pass, or in a stage, cut to what is kept."""
    lines = text.split("\n")
    room, kept = MOST_LOG_BYTES, 0
    for line in lines[:MOST_LOG_LINES]:
        room -= len(line.encode("utf-8", "replace")) + 1
        if room < 0:
            break
        kept += 1
    # What ends in a line feed has one part more than lines.
    left_out = len(lines) - kept - (lines[-1] == "")
    return Logged(number, PassLog(stage, "\n".join(lines[:kept]) if left_out > 0 else text, index, max(0, left_out)))


LLVM_OPTIMISER, _PTXAS_OPTIMISER = "llvm-opt", "ptxas-opt"
"""The names of LLVM's and of ptxas's optimiser as passes of the pipeline."""

_STAGES_OF_LLVM = ("llir", "ptx", "amdgcn")

_LLVM_IS_NOT_TIMED = "LLVM's passes are not timed: this Triton's library does not name them."

_SLOW_S = 2.0
_SLOW_SHARE = 1 / 20
"""How long a compile may take, in seconds and as a share of its limit, before each of its passes on the LLVM dialect is
reported with the IR before it: the limit may end the compile in one of them."""


@dataclass(slots=True)
class Watch:
    sink: EventSink
    request: RecordRequest = RecordRequest(mode="script")  # noqa: RUF009 - it is immutable
    reported: set[str] = field(default_factory=set[str])
    """The keys in Triton's cache of the compiles that were reported."""
    assumptions: Callable[[Launch], tuple[Assumption, ...]] = lambda launch: ()
    values: Callable[[Any], dict[str, Any]] = lambda tensor: {}
    """What is known of a tensor's data, as fields of an Argument."""
    last_error: BaseException | None = None
    passed_over: set[str] = field(default_factory=set)
    """The names of kernels that were compiled, and not asked for."""
    is_quiet: bool = False
    """Whether what the assembler says of a compile under way is nobody's."""
    imports: tuple[Part, ...] = ()
    """The import of Triton, where times are requested."""
    is_virtual: bool = False
    handover: Handover | None = None
    """Hands compiles over to workers; None if all is compiled here."""
    origin: tuple[tuple[str, str], ...] = ()
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _local: threading.local = field(default_factory=threading.local)

    @property
    def current(self) -> WatchedCompile | None:
        compiles = self._compiles
        return compiles[-1] if compiles else None

    @property
    def _compiles(self) -> list[WatchedCompile]:
        """This thread's compiles that are under way: a handler of a signal launches within another launch's."""
        return vars(self._local).setdefault("compiles", [])

    def begin(self, target: Target) -> WatchedCompile:
        begun = WatchedCompile(self, next(self._numbers), target)
        self._compiles.append(begun)
        return begun

    def resume(self, job: CompileJob) -> WatchedCompile:
        resumed = WatchedCompile(self, job.number, Target.parse(job.target), job)
        self._compiles.append(resumed)
        return resumed

    def end(self) -> None:
        self._compiles.pop()

    def report(self, event: events.RecordingEvent) -> None:
        if isinstance(event, events.Launched) and self.origin:
            event = replace(event, origin=self.origin)
        if isinstance(event, events.ScriptEnd):
            event = replace(event, passed_over=tuple(sorted(self.passed_over)))
        self.sink(event)


class WatchedCompile:
    def __init__(self, watch: Watch, number: int, target: Target, job: CompileJob | None = None) -> None:
        self.watch = watch
        self.request = watch.request
        self.number = number
        self.target = target
        self.stage = ""
        self.source_name = "source"
        """The stage whose artifact the compile starts from."""
        self.metadata: dict[str, Any] | None = None
        self.may_be_left_out = False
        self.identity: Callable[[str], str] = lambda source: ""
        """The id of its capture, by its source."""
        self.may_be_handed_over = False
        self.given: tuple[Any, Any] = (None, None)
        """The source and the options that Triton compiles."""
        self.texts: dict[str, str] = {}
        """What the stages made so far, of a compile that may be left to others."""
        self.job = job
        self.module: Any = None
        """The job's, once it is parsed."""
        self._hands_over_at = ""
        """The stage before which the compile may be left to others."""
        self._first_metadata: dict[str, Any] = {}
        self.printed: list[str] = []
        self._begin: Launch | None = None
        self.launch = Launch(Kernel(""))
        self._stages: list[str] = []
        self._has_source = job is not None
        self.source = ""
        self._counts: dict[tuple[str, str], int] = {}
        self.pass_count = 0 if job is None else job.passes
        self._text: str | None = None
        """The last text of the module; None before the first, and after a change that was not printed."""
        self._last_index: int | None = None
        self._overhead_ns = 0
        self._overhead_processor_ns = 0
        self._front_ns = processor_ns()
        is_held_back = self.request.compiler_log and not self.request.verifies_log
        self._log = _ProcessLog(self.request.log_path, is_held_back=is_held_back)
        self.log_from = self._log.size()
        """Where the output of the current pass, stage or compile begins in the log of the process."""
        self._started_ns = time.perf_counter_ns()
        self._logs = PassLogs(number, self._log.news, self.report) if self.request.compiler_log else None
        self.stopwatch = Stopwatch() if self.request.times else None
        self._llvm: LlvmPasses | None = None
        if self.request.watches_llvm:
            self._llvm = LlvmPasses(
                target.backend, self.request.plan, is_timed=self.request.times, prints=self.request.llvm_passes
            )
        self._unreported = False
        """Whether the module after the last pass was not printed for its snapshot."""

    def report(self, event: events.RecordingEvent) -> None:
        with self.own_part():
            self.report_begin()
            self.watch.sink(event)

    def part(self, name: str, kind: SpanKind) -> AbstractContextManager[None]:
        return nullcontext() if self.stopwatch is None else self.stopwatch.part(name, kind)

    def own_part(self) -> AbstractContextManager[None]:
        """Time a block of irscope's own, where times are requested."""
        return self.part("irscope", "irscope")

    @contextmanager
    def timed_whole(self) -> Iterator[None]:
        """Time the compile, where times are requested, and report where they went."""
        stopwatch, llvm = self.stopwatch, self._llvm
        if stopwatch is None or llvm is None:
            yield
            return
        try:
            with stopwatch.part(self.launch.kernel.name, "compile"):
                yield
        finally:
            notes = () if llvm.is_available else (_LLVM_IS_NOT_TIMED,)
            parts = (*self.watch.imports, *stopwatch.parts())
            known = events.TimesKnown(self.number, parts, tuple(llvm.traces), stopwatch.used_ns(), notes)
            self.watch.sink(known)

    def begins(self, launch: Launch) -> None:
        """A launch's compile begins. Reported with the next event: a kernel from Triton's cache is no compile."""
        self._begin = self.launch = launch

    def report_begin(self) -> None:
        """Report that the compile begins, unless that was reported."""
        if (launch := self._begin) is not None:
            self._begin = None
            self.watch.sink(events.CompileBegun(self.number, self.target, launch, self.log_from, self.watch.origin))

    def failed(self, error: BaseException, described: dict[str, str]) -> None:
        """Report the compile's exception; before its first stage, with the output of the front end or the parser."""
        self.watch.last_error = error
        diagnostics = "" if self.stage else self.diagnostics(error)
        number = next((found for cause in causes(error) if (found := _errno_of(cause))), 0)
        log = "".join(self.printed)
        failed = events.CompileFailed(self.number, **described, diagnostics=diagnostics, log=log, errno=number)
        self.report(failed)

    # Stages

    def wrap_stages(self, stages: dict[str, Any]) -> None:
        names = self._stages = list(stages)
        # What a launch depends on, beside its source, is which arguments the kernel writes: the TTIR tells.
        made = "ttir" if "ttir" in names else "ttgir"
        if (self.may_be_handed_over or self.may_be_left_out) and made in names[:-1]:
            self._hands_over_at = names[names.index(made) + 1]
        for name, function in list(stages.items()):
            stages[name] = partial(self._run_stage, name, function)

    def _run_stage(self, name: str, function: Callable[..., Any], source: Any, metadata: dict[str, Any]) -> Any:
        # All but the stage within it is irscope's own.
        with self.own_part():
            return self._watch_stage(name, function, source, metadata)

    def _watch_stage(self, name: str, function: Callable[..., Any], source: Any, metadata: dict[str, Any]) -> Any:
        if not self._has_source:
            self._has_source = True
            self._first_metadata = dict(metadata)
            self._report_source(source)
        if self.job is not None:
            if name != self.job.stage:
                # Made where the compile began; the last one is the module.
                is_last = self._stages.index(name) + 1 == self._stages.index(self.job.stage)
                return self.module if is_last else self.job.texts[name]
            metadata.update(self.job.metadata)
            self._text = list(self.job.texts.values())[-1]
            self.job = None
        if name == self._hands_over_at:
            self._leave_to_others(source, metadata)
        self.stage = name
        self.metadata = metadata
        self.log_from = self._log.size()
        self.report(events.StageBegun(self.number, name, self.log_from))
        started, overhead = time.perf_counter_ns(), self._overhead_ns
        used, overhead_used = processor_ns(), self._overhead_processor_ns
        try:
            with self._switches(name), self.part(name, "stage"):
                result = function(source, metadata)
        except BaseException as error:
            self.report(events.StageFailed(self.number, name, self.diagnostics(error)))
            raise
        finally:
            if self._logs is not None:
                # What ptxas says is printed by Triton.
                self._logs.stage_ends(name, "".join(self.printed) if name == "cubin" else "")
        duration_ns = time.perf_counter_ns() - started - (self._overhead_ns - overhead)
        used = processor_ns() - used - (self._overhead_processor_ns - overhead_used)
        self._report_artifact(name, result, duration_ns // 1000, used // 1000)
        return result

    def leave_out_known(self, front: str) -> None:
        """Leave the compile out before its front end runs, if a capture of what that reads is stored."""
        if known := next((one for one in self.request.known if one.front == front), None):
            self.report(events.AlreadyStored(self.number, known.id, known.key))
            raise LeftOut(known.key, {known.stage: known.text})

    def _leave_to_others(self, source: Any, metadata: dict[str, Any]) -> None:
        """Leave the compile out if a capture of it is stored, or to a worker if the launch need not wait for it."""
        key = str(metadata["hash"])
        if self.may_be_left_out and (id_ := self.identity(self.source)) in self.request.stored:
            self.report(events.AlreadyStored(self.number, id_, key))
            raise LeftOut(key, self.texts)
        if self.may_be_handed_over and self.watch.handover is not None:
            first = self._first_metadata
            noted = {name: value for name, value in metadata.items() if name not in first or first[name] is not value}
            self.watch.handover.take(self, self._hands_over_at, source, key, noted)

    @contextmanager
    def _switches(self, stage: str) -> Iterator[None]:
        # LLVM's and ptxas's optimisers are switched by an environment variable and a knob of Triton's.
        with ExitStack() as stack:
            if (folder := parent_of_temporaries()) is not None:
                # A process that is killed leaves the assembler's files, which Triton removes only at the end.
                stack.enter_context(replaced(tempfile, "tempdir", folder))
            if stage in _STAGES_OF_LLVM and self.request.plan.skips(PassSnapshot(0, "llir", LLVM_OPTIMISER, 1)):
                stack.enter_context(environment_variable("DISABLE_LLVM_OPT", "1"))
            if stage in _STAGES_OF_LLVM and self._llvm is not None:
                stack.enter_context(self._llvm_watched(stage, self._llvm))
            step = None
            if stage == "cubin":
                step = self.pass_added(_PTXAS_OPTIMISER, "")
                if self.request.plan.skips(step):
                    self.pass_begins(step)
                    stack.enter_context(triton_api.knob("nvidia", "disable_ptxas_opt", True))
                    step = None
            started = time.perf_counter_ns()
            yield
            if step is not None:
                # Reported on success only: a failure of ptxas is not one of its optimiser.
                duration_us = (time.perf_counter_ns() - started) // 1000
                self.pass_begins(step)
                self.pass_ended(step, None, duration_us)

    def assembled(self, command: list[str], run: Callable[[list[str]], Any]) -> Any:
        steps = {name: self.pass_added(ptxas.PREFIX + name, "") for name in ptxas.steps(command)}
        off = {name for name, step in steps.items() if self.request.plan.skips(step)}
        for name in off:
            self.report(events.PassEnded(self.number, replace(steps[name], outcome="skipped", changed=False)))
        result = run(ptxas.without(command, off) if off else command)
        for name in steps.keys() - off:
            self.report(events.PassEnded(self.number, steps[name]))
        return result

    @contextmanager
    def _llvm_watched(self, stage: str, passes: LlvmPasses) -> Iterator[None]:
        if self.request.llvm_passes:
            with environment_variable("LLVM_IR_ENABLE_DUMP", "1"), passes.stage(stage):
                before = self._log.size()
                yield
                self.report(events.LlvmDump(self.number, stage, self._log.since(before)))
            return
        known = len(passes.snapshots)
        watched = ExitStack()
        watched.enter_context(passes.stage(stage))
        try:
            yield
        finally:
            with self._own_time():
                watched.close()
            if self.stopwatch is None:
                self.report(events.LlvmPassesKnown(self.number, tuple(passes.snapshots[known:])))

    def _report_source(self, source: Any) -> None:
        used_us = (processor_ns() - self._front_ns) // 1000
        if triton_api.is_mlir_module(source):
            source = self._print(source)
        if isinstance(source, str):
            self.source = source
            self.report(events.ArtifactMade(self.number, self.source_name, source, processor_us=used_us))

    def _report_artifact(self, name: str, result: Any, duration_us: int, processor_us: int) -> None:
        data = self._print(result) if triton_api.is_mlir_module(result) else result
        data = data if isinstance(data, (str, bytes)) else str(data)
        if (self.may_be_handed_over or self.may_be_left_out) and isinstance(data, str):
            self.texts[name] = data
        self.report(events.ArtifactMade(self.number, name, data, duration_us, processor_us))

    def _print(self, module: Any) -> str:
        with self._own_time():
            return self._text_of(module)

    def _text_of(self, module: Any) -> str:
        # Of a compile with a log, the printer's options are set for good.
        self._text = str(module) if self.request.compiler_log else text_of_verified(module)
        return self._text

    # Passes, as tap.py reports them

    def pass_added(self, name: str, pipeline: str) -> PassSnapshot:
        """Name a pass: its stage is the one under way, its occurrence counts the passes of that name in it."""
        key = (self.stage, name)
        self._counts[key] = self._counts.get(key, 0) + 1
        argument, options = _split_pipeline(pipeline)
        step = PassSnapshot(self.pass_count, self.stage, name, self._counts[key], argument, options)
        self.pass_count += 1
        return step

    def pass_begins(self, step: PassSnapshot) -> bool:
        """Report a pass before it runs, in case it never returns; returns whether the plan lets it run."""
        # The text that a resumed stage starts from was made after its first passes.
        behind = step.stage == self.request.resume_stage and step.index < self.request.resume_after
        if self.request.plan.skips(step) or behind:
            self.report(events.PassEnded(self.number, replace(step, outcome="skipped", changed=False)))
            return False
        self.log_from = self._log.size()
        if self._logs is not None:
            self._logs.pass_begins()
        self.report(events.PassBegun(self.number, step, self.log_from))
        return True

    def pass_ended(self, step: PassSnapshot, module: Any, duration_us: int | None) -> None:
        with self._own_time():
            self._pass_ended(step, module, duration_us)

    @contextmanager
    def _own_time(self) -> Iterator[None]:
        """Count a block as irscope's own, not the compiler's."""
        with self.own_part():
            # No tool is run in it.
            started, used = time.perf_counter_ns(), time.process_time_ns()
            yield
            self._overhead_ns += time.perf_counter_ns() - started
            self._overhead_processor_ns += time.process_time_ns() - used

    def _pass_ended(self, step: PassSnapshot, module: Any, duration_us: int | None) -> None:
        if self._logs is not None:
            self._logs.pass_ends(step.stage, step.index)
        changed: bool | None = None
        text: str | None = None
        if module is not None:
            self._unreported = not self._prints(module)
            if not self._unreported:
                before = self._text
                text = self._text_of(module)
                changed = None if before is None else text != before
            elif not self._is_slow():
                self._text = None
            self._last_index = step.index
        ended = replace(step, changed=changed, text=None if changed is False else text, duration_us=duration_us)
        self.report(events.PassEnded(self.number, ended))
        if module is not None and self._unreported and self._is_slow():
            # Kept only until the next pass succeeds: snapshots must not depend on the speed of this machine.
            before, text = self._text, self._text_of(module)
            self.report(events.PassingText(self.number, step.index, None if text == before else text))

    def _is_slow(self) -> bool:
        limit_s = self.request.limit_s
        may_end = self.request.snapshots == "triton" and limit_s > 0
        return may_end and time.perf_counter_ns() - self._started_ns > 1e9 * min(_SLOW_S, _SLOW_SHARE * limit_s)

    def pass_failed(self, step: PassSnapshot, error: BaseException) -> None:
        if self._logs is not None:
            self._logs.pass_ends(step.stage, step.index)
        self.report(events.PassFailed(self.number, step, message_of(error), self.diagnostics(error)))

    def module_leaves_mlir(self, module: Any) -> None:
        """Report the module before its translation to LLVM IR, if the last pass's text was not reported."""
        if self._unreported and self._last_index is not None and self.request.snapshots != "none":
            self.report(events.PassText(self.number, self._last_index, self._print(module)))

    def _prints(self, module: Any) -> bool:
        if self.request.snapshots == "none":
            return False
        return self.request.snapshots == "all" or triton_api.holds_triton_dialects(module)

    # The compiler's output on the process's standard error

    def diagnostics(self, error: BaseException) -> str:
        printed = list(self.printed)
        if "`ptxas` stderr" in message_of(error):
            # Triton prints the whole PTX with it, which is an artifact already; the error holds the log.
            printed = [text for text in printed if "`ptxas` stderr" not in text]
        log = self._log.since(self.log_from)
        if self.request.watches_llvm:
            log = without_talk(log)
        return "\n".join(filter(None, [log, *printed])).strip()


def _errno_of(error: BaseException) -> int:
    if isinstance(error, MemoryError):
        return errno.ENOMEM
    return (error.errno or 0) if isinstance(error, OSError) else 0


# any(tritongpu-pipeline{num-stages=3})  |  any(llvm.func(canonicalize-llvm-ir))  |  any(a,b{x=1})
def _split_pipeline(pipeline: str) -> tuple[str, str]:
    """The MLIR argument and the options in what `get_pipeline_str` gives for one pass."""
    inner = pipeline.removeprefix("any(").removesuffix(")")
    head, brace, options = inner.partition("{")
    while "(" in head and inner.endswith(")"):
        inner = inner[inner.index("(") + 1 : -1]
        head, brace, options = inner.partition("{")
    if options.count("{") != options.count("}") - 1:
        # Several passes, perhaps with options: all of it is the name.
        return inner, ""
    return head, " ".join(options.removesuffix("}").split()) if brace else ""
