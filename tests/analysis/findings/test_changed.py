"""The source with other facts about its arguments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from irscope.analysis.findings.changed import with_changes, with_run
from irscope.analysis.findings.model import FixChange
from irscope.ir.columns import clean
from irscope.model.recording_options import RecordingOptions
from irscope.record.process.requests import request_from_capture
from irscope.record.process.session import compiled
from tests.recording import record_without_sass

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


def changed(*changes: FixChange) -> str:
    text = with_changes(SOURCE, NAMES, changes)
    assert text is not None
    return text


def test_an_attribute_is_added() -> None:
    assert '%s: i32 {tt.divisibility = 16 : i32} loc("s"(#loc)), %s2' in changed(FixChange("divisible", "s", 16))


def test_an_attribute_is_replaced_and_the_others_stay() -> None:
    assert "%s2: i32 {tt.divisibility = 16 : i32, tt.other = 1 : i32} loc" in changed(FixChange("divisible", "s2", 16))


def test_a_constant_stands_in_for_every_use_in_the_kernel_and_in_no_other_function() -> None:
    lines = changed(FixChange("constant", "s", 1)).split("\n")
    assert lines[2].strip() == "%s_is = arith.constant 1 : i32"
    assert lines[3].strip() == "%0 = arith.muli %s_is, %s2 : i32"
    assert "@help(%s_is)" in lines[4]
    assert "arith.addi %s, %s : i32" in lines[8]


def test_a_hint_stands_on_the_products_with_an_argument_and_on_nothing_else() -> None:
    text = changed(FixChange("hint", "s2", 8))
    assert "%0 = arith.muli %s, %s2 {tt.divisibility = dense<8> : tensor<1xi32>} : i32" in text
    assert text.count("dense<8>") == 1
    assert with_changes(SOURCE, NAMES, (FixChange("hint", "x", 8),)) is None


WIDE = """module {
  tt.func public @k(%s: i32) {
    %0 = tt.splat %s : i32 -> tensor<64x1xi32>
    %1 = arith.muli %0, %0 : tensor<64x1xi32> loc(#loc3)
    tt.return
  }
}
"""


def test_a_hint_has_a_number_for_each_dimension() -> None:
    text = with_changes(WIDE, ("%s",), (FixChange("hint", "s", 4),))
    assert text is not None
    assert "%0, %0 {tt.divisibility = dense<4> : tensor<2xi32>} : tensor<64x1xi32> loc(#loc3)" in text


BLOCKED = "#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>"


def test_a_layout_gets_a_longer_run_of_the_dimension_that_comes_first() -> None:
    wider = with_run(BLOCKED, 0, 8)
    assert wider == BLOCKED.replace("[1, 2]", "[8, 2]").replace("order = [1, 0]", "order = [0, 1]")
    change = FixChange("layout", BLOCKED, wider)
    assert str(change) == "sizePerThread [1, 2] → [8, 2], order [1, 0] → [0, 1]"
    assert with_changes(f"#blocked = {BLOCKED}\n{SOURCE}", NAMES, (change,)) == f"#blocked = {wider}\n{SOURCE}"
    assert with_changes(SOURCE, NAMES, (change,)) is None
    assert with_run("#ttg.slice<{dim = 1, parent = #blocked}>", 0, 8) == ""


KERNEL = """import triton
import triton.language as tl


@triton.jit
def rows(x, y, stride, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + PRODUCT + columns) + tl.load(x + REMAINDER)
    tl.store(y + tl.program_id(0) * BLOCK + columns, values)
"""


@pytest.mark.newest
@pytest.mark.triton
def test_hints_do_what_they_do_in_the_kernel(tmp_path: Path) -> None:
    texts: list[list[str]] = []
    product, remainder = "tl.program_id(0) * stride", "(tl.program_id(0) * BLOCK + columns) % n"
    hints = (FixChange("hint", "stride", 8), FixChange("contiguous", "n", 8))
    for name, of_product, of_remainder in (
        ("plain", product, remainder),
        ("hinted", f"tl.multiple_of({product}, 8)", f"tl.max_contiguous(tl.multiple_of({remainder}, 8), 8)"),
    ):
        (file := tmp_path / f"{name}.py").write_text(
            KERNEL.replace("PRODUCT", of_product).replace("REMAINDER", of_remainder)
        )
        capture = record_without_sass(
            file,
            kernel="rows",
            signature="*fp16:16, *fp16:16, i32, i32",
            constexprs={"BLOCK": 1024},
            target="cuda:90",
            snapshots="none",
            layouts=False,
        )
        if name == "plain":
            assert "ld.global.v4" not in capture.text("ptx")
            text = with_changes(capture.text("source"), ("%x", "%y", "%stride", "%n"), hints)
            assert text is not None
            asked = RecordingOptions(snapshots="none", disassemble=False, layouts=False)
            capture = compiled(replace(request_from_capture(capture, asked), text=text))
        assert capture.text("ptx").count("ld.global.v4") == 2
        texts.append(clean(capture.text("ptx"), "ptx", frozenset({"locations"}))[0])
    assert texts[0] == texts[1]


def test_several_changes() -> None:
    text = changed(
        FixChange("constant", "s", 1),
        FixChange("divisible", "s2", 16),
        FixChange("option", "num_warps", 8),
    )
    assert "%s_is = arith.constant 1" in text
    assert "%s2: i32 {tt.divisibility = 16" in text


@pytest.mark.parametrize("names", [("%x", "%s"), ("%s", "%s", "%s2")])
def test_an_argument_that_cannot_be_told_changes_nothing(names: tuple[str, ...]) -> None:
    assert with_changes(SOURCE, names, (FixChange("divisible", "s", 16),)) is None


CALLED = """module {
  tt.func public @k(%x: !tt.ptr<f16>, %s: i32, %t: i32) {
    %c100_i32 = arith.constant 100 : i32
    %pid = tt.get_program_id x : i32
    %0 = tt.call @help(%pid, %s) : (i32, i32) -> i32
    %1 = tt.splat %t : i32 -> tensor<64xi32>
    %2 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %3 = arith.remsi %2, %1 : tensor<64xi32> loc(#loc3)
    %4 = arith.muli %pid, %c100_i32 : i32 loc(#loc3)
    %cst = arith.constant dense<100> : tensor<64xi32>
    %5 = arith.cmpi slt, %2, %cst : tensor<64xi32> loc(#loc4)
    %6 = arith.addi %pid, %c100_i32 : i32
    tt.return
  }
  tt.func private @help(%row: i32, %stride: i32) -> i32 {
    %0 = arith.muli %row, %stride : i32
    tt.return %0 : i32
  }
}
"""
PARAMETERS = ("%x", "%s", "%t")


def test_a_hint_stands_in_a_function_that_is_called_with_nothing_else() -> None:
    text = with_changes(CALLED, PARAMETERS, (FixChange("hint", "s", 8),))
    assert text is not None
    assert "%0 = arith.muli %row, %stride {tt.divisibility = dense<8> : tensor<1xi32>} : i32" in text
    # Another call would be told what does not hold for it.
    twice = CALLED.replace(
        "    %1 = tt.splat", "    %9 = tt.call @help(%pid, %t) : (i32, i32) -> i32\n    %1 = tt.splat"
    )
    assert with_changes(twice, PARAMETERS, (FixChange("hint", "s", 8),)) is None


def test_remainders_are_said_to_be_contiguous_and_divisible() -> None:
    text = with_changes(CALLED, PARAMETERS, (change := FixChange("contiguous", "t", 8),))
    assert text is not None
    hint = "{tt.contiguity = dense<8> : tensor<1xi32>, tt.divisibility = dense<8> : tensor<1xi32>}"
    assert f"%3 = arith.remsi %2, %1 {hint} : tensor<64xi32> loc(#loc3)" in text
    assert str(change) == "tl.max_contiguous(tl.multiple_of(… % t, 8), 8)"
    assert with_changes(CALLED, PARAMETERS, (FixChange("contiguous", "s", 8),)) is None


def test_another_constant_stands_in_products_and_comparisons_alone() -> None:
    text = with_changes(CALLED, PARAMETERS, (change := FixChange("factor", "PITCH", 104, 100),))
    assert text is not None
    lines = [line.strip() for line in text.split("\n")]
    at = lines.index("%4 = arith.muli %pid, %factor_100_0 : i32 loc(#loc3)")
    assert lines[at - 1] == "%factor_100_0 = arith.constant 104 : i32"
    at = lines.index("%5 = arith.cmpi slt, %2, %factor_100_1 : tensor<64xi32> loc(#loc4)")
    assert lines[at - 1] == "%factor_100_1 = arith.constant dense<104> : tensor<64xi32>"
    assert "%6 = arith.addi %pid, %c100_i32 : i32" in lines
    assert (str(change), str(FixChange("factor", "100", 104, 100))) == ("PITCH = 104", "104 in place of 100")
    assert with_changes(CALLED, PARAMETERS, (FixChange("factor", "PITCH", 8, 7),)) is None
