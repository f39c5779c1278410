"""The source with other facts about its arguments."""

from __future__ import annotations

import pytest

from irscope.analysis.findings.changed import with_changes
from irscope.analysis.findings.model import Change

SOURCE = """module {
  tt.func public @k(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32} loc("x"(#loc)), %s: i32 loc("s"(#loc)), %s2: i32 {tt.divisibility = 8 : i32, tt.other = 1 : i32} loc("s2"(#loc))) attributes {noinline = false} {
    %0 = arith.muli %s, %s2 : i32
    tt.call @help(%s) : (i32) -> ()
    tt.return
  }
  tt.func private @help(%s: i32) {
    %1 = arith.addi %s, %s : i32
    tt.return
  }
}
"""  # noqa: E501
NAMES = ("%x", "%s", "%s2")


def changed(*changes: Change) -> str:
    text = with_changes(SOURCE, NAMES, changes)
    assert text is not None
    return text


def test_an_attribute_is_added() -> None:
    assert '%s: i32 {tt.divisibility = 16 : i32} loc("s"(#loc)), %s2' in changed(Change("divisible", "s", 16))


def test_an_attribute_is_replaced_and_the_others_stay() -> None:
    assert "%s2: i32 {tt.divisibility = 16 : i32, tt.other = 1 : i32} loc" in changed(Change("divisible", "s2", 16))


def test_a_constant_stands_in_for_every_use_in_the_kernel_and_in_no_other_function() -> None:
    lines = changed(Change("constant", "s", 1)).split("\n")
    assert lines[2].strip() == "%s_is = arith.constant 1 : i32"
    assert lines[3].strip() == "%0 = arith.muli %s_is, %s2 : i32"
    assert "@help(%s_is)" in lines[4]
    assert "arith.addi %s, %s : i32" in lines[8]


def test_several_changes() -> None:
    text = changed(Change("constant", "s", 1), Change("divisible", "s2", 16), Change("option", "num_warps", 8))
    assert "%s_is = arith.constant 1" in text
    assert "%s2: i32 {tt.divisibility = 16" in text


@pytest.mark.parametrize("names", [("%x", "%s"), ("%s", "%s", "%s2")])
def test_an_argument_that_cannot_be_told_changes_nothing(names: tuple[str, ...]) -> None:
    assert with_changes(SOURCE, names, (Change("divisible", "s", 16),)) is None
