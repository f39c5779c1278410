"""Fixes of one line of Python: what they change in the IR, and in the file."""

from __future__ import annotations

import pytest

from irscope.analysis.findings.edits import source_edits, with_edits
from irscope.analysis.findings.model import FixChange
from irscope.ir.mlir.edits import with_narrow_operand, with_stages
from irscope.model.capture import Kernel, Launch

IR = """#loc = loc("a.py":3:5)
#loc1 = loc("a.py":4:9)
#loc2 = loc("a.py":5:13)
module {
  tt.func public @k(%a: tensor<16x16xf16>, %b: tensor<16x16xf16>, %n: i32) {
    %c0 = arith.constant 0 : i32 loc(#loc)
    %c1 = arith.constant 1 : i32 loc(#loc)
    %acc = arith.constant dense<0.0> : tensor<16x16xf32> loc(#loc)
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %acc) -> (tensor<16x16xf32>)  : i32 {
      %wide = arith.extf %a : tensor<16x16xf16> to tensor<16x16xf32> loc(#loc1)
      %other = arith.extf %b : tensor<16x16xf16> to tensor<16x16xf32> loc(#loc2)
      %turned = tt.trans %other {order = array<i32: 1, 0>} : tensor<16x16xf32> -> tensor<16x16xf32> loc(#loc2)
      %d = tt.dot %wide, %turned, %t : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32> loc(#loc2)
      scf.yield %d : tensor<16x16xf32> loc(#loc)
    } loc(#loc)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
"""
PYTHON = """@triton.jit
def k(a, b, n, BLOCK: tl.constexpr):
    for i in range(0, n):
        x = a.to(tl.float32)
        y = tl.dot(x, b.to(tl.float32).T)


k[(8,)](a, b, n, BLOCK=64)
k[(8,)](a, b, n, BLOCK=128)
"""


def test_a_loop_gets_stages() -> None:
    changed = with_stages(IR, 3, 3)
    assert changed is not None
    assert changed.splitlines()[14] == "    } {tt.num_stages = 3 : i32} loc(#loc)"
    assert with_stages(changed, 3, 4) is None
    assert with_stages(IR, 4, 3) is None


def test_a_dot_takes_what_is_widened() -> None:
    one = with_narrow_operand(IR, 4, 9)
    assert one is not None
    both = with_narrow_operand(one, 5, 13)
    assert both is not None
    trans, dot = both.splitlines()[11:13]
    assert "tt.trans %b {order" in trans
    assert trans.count("xf16>") == 2
    assert "tt.dot %a, %turned, %t : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>" in dot
    used = IR.replace("scf.yield %d", "scf.yield %wide")
    assert with_narrow_operand(used, 4, 9) is None


def test_the_lines_of_the_file() -> None:
    (edit,) = source_edits(PYTHON, "k", (FixChange("stages", "3", 3),))
    assert (edit.line, edit.text) == (3, "tl.range(0, n, num_stages=3)")
    (edit,) = source_edits(PYTHON, "k", (FixChange("narrow", "4", ".to(tl.float32)", 13),))
    assert (edit.line, edit.text) == (4, "a")
    launch = Launch(Kernel("k"), constants=(("BLOCK", "128"),))
    (edit,) = source_edits(PYTHON, "k", (FixChange("constant", "BLOCK", 32),), launch)
    assert (edit.line, edit.text) == (9, "32")
    assert len(source_edits(PYTHON, "k", (FixChange("constant", "BLOCK", 32),))) == 2


TILED = """def k(x, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
"""


@pytest.mark.parametrize(
    ("call", "edited"),
    [
        ("k[(8,)](x, n, BLOCK=64)", "k[(16,)](x, n, BLOCK=32)"),
        ("k[lambda m: (n // m['BLOCK'],)](x, n, BLOCK=64)", "k[lambda m: (n // m['BLOCK'],)](x, n, BLOCK=32)"),
        ("grid = lambda m: (n // m['BLOCK'],)\nk[grid](x, n, BLOCK=64)",
         "grid = lambda m: (n // m['BLOCK'],)\nk[grid](x, n, BLOCK=32)"),
        # Who changes the tile here computes half of the result.
        ("grid = (n // 64,)\nk[grid](x, n, BLOCK=64)", None),
        ("k[(n // 64,)](x, n, BLOCK=64)", None),
    ],
)  # fmt: skip
def test_another_tile_has_another_grid(call: str, edited: str | None) -> None:
    launch = Launch(Kernel("k", source=TILED), constants=(("BLOCK", "64"),), grid=(8, 1, 1))
    edits = source_edits(call, "k", (FixChange("constant", "BLOCK", 32),), launch)
    assert (with_edits(call, edits) if edits else None) == edited
