"""`irscope bench`: times a launch and its variants on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from irscope.api.gpu import Variant, compiled_variant, measured, with_predictions, with_rates
from irscope.cli.captures import check_plan, say_failures, stored_capture
from irscope.cli.launches import script_of
from irscope.cli.output import Destination, emit_report, is_page
from irscope.cli.recording import option_value, versus_pair
from irscope.cli.streams import progress, say
from irscope.errors import CaptureNotFound, UsageError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.process.requests import request_for


def bench(
    subject: str | None = None,
    versus: list[str] | None = None,
    warm: bool = False,
    rounds: int = 100,
    known_bytes: float | None = None,
    known_flops: float | None = None,
    launch_timeout: float = 30.0,
    *,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Time a launch and its variants on the GPU.

    The launch is the script's first, or the one that --launch chooses, with the inputs that it had; variants are
    interleaved, and each ratio has a confidence interval. With nothing to compare the launch is timed against itself,
    which shows the noise.

    Options:
        subject = FILE[::KERNEL]: The Python script that makes the launches.
        versus = --vs VARIANT: A plan (-combine), compile options (num_warps=8, several separated by commas), or a
            capture of the same launch; repeatable.
        --warm: Do not flush the L2 cache before each launch.
        --rounds (6..): Launches of each variant.
        known_bytes = --bytes (1..): Bytes that a launch reads and writes.
        known_flops = --flops (1..): Floating-point operations per launch.
        --launch-timeout SECONDS (0.1..): Time limit for one launch on the GPU.
    """
    if record_options.targets:
        raise UsageError(
            f"--target {' '.join(record_options.targets)}: a time needs the GPU; irscope time predicts it for a target."
        )
    from irscope.record.gpu.session import device_session
    from irscope.render.text.bench import bench_json, render_bench

    file, kernel = script_of(subject, record_options, "bench")
    variants = variants_of(record_options.plan, versus or [])
    record_options = replace(record_options, plan=PassPlan(), snapshots="none", layouts=False, disassemble=False)
    request = request_for(file, record_options, kernel=kernel)
    with (
        progress() as tell,
        device_session(request, record_options.launch, launch_timeout_s=launch_timeout, progress=tell) as session,
    ):
        if record_options.launch is None:
            say(f"This is launch {session.info.launch}, {session.baseline.name}; --launch N takes another.")
        captures = [(variant.name, compiled(session.baseline, variant, record_options, tell)) for variant in variants]
        timed = measured(session, captures or [("baseline, again", session.baseline)], rounds, not warm)
        bench = with_rates(timed, session, known_bytes, known_flops)
        compared = [session.baseline, *(capture for _, capture in captures)]
        bench = with_predictions(bench, compared if captures else [session.baseline, session.baseline])
    if is_page(to.path) and not to.as_json:
        from irscope.render.report.results import bench_results

        emit_report(compared, {"tab": "results"}, to.path, results=bench_results(bench))
    else:
        to.emit(partial(bench_json, bench), partial(render_bench, bench))
    say_failures(capture for _, capture in captures)
    return int(any(row.timing is None for row in bench.rows))


def compiled(
    baseline: Capture, variant: Variant, record_options: RecordingOptions, tell: Callable[[str], None] | None
) -> Capture:
    """A variant's capture; raises PlanError for a plan that matched no pass of it."""

    capture = compiled_variant(baseline, variant, record_options, tell)
    check_plan(variant.plan or PassPlan(), [capture])
    return capture


def variants_of(plan: PassPlan, versus: list[str]) -> list[Variant]:
    """The variants that the command line names, in order; raises PlanError, UsageError and CaptureNotFound."""
    variants = [Variant(str(plan), plan)] if plan else []
    for text in versus:
        if text.lstrip()[:1] in ("-", "+"):
            variants.append(Variant(text.strip(), PassPlan.parse(text)))
        elif "=" in text:
            pairs = (versus_pair(part) for part in text.split(","))
            variants.append(Variant(text, options=tuple((name, option_value(value)) for name, value in pairs)))
        else:
            try:
                variants.append(Variant(text, capture=stored_capture(text)))
            except CaptureNotFound as error:
                raise CaptureNotFound(
                    f"--vs {text!r} is not a plan (-combine), an option (num_warps=8) or a capture: {error}"
                ) from None
    return variants
