"""`irscope bench`: times a launch and its variants on the GPU."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from irscope.cli import app
from irscope.cli.output.destination import Destination, with_destination
from irscope.cli.output.page import emit_report, is_page
from irscope.cli.output.talk import progress, say
from irscope.cli.run import LaunchTimeout, Script, measuring, script_of
from irscope.cli.subject.captures import check_plan
from irscope.cli.subject.recording import option_value, recorded
from irscope.cli.subject.stored import stored_capture
from irscope.errors import CaptureNotFound, UsageError
from irscope.interruption import Interrupted
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.variants.completing import tell_origin
from irscope.render.text.failure import failure_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from irscope.record.gpu.session import DeviceSession
    from irscope.render.text.bench import Bench, BenchRow


@dataclass(frozen=True, slots=True)
class Variant:
    """What the launch is timed against: the same source under a plan or other options, or another capture."""

    name: str
    plan: PassPlan | None = None
    options: tuple[tuple[str, Any], ...] = ()
    capture: Capture | None = None


@app.command(rich_help_panel="On the GPU")
@recorded(only=("arguments", "launch", "disable_pass", "enable_only", "plan", "timeout"))
@with_destination
def bench(
    subject: Script = None,
    versus: Annotated[
        list[str] | None,
        measuring(
            "--vs",
            metavar="VARIANT",
            help="A plan (-combine), compile options (num_warps=8, several separated by commas), or a capture of the "
            "same launch; repeatable.",
        ),
    ] = None,
    warm: Annotated[bool, measuring("--warm", help="Do not flush the L2 cache before each launch.")] = False,
    rounds: Annotated[int, measuring("--rounds", metavar="N", min=6, help="Launches of each variant.")] = 100,
    known_bytes: Annotated[
        float | None, measuring("--bytes", metavar="N", min=1, help="Bytes that a launch reads and writes.")
    ] = None,
    known_flops: Annotated[
        float | None, measuring("--flops", metavar="N", min=1, help="Floating-point operations per launch.")
    ] = None,
    launch_timeout: LaunchTimeout = 30.0,
    *,
    to: Destination,
    record_options: RecordingOptions,
) -> int:
    """Time a launch and its variants on the GPU, interleaved, with a confidence interval for every ratio.

    The launch is the script's first, or the one that --launch chooses, with the inputs that it had. With nothing to
    compare it is timed against itself, which shows the noise.
    """
    from irscope.record.gpu.session import device_session
    from irscope.record.process.requests import request_for
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
        captures = [
            (variant.name, compiled_variant(session.baseline, variant, record_options, tell)) for variant in variants
        ]
        measured = _measured(session, captures or [("baseline, again", session.baseline)], rounds, not warm)
        bench = _with_rates(measured, session, known_bytes, known_flops)
        compared = [session.baseline, *(capture for _, capture in captures)]
    if is_page(to.path) and not to.as_json:
        from irscope.render.report.results import bench_results

        emit_report(compared, {"tab": "results"}, to.path, results=bench_results(bench))
    else:
        to.emit(lambda: bench_json(bench), lambda width, color: render_bench(bench, width=width, color=color))
    for _, capture in captures:
        if capture.failure is not None:
            say(failure_text(capture))
    return int(any(row.timing is None for row in bench.rows))


def variants_of(plan: PassPlan, versus: list[str]) -> list[Variant]:
    """The variants that the command line names, in order; raises PlanError, UsageError and CaptureNotFound."""
    variants = [Variant(str(plan), plan)] if plan else []
    for text in versus:
        if text.lstrip()[:1] in ("-", "+"):
            variants.append(Variant(text.strip(), PassPlan.parse(text)))
        elif "=" in text:
            variants.append(Variant(text, options=_options(text)))
        else:
            variants.append(Variant(text, capture=_capture(text)))
    return variants


def _options(text: str) -> tuple[tuple[str, Any], ...]:
    rows: list[tuple[str, Any]] = []
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals or not name or not value:
            raise UsageError(
                f"--vs {text!r}: write KEY=VALUE, several separated by commas, such as num_warps=8,num_stages=4."
            )
        rows.append((name.replace("-", "_"), option_value(value)))
    return tuple(rows)


def _capture(text: str) -> Capture:
    try:
        return stored_capture(text)
    except CaptureNotFound as error:
        raise CaptureNotFound(
            f"--vs {text!r} is not a plan (-combine), an option (num_warps=8) or a capture: {error}"
        ) from None


def compiled_variant(
    baseline: Capture, variant: Variant, record_options: RecordingOptions, tell: Callable[[str], None] | None
) -> Capture:
    """A variant's capture: the one it names, or the baseline's source compiled again."""
    from irscope.record.process.requests import request_from_capture
    from irscope.record.process.session import record_request

    if variant.capture is not None:
        return variant.capture
    constants = {name for name, _ in baseline.launch.constants}
    known = {name for name, _ in baseline.launch.options}
    for name, _ in variant.options:
        if name in constants and name not in known:
            raise UsageError(
                f"--vs {name}=…: {name} is a tl.constexpr, and the launch's grid and inputs depend on it. Change it "
                "in the script."
            )
    tell_origin(baseline, say)
    record_options = replace(record_options, plan=variant.plan or PassPlan(), options=variant.options)
    recording = record_request(request_from_capture(baseline, record_options), progress=tell)
    if recording.interrupted:
        raise Interrupted(recording.signal_number)
    (capture,) = recording.captures
    check_plan(variant.plan or PassPlan(), [capture])
    return capture


def _measured(session: DeviceSession, captures: list[tuple[str, Capture]], rounds: int, cold: bool) -> Bench:
    from irscope.render.text.bench import Bench, BenchRow

    agreements = [session.check(capture) for _, capture in captures]
    runs = [agreement.verdict not in ("fault", "timeout", "failed") for agreement in agreements]
    timed = [capture for (_, capture), one in zip(captures, runs, strict=True) if one]
    timing, times = session.time_all(timed, rounds=rounds, cold=cold)
    waiting = iter(times)
    rows: list[BenchRow] = [BenchRow("baseline", timing, None, None)]
    for (name, capture), agreement, one in zip(captures, agreements, runs, strict=True):
        timing, ratio = next(waiting) if one else (None, None)
        same = one and _binary(capture) == _binary(session.baseline)
        rows.append(BenchRow(name, timing, ratio, agreement, same))
    held, base = session.info, session.baseline
    grid = base.launch.grid
    return Bench(base.name, held.launch, grid, held.device, tuple(rows), l2_bytes=held.l2_bytes, noise=held.noise)


def _binary(capture: Capture) -> bytes | str | None:
    return next((artifact.data for artifact in capture.artifacts if artifact.stage in ("cubin", "hsaco")), None)


def _with_rates(bench: Bench, session: DeviceSession, known_bytes: float | None, known_flops: float | None) -> Bench:
    from irscope.analysis.roofline import count_dot_flops

    held, base = session.info, session.baseline
    moved = int(known_bytes) if known_bytes else held.bytes
    source = "as given" if known_bytes else "every tensor that it reads, and every one that it writes, once"
    if moved is None:
        source = "not known, because the kernel's pointers could not be followed; --bytes N sets it"
    flops, flops_source, dtype = (int(known_flops) if known_flops else None), "as given", ""
    if "ttir" in base.stages:
        counted = count_dot_flops(base.text("ttir"), dict(held.scalars), base.launch.grid or (1, 1, 1))
        dtype = counted.dtype
        if flops is None:
            flops = counted.flops
            flops_source = "of its dots, whole tiles" if flops else f"not known: {counted.why_not}; --flops N sets it"
    elif flops is None:
        flops_source = "not known: there is no ttir to count them in; --flops N sets it"
    ceilings = session.ceilings(dtype if flops else "") if moved or flops else None
    return replace(
        bench,
        bytes=moved,
        bytes_source=source,
        flops=flops,
        flops_source=flops_source,
        dtype=dtype,
        ceiling_bytes_per_s=ceilings.bytes_per_s if ceilings else None,
        ceiling_flops_per_s=ceilings.flops_per_s if ceilings else None,
    )
