"""Drawing a comparison."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.analysis.diff.texts import DiffEntry, TextDiff, diff_texts
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
    sides = ([line[:column] for line in drawn], [line[column + 3 :] for line in drawn])
    for cells, lines in zip(sides, (diff.left_lines, diff.right_lines), strict=True):
        assert sum(bool(cell.strip()) for cell in cells) >= len(lines)
    # Of what differs every character is there, though a word wider than its column goes on in the next line.
    left, right = ("".join("".join(cells).split()) for cells in sides)
    for entry in diff.entries:
        if entry.op in ("added", "removed"):
            for line in entry.left:
                assert "".join(diff.left_lines[line].split()) in left
            for line in entry.right:
                assert "".join(diff.right_lines[line].split()) in right
        elif entry.op == "changed":
            both = zip(
                diff.marks(entry),
                (diff.left_lines, diff.right_lines),
                (entry.left, entry.right),
                (left, right),
                strict=True,
            )
            for marks, lines, number, shown in both:
                text = lines[number.start]
                assert all(word in shown for start, end in marks for word in text[start:end].split()), text


def test_a_long_line_continues_below_at_its_difference() -> None:
    words = [f"name{number:02}" for number in range(20)]
    left, right = " ".join(words), " ".join("other" if word == "name15" else word for word in words)
    entry = DiffEntry("changed", range(1), range(1))
    diff = TextDiff((entry,), "mlir", None, (left,), (right,), (1,), (1,))
    assert render_side_by_side(diff, width=51) == (
        "name00 name01 name02 …   | name00 name01 name02 …\n  name15 name16 name17 …     other name16 name17 …\n"
    )


def test_side_by_side(golden: Callable[[str, str], None]) -> None:
    before, after = around("matmul.cuda90", "TritonGPUCoalesce")
    golden(
        "diff/coalesce.side_by_side.txt", render_side_by_side(diff_texts(before, after, "mlir"), width=120, context=1)
    )


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
