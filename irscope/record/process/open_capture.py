"""One compile, as far as the recording process has reported it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

from irscope.model.capture import Artifact, Autotuning, Capture, Failure, Kernel, Launch, PassSnapshot, Target
from irscope.model.evidence import GraphOrigin, PassLog
from irscope.model.launch_record import Assumption
from irscope.model.layout import LayoutRow
from irscope.model.plain import tupled
from irscope.record.process import events
from irscope.record.process.requests import CompileJob

__all__ = ["LateFacts", "OpenCapture"]


@dataclass(frozen=True, slots=True)
class LateFacts:
    """What may become known of a compile after its end."""

    grid: tuple[int, int, int] | None
    assumptions: tuple[Assumption, ...]
    autotuning: Autotuning | None
    notes: tuple[str, ...]
    graphs: tuple[GraphOrigin, ...] = ()
    origin: tuple[tuple[str, str], ...] = ()
    contents: tuple[tuple[str, str, str], ...] = ()
    """Of its launch's tensors, as `LaunchRecord.with_contents` takes them."""

    def added_to(self, capture: Capture) -> Capture:
        """The compile's capture with these facts."""
        launch = replace(capture.launch, grid=self.grid, assumptions=self.assumptions, autotuning=self.autotuning)
        launch = _with_contents(launch, self.contents)
        environment = replace(capture.environment, origin=self.origin)
        return replace(capture, launch=launch, notes=self.notes, graphs=self.graphs, environment=environment)


@dataclass(slots=True)
class OpenCapture:
    """One compile, as far as it was reported."""

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
    hash: str = ""
    ended: bool = False
    layouts: tuple[LayoutRow, ...] = ()
    logs: list[PassLog] = field(default_factory=list[PassLog])
    notes: list[str] = field(default_factory=list)
    graphs: tuple[GraphOrigin, ...] = ()
    contents: tuple[tuple[str, str, str], ...] = ()
    compiler: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """Of what Triton is for this target: parts, variables and tools, as `Environment` has them."""

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
            case events.HandedOver():
                self.job, self.frames, self.hash, self.log_from = event.job, event.frames, event.job.key, 0
                self.begun = self.launch
            case events.LoadFailed():
                self.load_error = event.message
                self.never_launched()
            case events.StageBegun():
                self.stage, self.running, self.log_from = event.stage, None, event.log
            case events.ParseBegun():
                self.stage, self.parsing = event.stage, True
            case events.ParseEnded():
                self.stage, self.parsing = "", False
            case events.StageFailed():
                self.failed_stage, self.failed_diagnostics = event.stage, event.diagnostics
            case events.ArtifactMade():
                self.artifacts[event.stage] = Artifact(event.stage, event.data, event.duration_us)
                self.running = None
            case events.PassBegun():
                self.running, self.log_from = event.step, event.log
            case events.PassSkipped():
                self.snapshots[event.step.index] = replace(event.step, outcome="skipped", changed=False)
            case events.PassEnded():
                self.snapshots[event.step.index] = replace(
                    event.step, changed=event.changed, text=event.data, duration_us=event.duration_us
                )
                self.running = None
            case events.PassingText():
                if event.data is not None:
                    self.passing_texts.clear()
                self.passing_texts[event.index] = event.data
            case events.PassText():
                self.snapshots[event.index] = replace(self.snapshots[event.index], text=event.data)
            case events.LlvmDump():
                from irscope.ir.logs.dump import read_llvm_dump

                known = len(self.llvm_snapshots)
                self.llvm_snapshots += read_llvm_dump(event.data, event.stage, first_index=known)
            case events.Logged():
                self.logs.append(PassLog(event.stage, event.data, event.index, event.lines_left_out))
            case events.LayoutsKnown():
                self.layouts = event.layouts
            case events.CompileEnded():
                self.end()
                self.hash, self.metadata, self.log = event.hash, event.metadata, event.log
                if event.cached:
                    self.notes.append("Taken from Triton's cache: no pass ran, so none was recorded.")
            case _:
                return

    def generated(self, event: events.KernelGenerated) -> None:
        """Take the graph that a kernel was generated for, if it is this one."""
        kernel = self.launch.kernel
        if kernel.name == event.name and kernel.source and kernel.source.strip() in event.data:
            self.graphs = tuple(dict.fromkeys((*self.graphs, event.origin)))

    def end(self) -> None:
        """Nothing more of it comes."""
        self.ended, self.took_s = True, time.monotonic() - self.began_s
        self.parsing = False

    def never_launched(self) -> None:
        """The compile was handed over, and its launch would have failed: what was reported of that is not so."""
        if self.begun is not None:
            self.launch = self.begun

    def without_texts(self) -> OpenCapture:
        """What must be known of it once its capture is kept elsewhere."""
        known = self.launch
        # By its text, a graph that shares the kernel is found.
        kernel = Kernel(known.kernel.name, source=known.kernel.source if self.graphs else "")
        launch = Launch(kernel, grid=known.grid, autotuning=known.autotuning, assumptions=known.assumptions)
        return OpenCapture(
            self.target,
            launch,
            self.origin,
            took_s=self.took_s,
            hash=self.hash,
            ended=True,
            notes=self.notes,
            graphs=self.graphs,
            contents=self.contents,
            frames=self.frames,
            load_error=self.load_error,
            failure=self.failure,
        )

    def with_contents(self, launch: Launch) -> Launch:
        """Its launch with what the tensors held, as far as that was reported."""
        return _with_contents(launch, self.contents)

    def fail(self, failed: PassSnapshot | None) -> None:
        """It failed: in that pass, if it was one, which is kept with the IR before it."""
        for index, text in self.passing_texts.items():
            if (snapshot := self.snapshots.get(index)) is not None and snapshot.text is None:
                self.snapshots[index] = replace(snapshot, text=text, changed=text is not None)
        if failed is not None:
            self.snapshots[failed.index] = replace(failed, outcome="failed", changed=None)
        self.running = None
        self.never_launched()


def _with_contents(launch: Launch, contents: tuple[tuple[str, str, str], ...]) -> Launch:
    if launch.record is None or not contents:
        return launch
    return replace(launch, record=launch.record.with_contents(contents))
