"""`irscope why --time`: runs each mend that helped on the GPU, beside the launch as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from irscope.analysis.findings.arguments import not_so
from irscope.analysis.findings.model import Finding, FixChange, Proof, Suggestion
from irscope.cli.subject.device import launch_on_gpu, why_no_gpu
from irscope.device.measurement import measure_programs
from irscope.errors import NoDevice
from irscope.model.capture import Capture
from irscope.model.recording_options import RecordingOptions

__all__ = ["Timer"]

_ROUNDS = 50


class Timer:
    """Times mends of the launches of a script."""

    def __init__(self, subject: str | None, record_options: RecordingOptions) -> None:
        self._subject = subject
        self._asked = record_options

    def require_gpu(self, capture: Capture) -> None:
        """Raise NoDevice where the launch cannot be run."""
        if reason := why_no_gpu(self._subject, self._asked, capture):
            raise NoDevice(f"--time: {reason} Without --time nothing is run.")

    def timed(
        self,
        capture: Capture,
        number: int,
        findings: Sequence[Finding],
        compiled: Mapping[tuple[FixChange, ...], Capture],
    ) -> tuple[Finding, ...]:
        """The findings, with what each mend that helped is worth in a launch.

        A mend that changes an argument is run only where the launch's own argument is so already.

        Args:
            capture: the launch's capture.
            number: which launch of the script it is, from 1.
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
            with launch_on_gpu(self._subject, self._asked, capture, number) as session:
                found = measure_programs(
                    session, {name: compiled[changes] for name, changes in programs.items()}, rounds=_ROUNDS
                )
            for name, (agreement, _, ratio) in found.items():
                untimed = "" if ratio is not None else f"not timed: {agreement.detail or agreement.verdict}"
                answers[programs[name]] = Proof(True, agreement=agreement, ratio=ratio, untimed=untimed)
        return tuple(_with_times(one, answers.get) for one in findings)


def _helped(finding: Finding) -> list[tuple[FixChange, ...]]:
    return [_key(one) for one in finding.suggestions if one.proof is not None and one.proof.helps]


def _key(one: Suggestion) -> tuple[FixChange, ...]:
    return (one.proof.together if one.proof is not None else ()) or one.changes


def _with_times(finding: Finding, answer_of: Callable[[tuple[FixChange, ...]], Proof | None]) -> Finding:
    def told(one: Suggestion) -> Suggestion:
        answer = answer_of(_key(one)) if one.proof is not None and one.proof.helps else None
        if answer is None or one.proof is None:
            return one
        measured = replace(one.proof, agreement=answer.agreement, ratio=answer.ratio, untimed=answer.untimed)
        return replace(one, proof=measured)

    return replace(finding, suggestions=tuple(map(told, finding.suggestions)))
