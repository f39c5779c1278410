"""Variants of a launch: compiled, checked and timed on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from irscope.errors import UsageError
from irscope.interruption import Interrupted
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.variants.completing import Tell, tell_origin, warned

if TYPE_CHECKING:
    from irscope.record.gpu.session import DeviceSession
    from irscope.render.text.bench import Bench, BenchRow


@dataclass(frozen=True, slots=True)
class Variant:
    """What the launch is timed against: the same source under a plan or other options, or another capture."""

    name: str
    plan: PassPlan | None = None
    options: tuple[tuple[str, Any], ...] = ()
    capture: Capture | None = None


def compiled_variant(
    baseline: Capture,
    variant: Variant,
    record_options: RecordingOptions,
    progress: Callable[[str], None] | None,
    tell: Tell = warned,
) -> Capture:
    """A variant's capture: the one it names, or the baseline's source compiled again."""
    from irscope.record.process.requests import request_from_capture
    from irscope.record.process.session import record_request

    if variant.capture is not None:
        return variant.capture
    for name, _ in variant.options:
        if name in baseline.launch.constexprs:
            raise UsageError(
                f"--vs {name}=…: {name} is a tl.constexpr, and the launch's grid and inputs depend on it. Change it "
                "in the script."
            )
    tell_origin(baseline, tell)
    record_options = replace(record_options, plan=variant.plan or PassPlan(), options=variant.options)
    recording = record_request(request_from_capture(baseline, record_options), progress=progress)
    if recording.interrupted:
        raise Interrupted(recording.signal_number)
    (capture,) = recording.captures
    return capture


def measured(session: DeviceSession, captures: list[tuple[str, Capture]], rounds: int, cold: bool) -> Bench:
    """Check each variant against the launch as it is, and time those that run, interleaved."""
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


def with_predictions(bench: Bench, captures: list[Capture]) -> Bench:
    """A benchmark with the predicted time of each row's capture, where this GPU's constants are known."""
    from irscope.api.timing import predicted_for

    launch = captures[0].launch
    rows: list[BenchRow] = []
    for row, capture in zip(bench.rows, captures, strict=True):
        same = replace(capture, launch=replace(capture.launch, grid=launch.grid, record=launch.record))
        found = predicted_for(same, bench.device)
        rows.append(replace(row, predicted_us=found.seconds * 1e6 if found is not None else None))
    return replace(bench, rows=tuple(rows))


def _binary(capture: Capture) -> bytes | str | None:
    return next((artifact.data for artifact in capture.artifacts if artifact.stage in ("cubin", "hsaco")), None)


def with_rates(bench: Bench, session: DeviceSession, known_bytes: float | None, known_flops: float | None) -> Bench:
    """A benchmark with its bytes and floating-point operations, as given or counted, and the ceilings of the GPU."""
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
