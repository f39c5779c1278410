"""Launches of a program that are kept on the GPU: to run, check and time variants, fixes and upgrades."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from irscope.analysis.code import code_of
from irscope.analysis.findings.arguments import not_so
from irscope.analysis.findings.model import Finding, FixChange, Suggestion
from irscope.analysis.upgrade.model import Upgrade, UpgradeRow
from irscope.device.measurement import Agreement, Measurement, measure_programs
from irscope.errors import DeviceFault, MissingTool, NoDevice, RecordingError, UsageError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.plan import PassPlan
from irscope.record.gpu.session import DeviceSession, measure_pair
from irscope.record.process.child import ask_child
from irscope.record.process.requests import RecordRequest, request_from_capture
from irscope.record.variants.completing import tell_origin

if TYPE_CHECKING:
    from irscope.record.gpu.session import DeviceSession
    from irscope.render.text.bench import Bench, BenchRow


_ROUNDS = 50


@contextmanager
def launch_on_gpu(request: RecordRequest, capture: Capture, number: int) -> Generator[DeviceSession]:
    """Launch number `number` of the program that a capture was recorded from, kept on the GPU.

    Raises RecordingError if the program makes another launch this time, and NoDevice without a GPU.
    """
    from irscope.record.gpu.session import device_session

    with device_session(replace(request, plan=PassPlan(), snapshots="none"), number) as session:
        if session.baseline.text("source") != capture.text("source"):
            raise RecordingError(f"{request.path} launched another kernel, or with other arguments, when it ran again.")
        yield session


def fixes_timed(
    request: RecordRequest,
    number: int,
    capture: Capture,
    findings: Sequence[Finding],
    compiled: Mapping[tuple[FixChange, ...], Capture],
) -> tuple[Finding, ...]:
    """The findings, with the effect on a launch of each fix that made the code better.

    A fix that changes an argument is run only where the launch's own argument is so already.

    Args:
        number: which launch of the program it is, from 1.
        compiled: all changes of a compile -> its capture.
    """
    suggestions = (each for one in findings for each in one.suggestions)
    wanted = {one.changes for one in suggestions if one.proof is not None and one.proof.is_better}
    hindered = {changes: not_so(capture, changes) for changes in wanted}
    programs = {str(index): changes for index, changes in enumerate(compiled) if hindered.get(changes) == ""}
    answers: dict[tuple[FixChange, ...], dict[str, Any]] = {
        changes: {"untimed": f"not timed: {why}"} for changes, why in hindered.items() if why
    }
    if programs:
        with launch_on_gpu(request, capture, number) as session:
            found = measure_programs(
                session, {name: compiled[changes] for name, changes in programs.items()}, rounds=_ROUNDS
            )
        for name, (agreement, _, ratio) in found.items():
            untimed = "" if ratio is not None else f"not timed: {agreement.detail or agreement.verdict}"
            answers[programs[name]] = {"agreement": agreement, "ratio": ratio, "untimed": untimed}

    def told(one: Suggestion) -> Suggestion:
        if one.proof is None or not one.proof.is_better or one.changes not in answers:
            return one
        return replace(one, proof=replace(one.proof, **answers[one.changes]))

    return tuple(replace(one, suggestions=tuple(map(told, one.suggestions))) for one in findings)


_PROBE_TIMEOUT_S = 120.0


def require_gpu(python: str | None, option: str) -> None:
    """Raise MissingTool where an environment has no torch, and NoDevice where it has no GPU to launch on."""
    where = f"{option} {python}" if python is not None else f"{option}, which is this environment,"
    try:
        found = ask_child("irscope.record.gpu.timing", interpreter=python, timeout_s=_PROBE_TIMEOUT_S)
    except MissingTool as error:
        why = (
            "has no torch, which launches need"
            if "No module named 'torch'" in str(error)
            else f"launches none: {error}"
        )
        raise MissingTool(
            f"--time makes launches on a GPU, and {where} {why}. Without --time nothing is run."
        ) from None
    if not found["devices"]:
        raise NoDevice(
            f"--time makes launches on a GPU, and {where} has none: {found['why']}. Without --time nothing is run."
        )


@dataclass(frozen=True, slots=True)
class PairTimer:
    """Measures the launches of a script by both environments, one launch after the other."""

    requests: tuple[RecordRequest, RecordRequest]
    """Of the script, under each."""
    recorded: tuple[Sequence[Capture], Sequence[Capture]]
    """The launches of the script under each, in order."""
    rounds: int
    cold: bool

    def measured(self, upgrade: Upgrade, progress: Callable[[str, int, int], None]) -> Upgrade:
        """An upgrade whose rows hold what their launches do; where one cannot be made, why not."""
        rows: list[UpgradeRow] = []
        for row in upgrade.rows:
            rows.append(self._measured(row))
            progress("launches", len(rows), len(upgrade.rows))
        device = next((row.measured.device for row in rows if row.measured is not None), "the GPU")
        return replace(upgrade, rows=tuple(rows), device=device)

    def _measured(self, row: UpgradeRow) -> UpgradeRow:
        if row.before is None or row.after is None:
            return row
        if not (row.before.has_compiled and row.after.has_compiled):
            return replace(row, why_not_measured="it does not compile with both")
        if code_of(row.before) == code_of(row.after):
            return replace(row, why_not_measured="both run the same machine code")
        # It executes IR, on NumPy, which a GPU does not need.
        from irscope.analysis.upgrade.compare import with_measurement

        try:
            return with_measurement(row, self.measurement(row.before, row.after))
        except (DeviceFault, RecordingError) as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            return replace(row, why_not_measured=lines[0])

    def measurement(self, before: Capture, after: Capture) -> Measurement:
        """Both launches, compared and timed; raises DeviceFault and RecordingError."""
        with self._launch(0, before) as first, ExitStack() as held:
            try:
                second = held.enter_context(self._launch(1, after))
            except DeviceFault as fault:
                # It runs as the one compiled it, and not as the other did.
                return Measurement(first.info.device, agreement=Agreement("fault", detail=str(fault)))
            return measure_pair(first, second, rounds=self.rounds, cold=self.cold)

    def _launch(self, side: int, capture: Capture) -> AbstractContextManager[DeviceSession]:
        numbers = {one.id: number for number, one in reversed([*enumerate(self.recorded[side], 1)])}
        return launch_on_gpu(self.requests[side], capture, numbers[capture.id])


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
) -> Capture:
    """A variant's capture: the one it names, or the baseline's source compiled again."""
    from irscope.record.process.session import record_request

    if variant.capture is not None:
        return variant.capture
    for name, _ in variant.options:
        if name in baseline.launch.constexprs:
            raise UsageError(
                f"--vs {name}=…: {name} is a tl.constexpr, and the launch's grid and inputs depend on it. Change it "
                "in the script."
            )
    tell_origin(baseline)
    record_options = replace(record_options, plan=variant.plan or PassPlan(), options=variant.options)
    (capture,) = record_request(request_from_capture(baseline, record_options), progress=progress).whole().captures
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
