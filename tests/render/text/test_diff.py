"""Drawing a comparison."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.analysis.diff.entries import DiffEntry, TextDiff
from irscope.analysis.diff.texts import diff_texts
from irscope.render.text.diff import render_side_by_side, render_unified
from tests.analysis.snapshots import around

LEFT = """module {
  %a = "t.make"() : () -> i32
  %b = "t.op"(%a) {size = 8 : i32} : (i32) -> i32
  %c = "t.gone"(%a) : (i32) -> i32
  %d = "t.same"(%a) : (i32) -> i32
  %e = "t.same"(%d) : (i32) -> i32
  %f = "t.same"(%e) : (i32) -> i32
  %g = "t.stay"(%f) : (i32) -> i32
  %h = "t.wander"(%a) : (i32) -> i32
}
"""
RIGHT = """module {
  %0 = "t.make"() : () -> i32
  %1 = "t.wander"(%0) : (i32) -> i32
  %2 = "t.op"(%0) {size = 16 : i32} : (i32) -> i32
  %3 = "t.same"(%0) : (i32) -> i32
  %4 = "t.same"(%3) : (i32) -> i32
  %5 = "t.same"(%4) : (i32) -> i32
  %6 = "t.stay"(%5) : (i32) -> i32
  %7 = "t.new"(%6) : (i32) -> i32
}
"""
COLOR = re.compile("\x1b\\[[0-9;]*m")


def test_unified_marks_words_moves_and_folds() -> None:
    diff = diff_texts(LEFT, RIGHT, "mlir")
    assert (
        render_unified(diff, context=1, left_name="a", right_name="b")
        == """--- a
+++ b
@@ 1 equal @@
    %a = "t.make"() : () -> i32
>   %h = "t.wander"(%a) : (i32) -> i32  // moved from line 9
!   %b = "t.op"(%a) {size = [-8-]{+16+} : i32} : (i32) -> i32
-   %c = "t.gone"(%a) : (i32) -> i32
    %d = "t.same"(%a) : (i32) -> i32
@@ 2 equal @@
    %g = "t.stay"(%f) : (i32) -> i32
<   %h = "t.wander"(%a) : (i32) -> i32  // moved to line 3
+   %7 = "t.new"(%g) : (i32) -> i32
  }
"""
    )


def test_in_colour_a_change_is_two_lines_with_the_words_reversed() -> None:
    drawn = render_unified(diff_texts(LEFT, RIGHT, "mlir"), color=True)
    assert "\x1b[7m8\x1b[27m" in drawn
    assert "\x1b[7m16\x1b[27m" in drawn
    assert '-   %b = "t.op"(%a) {size = 8 : i32} : (i32) -> i32\n' in COLOR.sub("", drawn)


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("color", [False, True])
def test_side_by_side_keeps_its_width_and_every_line(width: int, color: bool) -> None:
    before, after = around("matmul.cuda80", "TritonGPUPipeline")
    diff = diff_texts(before, after, "mlir")
    drawn = COLOR.sub("", render_side_by_side(diff, width=width, color=color, context=1000)).splitlines()
    assert max(map(len, drawn)) <= width
    column = (width - 3) // 2
    assert sum(bool(line[:column].strip()) for line in drawn) == len(diff.left_lines)
    assert sum(bool(line[column + 3 :].strip()) for line in drawn) == len(diff.right_lines)


def test_side_by_side(golden: Callable[[str, str], None]) -> None:
    before, after = around("matmul.cuda90", "TritonGPUCoalesce")
    golden("diff/coalesce.side_by_side.txt", render_side_by_side(diff_texts(before, after, "mlir"), context=1))


def test_nothing_differs() -> None:
    diff = diff_texts(LEFT, LEFT, "mlir")
    assert render_unified(diff) == render_side_by_side(diff) == ""


def test_a_fallback_is_said() -> None:
    diff = diff_texts("1 ;\n2 ;\n", "1 ;\n3 ;\n", "mlir")
    assert "line by line" in render_unified(diff)
    assert "line by line" in render_side_by_side(diff)


def test_lines_that_read_an_equal_value_from_elsewhere_are_folded() -> None:
    left = "module {\n  %0 = arith.constant 7 : i32\n  %1 = arith.constant 7 : i32\n"
    left += "".join(f'  "t.use{n}"(%{n % 2}) : (i32) -> ()\n' for n in range(4)) + "}\n"
    right = left.replace("  %1 = arith.constant 7 : i32\n", "").replace("(%1)", "(%0)")
    diff = diff_texts(left, right, "mlir")
    assert "that only read an equal value" in render_unified(diff)
    assert "[-%1-]{+%0+}" in render_unified(diff, rewired=True)


def test_a_text_cannot_steer_the_terminal() -> None:
    diff = diff_texts('module {\n  "a"() : () -> ()\n}\n', 'module {\n  "b\x1b[2J\x9b"() : () -> ()\n}\n', "mlir")
    for drawn in (render_unified(diff), render_side_by_side(diff)):
        assert not set(drawn) & {"\x1b", "\x9b"}


# Words, blanks and signs: where a blank is within one side's marks only, what both have in common differs by it.
_WORDS = st.text(alphabet="ab1 ,.x", min_size=1, max_size=60)


@given(_WORDS, _WORDS)
def test_a_merged_line_holds_both(left: str, right: str) -> None:
    changed = DiffEntry("changed", range(1), range(1))
    diff = TextDiff((changed,), "mlir", None, (left,), (right,), (1,), (1,))
    merged = render_unified(diff).splitlines()[-1].removeprefix("! ")
    assert re.sub(r"\[-.*?-\]", "", merged).replace("{+", "").replace("+}", "") == right
    only_left = re.sub(r"\{\+.*?\+\}", "", merged).replace("[-", "").replace("-]", "")
    assert "".join(only_left.split()) == "".join(left.split())
