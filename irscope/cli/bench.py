"""`irscope bench`: the time of a launch and of its variants on the GPU."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from irscope.capture import Capture
from irscope.cli import app, options
from irscope.cli.output import colored, emit, emit_json, width
from irscope.cli.recording import recorded
from irscope.cli.run import LaunchTimeout, Script, script_of
from irscope.cli.subject import How, check_plan, failure_text, option_value, tell_origin
from irscope.cli.talk import progress, say
from irscope.errors import CaptureNotFound, UsageError
from irscope.interruption import Interrupted
from irscope.plan import PassPlan
from irscope.recent import CaptureStore
from irscope.store import SUFFIX, load

if TYPE_CHECKING:
    from collections.abc import Callable

    from irscope.record.device_session import DeviceSession
    from irscope.render.bench import Bench, BenchRow

_MEASURE = "Measuring"


@dataclass(frozen=True, slots=True)
class Variant:
    """What a launch is timed against: a plan, options, or a capture of its own."""

    name: str
    plan: PassPlan | None = None
    options: tuple[tuple[str, Any], ...] = ()
    capture: Capture | None = None


@app.command(rich_help_panel="On the GPU")
@recorded(only=("arguments", "launch", "disable_pass", "enable_only", "plan", "timeout"))
def bench(
    subject: Script = None,
    versus: Annotated[
        list[str] | None,
        typer.Option(
            "--vs",
            metavar="VARIANT",
            help="A plan (-combine), an option to compile with (num_warps=8; several with commas), or a capture of the "
            "same launch; repeatable.",
            rich_help_panel=_MEASURE,
            show_default=False,
        ),
    ] = None,
    warm: Annotated[
        bool, typer.Option("--warm", help="Leave the L2 warm; by default it is flushed.", rich_help_panel=_MEASURE)
    ] = False,
    rounds: Annotated[
        int,
        typer.Option("--rounds", metavar="N", min=6, help="Launches of each variant.", rich_help_panel=_MEASURE),
    ] = 100,
    known_bytes: Annotated[
        float | None,
        typer.Option(
            "--bytes",
            metavar="N",
            min=1,
            help="Bytes that a launch moves.",
            rich_help_panel=_MEASURE,
            show_default=False,
        ),
    ] = None,
    known_flops: Annotated[
        float | None,
        typer.Option(
            "--flops",
            metavar="N",
            min=1,
            help="Floating-point operations of a launch.",
            rich_help_panel=_MEASURE,
            show_default=False,
        ),
    ] = None,
    launch_timeout: LaunchTimeout = 30.0,
    output: options.Output = None,
    as_json: options.AsJson = False,
    color: options.Color = None,
    *,
    asked: How,
) -> int:
    """Time a launch and its variants on the GPU, interleaved, with a confidence interval for every ratio.

    The launch is the script's first, or that of --launch; it is held with the inputs it had. With nothing to compare
    it with, it is timed against itself: what differs then is noise.
    """
    from irscope.record.device_session import device_session
    from irscope.record.requests import request_for
    from irscope.render.bench import bench_json, render_bench

    file, kernel = script_of(subject, "bench")
    variants = variants_of(asked.plan, versus or [])
    request = request_for(file, kernel=kernel, arguments=asked.arguments, snapshots="none")
    request = replace(request, layouts=False, disassemble=False)
    timeout_s = asked.timeout_s
    with (
        progress() as tell,
        device_session(
            request, asked.launch, timeout_s=timeout_s, launch_timeout_s=launch_timeout, progress=tell
        ) as session,
    ):
        if asked.launch is None:
            say(f"This is launch {session.held.launch}, {session.baseline.name}; --launch N takes another.")
        captures = [(variant.name, _compiled(session.baseline, variant, timeout_s, tell)) for variant in variants]
        measured = _measured(session, captures or [("baseline, again", session.baseline)], rounds, not warm)
        bench = _with_rates(measured, session, known_bytes, known_flops)
    if as_json:
        emit_json(bench_json(bench), output)
    else:
        paint = colored(color) and output is None
        emit(render_bench(bench, width=width() if output is None else None, color=paint), output, painted=paint)
    for _, capture in captures:
        if capture.failure is not None:
            say(failure_text(capture))
    return int(any(row.timing is None for row in bench.rows))


def variants_of(plan: PassPlan, versus: list[str]) -> list[Variant]:
    """The variants that the command line names, in its order; raises PlanError, UsageError and CaptureNotFound."""
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
            raise UsageError(f"--vs {text!r}: write KEY=VALUE, several with commas, such as num_warps=8,num_stages=4.")
        rows.append((name.replace("-", "_"), option_value(value)))
    return tuple(rows)


def _capture(text: str) -> Capture:
    path = Path(text)
    if path.suffix == SUFFIX:
        return load(path)
    try:
        return CaptureStore().load(text)
    except CaptureNotFound as error:
        raise CaptureNotFound(
            f"--vs {text!r} is no plan (-combine), no option (num_warps=8), and no capture: {error}"
        ) from None


def _compiled(baseline: Capture, variant: Variant, timeout_s: float, tell: Callable[[str], None] | None) -> Capture:
    """A variant's capture: its own, or the baseline's source compiled again."""
    from irscope.record.requests import request_from_capture
    from irscope.record.session import record_request

    if variant.capture is not None:
        return variant.capture
    constants = {name for name, _ in baseline.launch.constants}
    known = {name for name, _ in baseline.launch.options}
    for name, _ in variant.options:
        if name in constants and name not in known:
            raise UsageError(
                f"--vs {name}=…: {name} is a tl.constexpr, and the launch's grid and inputs go with its value. Change "
                "it in the script."
            )
    tell_origin(baseline)
    request = request_from_capture(
        baseline, plan=str(variant.plan or ""), options=dict(variant.options), snapshots="none"
    )
    request = replace(request, layouts=False, disassemble=False)
    recording = record_request(request, timeout_s=timeout_s, progress=tell)
    if recording.interrupted:
        raise Interrupted(recording.signal_number)
    (capture,) = recording.captures
    check_plan(variant.plan or PassPlan(), [capture])
    return capture


def _measured(session: DeviceSession, captures: list[tuple[str, Capture]], rounds: int, cold: bool) -> Bench:
    from irscope.render.bench import Bench, BenchRow

    agreements = [session.check(capture) for _, capture in captures]
    runs = [agreement.verdict not in ("fault", "timeout", "failed") for agreement in agreements]
    timed = [capture for (_, capture), one in zip(captures, runs, strict=True) if one]
    base, times = session.time_all(timed, rounds=rounds, cold=cold)
    waiting = iter(times)
    rows: list[BenchRow] = [BenchRow("baseline", base, None, None)]
    for (name, capture), agreement, one in zip(captures, agreements, runs, strict=True):
        timing, ratio = next(waiting) if one else (None, None)
        same = one and _binary(capture) == _binary(session.baseline)
        rows.append(BenchRow(name, timing, ratio, agreement, same))
    held = session.held
    launch = session.baseline.launch
    return Bench(
        kernel=session.baseline.name,
        launch=held.launch,
        grid=launch.grid,
        device=held.device,
        rows=tuple(rows),
        l2_bytes=held.l2_bytes,
        noise=held.noise,
    )


def _binary(capture: Capture) -> bytes | str | None:
    return next((artifact.data for artifact in capture.artifacts if artifact.stage in ("cubin", "hsaco")), None)


def _with_rates(bench: Bench, session: DeviceSession, known_bytes: float | None, known_flops: float | None) -> Bench:
    from irscope.analysis.dot_flops import count_dot_flops

    held, base = session.held, session.baseline
    moved = int(known_bytes) if known_bytes else held.bytes
    source = "as given" if known_bytes else "every tensor that it reads, and every one that it writes, once"
    if moved is None:
        source = "not known, for the kernel's pointers could not be followed; --bytes N says it"
    flops, flops_source, dtype = (int(known_flops) if known_flops else None), "as given", ""
    if "ttir" in base.stages:
        counted = count_dot_flops(base.text("ttir"), dict(held.scalars), base.launch.grid or (1, 1, 1))
        dtype = counted.dtype
        if flops is None:
            flops = counted.flops
            flops_source = "of its dots, whole tiles" if flops else f"not known: {counted.why_not}; --flops N says it"
    elif flops is None:
        flops_source = "not known: there is no ttir to count them in; --flops N says it"
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
