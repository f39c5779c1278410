"""Suggestions that are tried: which compiles, how far, and what each of them gave."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irscope.analysis.findings.fixes import without_refuted
from irscope.analysis.findings.model import Cause, Finding, FixChange, Proof, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.analysis.findings.tries import Budget, Tries, compare
from irscope.model.capture import Artifact, Capture, Failure, Kernel, Launch, Resources
from irscope.record.variants.compiles import Compiles
from irscope.target import Target

WARPS, STAGES = (FixChange("option", "num_warps", 8),), (FixChange("option", "num_stages", 1),)
M, N = (FixChange("divisible", "m", 16),), (FixChange("divisible", "n", 16),)
N_IS_1 = (FixChange("constant", "n", 1), FixChange("divisible", "k", 16))


TEXT = """module {
  tt.func public @k(%x: !tt.ptr<f32>, %n: i32) {
    tt.return
  }
}
"""


def narrow(code: str, *changes: FixChange) -> Finding:
    suggestions = tuple(Suggestion("", (one,)) for one in changes)
    return Finding(code, "tt.load", 2, (), (), (), "", "", 1, (), suggestions)


def tries(budget: Budget) -> Tries:
    artifacts = (Artifact("source", TEXT), Artifact("ttgir", TEXT))
    launch = Launch(Kernel("k", "k.py"), options=(("num_warps", 4),))
    capture = Capture(launch=launch, target=Target.parse("cuda:90"), artifacts=artifacts)
    return Tries(Studied(capture), Compiles().trials, budget)


def test_what_cannot_be_written_into_the_source_takes_no_compile() -> None:
    hint = FixChange("hint", "n", 4)
    asked = tries(Budget()).choose([narrow("IRS101", hint, FixChange("divisible", "n", 16))])
    assert asked == [(FixChange("divisible", "n", 16),)]
    assert tries(Budget()).choose([narrow("IRS101", hint)]) == []


def test_the_budget_says_how_many_changes_of_the_worst_findings_are_compiled() -> None:
    spills, pipelined, narrowed = (
        narrow("IRS501", *WARPS), narrow("IRS201", *N), narrow("IRS101", *N),
    )  # fmt: skip
    asked = tries(Budget())
    assert asked.choose([spills, pipelined, narrowed, narrow("IRS502", *STAGES)]) == [WARPS, N]
    assert asked.left_out == 1
    every = tries(Budget.parse("all")).choose([spills, pipelined, narrowed, narrow("IRS502", *STAGES)])
    assert every == [WARPS, N, STAGES]
    asked = tries(Budget.parse("1"))
    assert (asked.choose([spills, pipelined]), asked.left_out) == ([WARPS], 1)
    assert tries(Budget.parse("0")).choose([spills]) == []


SPILLS = Finding("IRS501", "", 0, (), (), (), "", "", 0, ())
NARROW = replace(
    SPILLS, code="IRS101", causes=(Cause("16 bits", "assembly", "ptx"), Cause("n is 7", "launch", "the arguments"))
)


def capture(spilled: int, registers: int = 255, failure: Failure | None = None) -> Capture:
    resources = Resources(registers=registers, spill_store_bytes=spilled)
    launch = Launch(Kernel("k"))
    status = "failed" if failure is not None else "ok"
    return Capture(launch=launch, target=Target.parse("cuda:90"), resources=resources, failure=failure, status=status)


def test_fewer_spills_help_and_more_do_not() -> None:
    assert compare(SPILLS, Studied(capture(64)), Studied(capture(0, 128))) == Proof(
        True, ("64 bytes spilled → 0 bytes spilled", "255 → 128 registers")
    )
    assert not compare(SPILLS, Studied(capture(64)), Studied(capture(64))).is_better
    assert not compare(SPILLS, Studied(capture(64)), Studied(capture(65))).is_better


def test_what_fits_no_longer_does_not_help() -> None:
    proof = compare(SPILLS, Studied(capture(64)), Studied(capture(0, failure=Failure("fit", "too much"))))
    assert not proof.is_better
    assert proof.failure


@pytest.mark.parametrize(
    ("proof", "blamed"),
    [(Proof(True), True), (Proof(False), False), (Proof(False, failure="it does not compile"), True), (None, True)],
)
def test_a_launch_that_a_compile_clears_is_not_blamed(proof: Proof | None, blamed: bool) -> None:
    one = replace(NARROW, suggestions=(Suggestion("", (FixChange("divisible", "n", 16),), proof),))
    assert ("n is 7" in [cause.text for cause in without_refuted(one).causes]) == blamed
