"""The operations of a launch's dots, counted in its IR, against 2·M·N·K."""

from __future__ import annotations

import pytest

from irscope.analysis.roofline.dot_flops import count_dot_flops

DOT = "%d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<64x32xf16> * tensor<32x16xf16> -> tensor<64x16xf32>"
ONE = 2 * 64 * 32 * 16


def kernel(body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return (
        "module {\n  tt.func public @kernel(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %m: i32) {\n"
        f"{lines}\n    tt.return\n  }}\n}}\n"
    )


def loop(bounds: str, inner: str = DOT) -> str:
    return (
        f"%r = scf.for %i = {bounds} iter_args(%c = %z) -> (tensor<64x16xf32>)  : i32 {{\n  {inner}\n  scf.yield %d\n}}"
    )


CONSTANTS = "".join(f"%c{value} = arith.constant {value} : i32\n" for value in (0, 1, 31, 32))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (DOT, ONE),
        (CONSTANTS + loop("%c0 to %n step %c32"), 4 * ONE),
        (
            CONSTANTS
            + "%s = arith.addi %n, %c31 : i32\n%t = arith.divsi %s, %c32 : i32\n"
            + loop("%c0 to %t step %c1"),
            4 * ONE,
        ),
        (CONSTANTS + loop("%c0 to %c0 step %c1"), 0),
        (CONSTANTS + "%g = tt.get_num_programs y : i32\n" + loop("%c0 to %g step %c1"), 3 * ONE),
    ],
)
def test_counts(body: str, expected: int) -> None:
    found = count_dot_flops(kernel(body), {"n": 128, "m": 7}, (5, 3, 1))
    assert (found.flops, found.why_not, found.dtype) == (15 * expected, "", "float16")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("%0 = arith.constant 0 : i32", "no dot"),
        (CONSTANTS + "%g = tt.get_program_id x : i32\n" + loop("%g to %n step %c1"), "depends on the program"),
        (
            CONSTANTS + "%g = tt.load %p : !tt.ptr<i32>\n" + loop("%c0 to %g step %c1"),
            "depends on the program or on memory",
        ),
        (CONSTANTS + loop("%c0 to %unknown step %c1"), "depends"),
        (CONSTANTS + loop("%c0 to %n step %c0"), "depends"),
        (CONSTANTS + "%k = arith.cmpi slt, %n, %m : i32\nscf.if %k {\n  " + DOT + "\n}", "scf.if"),
    ],
)
def test_what_cannot_be_counted_is_not_guessed(body: str, why: str) -> None:
    found = count_dot_flops(kernel(body), {"n": 128, "m": 7}, (5, 3, 1))
    assert found.flops is None
    assert why in found.why_not


def test_batches_and_other_types() -> None:
    dot = (
        DOT.replace("64x32xf16", "4x64x32xbf16")
        .replace("32x16xf16", "4x32x16xbf16")
        .replace("64x16xf32", "4x64x16xf32")
    )
    found = count_dot_flops(kernel(dot), {}, (1, 1, 1))
    assert (found.flops, found.dtype) == (4 * ONE, "bfloat16")


@pytest.mark.parametrize("text", ["", "module {", "tt.func @f() {\n tt.dot", "\x00"])
def test_never_raises(text: str) -> None:
    assert count_dot_flops(text, {}, (1, 1, 1)).flops is None
