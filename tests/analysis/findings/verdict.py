"""Whether the findings of a planted kernel name the right cause and line, and its clean twin has none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from irscope.analysis.findings.find import findings_of
from irscope.analysis.findings.model import Finding, FixChange, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.analysis.findings.tries import Budget
from irscope.api.explain import Explainer
from irscope.model.capture import Capture
from irscope.record.variants.compiles import Compiles
from irscope.record.variants.completing import reporting
from tests.analysis.findings.cases import (
    DISASSEMBLED,
    LOGGED,
    Case,
    Run,
    Variant,
    code_lines,
    compiled,
    marked_lines,
    one_capture,
)
from tests.analysis.findings.proofs import contradictions

__all__ = ["Verdict", "judge"]

_STAND_INS = "assumed"
_MOST_TRIES = 8
_PLACE = re.compile(r"\((?:planted|rows|products|layouts|constants|launches)\.py:(\d+)\)")
_FEW_TRIES = 2
"""What `why` tries unless told otherwise."""


@dataclass(frozen=True)
class Verdict:
    """What became of a case on a target."""

    status: Literal["right", "wrong", "missing", "failed"]
    """`failed`: it does not compile."""
    why: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """The other findings of the planted kernel and of its twin."""
    held: int = 0
    """How many figures of its suggestions were held against the artifacts of their compiles."""


def judge(case: Case, target: str, run: Run = one_capture) -> Verdict:
    """The verdict on a case; `run` compiles. The log is read for kinds that nothing else tells of."""
    how = (case.code in LOGGED, case.code in DISASSEMBLED and target.startswith("cuda"))
    (studied, findings), (twin, clean) = (_found(one, target, *how, run) for one in (case.planted, case.clean))
    for one in (studied.capture, twin.capture):
        if "ttgir" not in one.stages:
            return Verdict("failed", (one.failure.headline if one.failure is not None else "it made no TTGIR",))
    found = [one for one in findings if one.code == case.code]
    others = tuple(
        f"{'clean ' if finding in clean else ''}{finding.code} line {_line(finding)}: {finding.text}"
        for finding in (*findings, *clean)
        if finding.code != case.code
    )
    if not found:
        return Verdict("missing", others=others)
    wrong = [*_of_place(case, found), *_of_causes(case, found)]
    if again := [one for one in clean if one.code == case.code]:
        wrong.append(f"the clean twin has it on line {_line(again[0])}: {[cause.text for cause in again[0].causes]}")
    held, refuted, tried = _proven(studied, found, _MOST_TRIES if case.helps else _FEW_TRIES)
    wrong += refuted
    helped = [one for one in tried if one.proof is not None and one.proof.is_better]
    if case.helps and not any(
        one.tried == case.helps or (one.is_relaid and one.tried.endswith(case.helps)) for one in helped
    ):
        wrong.append(f"{case.helps} is no suggestion that helped: {[(one.tried, one.proof) for one in tried]}")
    return Verdict("wrong" if wrong else "right", tuple(wrong), others, held)


@lru_cache(maxsize=8)
def _found(
    variant: Variant, target: str, logged: bool, disassembled: bool, run: Run
) -> tuple[Studied, tuple[Finding, ...]]:
    """A variant and its findings; with the log, if asked for, where `why` reads it."""
    studied = Studied(compiled(variant, target, False, disassembled, run))
    findings = findings_of(studied)
    if logged:
        with reporting(_unheard):
            studied, findings = Explainer().studied_further(studied.capture, studied, findings, run)
    return studied, tuple(findings)


def _proven(studied: Studied, found: Sequence[Finding], most: int) -> tuple[int, list[str], list[Suggestion]]:
    """(figures that were held against artifacts, those that are not there, suggestions of the first finding)."""
    held: list[tuple[int, list[str]]] = []

    def checked(findings: Sequence[Finding], captures: Mapping[tuple[FixChange, ...], Capture]) -> tuple[Finding, ...]:
        held.append(contradictions(studied.capture, findings, captures))
        return tuple(findings)

    with Compiles() as compiles, reporting(_unheard):
        explainer = Explainer(compiles, Budget.of(most))
        first, *_ = explainer.tried(studied, found, compiles, checked)
    return sum(count for count, _ in held), [text for _, texts in held for text in texts], list(first.suggestions)


def _unheard(_: str) -> None:
    """Nothing is said of where what is tried comes from."""


def _line(finding: Finding) -> int:
    return finding.place[0][1] if finding.place else 0


def _of_place(case: Case, found: Sequence[Finding]) -> list[str]:
    lines = {_line(one) for one in found}
    marked = marked_lines(case.planted.kernel, case.code, case.planted.file)
    # A line that a cause names has code of the kernel, or of a helper that it calls.
    named = {int(match[1]) for one in found for cause in one.causes for match in _PLACE.finditer(cause.text)}
    wrong = [f"causes name lines {named - code}"] if not named <= (code := code_lines(case.planted)) else []
    return wrong if case.is_of_kernel or lines <= marked else [*wrong, f"lines {lines} in place of {marked}"]


def _of_causes(case: Case, found: Sequence[Finding]) -> list[str]:
    wrong = [
        f"line {_line(one)}: no {case.cause!r} in {[cause.text for cause in one.causes]}"
        for one in found
        if not any(case.cause in cause.text for cause in one.causes)
    ]
    blamed = [cause for one in found for cause in one.causes if cause.evidence == "launch"]
    words = (case.cause, *case.also)
    return wrong + [
        f"the launch is blamed: {cause.text}"
        for cause in blamed
        if cause.source != _STAND_INS
        and not any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", cause.text) for word in words)
    ]
