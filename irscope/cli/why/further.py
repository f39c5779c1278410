"""Studies a capture with what takes a compile: which operation each instruction is from, and the compiler's log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from irscope.analysis.findings.find import findings_of
from irscope.analysis.findings.needs import LogNeeds, log_needs, needs_operations
from irscope.analysis.findings.studied import Studied
from irscope.cli.output.talk import say
from irscope.cli.subject.captures import tell_origin
from irscope.cli.subject.operations import with_operations
from irscope.errors import IrscopeError
from irscope.model.compiler_log import CompilerLog

if TYPE_CHECKING:
    from irscope.analysis.findings.model import Finding
    from irscope.model.capture import Capture
    from irscope.record.process.requests import RecordRequest

    Run = Callable[[RecordRequest], Capture]

__all__ = ["studied_further"]


def studied_further(
    capture: Capture, studied: Studied, findings: Sequence[Finding], launched: Callable[[Capture], Capture], run: Run
) -> tuple[Studied, Sequence[Finding]]:
    """A capture as it was studied, and its findings, with the compiles that could change them; else the same ones.

    Args:
        capture: the capture as it is stored.
        studied: the same, perhaps with another launch.
        findings: what was found without a compile.
        launched: gives it that launch.
        run: does a compile.
    """
    if needs_operations(studied):
        full = with_operations(capture, sass=False, run=run)
        if full is not capture:
            studied = Studied(launched(full))
            findings = findings_of(studied)
    if needs := log_needs(studied, findings):
        try:
            log = _log(studied.capture, needs, run)
        except IrscopeError as error:
            say(f"The compiler's own log could not be had: {error}")
            return studied, findings
        studied = studied.with_log(replace(studied.capture, log=log))
        findings = findings_of(studied)
    return studied, findings


def _log(capture: Capture, needs: LogNeeds, run: Run) -> CompilerLog:
    """The parts of the log that are needed; raises RecordingError where it cannot be compiled again here."""
    from irscope.record.compile.compiler_log import find_assembler_log, find_log

    tell_origin(capture)
    logs = [find_log(capture, run, parts=needs.parts, last_stage="ttgir")] if needs.parts else []
    if needs.assembler:
        logs.append(find_assembler_log(capture, run))
    differing = tuple(stage for log in logs for stage in log.differing)
    if differing:
        say(f"Compiled again for its log, {capture.name} came out otherwise: {', '.join(differing)}.")
    return CompilerLog(tuple(item for log in logs for item in log.passes), differing)
