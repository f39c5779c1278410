"""Findings as text and as JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from os.path import basename
from typing import Any

from irscope.analysis.findings.model import Finding, Proof, Suggestion
from irscope.render.text.tables import picked

# %acc_66      #blocked1      line 95 of ttgir
_NAME = re.compile(r"[%#][\w.$-]+|\bline \d+ of ttgir")
_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


def render_findings(findings: Sequence[Finding], *, color: bool) -> str:
    """Each finding with its causes, the evidence of each, and what mends it; equal ones once, with all their lines."""
    return "\n".join("\n".join(_lines(one, others, color)) + "\n" for one, *others in _grouped(findings))


def _grouped(findings: Sequence[Finding]) -> Iterable[list[Finding]]:
    """Findings that say the same of several operations, names and lines of the IR aside, each group at its first."""
    groups: dict[object, list[Finding]] = {}
    for one in findings:
        causes = tuple((_NAME.sub("", cause.text), cause.evidence) for cause in one.causes)
        key = (one.code, one.operation, one.text, one.cost, causes, one.suggestions) if one.operation else id(one)
        groups.setdefault(key, []).append(one)
    return groups.values()


def line_of_finding(finding: Finding) -> str:
    """A finding on one line: `IRS501 spills  matmul.py:31  spills registers: …`."""
    file, line = finding.place[0] if finding.place else ("", 0)
    place = f"{basename(file)}:{line}" if file else ""
    operation = f"{finding.operation} {finding.text}" if finding.operation else finding.text
    return "  ".join(filter(None, (f"{finding.code} {finding.kind.name}", place, operation)))


def findings_json(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Findings as plain values, in their order."""
    return [
        picked(
            one,
            "code name=kind.name operation values text cost weight",
            ttgir_line=one.line or None,
            place=[{"file": file, "line": line} for file, line in one.place],
            causes=[asdict(cause) for cause in one.causes],
            suggestions=[_suggestion_json(suggestion) for suggestion in one.suggestions],
        )
        for one in findings
    ]


def _lines(finding: Finding, others: Sequence[Finding], color: bool) -> Iterator[str]:
    bold, dim, plain = (_BOLD, _DIM, _PLAIN) if color else ("", "", "")
    calls = _calls(finding) or "the whole kernel"
    operation = " ".join(filter(None, (finding.operation, *finding.values[:1])))
    yield f"{bold}{finding.code} {finding.kind.name}{plain}  {calls}  {operation}".rstrip()
    if others:
        places = Counter(map(_calls, others))
        counted = ", ".join(f"{place}{f' ({number} times)' if number > 1 else ''}" for place, number in places.items())
        yield f"  {len(others) + 1} times, also: {counted}"
    yield f"  {finding.text}"
    yield f"  cost: {finding.cost}"
    for number, cause in enumerate(finding.causes):
        yield f"  {'because' if not number else '       '} {cause.text} {dim}[{cause.evidence}: {cause.source}]{plain}"
    for one in sorted(finding.suggestions, key=_order):
        yield from _suggested(one, dim, plain)


def _calls(finding: Finding) -> str:
    """`helper.py:3 ← kernel.py:12`."""
    return " ← ".join(f"{basename(file)}:{line}" for file, line in finding.place)


def _order(suggestion: Suggestion) -> int:
    if suggestion.proof is None:
        return 1
    return 0 if suggestion.proof.helps else 2


def _suggested(one: Suggestion, dim: str, plain: str) -> Iterator[str]:
    proof = one.proof
    if proof is None:
        yield f"  not tried: {one.text}"
    elif proof.helps:
        yield f"  fix: {one.text}"
        how = "together with the other fixes" if proof.together else f"with {one.tried}"
        yield f"        compiled {how}: {'; '.join(filter(None, (*proof.effects, _unseen(proof), proof.timing)))}"
    else:
        why = proof.failure or f"no improvement{': ' if proof.effects else ''}{'; '.join(proof.effects)}"
        yield f"  {dim}tried {one.tried}: {why}{plain}"


def _unseen(proof: Proof) -> str:
    """`not compared: registers, shared memory`; empty if everything was."""
    return f"not compared: {', '.join(proof.unseen)}" if proof.unseen else ""


def _suggestion_json(one: Suggestion) -> dict[str, Any]:
    head = {"text": one.text, "changes": [str(change) for change in one.changes]}
    proof = one.proof
    if proof is None:
        nothing: dict[str, Any] = {"compiled_with": [], "effects": [], "not_compared": []}
        return head | nothing | {"outcome": "not tried", "failure": "", "time": None}
    time = {
        "verdict": proof.agreement.verdict if proof.agreement is not None else None,
        "ratio": proof.ratio.as_json() if proof.ratio is not None else None,
        "untimed": proof.untimed,
    }
    return picked(
        proof,
        "effects failure not_compared=unseen",
        **head,
        compiled_with=list(map(str, proof.together or one.changes)),
        outcome="better" if proof.helps else "failed" if proof.failure else "no improvement",
        time=time if proof.timing else None,
    )
