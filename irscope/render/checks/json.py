"""What came of a check, as plain values."""

from __future__ import annotations

from typing import Any

from irscope.analysis.checks.model import Breach
from irscope.analysis.checks.results import Checked, Report

__all__ = ["report_json"]


def report_json(report: Report) -> dict[str, Any]:
    """The object that `irscope check --json` prints."""
    return {
        "passed": report.passed,
        "captures": [_capture(one) for one in report.captures],
        "vacuous": list(report.vacuous),
        "better": list(report.better),
        "notes": list(report.notes),
    }


def _capture(checked: Checked) -> dict[str, Any]:
    return {
        "id": checked.id,
        "kernel": checked.kernel,
        "target": checked.target,
        "file": checked.file,
        "line": checked.line,
        "differs_in": checked.differs,
        "assertions": [
            {
                "rule": one.rule,
                "assertion": one.assertion,
                "holds": None if one.breaches is None else not one.breaches,
                "breaches": [_breach(breach) for breach in one.breaches or ()],
            }
            for one in checked.outcomes
        ],
    }


def _breach(breach: Breach) -> dict[str, Any]:
    return {
        "text": breach.text,
        "place": [{"file": file, "line": line} for file, line in breach.place],
        "python": breach.python,
        "finding": breach.finding.code if breach.finding is not None else "",
        "causes": list(breach.causes),
        "stage": breach.stage,
        "line": breach.line or None,
        "excerpt": [{"line": number, "text": row} for number, row in breach.excerpt],
    }
