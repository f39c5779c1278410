"""The ring arithmetic: what compilers may do to floats gives the same element, and what they may not another one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.errors import NotRun
from irscope.ir.mlir.reader import parse_mlir
from irscope.machine.launch import Pointer, run
from irscope.machine.ring import PRIME, RingArithmetic, RingMemory, embedded, first_difference

small = st.integers(-4096, 4096).map(lambda one: one / 64)


def element(value: float) -> int:
    return int(embedded(np.array([value]))[0])


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_the_fraction_that_it_is(value: float) -> None:
    exact = Fraction(value)
    assert element(value) == exact.numerator * pow(exact.denominator, -1, PRIME) % PRIME


@given(small, small)
def test_exact_sums_and_products_are_those_of_the_elements(left: float, right: float) -> None:
    assert element(left + right) == (element(left) + element(right)) % PRIME
    assert element(left * right) == element(left) * element(right) % PRIME
    assert element(-left) == -element(left) % PRIME


KERNEL = """module {{
  tt.func public @kernel(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %scale: f32) {{
    %lanes = tt.make_range {{end = 8 : i32, start = 0 : i32}} : tensor<8xi32>
    %one = arith.constant dense<1.000000e+00> : tensor<8xf32>
    %half = arith.constant dense<5.000000e-01> : tensor<8xf32>
    %two = arith.constant dense<2.000000e+00> : tensor<8xf32>
    %zero = arith.constant dense<0.000000e+00> : tensor<8xf32>
    %none = arith.constant dense<0xFF800000> : tensor<8xf32>
    %base = tt.splat %x : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %places = tt.addptr %base, %lanes : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    %a = tt.load %places : tensor<8x!tt.ptr<f32>>
    %b = tt.splat %scale : f32 -> tensor<8xf32>
    {body}
    %outs = tt.splat %y : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %targets = tt.addptr %outs, %lanes : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    tt.store %targets, %r : tensor<8x!tt.ptr<f32>>
    tt.return
  }}
}}
"""
T = ": tensor<8xf32>"


def result(*body: str, seed: int = 1) -> RingMemory:
    arithmetic = RingArithmetic(seed)
    storages = [np.zeros(64, np.uint8) for _ in range(2)]
    lines = "\n    ".join(body)
    run(
        parse_mlir(KERNEL.format(body=lines)), (1, 1, 1), [Pointer(one) for one in storages] + [2.5],
        arithmetic=arithmetic,
    )  # fmt: skip
    assert arithmetic.result is not None
    return arithmetic.result


def op(name: str, operands: str, to: str = "%r") -> str:
    return f"{to} = {name} {operands} {T}"


def reduction(operation: str) -> list[str]:
    return [
        '%s = "tt.reduce"(%a) <{axis = 0 : i32}> ({', "^bb0(%p: f32, %q: f32):",
        f"  %c = arith.{operation} %p, %q : f32", "  tt.reduce.return %c : f32", "}) : (tensor<8xf32>) -> f32",
        "%r = tt.splat %s : f32 -> tensor<8xf32>",
    ]  # fmt: skip


def halves(operation: str) -> list[str]:
    """The same reduction, by a tree that the IR spells out."""
    lines = ["%v0 = arith.addf %a, %zero : tensor<8xf32>"]
    for level, size in enumerate((4, 2, 1)):
        shape, half = f"tensor<{2 * size}xf32>", f"tensor<{size}xf32>"
        lines += [
            f"%w{level} = tt.reshape %v{level} : {shape} -> tensor<{size}x2xf32>",
            f"%l{level}, %h{level} = tt.split %w{level} : tensor<{size}x2xf32> -> {half}",
            f"%v{level + 1} = arith.{operation} %l{level}, %h{level} : {half}",
        ]
    return [*lines, "%r = tt.broadcast %v3 : tensor<1xf32> -> tensor<8xf32>"]


EQUAL = {
    "a sum in another order": ([op("arith.addf", "%a, %b", "%t"), op("arith.addf", "%t, %one")],
                               [op("arith.addf", "%b, %one", "%t"), op("arith.addf", "%a, %t")]),
    "a fused product": ([op("arith.mulf", "%a, %b", "%t"), op("arith.addf", "%t, %one")],
                        [op("math.fma", "%a, %b, %one")]),
    "a quotient as a product": ([op("arith.divf", "%a, %b")],
                                [op("arith.divf", "%one, %b", "%t"), op("arith.mulf", "%a, %t")]),
    "half of it": ([op("arith.divf", "%a, %two")], [op("arith.mulf", "%a, %half")]),
    "nothing added": ([op("arith.addf", "%a, %zero")], [op("arith.mulf", "%a, %one")]),
    "less itself": ([op("arith.subf", "%a, %a")], [op("arith.mulf", "%a, %zero")]),
    "a difference as a sum": ([op("arith.subf", "%a, %b")],
                              [op("arith.negf", "%b", "%t"), op("arith.addf", "%a, %t")]),
    "the least of all": ([op("arith.maxnumf", "%a, %none")], [op("arith.addf", "%a, %zero")]),
    "a maximum by a select": ([op("arith.maxnumf", "%a, %b")],
                              [f"%t = arith.cmpf ogt, %a, %b {T}",
                               "%r = arith.select %t, %a, %b : tensor<8xi1>, tensor<8xf32>"]),
    "converted there and back": ([f"%t = arith.truncf %a {T} to tensor<8xf16>",
                                  "%r = arith.extf %t : tensor<8xf16> to tensor<8xf32>"],
                                 [op("arith.mulf", "%a, %one")]),
    "a power of zero": ([op("math.exp", "%zero")], [op("arith.addf", "%one, %zero")]),
    "a root of a constant": ([f"%c = arith.constant dense<6.400000e+01> {T}", op("math.sqrt", "%c")],
                             [f"%r = arith.constant dense<8.000000e+00> {T}"]),
    "a product of constants, rounded": ([f"%c = arith.constant dense<1.000000e-01> {T}", op("arith.mulf", "%c, %c")],
                                        [f"%r = arith.constant dense<0x3C23D70B> {T}"]),
    "a quotient by a constant": ([f"%c = arith.constant dense<3.000000e+00> {T}", op("arith.divf", "%a, %c")],
                                 [f"%c = arith.constant dense<3.000000e+00> {T}",
                                  op("arith.divf", "%one, %c", "%t"), op("arith.mulf", "%a, %t")]),
    "a sum by another tree": (reduction("addf"), halves("addf")),
    "a maximum by another tree": (reduction("maxnumf"), halves("maxnumf")),
    "a product by another tree": (reduction("mulf"), halves("mulf")),
}  # fmt: skip
DIFFERENT = {
    "swapped operands": ([op("arith.subf", "%a, %b")], [op("arith.subf", "%b, %a")]),
    "another function": ([op("math.exp", "%a")], [op("math.exp2", "%a")]),
    "two functions without a ufunc": ([op("math.erf", "%a")], [op("math.erfc", "%a")]),
    "another comparison": ([op("arith.maxnumf", "%a, %b")], [op("arith.minnumf", "%a, %b")]),
    "a factor that is lost": ([op("arith.mulf", "%a, %b")], [op("arith.mulf", "%a, %one")]),
    "a sum for a maximum": (reduction("addf"), reduction("maxnumf")),
}  # fmt: skip


@pytest.mark.parametrize("case", EQUAL)
def test_what_means_the_same_gives_the_same_elements(case: str) -> None:
    left, right = EQUAL[case]
    assert first_difference(result(*left), result(*right)) is None


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_means_something_else_gives_other_elements(case: str) -> None:
    left, right = DIFFERENT[case]
    difference = first_difference(result(*left), result(*right))
    assert difference is not None
    assert (difference.storage, difference.offset_bytes) == (1, 0)


def test_an_integer_that_becomes_a_float_and_back_is_itself() -> None:
    body = [
        "%t = arith.sitofp %lanes : tensor<8xi32> to tensor<8xf32>",
        "%u = arith.fptosi %t : tensor<8xf32> to tensor<8xi32>",
        "%r = arith.sitofp %u : tensor<8xi32> to tensor<8xf32>",
    ]
    assert first_difference(result(*body), result(body[0].replace("%t", "%r"))) is None


def test_the_bits_of_a_float_are_not_modelled() -> None:
    with pytest.raises(NotRun, match="bits of floats"):
        result(
            "%t = arith.bitcast %a : tensor<8xf32> to tensor<8xi32>",
            "%r = arith.bitcast %t : tensor<8xi32> to tensor<8xf32>",
        )


@pytest.mark.parametrize("shape", [(3, 16, 8, 4), (1, 5, 300, 7)])
def test_a_matrix_product_is_exact(shape: tuple[int, int, int, int]) -> None:
    programs, m, k, n = shape
    random = np.random.default_rng(0)
    left = random.integers(0, PRIME, (programs, m, k), np.uint64)
    right = random.integers(0, PRIME, (programs, k, n), np.uint64)
    found = RingArithmetic().product(left, right, None, np.dtype(np.float32), "ieee")
    expected = np.matmul(left.astype(object), right.astype(object)) % PRIME
    assert (found.astype(object) == expected).all()
