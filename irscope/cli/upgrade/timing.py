"""`irscope upgrade --time`: the launches of a script as both environments make them, compared and timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace

from irscope.analysis.code import code_of
from irscope.analysis.upgrade.compare import with_measurement
from irscope.analysis.upgrade.model import Row, Upgrade
from irscope.cli.subject.device import launch_on_gpu
from irscope.device.measurement import Agreement, Measurement
from irscope.errors import DeviceFault, MissingTool, NoDevice, RecordingError
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions
from irscope.record.gpu.session import DeviceSession, measure_pair
from irscope.record.process.child import ask_child

__all__ = ["PairTimer", "require_gpu"]

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

    subject: str | None
    asked: RecordingOptions
    pythons: tuple[str | None, str | None]
    recorded: tuple[Sequence[Capture], Sequence[Capture]]
    """What the script launched under each, in order."""
    rounds: int
    cold: bool

    def measured(self, upgrade: Upgrade, progress: Callable[[str, int, int], None]) -> Upgrade:
        """An upgrade whose rows hold what their launches do; where one cannot be made, why not."""
        rows: list[Row] = []
        for row in upgrade.rows:
            rows.append(self._measured(row))
            progress("launches", len(rows), len(upgrade.rows))
        device = next((row.measured.device for row in rows if row.measured is not None), "the GPU")
        return replace(upgrade, rows=tuple(rows), device=device)

    def _measured(self, row: Row) -> Row:
        if row.before is None or row.after is None:
            return row
        if not (row.before.has_compiled and row.after.has_compiled):
            return replace(row, why_not_measured="it does not compile by both")
        if code_of(row.before) == code_of(row.after):
            return replace(row, why_not_measured="both make the same binary")
        try:
            return with_measurement(row, self._measurement(row.before, row.after))
        except (DeviceFault, RecordingError) as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            return replace(row, why_not_measured=lines[0])

    def _measurement(self, before: Capture, after: Capture) -> Measurement:
        with self._launch(0, before) as first, ExitStack() as held:
            try:
                second = held.enter_context(self._launch(1, after))
            except DeviceFault as fault:
                # It runs as the one compiled it, and not as the other did.
                return Measurement(first.info.device, agreement=Agreement("fault", detail=str(fault)))
            return measure_pair(first, second, rounds=self.rounds, cold=self.cold)

    def _launch(self, side: int, capture: Capture) -> AbstractContextManager[DeviceSession]:
        numbers = {one.id: number for number, one in reversed([*enumerate(self.recorded[side], 1)])}
        asked = replace(self.asked, interpreter=self.pythons[side])
        return launch_on_gpu(self.subject, asked, capture, numbers[capture.id])
