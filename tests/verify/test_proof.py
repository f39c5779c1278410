"""Proofs for all arguments: what is right is proved, and a counterexample is one when it is executed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from irscope.model.capture import Capture
from irscope.record.process.requests import request_for
from irscope.record.process.session import record_request
from irscope.render.text.verdict import render_verdict
from irscope.verify.proof import ArgumentsVerdict, prove_bounds
from tests.once import kept

pytest.importorskip("z3", reason="proofs need z3-solver")
KERNELS = Path(__file__).with_name("proof_kernels.py")
LINES = KERNELS.read_text("utf-8").splitlines()
pytestmark = [pytest.mark.triton, pytest.mark.newest]
ANSWERS = {
    "masked": "proved",
    "rows": "proved",
    "long_rows": "proved",
    "matmul True": "proved",
    "described": "proved",
    "shuffled": "not decided",
    "rows_beside_strided_ones": "not decided",
    "heads": "not decided",
    "masked_by_one_too_many": "counterexample",
    "unmasked": "counterexample",
    "rows_by_the_other_stride": "counterexample",
    "long_rows_masked_by_blocks": "counterexample",
    "matmul False": "counterexample",
    "described_too_long": "counterexample",
}


def captures() -> dict[str, Capture]:
    request = request_for(KERNELS, targets=("cuda:90",), disassemble=False)
    recorded = kept(("proof", KERNELS.read_text("utf-8")), lambda: tuple(record_request(request).captures))
    return {f"{one.name} {dict(one.launch.constants).get('TAIL', '')}".strip(): one for one in recorded}


@cache
def proof_of(name: str) -> ArgumentsVerdict:
    return prove_bounds(captures()[name])


def test_what_is_right_for_all_arguments_is_proved_and_the_twins_have_a_counterexample() -> None:
    verdicts = {name: proof_of(name) for name in captures()}
    assert {name: verdict.answer for name, verdict in verdicts.items()} == ANSWERS
    for verdict in verdicts.values():
        assert bool(verdict.violations) == (verdict.answer == "counterexample") == bool(verdict.arguments)
        assert all(violation.kind == "out-of-bounds" for violation in verdict.violations)
    assert dict(verdicts["unmasked"].arguments)["n"] % 16 == 0, "within what the launch was specialised on"


def test_the_answer_says_what_the_launch_was_taken_to_mean() -> None:
    text = render_verdict(proof_of("matmul True"))
    assert "a_ptr has (M, K) elements, strides (stride_am, 1)" in text
    assert "cdiv(M, 64) * cdiv(N, 64)" in text
    text = render_verdict(proof_of("rows_beside_strided_ones"))
    assert "is a counterexample if x_ptr has (size_40, n_cols) elements, strides (stride_mask, 1), which" in text
    text = render_verdict(proof_of("heads"))
    assert "is a counterexample for a grid that the recorded launch, whose grid is (1, 12, 1), leaves open" in text
    text = render_verdict(proof_of("shuffled"))
    assert "an access outside of x_ptr is not ruled out" in text


def test_arguments_of_one_size_are_not_told_apart_by_guessing() -> None:
    from dataclasses import replace

    capture = captures()["matmul True"]
    record = capture.launch.record
    assert record is not None
    equal = tuple(replace(one, value=144) if one.path in ("M", "K") else one for one in record.arguments)
    verdict = prove_bounds(replace(capture, launch=replace(capture.launch, record=replace(record, arguments=equal))))
    assert verdict.answer == "not decided"
    assert "M and K are all 144" in verdict.undecided[0]
