"""One compile under way: numbers its passes, keeps what was last printed, and tells of what happens as events."""

from __future__ import annotations

import contextlib
import itertools
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from irscope.capture import Target
from irscope.plan import PassPlan
from irscope.record import triton_api
from irscope.record.environment_variable import environment_variable
from irscope.record.events import Event, EventSink
from irscope.record.module_text import LatestText
from irscope.record.own_folder import parent_of_temporaries
from irscope.record.request import SnapshotLevel
from irscope.record.tap import LLVM_OPTIMISER, PassStep, replaced

PTXAS_OPTIMISER = "ptxas-opt"
"""The name of ptxas's optimiser as a step of the pipeline."""

_STAGES_OF_LLVM = ("llir", "ptx", "amdgcn")

_SLOW_S = 2.0
_SLOW_SHARE = 1 / 20
"""How long a compile may take, at most and of its limit, before its passes on the LLVM dialect run one by one, each
with the IR before it told: one of them may be where the limit ends it. That costs such a compile 7 to 25 %."""


@dataclass(slots=True)
class Watch:
    """What is recorded of each compile, and whom it is told to."""

    sink: EventSink
    plan: PassPlan = field(default_factory=PassPlan)
    snapshots: SnapshotLevel = "triton"
    llvm_passes: bool = False
    tap: bool = True
    """Whether passes are watched one by one."""
    log_path: str = ""
    limit_s: float = 0.0
    """Seconds after which a compile is ended; 0 where nothing ends it."""
    resume: tuple[str, int] = ("", 0)
    """A stage that is resumed, and how many of its passes are behind the text it starts from."""
    constants: dict[str, str] = field(default_factory=dict)
    """tl.constexpr values that replace a launch's own in what is recorded; what is launched keeps them."""
    wanted: Callable[[str], bool] = lambda name: True
    """Whether a kernel of that name is recorded."""
    told: set[str] = field(default_factory=set[str])
    """The keys in Triton's cache of the compiles that were told of."""
    last_error: BaseException | None = None
    """What the last compile that failed raised."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _local: threading.local = field(default_factory=threading.local)

    @property
    def current(self) -> WatchedCompile | None:
        """This thread's compile, if one is under way."""
        return getattr(self._local, "compile", None)

    def begin(self, target: Target) -> WatchedCompile:
        """A compile begins in this thread."""
        self._local.compile = WatchedCompile(self, next(self._numbers), target)
        return self._local.compile

    def end(self) -> None:
        """This thread's compile is over."""
        self._local.compile = None

    def emit(self, kind: str, data: str | bytes | None = None, **fields: Any) -> None:
        """Tell of something."""
        self.sink(Event(kind, fields, data))


class WatchedCompile:
    """One compile under way: numbers its passes, keeps what was last printed, and tells of what happens."""

    def __init__(self, watch: Watch, number: int, target: Target) -> None:
        self.watch = watch
        self.number = number
        self.target = target
        self.stage = ""
        self.metadata: dict[str, Any] | None = None
        self.printed: list[str] = []
        """What the backend printed: ptxas's log, or its error."""
        self._waiting: dict[str, Any] | None = None
        self._began = False
        self._counts: dict[tuple[str, str], int] = {}
        self._next_index = 0
        self._latest = LatestText()
        self._last_index: int | None = None
        self._indices: dict[tuple[str, str, int], int] = {}
        self._overhead_ns = 0
        self.log_from = self._log_size()
        """Where what the pass, the stage or the compile under way prints begins in the log of the process."""
        self._began_ns = time.perf_counter_ns()
        self._untold = False
        """Whether there is a text after the last pass that is no snapshot's."""

    def emit(self, kind: str, data: str | bytes | None = None, **fields: Any) -> None:
        """Tell of something about this compile."""
        self.tell_begin()
        self.watch.emit(kind, data, n=self.number, **fields)

    def begins(self, launch: dict[str, Any]) -> None:
        """A launch's compile begins: told with the next thing, since what Triton's cache holds is no compile."""
        self._waiting = {"launch": launch, "log": self.log_from}

    def tell_begin(self) -> None:
        """Tell that it begins, where that was not told yet."""
        if (waiting := self._waiting) is not None:
            self._waiting = None
            self.emit("compile-begin", target=str(self.target), warp_size=self.target.warp_size, **waiting)

    def failed(self, error: BaseException, described: dict[str, str]) -> None:
        """Tell that the compile raised; before its first stage, with what the front end or the parser printed."""
        self.watch.last_error = error
        diagnostics = "" if self.stage else self.diagnostics(error)
        self.emit("compile-failed", **described, diagnostics=diagnostics, log="".join(self.printed))

    # Stages

    def wrap_stages(self, stages: dict[str, Any]) -> None:
        """Put a watcher around every stage function."""
        for name, function in list(stages.items()):
            stages[name] = self._watched_stage(name, function)

    def _watched_stage(self, name: str, function: Callable[[Any, dict[str, Any]], Any]) -> Any:
        def stage(source: Any, metadata: dict[str, Any]) -> Any:
            if not self._began:
                self._began = True
                self._tell_source(source)
            self.stage = name
            self.metadata = metadata
            self.log_from = self._log_size()
            self.emit("stage-begin", stage=name, log=self.log_from)
            started, overhead = time.perf_counter_ns(), self._overhead_ns
            try:
                with self._switches(name):
                    result = function(source, metadata)
            except BaseException as error:
                self.emit("stage-failed", stage=name, diagnostics=self.diagnostics(error))
                raise
            duration_ns = time.perf_counter_ns() - started - (self._overhead_ns - overhead)
            self._tell_artifact(name, result, duration_ns // 1000)
            self._latest.let_go()
            return result

        return stage

    @contextmanager
    def _switches(self, stage: str) -> Iterator[None]:
        # LLVM's and ptxas's optimisers are switched by an environment variable and a knob of Triton's.
        with ExitStack() as stack:
            if (folder := parent_of_temporaries()) is not None:
                # Triton removes the assembler's files when it is done; a process that is killed does not.
                stack.enter_context(replaced(tempfile, "tempdir", folder))
            if stage in _STAGES_OF_LLVM and self.watch.plan.skips(PassStep("llir", LLVM_OPTIMISER, 1, "", "")):
                stack.enter_context(environment_variable("DISABLE_LLVM_OPT", "1"))
            if stage in _STAGES_OF_LLVM and self.watch.llvm_passes:
                stack.enter_context(self._llvm_dump(stage))
            step = None
            if stage == "cubin":
                step = self.pass_added(PTXAS_OPTIMISER, "")
                if self.watch.plan.skips(step):
                    self.pass_begins(step)
                    stack.enter_context(triton_api.knob("nvidia", "disable_ptxas_opt", True))
                    step = None
            started = time.perf_counter_ns()
            yield
            if step is not None:
                # Told of when it went well: where ptxas fails, that is not its optimiser's fault.
                duration_us = (time.perf_counter_ns() - started) // 1000
                self.pass_begins(step)
                self.pass_ended(step, None, duration_us)

    @contextmanager
    def _llvm_dump(self, stage: str) -> Iterator[None]:
        with environment_variable("LLVM_IR_ENABLE_DUMP", "1"):
            before = self._log_size()
            yield
            self.emit("llvm-dump", self._log_since(before), stage=stage)

    def _tell_source(self, source: Any) -> None:
        if triton_api.is_mlir_module(source):
            source = self._print(source)
        if isinstance(source, str):
            self.emit("artifact", source, stage=self._source_name)

    _source_name = "source"

    def starts_from(self, stage: str) -> None:
        """The compile starts from another stage's artifact than the front end's."""
        self._source_name = stage

    def _tell_artifact(self, name: str, result: Any, duration_us: int) -> None:
        data = self._print(result) if triton_api.is_mlir_module(result) else result
        self.emit(
            "artifact", data if isinstance(data, (str, bytes)) else str(data), stage=name, duration_us=duration_us
        )

    def _print(self, module: Any) -> str:
        started = time.perf_counter_ns()
        text = self._latest.of(module)
        self._overhead_ns += time.perf_counter_ns() - started
        return text

    # Passes (the PassObserver of tap.py)

    def pass_added(self, name: str, pipeline: str) -> PassStep:
        """Name a pass: its stage is the one under way, its occurrence counts the passes of that name in it."""
        key = (self.stage, name)
        self._counts[key] = self._counts.get(key, 0) + 1
        argument, options = split_pipeline(pipeline)
        step = PassStep(self.stage, name, self._counts[key], argument, options)
        self._indices[step.stage, step.name, step.occurrence] = self._next_index
        self._next_index += 1
        return step

    def pass_begins(self, step: PassStep) -> bool:
        """Tell of it before it runs, so that one that never returns is known; whether the plan lets it run."""
        told = {"argument": step.argument, "options": step.options}
        if self.watch.plan.skips(step) or self._is_behind(step):
            self._tell_pass("pass-skipped", step, **told)
            return False
        self.log_from = self._log_size()
        self._tell_pass("pass-begin", step, log=self.log_from, **told)
        return True

    def _is_behind(self, step: PassStep) -> bool:
        stage, passes = self.watch.resume
        return step.stage == stage and self._index(step) < passes

    def pass_ended(self, step: PassStep, module: Any, duration_us: int | None) -> None:
        """Tell of its time, and print what it made where that is wanted."""
        started = time.perf_counter_ns()
        changed: bool | None = None
        text: str | None = None
        if module is not None:
            self._untold = not self._prints(module)
            if not self._untold:
                before = self._latest.text
                text = self._latest.of(module)
                changed = None if before is None else text != before
            elif not self._is_slow():
                self._latest.miss()
            self._last_index = self._index(step)
        self._tell_pass("pass-end", step, None if changed is False else text, changed=changed, duration_us=duration_us)
        if module is not None and self._untold and self._is_slow():
            self._tell_in_passing(module, step)
        self._overhead_ns += time.perf_counter_ns() - started

    def _tell_in_passing(self, module: Any, step: PassStep) -> None:
        # Kept only until the next pass has ended well: a snapshot does not depend on how fast this machine is.
        before = self._latest.text
        text = self._latest.of(module)
        self.emit("passing-text", None if text == before else text, index=self._index(step))

    def _is_slow(self) -> bool:
        watch = self.watch
        may_end = watch.snapshots == "triton" and watch.limit_s > 0
        return may_end and time.perf_counter_ns() - self._began_ns > 1e9 * min(_SLOW_S, _SLOW_SHARE * watch.limit_s)

    def pass_failed(self, step: PassStep, error: BaseException) -> None:
        """Tell of the error and of what MLIR said."""
        self._tell_pass("pass-failed", step, message=str(error), diagnostics=self.diagnostics(error))

    def lets_passes_run_together(self, module: Any) -> bool:
        """On the LLVM dialect by default, in a process whose standard error is ours: no text is printed, none left out.

        Where one of them fails, which one it was is found by compiling again, one by one (`record.session`). Not so
        in a compile that is slow already: it might not end in time.
        """
        watch = self.watch
        plain = watch.snapshots == "triton" and not watch.plan and not watch.resume[0] and not self._is_slow()
        return plain and bool(watch.log_path) and not triton_api.holds_triton_dialects(module)

    def module_leaves_mlir(self, module: Any) -> None:
        """Print the LLVM dialect at its end, where the passes that worked on it were not printed."""
        if self._untold and self._last_index is not None and self.watch.snapshots != "none":
            self.emit("pass-text", self._print(module), index=self._last_index)

    def _tell_pass(self, kind: str, step: PassStep, data: str | None = None, **fields: Any) -> None:
        self.emit(
            kind, data, index=self._index(step), stage=step.stage, name=step.name, occurrence=step.occurrence, **fields
        )

    def _index(self, step: PassStep) -> int:
        return self._indices[step.stage, step.name, step.occurrence]

    def _prints(self, module: Any) -> bool:
        if self.watch.snapshots == "none":
            return False
        return self.watch.snapshots == "all" or triton_api.holds_triton_dialects(module)

    # What the compiler prints on the process's standard error

    def _log_size(self) -> int:
        if not self.watch.log_path:
            return 0
        with contextlib.suppress(OSError):
            return Path(self.watch.log_path).stat().st_size
        return 0

    def _log_since(self, offset: int) -> str:
        if not self.watch.log_path:
            return ""
        sys.stderr.flush()
        with contextlib.suppress(OSError), open(self.watch.log_path, "rb") as file:
            file.seek(offset)
            return file.read().decode("utf-8", "replace")
        return ""

    def diagnostics(self, error: BaseException) -> str:
        """What was printed since the pass, the stage or the compile that failed began."""
        printed = list(self.printed)
        if "`ptxas` stderr" in str(error):
            # Triton prints the whole PTX beside it, which is an artifact already; the error holds the log.
            printed = [text for text in printed if "`ptxas` stderr" not in text]
        return "\n".join(filter(None, [self._log_since(self.log_from), *printed])).strip()


# any(tritongpu-pipeline{num-stages=3})  |  any(llvm.func(canonicalize-llvm-ir))  |  any(a,b{x=1})
def split_pipeline(pipeline: str) -> tuple[str, str]:
    """The MLIR argument and the options in what `get_pipeline_str` gives for one pass."""
    inner = pipeline.removeprefix("any(").removesuffix(")")
    head, brace, options = inner.partition("{")
    while "(" in head and inner.endswith(")"):
        inner = inner[inner.index("(") + 1 : -1]
        head, brace, options = inner.partition("{")
    if options.count("{") != options.count("}") - 1:
        # Several passes, each perhaps with options: the whole is the name.
        return inner, ""
    return head, " ".join(options.removesuffix("}").split()) if brace else ""
