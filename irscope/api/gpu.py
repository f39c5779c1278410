"""Launches of a program that are kept on the GPU: to run variants, and to time fixes and upgrades."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace

from irscope.analysis.code import code_of
from irscope.analysis.findings.arguments import not_so
from irscope.analysis.findings.model import Finding, FixChange, Proof, Suggestion
from irscope.analysis.upgrade.compare import with_measurement
from irscope.analysis.upgrade.model import Upgrade, UpgradeRow
from irscope.device.measurement import Agreement, Measurement, measure_programs
from irscope.errors import DeviceFault, MissingTool, NoDevice, RecordingError
from irscope.model.capture import Capture
from irscope.plan import PassPlan
from irscope.record.gpu.session import DeviceSession, measure_pair
from irscope.record.process.child import ask_child
from irscope.record.process.requests import RecordRequest

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
        request: of the program.
        number: which launch of the program it is, from 1.
        capture: the launch's capture.
        findings: with their proofs.
        compiled: all changes of a compile -> its capture.
    """
    wanted = {changes for one in findings for changes in _helped(one)}
    hindered = {changes: not_so(capture, changes) for changes in wanted}
    programs = {str(index): changes for index, changes in enumerate(compiled) if hindered.get(changes) == ""}
    answers: dict[tuple[FixChange, ...], Proof] = {
        changes: Proof(True, untimed=f"not timed: {why}") for changes, why in hindered.items() if why
    }
    if programs:
        with launch_on_gpu(request, capture, number) as session:
            found = measure_programs(
                session, {name: compiled[changes] for name, changes in programs.items()}, rounds=_ROUNDS
            )
        for name, (agreement, _, ratio) in found.items():
            untimed = "" if ratio is not None else f"not timed: {agreement.detail or agreement.verdict}"
            answers[programs[name]] = Proof(True, agreement=agreement, ratio=ratio, untimed=untimed)
    return tuple(_with_times(one, answers.get) for one in findings)


def _helped(finding: Finding) -> list[tuple[FixChange, ...]]:
    return [one.changes for one in finding.suggestions if one.proof is not None and one.proof.helps]


def _with_times(finding: Finding, answer_of: Callable[[tuple[FixChange, ...]], Proof | None]) -> Finding:
    def told(one: Suggestion) -> Suggestion:
        answer = answer_of(one.changes) if one.proof is not None and one.proof.helps else None
        if answer is None or one.proof is None:
            return one
        measured = replace(one.proof, agreement=answer.agreement, ratio=answer.ratio, untimed=answer.untimed)
        return replace(one, proof=measured)

    return replace(finding, suggestions=tuple(map(told, finding.suggestions)))


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
    """What the script launched under each, in order."""
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
            return replace(row, why_not_measured="it does not compile by both")
        if code_of(row.before) == code_of(row.after):
            return replace(row, why_not_measured="both run the same machine code")
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
