"""A script's launches checked without a GPU: recorded on the virtual one, run by irscope's own machine on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import prod

from irscope.device.measurement import Agreement, Ratio, Timing
from irscope.errors import NotRun, UsageError, WrongProgram
from irscope.machine.agreement import MOVED_RUNS, agreement_of, moved_runs
from irscope.machine.arithmetic import Arithmetic
from irscope.machine.captured import (
    Inputs,
    StageOfRun,
    captured_inputs,
    recorded_results,
    run_text,
    sampled_programs,
    text_at,
)
from irscope.machine.launch import NO_LIMITS, RunLimits
from irscope.machine.values import Array
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.gpu.messages import LaunchChecked, LaunchPlace
from irscope.record.gpu.session import ScriptCheck, require_script
from irscope.record.process.assembly import bar_of
from irscope.record.process.child import warm_children
from irscope.record.process.requests import RecordRequest, request_from_capture
from irscope.record.process.session import Progress, record_request

_SAMPLED_PROGRAMS = 64
"""Of a launch whose variants are compared one after the other."""
_NOISE = f"{MOVED_RUNS} runs with moved inputs and approximations, and programs in reverse order"
_DATA_BYTES = 64 << 20
"""Of a tensor: the data of a larger one are not recorded."""


@dataclass(frozen=True, slots=True)
class MachineRun:
    stage: StageOfRun = "ttgir"
    at: str = ""
    """A pass, after which the IR is run; empty for the end of the stage."""
    programs: int | None = None
    """At most so many programs of each launch, spread over its grid; None for all."""
    seed: int = 0
    limits: RunLimits = NO_LIMITS


def check_script_on_machine(
    request: RecordRequest,
    run: MachineRun,
    *,
    launch: int | None = None,
    with_gpu: bool = False,
    progress: Progress | None = None,
    echo: Callable[[str], None] | None = None,
) -> ScriptCheck:
    """Record a script under its request's plan, and compare what its launches compute with what they should.

    With `with_gpu`, and a GPU, what the CPU computes of a launch is compared with what that left. Else a launch under a
    plan is compared with the same IR under the empty plan, and without one with the IR that the front end made. The
    script goes on with what the launches under the plan leave, so that its own checks count; a launch is compared on
    the data that its tensors held, or where they are too large for the recording, on elements that are drawn at random.

    Raises UsageError for what is no script, and RecordingError where nothing could be recorded.
    """
    require_script(request)
    level = "triton" if run.at else "none"
    computing = replace(request, virtual=not with_gpu, computes=True, snapshots=level, data_limit_bytes=_DATA_BYTES)
    recording = record_request(computing, progress=progress, echo=echo).whole()
    rows: list[LaunchChecked] = []
    with warm_children(persistent=False):
        for number, capture in enumerate(recording.captures, 1):
            if launch not in (None, number):
                continue
            where = LaunchPlace(number, 1, capture.name, capture.launch.grid)
            rows.append(LaunchChecked(where, _checked(capture, run, progress)))
    end = recording.script_ends[-1] if recording.script_ends else None
    return ScriptCheck(tuple(rows), tuple(recording.captures), end)


def _checked(capture: Capture, run: MachineRun, progress: Progress | None) -> Agreement:
    if capture.failure is not None:
        return Agreement("failed", detail=capture.failure.why_not_run)
    try:
        if capture.environment.gpu:
            return MachineSession(capture, replace(run, programs=None), progress=progress).check_recorded()
        return MachineSession(capture, run, _text_of_baseline(capture, run), progress).check(capture)
    except (NotRun, UsageError) as error:
        return Agreement("failed", detail=str(error))


class MachineSession:
    """A launch that the CPU runs, with the elements of its capture or drawn at random: a session that has no times."""

    def __init__(
        self, baseline: Capture, run: MachineRun = MachineRun(), text: str = "", progress: Progress | None = None
    ) -> None:
        """`text`: the IR taken to be right; empty for the baseline's. Raises UsageError without a launch record."""
        if baseline.launch.grid is None or baseline.launch.record is None:
            raise UsageError(f"{baseline.name} was compiled without a launch, so its arguments are unknown.")
        self.baseline = baseline
        self._run = run
        self._progress = progress
        self._grid = baseline.launch.grid
        self._programs = sampled_programs(self._grid, run.programs)
        self._text = text or text_at(baseline, run.stage, run.at)

    @property
    def name(self) -> str:
        sample = f"{len(self._programs)} of {prod(self._grid)} programs" if self._programs else "all programs"
        return f"the CPU ({self._run.stage}, {sample})"

    @cached_property
    def made_up(self) -> tuple[str, ...]:
        return self._inputs().made_up

    @cached_property
    def why_not_run(self) -> str:
        """Why the baseline itself cannot be run; empty if it can."""
        try:
            _ = self._reference
        except (NotRun, UsageError) as error:
            return str(error)
        except WrongProgram as error:
            return f"under the empty plan already: {error}"
        return ""

    def check(self, capture: Capture) -> Agreement:
        """Run a variant on the launch's inputs, and compare what it leaves with what the baseline leaves."""
        if capture.failure is not None:
            return Agreement("failed", detail=capture.failure.why_not_run)
        if self.why_not_run:
            return Agreement("failed", detail=self.why_not_run)
        elements, reference, moved = self._reference
        try:
            text = text_at(capture, self._run.stage, self._run.at)
            results = self._left_by(text, self._inputs())
        except (NotRun, UsageError) as error:
            return Agreement("failed", detail=str(error))
        except WrongProgram as error:
            return Agreement("fault", detail=str(error))
        return agreement_of(elements, reference, moved, results, _NOISE)

    def check_recorded(self) -> Agreement:
        """Compare what the recorded launch left with what the CPU computes; raises NotRun where data are lacking."""
        if self.why_not_run:
            return Agreement("failed", detail=self.why_not_run)
        elements, reference, moved = self._reference
        left = recorded_results(self.baseline)
        if self.made_up or set(left) != set(reference):
            unknown = ", ".join(sorted(set(reference) - set(left)) or self.made_up)
            raise NotRun(f"the data of {unknown} are not recorded: a smaller launch has them")
        return agreement_of(elements, reference, moved, left, _NOISE)

    def time(
        self, captures: Sequence[Capture], *, rounds: int, cold: bool = True
    ) -> tuple[tuple[Timing | None, Ratio | None], ...]:
        return tuple((None, None) for _ in captures)

    @cached_property
    def _reference(self) -> tuple[dict[str, Array], dict[str, Array], list[dict[str, Array]]]:
        """The elements before the launch, what the baseline leaves, and what it leaves on moved inputs."""
        before = self._inputs()
        elements = {name: tensor.copy() for name, tensor in before.tensors.items()}
        reference = self._left_by(self._text, before)
        moved = moved_runs(partial(self._left_by, self._text), self._inputs, self._run.seed)
        return elements, reference, moved

    def _inputs(self) -> Inputs:
        return captured_inputs(self.baseline, seed=self._run.seed, limits=self._run.limits)

    def _left_by(self, text: str, inputs: Inputs, arithmetic: Arithmetic | None = None) -> dict[str, Array]:
        """What a text leaves; `arithmetic`: that of a moved run, whose programs come in reverse order."""
        programs = self._programs
        if arithmetic is not None:
            programs = (programs or range(prod(self._grid)))[::-1]
        return run_text(
            text, self._grid, inputs, programs=programs, on_progress=self._tell, limits=self._run.limits,
            arithmetic=arithmetic,
        )  # fmt: skip

    def _tell(self, ended: int, programs: int) -> None:
        if self._progress is not None:
            self._progress(f"{bar_of(ended, programs)} {ended} of {programs} programs of {self.baseline.name}")


def _text_of_baseline(capture: Capture, run: MachineRun) -> str:
    if not capture.plan:
        return capture.begun_text
    plain = RecordingOptions(snapshots="none", layouts=False, disassemble=False)
    compiled = record_request(request_from_capture(capture, plain)).whole().captures[0]
    if compiled.failure is not None:
        raise UsageError(f"it does not compile under the empty plan: {compiled.failure.headline}")
    return compiled.text(run.stage)


def session_on_machine(baseline: Capture) -> MachineSession:
    """A launch of which the CPU runs the TTGIR, a sample of its programs; raises UsageError."""
    return MachineSession(baseline, MachineRun(programs=_SAMPLED_PROGRAMS))
