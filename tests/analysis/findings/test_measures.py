"""What a compile says of a suggestion, and of the cause that it was made from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irscope.analysis.findings.measures import compare, without_refuted
from irscope.analysis.findings.model import Cause, Change, Finding, Proof, Suggestion
from irscope.analysis.findings.studied import Studied
from irscope.model.capture import Capture, Failure, Kernel, Launch, Resources
from irscope.target import Target

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
    assert not compare(SPILLS, Studied(capture(64)), Studied(capture(64))).helps
    assert not compare(SPILLS, Studied(capture(64)), Studied(capture(65))).helps


def test_what_fits_no_longer_does_not_help() -> None:
    proof = compare(SPILLS, Studied(capture(64)), Studied(capture(0, failure=Failure("fit", "too much"))))
    assert not proof.helps
    assert proof.failure


@pytest.mark.parametrize(
    ("proof", "blamed"),
    [(Proof(True), True), (Proof(False), False), (Proof(False, failure="it does not compile"), True), (None, True)],
)
def test_a_launch_that_a_compile_clears_is_not_blamed(proof: Proof | None, blamed: bool) -> None:
    one = replace(NARROW, suggestions=(Suggestion("", (Change("divisible", "n", 16),), proof),))
    assert ("n is 7" in [cause.text for cause in without_refuted(one).causes]) == blamed
