"""Two runs of a launch, compared: what is rounding, and what is not."""

from __future__ import annotations

import numpy as np
import pytest

from irscope.machine.agreement import agreement_of, moved_by_one_ulp, moved_runs
from irscope.machine.arithmetic import Arithmetic
from irscope.machine.captured import Inputs, run_text
from irscope.machine.launch import Pointer
from irscope.machine.values import narrow_float

_X = np.linspace(-3, 3, 64).astype(np.float32)


def judged(baseline, found, moved=(), before=None):
    before = np.zeros_like(baseline) if before is None else before
    return agreement_of({"x": before}, {"x": baseline}, [{"x": one} for one in moved], {"x": found}, "runs")


def test_equal_bits_are_identical():
    assert judged(_X, _X.copy()).verdict == "identical"


def test_a_few_units_of_float32_are_rounding_and_a_thousandth_is_not():
    assert judged(_X, _X * np.float32(1 + 2**-22)).verdict == "close"
    found = judged(_X, _X * np.float32(1.001))
    assert (found.verdict, found.argument, found.passes) == ("different", "x", False)


def test_what_moved_inputs_do_is_noise():
    assert judged(_X, _X * np.float32(1.001), moved=[_X * np.float32(1.0005)]).verdict == "close"


def test_integers_are_compared_bit_for_bit():
    whole = np.arange(9)
    assert judged(whole, whole + (whole == 4)).beyond_noise == 1


def test_a_nan_never_passes_and_one_that_was_there_before_is_no_result():
    found = _X.copy()
    found[3] = np.nan
    assert judged(_X, found).verdict == "nan"
    assert judged(found, found.copy()).verdict == "nan"
    assert judged(found, found.copy(), before=found.copy()).verdict == "identical"


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_an_infinity_that_only_one_has_is_different(value):
    found = _X.copy()
    found[3] = value
    assert judged(_X, found).verdict == "different"
    assert judged(found, found.copy()).verdict == "identical"


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "bfloat16"])
def test_values_move_by_one_unit_in_the_last_place(name):
    dtype = narrow_float(name) if name == "bfloat16" else np.dtype(name)
    values = np.array([0.0, 1.5, -2.25, np.inf, np.nan, 3e-4]).astype(dtype)
    moved = moved_by_one_ulp(values, np.random.default_rng(0))
    kind = f"i{dtype.itemsize}"
    distances = np.abs(moved.view(kind).astype(np.int64) - values.view(kind).astype(np.int64))
    assert distances.tolist() == [0, 1, 1, 0, 0, 1]
    assert moved_by_one_ulp(np.asarray(values[1]), np.random.default_rng(0)) != values[1], "a warning is an error"


def truncated_sum(left, right, step, bits):
    """`left @ right` as a matrix unit sums it: of each `step` products and what was summed before, aligned to the
    largest, all that is below its last bit is cut off."""
    total = np.zeros((left.shape[0], right.shape[1]))
    for begin in range(0, left.shape[1], step):
        products = left[:, begin : begin + step, None].astype(np.float64) * right[None, begin : begin + step]
        addends = np.concatenate([products, total[:, None]], axis=1)
        unit = np.exp2(np.frexp(np.abs(addends).max(axis=1))[1] - 1.0 - bits)
        total = (np.trunc(addends / unit[:, None]) * unit[:, None]).sum(axis=1)
        total = np.trunc(total / unit) * unit
    return total.astype(np.float32)


@pytest.mark.parametrize("is_positive", [False, True])
@pytest.mark.parametrize(
    ("name", "precision", "step", "bits"), [("float32", "tf32", 8, 23), ("float8_e5m2", "ieee", 32, 13)]
)
@pytest.mark.parametrize("depth", [64, 1024])
def test_a_matrix_unit_may_truncate_its_sums(name, precision, step, bits, depth, is_positive):
    random = np.random.default_rng(depth)
    left, right = (random.standard_normal(shape).astype(np.float32) for shape in ((16, depth), (depth, 16)))
    if is_positive:
        left, right = np.abs(left), np.abs(right)
    dtype = np.dtype(name) if name == "float32" else narrow_float(name)
    left, right = ((one.view(np.uint32) & 0xFFFFE000).view(np.float32).astype(dtype) for one in (left, right))

    def run(inputs, arithmetic):
        product = arithmetic.product(inputs.tensors["a"], inputs.tensors["b"], None, np.dtype(np.float32), precision)
        return {"c": product}

    def inputs():
        return Inputs(given=(), tensors={"a": left.copy(), "b": right.copy()}, made_up=())

    baseline = run(inputs(), Arithmetic())
    moved = moved_runs(run, inputs, 0)
    found = truncated_sum(left.astype(np.float32), right.astype(np.float32), step, bits)
    before = {"c": np.zeros_like(found)}
    assert agreement_of(before, baseline, moved, {"c": found}, "runs").verdict == "close"
    # An eighth of the addends, left out, is no rounding.
    least = depth // 8
    found[3, 5] -= np.abs(left[3, :least].astype(np.float64)) @ np.abs(right[:least, 5].astype(np.float64))
    assert agreement_of(before, baseline, moved, {"c": found}, "runs").verdict == "different"


_FUSABLE = """
module {
  tt.func public @kernel(%p0: !tt.ptr<f32>, %p1: !tt.ptr<f32>, %p2: !tt.ptr<f32>) {
    %id = tt.get_program_id x : i32
    %size = arith.constant 1024 : i32
    %begin = arith.muli %id, %size : i32
    %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %begins = tt.splat %begin : i32 -> tensor<1024xi32>
    %offsets = arith.addi %begins, %range : tensor<1024xi32>
    %s0 = tt.splat %p0 : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %a0 = tt.addptr %s0, %offsets : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %x = tt.load %a0 : tensor<1024x!tt.ptr<f32>>
    %s1 = tt.splat %p1 : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %a1 = tt.addptr %s1, %offsets : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %y = tt.load %a1 : tensor<1024x!tt.ptr<f32>>
    %one = arith.constant dense<1.0> : tensor<1024xf32>
    %product = arith.mulf %x, %y : tensor<1024xf32>
    %z = arith.subf %product, %one : tensor<1024xf32>
    %s2 = tt.splat %p2 : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %a2 = tt.addptr %s2, %offsets : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    tt.store %a2, %z : tensor<1024x!tt.ptr<f32>>
    tt.return
  }
}
"""


def test_a_product_may_be_fused_into_an_addition():
    """`x * y - 1` in float64, rounded once, is what an FMA gives, near 0 too, where the product's rounding is all."""
    random = np.random.default_rng(1)
    size = 8192
    x = random.uniform(0.25, 4, size).astype(np.float32)
    y = (1 / x * random.choice([1, 1 + 2**-20, 3], size)).astype(np.float32)

    def inputs():
        tensors = {"x": x.copy(), "y": y.copy(), "z": np.zeros(size, np.float32)}
        return Inputs(tuple(Pointer(one.view(np.uint8)) for one in tensors.values()), tensors, ())

    def left(inputs, arithmetic=None):
        return {"z": run_text(_FUSABLE, (size // 1024, 1, 1), inputs, arithmetic=arithmetic)["z"]}

    fused = (x.astype(np.float64) * y.astype(np.float64) - 1).astype(np.float32)
    baseline, moved = left(inputs()), moved_runs(left, inputs, 0)
    assert (baseline["z"] != fused).sum() > size // 10
    before = {"z": np.zeros(size, np.float32)}
    assert agreement_of(before, baseline, moved, {"z": fused}, "runs").verdict == "close"
    fused[7] += np.float32(2**-18)
    assert agreement_of(before, baseline, moved, {"z": fused}, "runs").verdict == "different"
