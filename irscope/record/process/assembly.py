"""Events → captures: folds the events of a recording process, and turns its end, whatever that was, into results."""

from __future__ import annotations

import errno
import os
import re
import sys
import time
from dataclasses import dataclass, field, replace
from typing import Any

from irscope.device.occupancy import with_fit
from irscope.ir.asm.resources import read_resources
from irscope.ir.logs.cache import utc_date
from irscope.ir.logs.time_trace import compile_times
from irscope.ir.quoted import unescape_ir
from irscope.model.capture import (
    STAGE_NAMES,
    Artifact,
    Autotuning,
    Capture,
    Environment,
    Failure,
    FailureKind,
    Kernel,
    Launch,
    PassSnapshot,
    SourceFile,
    Target,
    stage_rank,
)
from irscope.model.evidence import CompilerLog, CompileTimes, GraphOrigin, PassLog
from irscope.model.launch_record import joined
from irscope.model.layout import LayoutRow
from irscope.model.plain import tupled
from irscope.record.process import events
from irscope.record.process.diagnosis import ASSEMBLED_FROM, explained
from irscope.record.process.requests import CompileJob, KnownCompile, RecordRequest


@dataclass(slots=True)
class OpenCapture:
    target: Target
    launch: Launch
    origin: tuple[tuple[str, str], ...] = ()
    artifacts: dict[str, Artifact] = field(default_factory=dict)
    snapshots: dict[int, PassSnapshot] = field(default_factory=dict)
    llvm_snapshots: list[PassSnapshot] = field(default_factory=list)
    stage: str = ""
    parsing: bool = False
    """Whether the text it starts from is being read."""
    running: PassSnapshot | None = None
    passing_texts: dict[int, str | None] = field(default_factory=dict)
    """The last text that was reported in passing, by the pass before it; None for the passes that did not change it."""
    log_from: int = 0
    """Where what the pass or stage under way prints begins in the log, in bytes."""
    began_s: float = field(default_factory=time.monotonic)
    took_s: float = 0.0
    job: CompileJob | None = None
    """For a worker, if one compiles it."""
    frames: str = ""
    """The calls that led to the launch of a compile that was handed over."""
    begun: Launch | None = None
    """What was known of that launch before it."""
    load_error: str = ""
    """Why what that compile made could not be loaded."""
    failure: Failure | None = None
    failed_stage: str = ""
    failed_diagnostics: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    log: str = ""
    hashes: set[str] = field(default_factory=set[str])
    """Of the compiled kernel; before it is compiled, and in the script that goes on meanwhile, the key of the job."""
    ended: bool = False
    layouts: tuple[LayoutRow, ...] = ()
    times: CompileTimes | None = None
    logs: list[PassLog] = field(default_factory=list[PassLog])
    notes: list[str] = field(default_factory=list)
    graphs: tuple[GraphOrigin, ...] = ()
    contents: tuple[tuple[str, str, str], ...] = ()
    compiler: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Of what Triton is for this target: parts, variables and tools, as `Environment` has them."""
    front: str = ""
    """As `KnownCompile` has it."""

    def take(self, event: events.CompileEvent) -> None:
        """Take an event of this compile, other than a failure."""
        match event:
            case events.OptionsKnown():
                # A path of this machine decides nothing: the same file lies elsewhere on the next.
                options = {key: tupled(value) for key, value in event.options.items() if key != "extern_libs"}
                self.launch = replace(self.launch, options=tuple(sorted(options.items())))
            case events.CompilerKnown():
                tools = tuple(sorted(event.tools.items()))
                self.compiler = {"parts": event.parts, "variables": event.variables, "tools": tools}
                self.front = event.front
            case events.HandedOver():
                self.job, self.frames, self.log_from = event.job, event.frames, 0
                self.hashes.add(event.job.key)
                self.begun = self.launch
            case events.LoadFailed():
                self.load_error = event.message
                self.never_launched()
            case events.StageBegun():
                self.stage, self.running, self.log_from = event.stage, None, event.log
            case events.Parsing():
                self.stage, self.parsing = event.stage, bool(event.stage)
            case events.StageFailed():
                self.failed_stage, self.failed_diagnostics = event.stage, event.diagnostics
            case events.ArtifactMade():
                self.artifacts[event.stage] = Artifact(event.stage, event.data, event.duration_us, event.processor_us)
                self.running = None
            case events.PassBegun():
                self.running, self.log_from = event.step, event.log
            case events.PassEnded():
                self.snapshots[event.step.index] = event.step
                self.running = None
            case events.PassingText():
                if event.data is not None:
                    self.passing_texts.clear()
                self.passing_texts[event.index] = event.data
            case events.PassText():
                self.snapshots[event.index] = replace(self.snapshots[event.index], text=event.data)
            case events.LlvmPassesKnown():
                self.llvm_snapshots += event.passes
            case events.TimesKnown():
                self.times = compile_times(event.parts, event.traces, event.processor_ns, event.notes)
            case events.LlvmDump():
                from irscope.ir.logs.dump import read_llvm_dump

                known = len(self.llvm_snapshots)
                self.llvm_snapshots += read_llvm_dump(event.data, event.stage, known, self.llvm_snapshots)
            case events.Logged():
                self.logs.append(event.log)
            case events.LayoutsKnown():
                self.layouts = event.layouts
            case events.CompileEnded():
                self.end()
                self.metadata, self.log = event.metadata, event.log
                self.hashes.add(event.hash)
                if event.cached:
                    self.notes.append("Taken from Triton's cache: no pass ran, so none was recorded.")
            case _:
                return

    def generated(self, event: events.KernelGenerated) -> None:
        kernel = self.launch.kernel
        if kernel.name == event.name and kernel.source and kernel.source.strip() in event.data:
            self.graphs = tuple(dict.fromkeys((*self.graphs, event.origin)))

    def end(self) -> None:
        self.ended, self.took_s = True, time.monotonic() - self.began_s
        self.parsing = False

    def never_launched(self) -> None:
        """The compile was handed over, and its launch would have failed: what was reported of that is not so."""
        if self.begun is not None:
            self.launch = self.begun

    def drop_texts(self) -> None:
        """Keep only what must be known of it once its capture is kept elsewhere."""
        known = self.launch
        # By its text, a graph that shares the kernel is found.
        kernel = Kernel(known.kernel.name, source=known.kernel.source if self.graphs else "")
        self.launch = Launch(
            kernel, grid=known.grid, autotuning=known.autotuning, assumptions=known.assumptions, others=known.others
        )
        self.artifacts, self.snapshots, self.passing_texts, self.metadata = {}, {}, {}, {}
        self.llvm_snapshots, self.logs, self.layouts = [], [], ()
        self.log = self.failed_diagnostics = ""
        self.job = self.begun = None

    def with_contents(self, launch: Launch) -> Launch:
        if launch.record is None or not self.contents:
            return launch
        return replace(launch, record=launch.record.with_contents(self.contents))

    def fail(self, failed: PassSnapshot | None) -> None:
        """It failed: in that pass, if it was one, which is kept with the IR before it."""
        for index, text in self.passing_texts.items():
            if (snapshot := self.snapshots.get(index)) is not None and snapshot.text is None:
                self.snapshots[index] = replace(snapshot, text=text, changed=text is not None)
        if failed is not None:
            self.snapshots[failed.index] = replace(failed, outcome="failed", changed=None)
        self.running = None
        self.never_launched()


# "/home/jos\C3\A9/matmul.py"
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_HIDDEN_METADATA = ("hash", "target", "triton_version")
_DIAGNOSTICS_BYTES = 20_000
_RESOURCES = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
_BAR = 12
_WORTH_SAYING_S = 2.0


@dataclass(slots=True)
class Tally:
    kernels: set[str] = field(default_factory=set[str])
    begun: int = 0
    ended: int = 0
    failed: int = 0
    _expected: int = 0
    """How many compiles there will be when the tunings under way are done."""
    _began_s: float = field(default_factory=time.monotonic)
    _tunings: dict[str, int] = field(default_factory=dict[str, int])

    def begins(self, launch: Launch, *, every_configuration: bool) -> None:
        """A compile begins. `every_configuration`: whether all that pruning leaves of an autotuned kernel are made."""
        if not self.begun:
            self._began_s = time.monotonic()
        self.kernels.add(launch.kernel.name)
        self.begun += 1
        tuning = launch.autotuning
        if tuning is not None and every_configuration:
            kept = tuning.count if tuning.kept is None else tuning.kept
            done = self._tunings.get(launch.kernel.name, 0) % kept
            if not done:
                self._expected = self.begun - 1 + kept
            self._tunings[launch.kernel.name] = done + 1
        self._expected = max(self._expected, self.begun)

    def ends(self, *, failed: bool) -> None:
        self.ended += 1
        self.failed += failed

    def dropped(self) -> None:
        self.begun -= 1
        self._expected -= 1

    @property
    def text(self) -> str:
        """`████░░░░ 12 of 28 variants of 2 kernels, 1 failed, about 40 s left`; empty before the second variant."""
        if self.begun < 2:
            return ""
        of = f" of {len(self.kernels)} kernels" if len(self.kernels) > 1 else ""
        failed = f", {self.failed} failed" if self.failed else ""
        return (
            f"{bar_of(self.ended, self._expected)} {self.ended} of {self._expected} variants{of}{failed}{self._left()}"
        )

    def _left(self) -> str:
        if not self.ended:
            return ""
        each_s = (time.monotonic() - self._began_s) / self.ended
        left_s = each_s * (self._expected - self.ended)
        return f", about {left_s:.0f} s left" if left_s > _WORTH_SAYING_S else ""


def bar_of(ended: int, expected: int) -> str:
    """A bar as text: `████░░░░`."""
    filled = _BAR * ended // expected
    return "█" * filled + "░" * (_BAR - filled)


class Assembly:
    def __init__(self, request: RecordRequest, command: str | None = None, process: str = "") -> None:
        """`command`: what the user typed; None for the one that runs now. `process`: as messages name it."""
        self._process = (("process", process),) if process else ()
        if command is None:
            command = os.environ.get("IRSCOPE_COMMAND_LINE") or " ".join(["irscope", *sys.argv[1:]])
        date = request.began or utc_date(time.time())
        self._request = request
        self._environment = Environment(command=command, date=date, is_trusted=request.is_trusted)
        self._open: dict[int, OpenCapture] = {}
        self._sources: dict[str, str] = {}
        self.tally = Tally()
        self._left_out: dict[str, OpenCapture] = {}
        """The compiles that were left out, for captures of them are stored, by id."""
        self.script_end: events.ScriptEnd | None = None
        self.refusal: events.Refused | None = None
        """Why the recording process refused, if it did."""
        self.notes: list[str] = []
        self.real = False
        self._timed: dict[tuple[str, int], dict[str, tuple[float, ...]]] = {}
        """Per tuning of a kernel, the times of each configuration: median and two quantiles, in milliseconds."""
        self.done = False
        self._generated: list[events.KernelGenerated] = []
        """The kernels of TorchInductor's, with the graphs that they were generated for."""

    @property
    def working_on(self) -> str:
        """How far the recording is, and the kernel, pass or stage that is under way; empty between compiles."""
        return "  ".join(filter(None, [self.tally.text, self._under_way()]))

    def _under_way(self) -> str:
        for item in reversed(self._open.values()):
            if not item.ended:
                what = item.running.label if item.running else item.stage
                return f"{item.launch.kernel.name} {item.target}: {what}".rstrip(": ")
        return ""

    @property
    def compiling(self) -> bool:
        return any(not item.ended for item in self._open.values())

    def feed(self, event: events.RecordingEvent) -> None:
        match event:
            case events.CompileBegun():
                origin = (*self._process, *event.origin)
                self._open[event.n] = item = OpenCapture(event.target, event.launch, origin, log_from=event.log)
                self.tally.begins(event.launch, every_configuration=self._request.config == "all")
                for known in self._generated:
                    item.generated(known)
            case events.AlreadyStored():
                item = self._open.pop(event.n)
                item.hashes.add(event.hash)
                self._left_out.setdefault(event.id, item)
                self.tally.dropped()
            case events.CompileDropped():
                del self._open[event.n]
                self.tally.dropped()
            case events.PassFailed():
                self._pass_failed(self._open[event.n], event)
            case events.CompileFailed():
                self._compile_failed(self._open[event.n], event)
            case events.CompileEvent():
                self._open[event.n].take(event)
                if isinstance(event, events.CompileEnded):
                    self.tally.ends(failed=False)
            case events.Begun():
                self._begun(event)
            case events.Note():
                self.notes.append(event.text)
            case events.Launched():
                self._launched(event)
            case events.LaunchedAgain():
                self._launched_again(event)
            case events.LaunchLeft():
                for item in self._open.values():
                    if event.hash in item.hashes:
                        item.contents = item.contents or event.contents
            case events.KernelGenerated():
                self._generated.append(event)
                for item in self._open.values():
                    item.generated(event)
            case events.Timed():
                # On the virtual GPU nothing was timed: no configuration won.
                if self.real:
                    self._timed.setdefault((event.kernel, event.tuning), {})[event.config] = event.times_ms
            case events.SourceRead():
                self._sources[event.path] = event.data
            case events.ScriptEnd():
                self.script_end = replace(event, target=" ".join(self._request.targets))
            case events.Refused():
                self.refusal = event
            case events.Done():
                self.done = True

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the compiles in the events, in the order they began."""
        return tuple(self._open)

    def captures(self) -> tuple[Capture, ...]:
        """A capture for each compile, in the order they began; for an assembly that releases none."""
        return tuple(map(self.capture, self._open))

    def release(self, number: int) -> None:
        """Forget the texts of a compile whose capture is kept elsewhere; from now on only `late_facts` change."""
        self._open[number].drop_texts()

    def late_facts(self, number: int) -> tuple[object, ...]:
        """What may become known of a compile after its end; `with_late_facts` adds it to the capture."""
        item = self._open[number]
        facts = (item.launch.grid, item.launch.assumptions, self._autotuning(item.launch), self._notes_of(item))
        return *facts, item.graphs, item.origin, item.contents, item.launch.others

    def with_late_facts(self, number: int, capture: Capture) -> Capture:
        """The capture of a compile, which may have been released, with what became known of it after its end."""
        item = self._open[number]
        known, tuning = item.launch, self._autotuning(item.launch)
        launch = replace(
            capture.launch, grid=known.grid, assumptions=known.assumptions, autotuning=tuning, others=known.others
        )
        environment = replace(capture.environment, origin=item.origin)
        notes, launch = self._notes_of(item), item.with_contents(launch)
        return replace(capture, launch=launch, notes=notes, graphs=item.graphs, environment=environment)

    @property
    def longest_s(self) -> float:
        """Seconds since the oldest compile of the process itself began; 0 between compiles."""
        here = (item for item in self._open.values() if not item.ended and item.job is None)
        return max((time.monotonic() - item.began_s for item in here), default=0.0)

    def seconds_of(self, index: int) -> float:
        """Seconds that a compile took, from when it began until it ended; `index` counts as `captures()` does."""
        return list(self._open.values())[index].took_s

    def time_out(self, timeout_s: float, output: bytes = b"") -> None:
        self.fail_open("timeout", f"the compile took longer than {timeout_s:g} s and was ended.", output)

    def fail_open(self, kind: FailureKind, message: str, output: bytes = b"") -> None:
        """The process ended with compiles still under way: they failed, in the pass or stage they were in."""
        for number, item in self._open.items():
            if not item.ended:
                self.fail(number, kind, message, output)

    def ends_at(self, number: int) -> None:
        """The program ends where it launches a kernel: it would not have done what it did after that.

        The compile was handed over, and failed, or what it made could not be loaded.
        """
        item = self._open[number]
        for other in [one for one in self._open if one > number]:
            del self._open[other]
        failure = item.failure
        self.script_end = None
        if failure is None or failure.kind != "abort":
            message = item.load_error or (failure.message if failure else "")
            self.script_end = events.ScriptEnd(
                1, message, item.frames, of_compile=failure is not None, target=" ".join(self._request.targets)
            )

    def fail(self, number: int, kind: FailureKind, message: str, output: bytes) -> None:
        """The process of a compile ended: it failed, in the pass or stage it was in. `output`: what that printed."""
        item = self._open[number]
        said = output[item.log_from :][-_DIAGNOSTICS_BYTES:].decode("utf-8", "replace").strip()
        label = item.running.label if item.running else ""
        item.failure = self._failure(item, kind, message, item.stage, label, said)
        item.fail(item.running)
        item.end()
        self.tally.ends(failed=True)

    def awaits_launch(self, number: int) -> bool:
        """Whether a compile succeeded whose launch, if there is one, is not known yet."""
        item = self._open[number]
        return self._request.mode == "script" and item.failure is None and item.launch.grid is None

    def _failure(
        self, item: OpenCapture, kind: FailureKind, message: str, stage: str, label: str, said: str
    ) -> Failure:
        texts = {name: artifact.data for name, artifact in item.artifacts.items() if isinstance(artifact.data, str)}
        failure = Failure(kind, message, stage, label, said)
        return explained(failure, self._request, texts, self._sources, item.launch.kernel.name)

    def _begun(self, event: events.Begun) -> None:
        own = self._environment
        self.real = event.real
        self._environment = replace(event.environment, command=own.command, date=own.date, is_trusted=own.is_trusted)

    def _pass_failed(self, item: OpenCapture, event: events.PassFailed) -> None:
        failed = event.step
        item.failure = self._failure(item, "pass", event.message, failed.stage, failed.label, event.diagnostics)
        item.fail(failed)

    def _compile_failed(self, item: OpenCapture, event: events.CompileFailed) -> None:
        stage, parsing = item.failed_stage, item.parsing
        item.fail(None)
        item.end()
        self.tally.ends(failed=True)
        item.log = event.log
        if item.failure is not None:
            # The pass that failed was reported; the error that it raised adds nothing.
            return
        kind: FailureKind = "compile"
        if event.errno in _RESOURCES:
            kind = "resources"
        elif parsing:
            kind, stage = "parse", item.stage
        elif event.error == "PTXASError" or stage in ASSEMBLED_FROM:
            kind = "assembler"
        elif stage and event.error != "CompilationError":
            kind = "pass"
        message = "\n".join(filter(None, [event.message, event.frames.rstrip()]))
        said = item.failed_diagnostics or event.diagnostics or event.log
        item.failure = self._failure(item, kind, message, stage, "", said)

    @property
    def stored(self) -> dict[str, Launch]:
        return {id_: item.launch for id_, item in self._left_out.items()}

    def known(self, number: int) -> KnownCompile:
        item = self._open[number]
        return KnownCompile(item.front, next(iter(item.hashes), ""))

    def _launched(self, event: events.Launched) -> None:
        for item in (*self._open.values(), *self._left_out.values()):
            if event.hash not in item.hashes or item.failure is not None or item.load_error:
                continue
            if new := [row for row in event.origin if row not in item.origin]:
                item.origin = (*item.origin, *new)
            if item.launch.grid is None:
                assumptions = joined((*item.launch.assumptions, *event.assumptions))
                item.launch = replace(item.launch, grid=event.grid, assumptions=assumptions)

    def _launched_again(self, event: events.LaunchedAgain) -> None:
        for item in (*self._open.values(), *self._left_out.values()):
            if event.hash in item.hashes:
                item.launch = replace(item.launch, others=(*item.launch.others, event.launch))

    # Putting it together

    def capture(self, number: int) -> Capture:
        """The capture of the compile of that number in the events, as far as it was reported."""
        item = self._open[number]
        artifacts = tuple(sorted(item.artifacts.values(), key=lambda artifact: stage_rank(artifact.stage)))
        stages = {artifact.stage: artifact.data for artifact in artifacts}
        metadata = {key: value for key, value in item.metadata.items() if key not in _HIDDEN_METADATA}
        durations = [artifact.duration_us for artifact in artifacts if artifact.duration_us is not None]
        snapshots = tuple(snapshot for _, snapshot in sorted(item.snapshots.items()))
        capture = Capture(
            launch=item.launch,
            target=item.target,
            plan=self._request.plan,
            artifacts=artifacts,
            snapshots=(*snapshots, *item.llvm_snapshots),
            layouts=item.layouts,
            times=item.times,
            log=CompilerLog(tuple(item.logs)) if self._request.compiler_log else None,
            resources=read_resources(stages, metadata, item.log),
            environment=replace(self._environment, **item.compiler),
            status="failed" if item.failure else "ok",
            failure=item.failure,
            metadata=tuple(sorted((key, tupled(value)) for key, value in metadata.items())),
            sources=self._sources_of(item.launch.kernel.file, stages),
            snapshot_level=self._request.snapshots,
            compile_us=sum(durations) if durations else None,
        )
        return with_fit(self.with_late_facts(number, capture))

    def _notes_of(self, item: OpenCapture) -> tuple[str, ...]:
        return (*item.notes, *item.launch.assumption_notes, *self.notes)

    def _autotuning(self, launch: Launch) -> Autotuning | None:
        tuning = launch.autotuning
        if tuning is None:
            return None
        for (kernel, _), times in self._timed.items():
            if kernel == launch.kernel.name and tuning.config in times:
                # As Triton chooses: the least, by median first.
                winner = tuning.winner or min(times, key=lambda config: times[config]) == tuning.config
                tuning = replace(tuning, winner=winner, median_ms=times[tuning.config][0])
        return tuning

    def _sources_of(self, file: str, stages: dict[str, str | bytes]) -> tuple[SourceFile, ...]:
        first = next((stages[name] for name in STAGE_NAMES if isinstance(stages.get(name), str)), "")
        named = {file, *map(unescape_ir, set(_STRING.findall(str(first))))}
        return tuple(SourceFile(path, text) for path, text in self._sources.items() if path in named)
