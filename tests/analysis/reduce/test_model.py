"""When two failures are the same one."""

from __future__ import annotations

import pytest

from irscope.analysis.reduce.model import likeness_of, plain_message
from irscope.model.capture import Failure

SAME = (
    ("k.py:3:1: error: 'tt.load' op has 64 values", "loc(\"/tmp/x.ttgir\":9:4): error: 'tt.load' op has 2 values"),
    (
        "Assertion `a == b' failed (FMA.cpp:28, Multiplier::multiply)",
        "Assertion `a == b' failed (FMA.cpp:31, Multiplier::multiply)",
    ),
    (
        "error: failed to legalize 'cf.br' that was explicitly marked illegal: \"cf.br\"(%0)[^bb1] : (i32) -> ()",
        "error: failed to legalize 'cf.br' that was explicitly marked illegal: \"cf.br\"()[^bb9] : () -> ()",
    ),
    (
        "unresolved materialization from () to ('i32') that remained live",
        "unresolved materialization from () to ('tensor<2x!tt.ptr<f32>, #blocked>') that remained live",
    ),
    (
        "type of operand 0 ('tensor<64x32xf16, #ttg.blocked<{order = [1, 0]}>>') is not that of @zeros__64",
        "type of operand 1 ('tensor<1x!tt.ptr<f32>>') is not that of @zeros__1",
    ),
    ("ptxas k.ptx, line 44; error   : Unknown symbol '%r12'", "ptxas k.ptx, line 5; error   : Unknown symbol '%r3'"),
    ("shared memory: 131072 bytes, limit exceeded by 29696", "shared memory: 110592 bytes, limit exceeded by 9216"),
)
DIFFERENT = (
    ("'tt.load' op has 64 values", "'tt.store' op has 64 values"),
    ("Assertion `a == b' failed (A.cpp:28)", "Assertion `a == c' failed (A.cpp:28)"),
    ("Assertion `a == b' failed (A.cpp:28, f)", "Assertion `a == b' failed (A.cpp:28, g)"),
    ("failed to legalize operation 'cf.br'", "failed to legalize operation 'cf.cond_br'"),
    ("Unresolved extern function 'nowhere'", "Unresolved extern function 'somewhere'"),
    ("Feature 'wgmma' requires .target sm_90a", "Feature 'wgmma' requires .target sm_100a"),
)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_numbers_names_and_places_do_not_count(one: str, other: str) -> None:
    assert plain_message(one) == plain_message(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_words_count(one: str, other: str) -> None:
    assert plain_message(one) != plain_message(other)


def test_the_pass_and_the_kind_count() -> None:
    failure = Failure("pass", "k.py:1:1: error: it is wrong", "ttgir", "ttgir:canonicalizer#2")
    like = likeness_of(failure)
    assert like.is_of(Failure("pass", "error: it is wrong\nmore", "ttgir", "ttgir:canonicalizer#1", "said"))
    assert not like.is_of(Failure("pass", "error: it is wrong", "ttgir", "ttgir:pipeline#1"))
    assert not like.is_of(Failure("abort", "error: it is wrong", "ttgir", "ttgir:canonicalizer#2"))
    assert not like.is_of(None)
    hang = likeness_of(Failure("timeout", "took longer than 6 s", "llir", "llir:cse#1"))
    assert hang.is_of(Failure("timeout", "took longer than 20 s", "llir", "llir:cse#1"))


@pytest.mark.parametrize(
    ("one", "other", "are_alike"),
    [
        ("Unknown symbol '%r12'", "Unknown symbol '%r3'", True),
        ("Unknown symbol '%rd1'", "Unknown symbol '%p7'", True),
        ("Unknown symbol '%clusterid'", "Unknown symbol '%laneid'", False),
        ("Special register '%cluster_ctaid' requires sm_90", "Special register '%nclusterid' requires sm_90", False),
        ("Duplicate definition of label '$L__BB0_4'", "Duplicate definition of label '$L__BB0_11'", True),
    ],
)
def test_a_register_of_the_gpu_is_no_name_that_a_program_chose(one: str, other: str, are_alike: bool) -> None:
    """Else a case that ptxas refuses for one register slips to another that it refuses for another."""
    failures = [Failure("assembler", f"ptxas k.ptx, line 4; error   : {text}", "cubin") for text in (one, other)]
    assert (likeness_of(failures[0]) == likeness_of(failures[1])) == are_alike
