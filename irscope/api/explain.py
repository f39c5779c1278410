"""The slow parts of a kernel and their causes: from a capture alone, and with more compiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from irscope.analysis.findings.costs import Timed, priced, timed
from irscope.analysis.findings.find import LogNeeds, findings_of, log_needs, needs_operations
from irscope.analysis.findings.fixes import FixTimer, tried
from irscope.analysis.findings.model import Finding, is_silenced
from irscope.analysis.findings.studied import Studied
from irscope.analysis.findings.tries import Budget, Tries
from irscope.errors import IrscopeError
from irscope.model.capture import Capture
from irscope.model.evidence import CompilerLog
from irscope.model.recording_options import RecordingOptions
from irscope.record.variants.completing import (
    Run,
    reporting,
    tell,
    tell_origin,
    with_layouts,
    with_operations,
    with_sass,
)

if TYPE_CHECKING:
    from irscope.record.variants.compiles import Compiles


@dataclass(frozen=True, slots=True)
class Explanation:
    """The findings of a kernel."""

    findings: tuple[Finding, ...]
    """The worst first, each with its causes, and with the result of each suggestion that was tried."""
    silenced: int = 0
    """How many more findings comments in the kernel silence."""
    time: Timed = Timed(None, None, why_not="it was not predicted")  # noqa: RUF009 - a frozen value
    """The predicted time of the launch, or why there is none."""

    def _repr_html_(self) -> str:
        from irscope.render.text.findings import render_findings
        from irscope.render.text.tables import preformatted

        return preformatted(render_findings(self.findings, color=False) or "No findings.")


@dataclass(frozen=True, slots=True)
class Explainer:
    """Explains captures, one after another, by the same compiles.

    Args:
        compiles: does them; None where nothing is compiled.
        budget: how many compiles try suggestions.
        launched: gives a capture another launch, with which it is studied.
        chosen: whether a finding is asked for.
    """

    compiles: Compiles | None = None
    budget: Budget = Budget()  # noqa: RUF009 - a frozen value
    launched: Callable[[Capture], Capture] = lambda capture: capture
    chosen: Callable[[Finding], bool] = lambda _: True

    def explain(self, capture: Capture, timer: FixTimer | None = None) -> Explanation:
        """The findings of a capture; `timer` adds the effect on the time of a launch of each fix."""
        compiles = self.compiles
        if compiles is not None:
            compiles.keep_for(capture)
            capture = with_layouts(capture)
        capture = _with_sass(capture, self.launched(capture).launch.grid is not None)
        studied = Studied(self.launched(capture))
        found = findings_of(studied)
        if compiles is not None:
            studied, found = self.studied_further(capture, studied, found, compiles.one)
        time = _timed(studied.capture)
        found = priced(studied, found, time)
        wanted = [one for one in found if self.chosen(one)]
        shown = tuple(one for one in wanted if not is_silenced(one, capture))
        count = len(wanted) - len(shown)
        if compiles is not None and shown:
            shown = self.tried(studied, shown, compiles, timer, time)
        return Explanation(shown, count, time)

    def tried(
        self,
        studied: Studied,
        findings: Sequence[Finding],
        compiles: Compiles,
        timer: FixTimer | None = None,
        time: Timed | None = None,
    ) -> tuple[Finding, ...]:
        """The findings with what became of each suggestion that can be tried by the Triton that is here."""
        from irscope.record.triton.versions import triton_version

        capture = studied.capture
        whole = time.prediction.seconds if time is not None and time.model is not None and time.prediction else None
        if whole is None and not any(one.changes for finding in findings for one in finding.suggestions):
            return tuple(findings)
        if capture.environment.triton_version != triton_version():
            version = capture.environment.triton_version
            tell(f"{capture.name} was compiled by Triton {version}: nothing was tried with another.")
            return tuple(findings)
        tell_origin(capture)
        assumed = time.prediction.notes if time is not None and time.prediction is not None else ()
        predicted = partial(_predicted, assumed) if whole is not None else None
        proven, notes = tried(
            studied, findings, compiles.trials, self.budget, timer, predicted, whole, partial(_reconfigured, capture),
            (time.floor_seconds if time is not None else None) or 0.0,
        )  # fmt: skip
        for note in notes:
            tell(note)
        return proven

    def studied_further(
        self, capture: Capture, studied: Studied, findings: Sequence[Finding], run: Run
    ) -> tuple[Studied, Sequence[Finding]]:
        """A capture as it was studied, and its findings, with the compiles that could change them; else the same ones.

        `capture`: as it is stored, where `studied` may have another launch. `run` compiles.
        """
        if needs_operations(studied):
            full = with_operations(capture, sass=False, run=run)
            if full is not capture:
                studied = Studied(self.launched(full))
                findings = findings_of(studied)
        if needs := log_needs(studied, findings):
            try:
                log = self._log(studied.capture, needs, run)
            except IrscopeError as error:
                tell(f"The compiler's own log could not be obtained: {error}")
                return studied, findings
            studied = studied.with_log(replace(studied.capture, log=log))
            findings = findings_of(studied)
        return studied, findings

    def _log(self, capture: Capture, needs: LogNeeds, run: Run) -> CompilerLog:
        """The parts of the log that are needed; raises RecordingError where it cannot be compiled again here."""
        from irscope.record.compile.second import find_assembler_log, find_log

        tell_origin(capture)
        logs = [find_log(capture, run, parts=needs.parts, last_stage="ttgir")] if needs.parts else []
        if needs.assembler:
            logs.append(find_assembler_log(capture, run))
        differing = tuple(stage for log in logs for stage in log.differing)
        if differing:
            tell(f"Compiled again for its log, {capture.name} compiled differently: {', '.join(differing)}.")
        return CompilerLog(tuple(item for log in logs for item in log.passes), differing)


def _with_sass(capture: Capture, is_launched: bool) -> Capture:
    is_needed = is_launched and capture.target.backend == "cuda" and capture.failure is None
    return with_sass(capture) if is_needed else capture


def _timed(capture: Capture) -> Timed:
    """The predicted time of a launch: without machine code that can be followed, by its bytes and its arithmetic."""
    found = timed(capture)
    if found.prediction is not None or capture.failure is not None:
        return found
    from irscope.api.timing import time, with_floor

    try:
        prediction = time(capture)
        return Timed(prediction, with_floor(capture, prediction)[1])
    except IrscopeError:
        return found


def smaller(capture: Capture) -> list[tuple[str, Capture | None]]:
    """What would fit of a launch that asks for too much memory: fewer stages, and each tile halved.

    Each change, with its compile; None where that was refused. Tiles are changed where the capture's code may run.
    """
    from irscope.record.variants.compiles import Compiles

    tell_origin(capture)
    reconfigured = partial(_reconfigured, capture) if capture.environment.is_trusted else None
    with Compiles() as compiles:
        compiles.keep_for(capture)
        made = Tries(Studied(capture), compiles.trials, Budget.of(None)).smaller(reconfigured)
    return [(", ".join(map(str, changes)), after) for changes, after in made]


def _reconfigured(
    capture: Capture, constants: tuple[tuple[str, str], ...], grid: tuple[int, int, int]
) -> Capture | None:
    """The launch with other tl.constexpr values, compiled from the Python text; None where that cannot be done."""
    from irscope.api.texts import EditPlace
    from irscope.record.process.own_folder import own_folder

    values = dict(capture.launch.constants) | dict(constants)
    launch = replace(capture.launch, constants=tuple(values.items()), grid=grid)
    place = EditPlace(replace(capture, launch=launch))
    try:
        with own_folder() as folder, reporting(lambda _: None):
            path = folder / "kernel.py"
            path.write_text(place.text(), "utf-8", "surrogateescape")
            return place.compiled(
                place.text(), path, RecordingOptions(snapshots="none", targets=(str(capture.target),))
            )
    except IrscopeError:
        return None


def _predicted(assumed: tuple[str, ...], capture: Capture) -> float | None:
    """The predicted time of a fix; None where it rests on other assumptions than that of the launch as it is."""
    prediction = timed(_with_sass(capture, True)).prediction
    return prediction.seconds if prediction is not None and prediction.notes == assumed else None
