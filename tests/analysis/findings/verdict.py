"""Whether the findings of a planted kernel name the right cause and line, and its clean twin has none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from irscope.analysis.findings.find import findings_of
from irscope.analysis.findings.model import Finding
from irscope.analysis.findings.studied import Studied
from irscope.cli.why.budget import Budget
from irscope.cli.why.compiles import Compiles
from irscope.cli.why.further import studied_further
from irscope.cli.why.prove import proven
from irscope.model.capture import Capture
from tests.analysis.findings.cases import Case, Run, Variant, marked_lines, of_code, one_capture

__all__ = ["Verdict", "judge"]

_STAND_INS = "assumed"
_MOST_TRIES = 8


@dataclass(frozen=True)
class Verdict:
    """What became of a case on a target."""

    status: Literal["right", "wrong", "missing", "failed"]
    """`failed`: it does not compile."""
    why: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """The other findings of the planted kernel and of its twin."""


def judge(case: Case, target: str, run: Run = one_capture) -> Verdict:
    """The verdict on a case; `run` compiles. The log is read where `why` reads it."""
    (capture, findings), (twin, clean) = (_found(one, target, case.code, run) for one in (case.planted, case.clean))
    for one in (capture, twin):
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
    if case.helps:
        with Compiles() as compiles:
            (one,) = proven(Studied(capture), found[:1], compiles, Budget.of(_MOST_TRIES))
        tried = {each.tried: each.proof for each in one.suggestions}
        proof = tried.get(case.helps)
        if proof is None or not proof.helps:
            wrong.append(f"{case.helps} is no suggestion that helped: {tried}")
    return Verdict("wrong" if wrong else "right", tuple(wrong), others)


def _found(variant: Variant, target: str, code: str, run: Run) -> tuple[Capture, tuple[Finding, ...]]:
    capture = of_code(variant, target, code, False, run)
    studied = Studied(capture)
    studied, findings = studied_further(capture, studied, findings_of(studied), lambda one: one, run)
    return capture, tuple(findings)


def _line(finding: Finding) -> int:
    return finding.place[0][1] if finding.place else 0


def _of_place(case: Case, found: Sequence[Finding]) -> list[str]:
    lines = {_line(one) for one in found}
    marked = marked_lines(case.planted.kernel, case.code, case.planted.file)
    return [] if case.is_of_kernel or lines <= marked else [f"lines {lines} in place of {marked}"]


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
