"""The first look at sums of 32 bits says no where the evaluation of all addresses does, and yes where it must."""

from __future__ import annotations

import pytest

from irscope.analysis.findings.accesses import may_overflow
from irscope.ir.mlir.reader import parse_mlir
from irscope.model.capture import Kernel, Launch
from irscope.model.launch_record import Argument, LaunchRecord

KERNEL = """module {{
  tt.func public @k(%x: !tt.ptr<f32>, %stride: i32) {{
    %c = arith.constant {constant} : i32
    %row = tt.get_program_id x : i32
    %cols = tt.make_range {{end = 64 : i32, start = 0 : i32}} : tensor<64xi32>
    {lines}
    tt.return
  }}
}}
"""


def found(lines: str, stride: int | None, programs: int, constant: int = 4) -> bool:
    kernel = parse_mlir(KERNEL.format(lines=lines, constant=constant)).kernel
    assert kernel is not None
    rows = (Argument("stride", "scalar", "int", stride),) if stride is not None else ()
    return may_overflow(kernel, Launch(Kernel("k"), grid=(programs, 1, 1), record=LaunchRecord(rows)))


@pytest.mark.parametrize(
    ("programs", "stride", "overflows"),
    [
        (1 << 15, 1 << 16, False),
        ((1 << 15) + 1, 1 << 16, True),
        (1 << 15, None, True),
        (3, -(1 << 30), False),
        (4, -(1 << 30), True),
    ],
)
def test_a_product_fits_up_to_31_bits(programs: int, stride: int | None, overflows: bool) -> None:
    assert found("%offset = arith.muli %row, %stride : i32", stride, programs) is overflows


def test_products_of_64_bits_are_of_no_interest() -> None:
    lines = "%w = arith.extsi %row : i32 to i64\n    %o = arith.muli %w, %w : i64"
    assert not found(lines, 1, 1 << 30)


def test_a_loop_counts_to_its_bound() -> None:
    lines = """scf.for %i = %c to %stride step %c : i32 {{
      %at = arith.muli %i, {by} : i32
      %s = tt.splat %at : i32 -> tensor<64xi32>
      %o = arith.addi %s, %cols : tensor<64xi32>
    }}"""
    assert not found(lines.format(by="%c"), 1 << 28, 1)
    assert found(lines.format(by="%stride"), 1 << 28, 1)


def test_what_is_not_known_may_be_anything() -> None:
    assert found('%u = "some.thing"(%row) : (i32) -> i32\n    %o = arith.addi %u, %c : i32', 1, 1)
