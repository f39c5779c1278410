"""Events → captures: folds what a recording process tells, and turns its end, whatever that was, into results."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from irscope.analysis.fit import with_fit
from irscope.assumption import Assumption, joined
from irscope.capture import (
    STAGE_NAMES,
    Artifact,
    Autotuning,
    Capture,
    Environment,
    Kernel,
    Launch,
    PassSnapshot,
    Resources,
    SourceFile,
    Target,
    stage_rank,
)
from irscope.capture_schema import converted
from irscope.failure import Failure, FailureKind
from irscope.ir.quoted import unescape_ir
from irscope.plan import PassPlan
from irscope.record.assembler_errors import ASSEMBLED_FROM
from irscope.record.binaries import read_resources
from irscope.record.diagnosis import explained
from irscope.record.events import Event
from irscope.record.open_capture import OpenCapture
from irscope.record.request import RecordRequest
from irscope.store import launch_from_json, tupled

# "/home/jos\C3\A9/matmul.py"
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_HIDDEN_METADATA = ("hash", "target", "triton_version")
_DIAGNOSTICS_BYTES = 20_000


@dataclass(frozen=True, slots=True)
class ScriptEnd:
    """How a script ended."""

    code: int
    message: str
    frames: str
    of_compile: bool = False
    """Whether it is the error of a compile, which that one's capture holds."""
    target: str = ""
    """What it ran for."""

    @property
    def stopped(self) -> bool:
        """Whether it ended before its own end."""
        return self.code != 0


class Assembly:
    """Takes events one by one; `captures()` is what they amount to so far."""

    def __init__(self, request: RecordRequest, command: str, date: str) -> None:
        self._request = request
        self._environment = Environment(command=command, date=date)
        self._open: dict[int, OpenCapture] = {}
        self._sources: dict[str, str] = {}
        self.script_end: ScriptEnd | None = None
        self.error: tuple[str, str] | None = None
        """(class name, message) where the recording process refused."""
        self.notes: list[str] = []
        self.real = False
        self._timed: dict[tuple[str, int], dict[str, tuple[float, ...]]] = {}
        """Per tuning of a kernel, the times of each configuration: median and two quantiles, in milliseconds."""
        self.done = False

    @property
    def count(self) -> int:
        """How many compiles began."""
        return len(self._open)

    @property
    def working_on(self) -> str:
        """The kernel, and the pass or stage, that is under way; empty between compiles."""
        for item in reversed(self._open.values()):
            if not item.ended:
                what = item.running.label if item.running else item.stage
                return f"{item.launch.kernel.name} {item.target}: {what}".rstrip(": ")
        return ""

    @property
    def compiling(self) -> bool:
        """Whether a compile is under way."""
        return any(not item.ended for item in self._open.values())

    def feed(self, event: Event) -> None:
        """Take one event; kinds it does not know are passed over."""
        handler = getattr(self, f"_on_{event.kind.replace('-', '_')}", None)
        if handler is not None:
            handler(event)

    def captures(self) -> tuple[Capture, ...]:
        """A capture for each compile, in the order they began."""
        return tuple(self._capture(item) for item in self._open.values())

    def capture(self, number: int) -> Capture:
        """What the compile of that number in the events amounts to so far."""
        return self._capture(self._open[number])

    @property
    def longest_s(self) -> float:
        """Seconds since the oldest compile under way began; 0 between compiles."""
        return max((time.monotonic() - item.began_s for item in self._open.values() if not item.ended), default=0.0)

    def seconds_of(self, index: int) -> float:
        """Seconds that a compile took, from when it began until it ended; `index` counts as `captures()` does."""
        return list(self._open.values())[index].took_s

    def fail_open(self, kind: FailureKind, message: str, output: bytes) -> None:
        """The process ended with compiles still under way: they failed, in the pass or stage they were in."""
        for item in self._open.values():
            if not item.ended:
                said = output[item.log_from :][-_DIAGNOSTICS_BYTES:].decode("utf-8", "replace").strip()
                label = item.running.label if item.running else ""
                item.failure = self._failure(item, kind, message, item.stage, label, said)
                item.fail(item.running)
                item.end()

    def _failure(
        self, item: OpenCapture, kind: FailureKind, message: str, stage: str, label: str, said: str
    ) -> Failure:
        texts = {name: artifact.data for name, artifact in item.artifacts.items() if isinstance(artifact.data, str)}
        told = Failure(kind, message, stage, label, said)
        return explained(told, self._request, texts, self._sources, item.launch.kernel.name)

    # What each event means

    def _on_begin(self, event: Event) -> None:
        fields = event.fields
        self.real = bool(fields["real"])
        self._environment = replace(
            self._environment,
            irscope_version=fields["irscope_version"],
            triton_version=fields["triton_version"],
            torch_version=fields["torch_version"],
            python_version=fields["python_version"],
            platform=fields["platform"],
            gpu=fields["gpu"],
            tools=tuple(sorted(fields["tools"].items())),
        )

    def _on_compile_begin(self, event: Event) -> None:
        launch = launch_from_json(event["launch"])
        backend, _, arch = event["target"].partition(":")
        target = Target(backend, arch, event["warp_size"])
        self._open[event["n"]] = OpenCapture(target, launch, log_from=event.fields.get("log", 0))

    def _on_options(self, event: Event) -> None:
        item = self._open[event["n"]]
        options = {key: tupled(value) for key, value in event["options"].items()}
        # A path of this machine decides nothing: the same file lies elsewhere on the next.
        options.pop("extern_libs", None)
        item.launch = replace(item.launch, options=tuple(sorted(options.items())))

    def _on_compiler(self, event: Event) -> None:
        item = self._open[event["n"]]
        item.compiler = {name: _pairs(event[name]) for name in ("parts", "variables")}
        item.compiler["tools"] = tuple(sorted(event["tools"].items()))

    def _on_stage_begin(self, event: Event) -> None:
        item = self._open[event["n"]]
        item.stage, item.running = event["stage"], None
        item.log_from = event.fields.get("log", item.log_from)

    def _on_parse_begin(self, event: Event) -> None:
        item = self._open[event["n"]]
        item.stage, item.parsing = event["stage"], True

    def _on_parse_end(self, event: Event) -> None:
        item = self._open[event["n"]]
        item.stage, item.parsing = "", False

    def _on_stage_failed(self, event: Event) -> None:
        item = self._open[event["n"]]
        item.failed_stage, item.failed_diagnostics = event["stage"], event["diagnostics"]

    def _on_artifact(self, event: Event) -> None:
        item = self._open[event["n"]]
        stage = event["stage"]
        item.artifacts[stage] = Artifact(
            stage, event.data if event.data is not None else "", event.fields.get("duration_us")
        )
        item.running = None

    def _on_pass_begin(self, event: Event) -> None:
        item = self._open[event["n"]]
        item.running = _snapshot(event)
        item.log_from = event.fields.get("log", item.log_from)

    def _on_pass_skipped(self, event: Event) -> None:
        item = self._open[event["n"]]
        item.snapshots[event["index"]] = replace(_snapshot(event), outcome="skipped", changed=False)

    def _on_pass_end(self, event: Event) -> None:
        item = self._open[event["n"]]
        begun = item.running or _snapshot(event)
        item.snapshots[event["index"]] = replace(
            begun,
            changed=event["changed"],
            text=event.data if isinstance(event.data, str) else None,
            duration_us=event["duration_us"],
        )
        item.running = None

    def _on_passing_text(self, event: Event) -> None:
        item = self._open[event["n"]]
        if isinstance(event.data, str):
            item.passing_texts.clear()
        item.passing_texts[event["index"]] = event.data if isinstance(event.data, str) else None

    def _on_pass_text(self, event: Event) -> None:
        item = self._open[event["n"]]
        if isinstance(event.data, str):
            item.snapshots[event["index"]] = replace(item.snapshots[event["index"]], text=event.data)

    def _on_pass_failed(self, event: Event) -> None:
        item = self._open[event["n"]]
        failed = item.running or _snapshot(event)
        item.failure = self._failure(item, "pass", event["message"], failed.stage, failed.label, event["diagnostics"])
        item.fail(failed)

    def _on_llvm_dump(self, event: Event) -> None:
        from irscope.ir.dump import read_llvm_dump

        item = self._open[event["n"]]
        if isinstance(event.data, str):
            item.llvm_snapshots += read_llvm_dump(event.data, event["stage"], first_index=len(item.llvm_snapshots))

    def _on_compile_failed(self, event: Event) -> None:
        item = self._open[event["n"]]
        stage, parsing = item.failed_stage, item.parsing
        item.fail(None)
        item.end()
        item.log = event["log"]
        if item.failure is not None:
            # The pass that failed was told of; the error that went on from there adds nothing.
            return
        kind: FailureKind = "compile"
        if parsing:
            kind, stage = "parse", item.stage
        elif event["error"] == "PTXASError" or stage in ASSEMBLED_FROM:
            kind = "assembler"
        elif stage and event["error"] != "CompilationError":
            kind = "pass"
        message = "\n".join(filter(None, [event["message"], event["frames"].rstrip()]))
        said = item.failed_diagnostics or event["diagnostics"] or event["log"]
        item.failure = self._failure(item, kind, message, stage, "", said)

    def _on_compile_end(self, event: Event) -> None:
        item = self._open[event["n"]]
        item.end()
        item.hash = event["hash"]
        item.metadata = event["metadata"]
        item.log = event["log"]
        if event["cached"]:
            item.notes.append("Taken from Triton's cache: no pass ran, so none was recorded.")

    def _on_layouts(self, event: Event) -> None:
        self._open[event["n"]].layouts = tuple(event["layouts"])

    def _on_note(self, event: Event) -> None:
        if (number := event.fields.get("n")) is None:
            self.notes.append(event["text"])
        else:
            self._open[number].notes.append(event["text"])

    def _on_launch(self, event: Event) -> None:
        for item in self._open.values():
            if item.hash and item.hash == event["hash"] and item.launch.grid is None:
                x, y, z = event["grid"]
                told = (converted(item, Assumption) for item in event.fields.get("assumptions", ()))
                item.launch = replace(
                    item.launch, grid=(x, y, z), assumptions=joined((*item.launch.assumptions, *told))
                )

    def _on_timed(self, event: Event) -> None:
        # On the virtual GPU nothing was timed: no configuration won.
        if self.real:
            self._timed.setdefault((event["kernel"], event["tuning"]), {})[event["config"]] = tuple(event["times_ms"])

    def _on_source_file(self, event: Event) -> None:
        if isinstance(event.data, str):
            self._sources[event["path"]] = event.data

    def _on_script_end(self, event: Event) -> None:
        self.script_end = ScriptEnd(
            event["code"],
            event["message"],
            event["frames"],
            bool(event.fields.get("of_compile")),
            " ".join(self._request.targets),
        )

    def _on_children(self, event: Event) -> None:
        launched, started = event["launched"], event["started"]
        if launched:
            who = "1 forked process" if launched == 1 else f"{launched} forked processes"
            self.notes.append(f"{who} of the script launched kernels, which were not recorded: only its own are.")
        if started:
            who = "1 other Python process" if len(started) == 1 else f"{len(started)} other Python processes"
            commands = "; ".join(list(dict.fromkeys(started))[:3])
            self.notes.append(
                f"The script started {who} ({commands}): what they launched was not recorded. Record their scripts."
            )

    def _on_error(self, event: Event) -> None:
        self.error = (event["error"], event["message"])

    def _on_done(self, event: Event) -> None:
        self.done = True

    # Putting it together

    def _capture(self, item: OpenCapture) -> Capture:
        artifacts = tuple(sorted(item.artifacts.values(), key=lambda artifact: stage_rank(artifact.stage)))
        stages = {artifact.stage: artifact.data for artifact in artifacts}
        metadata = {key: value for key, value in item.metadata.items() if key not in _HIDDEN_METADATA}
        durations = [artifact.duration_us for artifact in artifacts if artifact.duration_us is not None]
        snapshots = tuple(snapshot for _, snapshot in sorted(item.snapshots.items()))
        failure = item.failure
        capture = Capture(
            launch=replace(item.launch, autotuning=self._autotuning(item.launch)),
            target=item.target,
            plan=PassPlan.parse(self._request.plan),
            artifacts=artifacts,
            snapshots=(*snapshots, *item.llvm_snapshots),
            layouts=item.layouts,
            resources=read_resources(stages, metadata, item.log) if stages else Resources(),
            environment=replace(self._environment, **item.compiler),
            status="failed" if failure else "ok",
            failure=failure,
            metadata=tuple(sorted((key, tupled(value)) for key, value in metadata.items())),
            sources=self._sources_of(item.launch.kernel, stages),
            notes=(*item.notes, *item.launch.assumption_notes, *self.notes),
            snapshot_level=self._request.snapshots,
            compile_us=sum(durations) if durations else None,
        )
        return with_fit(capture)

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

    def _sources_of(self, kernel: Kernel, stages: dict[str, str | bytes]) -> tuple[SourceFile, ...]:
        first = next((stages[name] for name in STAGE_NAMES if isinstance(stages.get(name), str)), "")
        named = {kernel.file, *map(unescape_ir, set(_STRING.findall(str(first))))}
        return tuple(SourceFile(path, text) for path, text in self._sources.items() if path in named)


def _pairs(rows: Iterable[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in rows)


def _snapshot(event: Event) -> PassSnapshot:
    return PassSnapshot(
        index=event["index"],
        stage=event["stage"],
        name=event["name"],
        occurrence=event["occurrence"],
        argument=event.fields.get("argument", ""),
        options=event.fields.get("options", ""),
    )
