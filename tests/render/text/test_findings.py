"""Findings as text and as JSON."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irscope.analysis.findings.costs import Timed
from irscope.analysis.findings.model import Cause, Finding, FixChange, Proof, Suggestion
from irscope.ir.locations.model import Frame
from irscope.model.capture import Capture, Kernel, Launch
from irscope.model.launch_record import Autotuning
from irscope.render.text.findings import findings_json, render_explanation, render_findings
from irscope.target import Target

CHAIN = (Frame("/k/a.py", 3, 5), Frame("/k/a.py", 9, 1))
CAUSES = (Cause("16 bits", "assembly", "ptx"), Cause("n is 7", "launch", "the arguments"))


def finding(*suggestions: Suggestion) -> Finding:
    place = (("/k/a.py", 3), ("/k/a.py", 9))
    return Finding("IRS101", "tt.load", 12, ("%x",), CHAIN, place, "loads 16 bits", "3 more", 3, CAUSES, suggestions)


def test_what_helped_comes_first_and_what_was_not_tried_says_so() -> None:
    change = (FixChange("option", "num_warps", 8),)
    text = render_findings(
        [
            finding(
                Suggestion("useless", change, Proof(False, ("1 → 1 bits",))),
                Suggestion("broken", change, Proof(False, failure="it does not compile")),
                Suggestion("by hand"),
                Suggestion("good", change, Proof(True, ("16 → 128 bits", "84 → 90 registers"))),
            )
        ],
        color=False,
    )
    assert text.splitlines() == [
        "IRS101 narrow-load  a.py:3 ← a.py:9  tt.load %x",
        "  loads 16 bits",
        "  cost: 3 more",
        "  because 16 bits [assembly: ptx]",
        "          n is 7 [launch: the arguments]",
        "  fix: good",
        "        compiled with num_warps=8: 16 → 128 bits; 84 → 90 registers",
        "  not tried: by hand",
        "  tried num_warps=8: no improvement: 1 → 1 bits",
        "  tried num_warps=8: it does not compile",
    ]


def test_a_suggestion_that_did_not_help_is_never_a_mend() -> None:
    change = (FixChange("divisible", "k", 16),)
    rows = findings_json([finding(Suggestion("a", change, Proof(False))), finding(Suggestion("b", change))])
    assert [one["suggestions"][0]["outcome"] for one in rows] == ["no improvement", "not tried"]
    assert rows[0]["place"] == [{"file": "/k/a.py", "line": 3}, {"file": "/k/a.py", "line": 9}]


def test_equal_findings_are_shown_once_with_all_their_lines() -> None:
    one = finding()
    named = replace(one, line=20, causes=(Cause("%y_3 of line 20 of ttgir", "ir", "line 20 of ttgir"),))
    same = replace(named, line=30, causes=(Cause("%y_4 of line 30 of ttgir", "ir", "line 30 of ttgir"),))
    elsewhere = replace(same, place=(("/k/a.py", 5),))
    text = render_findings([one, named, same, elsewhere, elsewhere], color=False)
    assert text.count("IRS101") == 2
    assert "  4 times, also: a.py:3 ← a.py:9, a.py:5 (2 times)" in text.splitlines()
    assert len(findings_json([named, same])) == 2


@pytest.mark.parametrize(
    ("tuning", "head", "rows"),
    [
        (None, "k  cuda:90   not", 2),
        (Autotuning(0, 1, "BLOCK: 64"), "k  cuda:90   not", 2),
        (Autotuning(3, 8, "BLOCK: 64"), "k  cuda:90, configuration 3 of 8   not", 3),
        (Autotuning(3, 8, "BLOCK: 64", winner=True), "k  cuda:90, configuration 3 of 8, the fastest   not", 2),
    ],
)
def test_a_configuration_of_several_is_named(tuning: Autotuning | None, head: str, rows: int) -> None:
    capture = Capture(launch=Launch(Kernel("k"), autotuning=tuning), target=Target.parse("cuda:90"), artifacts=())
    time = Timed(None, None, why_not="it was not launched")
    lines = render_explanation([], capture, time, width=100, color=False).splitlines()
    assert lines[0].startswith(head)
    assert len(lines) == rows
    assert sum("`irscope tune` predicts all 8" in line for line in lines) == rows - 2
