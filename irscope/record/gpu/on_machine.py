"""A script's launches checked without a GPU: recorded on the virtual one, run by irscope's own machine on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from irscope.device.measurement import Agreement
from irscope.errors import NotRun, UsageError, WrongProgram
from irscope.machine.agreement import MOVED_RUNS, agreement_of, moved_runs
from irscope.machine.captured import StageOfRun, captured_inputs, run_text, sampled_programs, text_at
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.gpu.messages import LaunchChecked, LaunchPlace
from irscope.record.gpu.session import ScriptCheck
from irscope.record.process.child import warm_children
from irscope.record.process.requests import RecordRequest, request_from_capture
from irscope.record.process.session import Progress, record_request

__all__ = ["MachineRun", "check_script_on_machine"]


_DATA_BYTES = 64 << 20
"""Of a tensor: the data of a larger one are not recorded."""


@dataclass(frozen=True, slots=True)
class MachineRun:
    """What is run of each launch."""

    stage: StageOfRun = "ttgir"
    at: str = ""
    """A pass, after which the IR is run; empty for the end of the stage."""
    programs: int | None = None
    """At most so many programs of each launch, spread over its grid; None for all."""
    seed: int = 0
    """Of the elements that the script does not make."""


def check_script_on_machine(
    request: RecordRequest,
    run: MachineRun,
    *,
    launch: int | None = None,
    progress: Progress | None = None,
    echo: Callable[[str], None] | None = None,
) -> ScriptCheck:
    """Record a script under its request's plan, and compare what its launches compute with what they should.

    Under a plan, a launch is compared with the same IR under the empty plan; without a plan, with the IR that the
    front end made, before any pass. The tensors of the script hold their data on the CPU, and it goes on with what the
    launches under the plan leave there, so that its own checks count. A launch is compared on the data that its tensors
    held, or where they are too large for the recording, on elements that are drawn at random.

    Args:
        request: the script, as `requests.request_for` makes it.
        run: what is run of each launch.
        launch: only the launch of this compile, from 1.
        progress, echo: as of `record_request`.

    Raises UsageError for what is no script, and RecordingError where nothing could be recorded.
    """
    if request.mode != "script":
        raise UsageError("only what a script launches can be run: give the FILE, not a signature, a capture or IR.")
    level = "triton" if run.at else "none"
    computing = replace(request, virtual=True, computes=True, snapshots=level, data_limit_bytes=_DATA_BYTES)
    recording = record_request(computing, progress=progress, echo=echo)
    rows: list[LaunchChecked] = []
    with warm_children(persistent=False):
        for number, capture in enumerate(recording.captures, 1):
            if launch not in (None, number):
                continue
            if progress is not None:
                progress(f"runs {capture.name}")
            where = LaunchPlace(number, 1, capture.name, capture.launch.grid)
            rows.append(LaunchChecked(where, _checked(capture, run)))
    end = recording.script_ends[-1] if recording.script_ends else None
    return ScriptCheck(tuple(rows), tuple(recording.captures), end)


def _checked(capture: Capture, run: MachineRun) -> Agreement:
    if capture.failure is not None:
        return Agreement("failed", detail=capture.failure.why_not_run)
    grid = capture.launch.grid
    if grid is None:
        return Agreement("failed", detail="it was compiled without a launch")
    try:
        text = text_at(capture, run.stage, run.at)
        baseline = _text_of_baseline(capture, run)
        programs = sampled_programs(grid, run.programs)
        before = captured_inputs(capture, seed=run.seed)
        elements = {name: tensor.copy() for name, tensor in before.tensors.items()}
        reference = run_text(baseline, grid, before, programs=programs)
        moved = moved_runs(
            lambda inputs: run_text(baseline, grid, inputs, programs=programs),
            lambda: captured_inputs(capture, seed=run.seed), run.seed,
        )  # fmt: skip
    except (NotRun, UsageError) as error:
        return Agreement("failed", detail=str(error))
    except WrongProgram as error:
        return Agreement("failed", detail=f"under the empty plan already: {error}")
    try:
        found = run_text(text, grid, captured_inputs(capture, seed=run.seed), programs=programs)
    except NotRun as error:
        return Agreement("failed", detail=str(error))
    except WrongProgram as error:
        return Agreement("fault", detail=str(error))
    return agreement_of(elements, reference, moved, found, f"{MOVED_RUNS} runs on inputs moved by one unit")


def _text_of_baseline(capture: Capture, run: MachineRun) -> str:
    """The IR that is taken to be right."""
    if not capture.plan:
        return capture.begun_text
    plain = RecordingOptions(snapshots="none", layouts=False, disassemble=False)
    compiled = record_request(request_from_capture(capture, plain)).captures[0]
    if compiled.failure is not None:
        raise UsageError(f"it does not compile under the empty plan: {compiled.failure.headline}")
    return compiled.text(run.stage)
