"""What a recording holds: the Capture and the values it is made of, and why a compile failed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

from irscope.errors import StageNotFound, did_you_mean
from irscope.model.launch_record import Assumption, Autotuning, LaunchRecord, OtherLaunch, notes_of
from irscope.model.layout import LayoutRow
from irscope.model.plain import ANY_VALUE
from irscope.model.telling import folder_of_generated
from irscope.plan import LLVM, PassPlan
from irscope.target import Target

if TYPE_CHECKING:
    from irscope.model.evidence import CompilerLog, CompileTimes, GraphOrigin, OperationLines, Profile


FailureKind = Literal[
    "python", "compile", "parse", "pass", "assembler", "fit", "abort", "timeout", "interrupt", "recorder", "resources"
]
"""`compile`: the Python front end refused the kernel. `parse`: an IR file is none. `fit`: it compiled, and asks for
more than a CTA can have on the device. `resources`: the machine has no more memory, disk space or descriptors."""

_LASTING: tuple[FailureKind, ...] = ("parse", "pass", "compile", "assembler", "fit", "abort")
_ASSEMBLERS = {"cubin": "ptxas", "hsaco": "the AMD assembler"}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a compile ended early, or what it made cannot run."""

    kind: FailureKind
    message: str
    """The message of the compiler, the assembler or Python; its first line is the summary."""
    stage: str = ""
    """The stage that failed; empty where none had begun. For an IR file that is none, the file's."""
    pass_label: str = ""
    """The pass that failed, as `PassSnapshot.label`."""
    diagnostics: str = ""
    """What MLIR, ptxas or the crashing process printed on stderr."""

    @property
    def where(self) -> str:
        """What failed: `ttgir:coalesce#1`, `ptxas`, `stage llir`, `the front end`."""
        if self.pass_label:
            return self.pass_label
        if self.stage in _ASSEMBLERS:
            return _ASSEMBLERS[self.stage]
        return f"stage {self.stage}" if self.stage else "the front end"

    @property
    def verdict(self) -> str:
        """`failed in ptxas`, or another outcome."""
        if self.kind == "fit":
            return "failed to fit"
        if self.kind == "resources":
            return "failed as the machine ran out of memory, disk space or descriptors"
        if self.kind == "parse":
            return f"failed in parsing the {self.stage}"
        return f"failed in {self.where}"

    @property
    def headline(self) -> str:
        """The first line of the message."""
        return next(iter(self.message.strip().splitlines()), "")

    @property
    def lasts(self) -> bool:
        """Whether the next try would end the same: not where time ran out, or the machine's memory."""
        return self.kind in _LASTING and "SIGKILL" not in self.message

    @property
    def why_not_run(self) -> str:
        """Why it cannot be run, in a line."""
        if self.kind == "fit":
            return f"it does not fit: {self.headline}"
        return f"it does not compile: {self.where}: {self.headline}".rstrip(": ")


StageKind = Literal["mlir", "llvm", "ptx", "sass", "amdgcn", "binary"]


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a backend's pipeline."""

    name: str
    kind: StageKind
    title: str
    backends: tuple[str, ...] = ("cuda", "hip")
    """The backends that have it; empty means every backend."""

    @property
    def is_binary(self) -> bool:
        """Whether its artifact is bytes."""
        return self.kind == "binary"


STAGES: tuple[Stage, ...] = (
    Stage("edited", "mlir", "an edited snapshot, from which the compile resumed"),
    Stage("source", "mlir", "unoptimised Triton IR, as the Python front end made it"),
    Stage("ttir", "mlir", "Triton IR"),
    Stage("glir", "mlir", "Gluon IR"),
    Stage("ttgir", "mlir", "Triton GPU IR, with layouts"),
    Stage("llir", "llvm", "LLVM IR"),
    Stage("ptx", "ptx", "PTX", ("cuda",)),
    Stage("cubin", "binary", "the CUDA binary", ("cuda",)),
    Stage("sass", "sass", "the disassembly of the cubin", ("cuda",)),
    Stage("amdgcn", "amdgcn", "AMD GPU assembly", ("hip",)),
    Stage("hsaco", "binary", "the AMD binary", ("hip",)),
)
"""Every stage of every backend, in the order of the pipeline. The one table of stages."""

COMPILED_STAGES = ("ttir", "ttgir", "llir", "ptx", "amdgcn")
"""The stages whose texts are compiled on, as files too."""

_BY_NAME = {stage.name: stage for stage in STAGES}
STAGE_NAMES: tuple[str, ...] = tuple(_BY_NAME)


def stage_named(name: str) -> Stage:
    """The row of `STAGES` with that name; a name it does not know is taken as a third-party backend's text stage."""
    return _BY_NAME.get(name) or Stage(name, "mlir", f"stage {name} of a third-party backend", ())


def stage_rank(name: str) -> int:
    """Where a stage stands in the pipeline, 0-based; unknown ones last."""
    return STAGE_NAMES.index(name) if name in STAGE_NAMES else len(STAGE_NAMES)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A `@triton.jit` function: where it stands, and its text."""

    name: str
    file: str = ""
    line: int = 0
    """1-based line of the `def`, 0 where it is not known (a kernel that came from an IR file)."""
    source: str = ""
    """The function's Python text."""
    first_line: int = 0
    """1-based line of the first line of `source` (a decorator, as a rule)."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What was compiled: a kernel with its signature, constants, attributes and options."""

    kernel: Kernel
    signature: tuple[tuple[str, str], ...] = ()
    """(parameter, type) in the kernel's order; `constexpr` for a constant."""
    constants: tuple[tuple[str, str], ...] = ()
    """(parameter or path, value as Python prints it)."""
    attributes: tuple[tuple[str, str], ...] = ()
    """(parameter or path, attribute as Triton writes it, such as `tt.divisibility=16`)."""
    options: tuple[tuple[str, Any], ...] = field(default=(), metadata=ANY_VALUE)
    """(option, value as JSON holds it), sorted by name: num_warps, num_stages, …"""
    grid: tuple[int, int, int] | None = None
    """Program instances along x, y and z; None where the kernel was compiled but not launched."""
    language: str = "triton"
    """`triton` or `gluon`."""
    autotuning: Autotuning | None = None
    set_options: tuple[tuple[str, Any], ...] | None = field(default=None, metadata=ANY_VALUE)
    """The options that the script itself set, of `options`; None where that is not known."""
    record: LaunchRecord | None = None
    """What the first launch was given; None where there was none (a signature, an IR file). No part of the identity."""
    others: tuple[OtherLaunch, ...] = ()
    """Further launches on the virtual GPU, with other arguments or another grid: the first eight. As `record`."""
    assumptions: tuple[Assumption, ...] = ()
    """The placeholder values up to this launch, for data that was not computed; not part of the identity."""

    @property
    def assumption_notes(self) -> tuple[str, ...]:
        """The assumptions as sentences, all checks in one."""
        return notes_of(self.assumptions)

    @property
    def constexprs(self) -> frozenset[str]:
        """The constants that are no options, too."""
        return frozenset(dict(self.constants)) - frozenset(dict(self.options))

    def option(self, name: str, default: Any = None) -> Any:
        """The value of one option, or `default`."""
        return next((value for key, value in self.options if key == name), default)


@dataclass(frozen=True, slots=True)
class Artifact:
    """What one stage made."""

    stage: str
    data: str | bytes
    duration_us: int | None = None
    """How long the stage took by the clock, in microseconds; None where it was not measured."""
    processor_us: int | None = None
    """Microseconds of processor time that the stage took, of its tools too and irscope's own left out; of `source` the
    front end's, or the parser's. None where it was not measured."""

    @property
    def text(self) -> str:
        """Its text; raises StageNotFound for a binary."""
        if isinstance(self.data, bytes):
            raise StageNotFound(f"stage {self.stage!r} is a binary of {len(self.data)} bytes: it has no text.")
        return self.data


PassOutcome = Literal["ran", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class PassSnapshot:
    """One pass of the pipeline: its name, its outcome and the IR after it."""

    index: int
    """0-based place in the whole pipeline of its group."""
    stage: str
    """The stage whose function ran it."""
    name: str
    """The builder's name, without `add_`: `remove_layout_conversions`."""
    occurrence: int
    """1-based count of this name within the stage."""
    argument: str = ""
    """MLIR's argument: `tritongpu-remove-layout-conversions`."""
    options: str = ""
    """The pass's options as MLIR prints them, without the braces."""
    outcome: PassOutcome = "ran"
    changed: bool | None = None
    """Whether the module changed; None where that is not known (its text was left out)."""
    text: str | None = None
    """The IR after the pass; None where it did not change, or was left out."""
    duration_us: int | None = None
    group: Literal["mlir", "llvm"] = "mlir"
    """`llvm` for the passes of LLVM's own optimiser and code generator."""
    scope: str = ""
    """The function that a function pass ran on; empty for a pass of the whole module."""

    @property
    def text_left_out(self) -> bool:
        """Whether there is a text after this pass that the recording did not keep."""
        return self.text is None and self.changed is not False and self.outcome == "ran"

    @property
    def plan_stage(self) -> str:
        """What a plan calls its stage: `llvm` for every pass of LLVM's."""
        return LLVM if self.group == "llvm" else self.stage

    @property
    def label(self) -> str:
        """`ttgir:canonicalizer#2`, `llvm:licm#1`, which a plan understands."""
        name = self.argument or self.name if self.group == "llvm" else self.name
        return f"{self.plan_stage}:{name}#{self.occurrence}"


@dataclass(frozen=True, slots=True)
class Resources:
    """What a binary uses on the device. None: not known, or the target has no such thing."""

    registers: int | None = None
    """32-bit registers per thread (on AMD: VGPRs per lane, without accumulation VGPRs)."""
    accumulator_registers: int | None = None
    """AMD: AGPRs per lane."""
    scalar_registers: int | None = None
    """AMD: SGPRs per wave; NVIDIA: uniform registers, where they are known."""
    spill_store_bytes: int | None = None
    """Bytes that each thread stores to spill registers (on AMD: 4 times the spilled VGPRs)."""
    spill_load_bytes: int | None = None
    """Bytes that each thread loads from spilled registers."""
    scalar_spills: int | None = None
    """AMD: spilled SGPRs."""
    stack_bytes: int | None = None
    """Local (scratch) memory per thread, in bytes."""
    shared_bytes: int | None = None
    """Shared memory (LDS) per CTA, static and dynamic."""
    tensor_memory_columns: int | None = None
    """Blackwell: columns of tensor memory per CTA."""
    constant_bytes: int | None = None
    code_bytes: int | None = None
    instruction_count: int | None = None
    """Instructions of the kernel's machine code, padding left out."""
    barriers: int | None = None
    """Named barriers per CTA."""

    @property
    def spilled_bytes(self) -> int | None:
        """Bytes that each thread stores to and loads from spilled registers; None where neither is known."""
        known = [value for value in (self.spill_store_bytes, self.spill_load_bytes) if value is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class Environment:
    """All that differs from day to day: versions, machine, date and command."""

    irscope_version: str = ""
    triton_version: str = ""
    torch_version: str = ""
    python_version: str = ""
    platform: str = ""
    gpu: str = ""
    """The GPU that ran it; empty on a machine with none, or on the virtual GPU."""
    date: str = ""
    """UTC, ISO 8601."""
    command: str = ""
    tools: tuple[tuple[str, str], ...] = ()
    """(tool, version): ptxas, nvdisasm, …"""
    parts: tuple[tuple[str, str], ...] = ()
    """(part of the compiler, digest of its contents): the sources, libraries and tools that made the target's code."""
    variables: tuple[tuple[str, str], ...] = ()
    """(name, value) of the environment variables that decided code."""
    origin: tuple[tuple[str, str], ...] = ()
    """(kind, name) of what compiled or launched it: `test` with a node id, `cell` of a notebook, `process` if that was
    another than the recorded program's first, `edit` with the name of an edited variant."""

    is_trusted: bool = False
    """Whether its code may be run: it was recorded here, of what the user ran, or compiled again of such a capture.
    A file proves it by the seal of this machine; of any other file it is False."""

    @property
    def origin_text(self) -> str:
        """The names of its origin, in one line: `test_add.py::test_add[1]`, with how many more there are."""
        names = [name for _, name in self.origin]
        return names[-1] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more" if names else ""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A Python file that locations of the IR point into."""

    path: str
    text: str


CaptureStatus = Literal["ok", "failed"]
SnapshotLevel = Literal["all", "triton", "none"]


@dataclass(frozen=True, slots=True)
class Capture:
    """One compilation, recorded: what went in, every stage and pass, and what came out."""

    launch: Launch
    target: Target
    plan: PassPlan = field(default_factory=PassPlan)
    artifacts: tuple[Artifact, ...] = ()
    """In the order of the pipeline."""
    snapshots: tuple[PassSnapshot, ...] = ()
    layouts: tuple[LayoutRow, ...] = ()
    """The layouts of the TTGIR, with the compiler's own map of each."""
    operations: tuple[OperationLines, ...] = ()
    """Which operation of the TTGIR the lines of the assembly are from; empty until they are requested."""
    log: CompilerLog | None = None
    """The compiler's log of its decisions; None until it is requested."""
    times: CompileTimes | None = None
    """Where the time of a separate compile went; None until it is requested."""
    profile: Profile | None = None
    """The hardware's counters of the launch; None where it was not profiled."""
    resources: Resources = field(default_factory=Resources)
    environment: Environment = field(default_factory=Environment)
    status: CaptureStatus = "ok"
    failure: Failure | None = None
    metadata: tuple[tuple[str, Any], ...] = ()
    """Triton's own metadata of the compiled kernel, as JSON holds it."""
    sources: tuple[SourceFile, ...] = ()
    notes: tuple[str, ...] = ()
    """Remarks on this recording: placeholder values, assumptions, omissions."""
    graphs: tuple[GraphOrigin, ...] = ()
    """The graphs of TorchInductor's that the kernel was generated for; empty for a kernel written by hand. No part
    of the identity."""
    snapshot_level: SnapshotLevel = "triton"
    """Which passes' texts were kept: of all, while Triton's dialects were there, or none."""
    compile_us: int | None = None
    """Microseconds from the first stage's start to the last one's end."""

    @property
    def processor_us(self) -> int | None:
        """Microseconds of processor time in all stages, without the front end; None where it was not measured."""
        known = [one.processor_us for one in self.artifacts if one.processor_us is not None and one.stage != "source"]
        return sum(known) if known else None

    @property
    def id(self) -> str:
        """Sixteen hex digits of all that decides the compile: equal for the same compile, different for any other."""
        # What it was compiled from: the front end's IR, an IR file, or where the front end failed the Python text.
        source = self.artifacts[0].data if self.artifacts else self.launch.kernel.source
        text = source if isinstance(source, str) else source.hex()
        launch = self.launch
        # Where TorchInductor wrote a kernel decides nothing: each process has a folder of its own.
        if folder := folder_of_generated(launch.kernel.file):
            text = text.replace(folder, "")
        identity = [launch.kernel.name, text, launch.signature, launch.constants, launch.attributes, launch.options]
        identity += [str(self.target), str(self.plan), self.environment.triton_version]
        if self.environment.parts:
            # A capture of a dump has none.
            identity += [self.environment.parts, self.environment.variables]
        return hashlib.sha256(json.dumps(identity, default=str).encode()).hexdigest()[:16]

    @property
    def has_compiled(self) -> bool:
        """Whether there is a binary, including one that exceeds the device's limits."""
        return self.failure is None or self.failure.kind == "fit"

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.launch.kernel.name

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages it holds, in the order of the pipeline."""
        return tuple(artifact.stage for artifact in self.artifacts)

    @property
    def texts(self) -> dict[str, str]:
        """The text of every stage that has one."""
        return {artifact.stage: artifact.data for artifact in self.artifacts if isinstance(artifact.data, str)}

    def artifact(self, stage: str) -> Artifact:
        """What a stage made; raises StageNotFound with the stages there are."""
        if (found := next((one for one in self.artifacts if one.stage == stage), None)) is not None:
            return found
        why = ""
        if self.failure is not None:
            why = f" The compile {self.failure.verdict}."
        elif stage in STAGE_NAMES and self.target.backend not in stage_named(stage).backends:
            why = f" The target {self.target} has no such stage."
        hint = "" if stage in STAGE_NAMES else did_you_mean(stage, self.stages)
        held = ", ".join(self.stages) or "no stage at all"
        raise StageNotFound(f"{self.name} ({self.target}) has no stage {stage!r}: it holds {held}.{why}{hint}")

    def text(self, stage: str) -> str:
        """The text of a stage; raises StageNotFound where there is none."""
        return self.artifact(stage).text

    @overload
    def __getattr__(self, name: Literal["cubin", "hsaco"]) -> bytes: ...
    @overload
    def __getattr__(self, name: Literal["source", "ttir", "ttgir", "llir", "ptx", "amdgcn", "sass"]) -> str: ...
    @overload
    def __getattr__(self, name: str) -> str | bytes: ...
    def __getattr__(self, name: str) -> str | bytes:
        # Stages as attributes: capture.ttgir, capture.ptx, capture.cubin.
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.artifact(name).data
        except StageNotFound as error:
            raise AttributeError(str(error)) from None

    @property
    def begun_from(self) -> str:
        """The stage whose text another compile of it begins with; empty where it holds none."""
        return next((name for name in ("source", *COMPILED_STAGES) if name in self.stages), "")

    @property
    def begun_text(self) -> str:
        """The text that another compile of it begins with; raises StageNotFound where it holds none."""
        return self.text(self.begun_from or "source")

    def passes(self, group: str = "mlir") -> Iterator[PassSnapshot]:
        """The passes of one group, in the order they ran."""
        return (snapshot for snapshot in self.snapshots if snapshot.group == group)

    def text_before(self, snapshot: PassSnapshot) -> str | None:
        """The IR as a pass found it: the last text before it in its pipeline; None where that was left out."""
        text = None if snapshot.group == "llvm" else self._text_before_passes()
        for other in self.passes(snapshot.group):
            if other.index >= snapshot.index:
                break
            text = other.text if other.text is not None else (None if other.text_left_out else text)
        return text

    def text_after(self, snapshot: PassSnapshot) -> str | None:
        """The IR as a pass left it; None where that was left out."""
        return snapshot.text if snapshot.text is not None or snapshot.text_left_out else self.text_before(snapshot)

    def _text_before_passes(self) -> str | None:
        """What the first pass found: the front end's IR, or that of the file it began with."""
        first, begun = next(self.passes(), None), next(iter(self.artifacts), None)
        if first is None or begun is None or stage_rank(begun.stage) >= stage_rank(first.stage):
            return None
        return begun.data if isinstance(begun.data, str) else None

    def without_elements(self) -> Capture:
        """A copy that holds no element of a tensor of its launches."""
        record, others = self.launch.record, self.launch.others
        bare = record and record.without_elements()
        rest = tuple(replace(one, record=one.record.without_elements()) for one in others)
        return replace(self, launch=replace(self.launch, record=bare, others=rest))

    def with_(self, **changes: Any) -> Capture:
        """A copy with some fields changed."""
        return replace(self, **changes)

    if TYPE_CHECKING:

        def _repr_html_(self) -> str:
            """Return the HTML that a notebook shows; `irscope.api` sets this method."""
            ...

    run: ClassVar[Callable[..., dict[str, Any]]]
    """Runs the kernel on the CPU: `run_capture` of `irscope/machine/captured.py`; `irscope.api` sets it."""

    def __repr__(self) -> str:
        plan = f", plan={str(self.plan)!r}" if self.plan else ""
        failed = f", {self.failure.verdict}" if self.failure else ""
        made = f"{' '.join(self.stages)}; {len(self.snapshots)} passes{failed}"
        return f"<Capture {self.id[:8]} {self.name} {self.target}{plan}: {made}>"
