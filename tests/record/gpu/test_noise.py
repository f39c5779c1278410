"""What counts as rounding: right kernels in other orders are close, planted wrong results are different; on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the tensors that are judged are torch's")

from irscope.device.measurement import Agreement  # noqa: E402
from irscope.ir.mlir.uses import ArithmeticPrecision, PointerUse, PointerUses, read_arithmetic  # noqa: E402  # noqa: E402
from irscope.record.gpu import memory as device_memory  # noqa: E402
from irscope.record.gpu.memory import KeptArguments  # noqa: E402
from irscope.record.gpu.noise import TF32_UNIT, move_one_ulp, ulps_of  # noqa: E402
from tests.marks import newest_but  # noqa: E402
from tests.record.device.noisy_kernels import PLANTS, Case, cases, ordered_sum, plant  # noqa: E402

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
NAMES = [case.name for case in cases(torch.float32)]


def held(
    case: Case, seed: int = 0, others: tuple[int, ...] = (1, 2, 3, 4), arithmetic: ArithmeticPrecision | None = None
) -> KeptArguments:
    """A launch of a case, with its baseline run."""
    torch.set_num_threads(1)
    arguments = case.make(torch.Generator().manual_seed(seed))
    roles = case.uses.split()
    uses = PointerUses(tuple(PointerUse(f"p{n}", "r" in word, "w" in word) for n, word in enumerate(roles)))
    kept = KeptArguments([f"p{n}" for n in range(len(arguments))], arguments, {}, uses, arithmetic)

    def reordered() -> Iterator[tuple[str, Any]]:
        for order in others:
            yield f"order {order}", lambda order=order: case.run(kept.arguments, order, "")

    kept.take_reference(lambda: case.run(kept.arguments, 0, ""), reordered)
    return kept


def outputs(case: Case, kept: KeptArguments) -> list[Any]:
    return [value for value, role in zip(kept.arguments, case.uses.split(), strict=True) if role == "w"]


def planted(case: Case, kept: KeptArguments, kind: str, seed: int) -> Agreement:
    def run() -> None:
        case.run(kept.arguments, 0, "")
        plant(kind, outputs(case, kept), torch.Generator().manual_seed(seed))

    return kept.check(run)


@pytest.fixture(autouse=True)
def few_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here differs from run to run."""
    monkeypatch.setattr(device_memory, "_ENOUGH_S", 0.0)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        # Each kernel with one of them, whatever their order, and each of them with a third of the kernels.
        pytest.param(name, dtype, marks=() if (place - at) % len(DTYPES) == 0 else pytest.mark.exhaustive)
        for place, name in enumerate(NAMES)
        for at, dtype in enumerate(DTYPES)
    ],
    ids=str,
)
def test_other_orders_are_close_and_wrong_results_are_different(name: str, dtype: Any) -> None:
    case = next(case for case in cases(dtype) if case.name == name)
    kept = held(case)
    for order in (5, 6, 7):
        found = kept.check(lambda order=order: case.run(kept.arguments, order, ""))
        assert found.passes, (order, found)
    for wrong in case.wrongs:
        found = kept.check(lambda wrong=wrong: case.run(kept.arguments, 0, wrong))
        assert found.verdict in ("different", "nan"), (wrong, found)
        # Wrong, and in another order at that.
        found = kept.check(lambda wrong=wrong: case.run(kept.arguments, 5, wrong))
        assert found.verdict in ("different", "nan"), (wrong, found)
    for seed, kind in enumerate(PLANTS):
        found = planted(case, kept, kind, seed)
        assert found.verdict == "different", (kind, found)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_value_moves_to_its_neighbour_and_zeros_infinities_and_nans_stay(dtype: Any) -> None:
    """The oracle: torch.nextafter."""
    values = torch.randn(500, dtype=torch.float64).to(dtype)
    values[:4] = torch.tensor([0.0, float("inf"), float("-inf"), float("nan")])
    values[4] = torch.finfo(dtype).max
    moved = values.clone()
    bits = moved.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize])
    move_one_ulp(bits, dtype, torch.Generator().manual_seed(0))
    assert torch.equal(moved[:3], values[:3])
    assert bool(moved[3].isnan())
    up, down = (torch.nextafter(values, torch.full_like(values, side)) for side in (float("inf"), float("-inf")))
    rest = slice(5, None)
    assert bool(((moved == up) | (moved == down))[rest].all())
    assert 100 < int((moved == up)[rest].sum()) < 400
    assert bool(moved.isfinite()[4:].all())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_unit_in_the_last_place_is_the_distance_to_the_next_number(dtype: Any) -> None:
    values = torch.cat([torch.randn(500, dtype=torch.float64) * 10.0**k for k in (-3, 0, 4)]).to(dtype)
    away = torch.nextafter(values.abs(), torch.full_like(values, float("inf"))).double() - values.abs().double()
    assert torch.equal(ulps_of(values.double(), dtype), away)


def test_a_wrong_element_does_not_hide_behind_the_noise_of_another() -> None:
    """One row's noise is a million times another's: an error far below it, in the quiet row, is found."""
    x = torch.randn(2, 256)
    x[0] *= 1e6
    case = Case("sum", lambda g: [x, torch.empty(2, 256)], _spread, "r w", ())
    kept = held(case)
    assert kept.check(lambda: _spread(kept.arguments, 3, "")).passes

    def wrong() -> None:
        _spread(kept.arguments, 0, "")
        kept.arguments[1][1, 17] += 1e-3

    found = kept.check(wrong)
    assert (found.verdict, found.beyond_noise) == ("different", 1)
    assert found.noise is not None
    assert found.noise > 1e-3


def _spread(arguments: list[Any], order: int, wrong: str) -> None:
    x, out = arguments
    out.copy_(x + ordered_sum(x, order)[:, None])


# Products on matrix units: neither other warps nor other roundings of the PTX reorder their sums

STEPS = (32, 8, 16, 64, 128, 24, 48, 96, 512)
"""Elements of K that are added at once."""
ORDERS = 12
_SIZE, _INNER = 128, 1024


def _cut_to_tf32(x: Any) -> Any:
    return (x.view(torch.int32) & ~0x1FFF).view(torch.float32)


def _product(arguments: list[Any], order: int, _: str) -> None:
    """A product as a matrix unit makes it: exact products of cut inputs, sums in float32 in one of 12 orders."""
    a, b, out = arguments
    left, right = (_cut_to_tf32(one) if one.dtype == torch.float32 else one.float() for one in (a, b))
    inner, step = a.shape[1], STEPS[order % len(STEPS)]
    starts = list(range(0, inner, step))
    if order >= len(STEPS):
        # K backwards, or its halves and quarters by themselves, as split-K does.
        parts = order - len(STEPS) + 1
        groups = [starts[::-1]] if parts == 1 else [starts[part :: 2 * parts - 2] for part in range(2 * parts - 2)]
    else:
        groups = [starts]
    total = torch.zeros(out.shape)
    for group in groups:
        part = torch.zeros(out.shape)
        for start in group:
            part = part + left[:, start : start + step] @ right[start : start + step]
        total = total + part
    out.copy_(total)


def _product_case(dtype: Any, out: Any) -> Case:
    def make(g: Any) -> list[Any]:
        a, b = torch.randn(_SIZE, _INNER, generator=g), torch.randn(_INNER, _SIZE, generator=g)
        return [a.to(dtype), b.to(dtype), torch.empty(_SIZE, _SIZE, dtype=out)]

    return Case("product", make, _product, "r r w", ())


FAULTS = {
    **{f"row {at}": (slice(at, at + 1), slice(None)) for at in (0, 63, 127)},
    **{f"column {at}": (slice(None), slice(at, at + 1)) for at in (0, 17, 127)},
    **{f"tile {at}": (slice(at, at + 16), slice(at, at + 16)) for at in (0, 32, 112)},
    **{f"element {at}": (slice(at, at + 1), slice(at + 1, at + 2)) for at in (0, 50, 100)},
}
FORMATS = {
    "tf32": (torch.float32, torch.float32),
    "bf16 into bf16": (torch.bfloat16, torch.bfloat16),
    "fp16 into fp16": (torch.float16, torch.float16),
    "bf16 into fp32": (torch.bfloat16, torch.float32),
}


# An output in float32, and one of the inputs' own type.
@pytest.mark.parametrize("name", newest_but(["tf32", "bf16 into bf16"], *FORMATS, rare=[*FORMATS][2:]))
def test_products_with_k_in_another_order_are_close_and_one_percent_is_different(name: str) -> None:
    dtype, out = FORMATS[name]
    case = _product_case(dtype, out)
    kept = held(case, others=(), arithmetic=ArithmeticPrecision(name == "tf32", rounds_between=False))
    differing = 0
    for order in range(1, ORDERS):
        found = kept.check(lambda order=order: _product(kept.arguments, order, ""))
        assert found.verdict in ("close", "identical"), (order, found)
        differing += found.verdict == "close"
    # Of a narrow output few elements round to the other side.
    assert differing >= ORDERS // 2
    (result,) = outputs(case, kept)
    for fault, place in FAULTS.items():
        for order in (0, 3):

            def wrong(order: int = order, place: Any = place) -> None:
                _product(kept.arguments, order, "")
                part = result[place]
                # Of one element of a narrow format 1 % may be the rounding of a sum: there it is what is seen.
                unit = ulps_of(part.double(), out)
                less = part.double().abs() * 0.01
                seen = less if part.numel() > 1 or out == torch.float32 else torch.maximum(less, 2 * unit)
                part.copy_(part.double() + torch.copysign(seen, part.double()))

            found = kept.check(wrong)
            assert found.verdict == "different", (fault, order, found)


def test_a_column_that_is_off_by_one_unit_everywhere_is_different() -> None:
    """Each element by itself might have rounded to the other side."""
    case = _product_case(torch.bfloat16, torch.bfloat16)
    kept = held(case, others=(), arithmetic=ArithmeticPrecision(rounds_between=False))
    (result,) = outputs(case, kept)

    def shifted() -> None:
        _product(kept.arguments, 3, "")
        result.view(torch.int16)[:, 40] += 1

    found = kept.check(shifted)
    assert (found.verdict, found.beyond_noise) == ("different", 0)
    assert "column 40 is off as a whole" in found.detail


def test_inputs_of_tf32_move_by_its_own_unit() -> None:
    """By one unit of float32 they would stay as they are read, and no noise would be seen."""
    values = torch.randn(4096)
    moved = values.clone()
    move_one_ulp(moved.view(torch.int32), torch.float32, torch.Generator().manual_seed(0), TF32_UNIT)
    assert bool((_cut_to_tf32(moved) != _cut_to_tf32(values)).all())
    apart = (moved.double() - values.double()).abs() / values.double().abs()
    assert 2.0**-11 < float(apart.min()) <= float(apart.max()) <= 2.0**-10


_KERNEL = """module {{
  tt.func public @k(%p: !tt.ptr<{0}>, %q: !tt.ptr<{1}>) {{
    %zero = arith.constant dense<0.0> : tensor<32x32xf32>
    %pp = tt.splat %p : !tt.ptr<{0}> -> tensor<32x32x!tt.ptr<{0}>>
    %qq = tt.splat %q : !tt.ptr<{1}> -> tensor<32x32x!tt.ptr<{1}>>
    %x = tt.load %pp : tensor<32x32x!tt.ptr<{0}>>
    {2}
    tt.store %qq, %y : tensor<32x32x!tt.ptr<{1}>>
    tt.return
  }}
}}"""
_DOT = "tt.dot %{0}, %x, %zero{1} : tensor<32x32x{2}> * tensor<32x32x{2}> -> tensor<32x32xf32>"


@pytest.mark.parametrize(
    ("types", "lines", "arithmetic"),
    [
        (
            ("f32", "f32"),
            ["%y = " + _DOT.format("x", ", inputPrecision = tf32", "f32")],
            ArithmeticPrecision(True, False),
        ),
        (("f32", "f32"), ["%y = " + _DOT.format("x", "", "f32")], ArithmeticPrecision(False, False)),
        (
            ("f32", "f32"),
            ["%e = math.exp %x : tensor<32x32xf32>", "%y = " + _DOT.format("e", ", inputPrecision = tf32", "f32")],
            ArithmeticPrecision(True, True),
        ),
        (
            ("bf16", "bf16"),
            # A dot of other types has that attribute too.
            [
                f"%d = {_DOT.format('x', ', inputPrecision = tf32', 'bf16')}",
                "%y = arith.truncf %d : tensor<32x32xf32> to tensor<32x32xbf16>",
            ],
            ArithmeticPrecision(False, False),
        ),
        (
            ("bf16", "f32"),
            [
                f"%d = {_DOT.format('x', '', 'bf16')}",
                "%n = arith.truncf %d : tensor<32x32xf32> to tensor<32x32xbf16>",
                f"%y = {_DOT.format('n', '', 'bf16')}",
            ],
            ArithmeticPrecision(False, True),
        ),
        (("bf16", "bf16"), ["%y = arith.addf %x, %x : tensor<32x32xbf16>"], ArithmeticPrecision(False, True)),
        (("f32", "f32"), ["%y = tt.unheard_of %x : tensor<32x32xf32>"], ArithmeticPrecision(False, True)),
    ],
)
def test_what_rounds_between_is_read_of_the_ir(
    types: tuple[str, str], lines: list[str], arithmetic: ArithmeticPrecision
) -> None:
    assert read_arithmetic(_KERNEL.format(*types, "\n    ".join(lines))) == arithmetic


def test_of_no_ir_nothing_is_known() -> None:
    assert read_arithmetic("") == read_arithmetic("no IR {") == ArithmeticPrecision()
