"""What came of a check as SARIF 2.1.0 (OASIS), which code scanning reads."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from irscope.analysis.checks.model import Breach
from irscope.analysis.checks.results import BreachGroup, Report
from irscope.analysis.findings.model import KINDS
from irscope.render.checks.places import file_and_line, file_uri
from irscope.render.checks.text import breach_lines, others_text

__all__ = ["RULES", "sarif_log"]

RULES = {
    "compiles": "The kernel compiles, and fits on the device.",
    "max-regs": "A thread takes at most so many registers.",
    "no-spills": "No register is spilled to local memory.",
    "max-shared": "A block takes at most so many bytes of shared memory.",
    "uses": "The kernel has instructions of a family, or an operation.",
    "min-width": "Accesses of global memory move at least so many bits per thread at once.",
    "pipelined": "The loads that the dots of a loop read are begun in an iteration before.",
    "filecheck": "The text of a stage has what a file of FileCheck's patterns says.",
    "golden": "The text of a stage is, structurally, that of a file.",
    "baseline": "Nothing got worse than the baseline.",
    **{one.code: f"The kernel has no finding {one.name}." for one in KINDS.values()},
}
"""The kinds of breaches; of findings their codes."""


def sarif_log(report: Report, root: Path, version: str) -> dict[str, Any]:
    """The log: one run with a result for each breach. `root`: what paths are relative to."""
    used = list(dict.fromkeys(_rule(group.breach) for group in report.groups))
    return {
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "irscope",
                        "semanticVersion": version,
                        "rules": [{"id": one, "shortDescription": {"text": RULES[one]}} for one in used],
                    }
                },
                "invocations": [{"executionSuccessful": True}],
                "results": [_result(group, used, root) for group in report.groups],
                "columnKind": "unicodeCodePoints",
            }
        ],
    }


def _rule(breach: Breach) -> str:
    return breach.finding.code if breach.rule == "no-finding" and breach.finding is not None else breach.rule


def _result(group: BreachGroup, used: list[str], root: Path) -> dict[str, Any]:
    breach, first = group.breach, group.captures[0]
    file, line = file_and_line(group, root)
    text = "\n".join(
        [" ".join(filter(None, (first.name, others_text(group)))), *(row[2:] for row in breach_lines(breach))]
    )
    location: dict[str, Any] = {"logicalLocations": [{"name": first.kernel, "kind": "function"}]}
    if file:
        region: dict[str, Any] = {"startLine": line}
        if breach.python:
            region["snippet"] = {"text": breach.python}
        location["physicalLocation"] = {"artifactLocation": {"uri": file_uri(file)}, "region": region}
    identity = "\n".join([first.kernel, breach.assertion, breach.python, breach.text])
    rule = _rule(breach)
    return {
        "ruleId": rule,
        "ruleIndex": used.index(rule),
        "level": "error",
        "message": {"text": text},
        "locations": [location],
        # Neither the line nor the variants: a result stays the same one where lines move.
        "partialFingerprints": {"irscope/v1": hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()[:32]},
        "properties": {"assertion": breach.assertion, "captures": [one.id for one in group.captures]},
    }
