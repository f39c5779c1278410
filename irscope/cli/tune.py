"""`irscope tune`: the configurations of a kernel ranked by predicted time, without a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from irscope.cli.captures import captures_of
from irscope.cli.command import Part, Subject
from irscope.cli.launches import script_of
from irscope.cli.output import Destination
from irscope.cli.streams import counted, say, updated
from irscope.cli.sweep import points_of, recorded_with, with_constants
from irscope.errors import UsageError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.model.trial import Point

if TYPE_CHECKING:
    from irscope.record.process.requests import RecordRequest
    from irscope.timing.tuning import Candidate


def tune(
    subject: Subject = None,
    versus: list[str] | None = None,
    size: list[str] | None = None,
    grid: str | None = None,
    top: int = 5,
    time: bool = False,
    perf_model: bool = False,
    part: Part = None,
    *,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Compile the configurations of a kernel and rank them by predicted time; only --time runs any.

    It lists configurations that do not compile or do not fit, and prints triton.Config(...) of the fastest.

    Options:
        versus = --vs KEY=VALUE[,VALUE]: BLOCK_M=64,128 of a tl.constexpr of a FILE's kernel, or an option such as
            num_warps=4,8; repeatable, every combination is compiled. Default: the configurations of its
            @triton.autotune.
        --size NAME=N[,N]: M=1,16,4096: rank for each of these sizes; stride_am=K of another; repeatable. Needs
            --grid.
        --grid EXPRESSION: The CTAs by sizes: 'cdiv(M, BLOCK_M) * cdiv(N, BLOCK_N)'.
        --top (1..): How many are printed as triton.Config.
        --time: Measure the first --top on the GPU, with the launch that the FILE makes.
        --perf-model: Print the predictions as a perf_model for prune_configs_by instead.
    """
    from irscope.api.tuning import clock_on_gpu, measured, ranked, sizes_of
    from irscope.render.timing import tuning_json, tuning_text
    from irscope.timing.tuning import perf_model_text

    points = sizes_of(size or ())
    if time and size:
        raise UsageError("--time measures the launch that the FILE makes, at its own sizes: it takes no --size.")
    script = script_of(subject, record_options, "tune --time") if time else None
    record_options = replace(record_options, layouts=False)
    captures = _of_one_kernel(_compiled(subject, versus or [], record_options))
    with updated("predictions") as tell:
        tuning = ranked(captures, points, grid or "", part, tell)
    if script is not None:
        with updated("measurements") as tell:
            clock = clock_on_gpu(_Requests(script, versus or [], captures, record_options))
            tuning = measured(tuning, top, clock, tell)
    if not tuning.rows:
        say(f"No configuration of {tuning.kernel} can be timed.")
    if perf_model and tuning.rows:
        to.emit(partial(tuning_json, tuning), lambda width, color: perf_model_text(tuning))
    else:
        to.emit(partial(tuning_json, tuning), partial(tuning_text, tuning, top))
    return 0 if tuning.rows else 1


@dataclass(frozen=True)
class _Requests:
    """The script with one configuration: that of its `@triton.autotune`, or constants that are set."""

    script: tuple[str, str]
    versus: Sequence[str]
    captures: Sequence[Capture]
    record_options: RecordingOptions

    def __call__(self, candidate: Candidate) -> tuple[RecordRequest, int | None]:
        from irscope.record.process.requests import request_for
        from irscope.timing.tuning import OPTIONS

        plain = replace(self.record_options, snapshots="none", disassemble=False)
        launch = plain.launch
        if self.versus:
            named = {text.partition("=")[0].replace("-", "_") for text in self.versus}
            chosen = [(name, value) for name, value in candidate.config if name in named]
            # Options are those of the configuration's own compile, which takes the place of the script's.
            constants = tuple((name, repr(value)) for name, value in chosen if name not in OPTIONS)
            plain = replace(plain, constants=(*plain.constants, *constants))
        else:
            ids = [one.id for one in self.captures]
            launch = ids.index(candidate.capture.id) + 1 if candidate.capture is not None else None
        file, kernel = self.script
        return request_for(file, plain, kernel=kernel), launch


def _compiled(subject: str | None, versus: Sequence[str], record_options: RecordingOptions) -> list[Capture]:
    if not versus:
        chosen = replace(record_options, config="all") if record_options.config == "first" else record_options
        return list(captures_of(subject, chosen))
    captures = captures_of(subject, record_options)
    points = with_constants(points_of(versus), captures)
    if any(point.target or point.interpreter or point.plan for point in points):
        raise UsageError("tune compares tl.constexpr values and compile options: irscope sweep compares all else.")
    # A point that leaves a key out stands for the capture's own value; here only those that were named are wanted.
    keys = max(len(point.constants) + len(point.options) for point in points)
    points = tuple(point for point in points if len(point.constants) + len(point.options) == keys)
    found: list[Capture] = []
    constants = list(dict.fromkeys(point.constants for point in points))
    with counted("compiles", len(points)) as advance:
        for chosen in constants:
            base = recorded_with(chosen, [subject], record_options) if chosen else captures
            mine = [point for point in points if point.constants == chosen]
            first_launches = {one.name: one for one in reversed(list(base))}
            found += _with_options([*first_launches.values()], mine)
            for _ in mine:
                advance()
    return found


def _with_options(captures: Sequence[Capture], points: Sequence[Point]) -> list[Capture]:
    """Each capture compiled with the options of each point, side by side."""
    from irscope.record.process.requests import request_from_capture
    from irscope.record.variants.compiles import Compiles

    found: list[Capture] = []
    with Compiles() as compiles:
        for capture in captures:
            plain = [point for point in points if not point.options]
            found += [capture for _ in plain]
            varied = [point for point in points if point.options]
            if not varied:
                continue
            if capture.failure is not None:
                found.append(capture)
                continue
            compiles.keep_for(capture)
            asked = [
                RecordingOptions(options=point.options, snapshots="none", layouts=False, disassemble=True)
                for point in varied
            ]
            requests = [request_from_capture(capture, one) for one in asked]
            launch = capture.launch
            found += [
                replace(made, launch=replace(made.launch, grid=launch.grid, record=launch.record))
                for _, made in compiles.all(requests)
            ]
    return found


def _of_one_kernel(captures: Sequence[Capture]) -> list[Capture]:
    names = list(dict.fromkeys(one.name for one in captures))
    if len(names) > 1:
        raise UsageError(f"there are several kernels: FILE::KERNEL chooses one of {', '.join(names)}.")
    return list(captures)
