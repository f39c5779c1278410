"""What counts as rounding: right kernels in other orders are close, planted wrong results are different; on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the tensors that are judged are torch's")

from irscope.device.measurement import Agreement  # noqa: E402
from irscope.ir.mlir.pointer_uses import PointerUse, PointerUses  # noqa: E402
from irscope.record.gpu import memory as device_memory  # noqa: E402
from irscope.record.gpu.memory import KeptArguments  # noqa: E402
from irscope.record.gpu.values import move_one_ulp, ulps_of  # noqa: E402
from tests.record.device.noisy_kernels import PLANTS, Case, cases, ordered_sum, plant  # noqa: E402

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
NAMES = [case.name for case in cases(torch.float32)]


def held(case: Case, seed: int = 0, others: tuple[int, ...] = (1, 2, 3, 4)) -> KeptArguments:
    """A launch of a case, with its baseline run."""
    torch.set_num_threads(1)
    arguments = case.make(torch.Generator().manual_seed(seed))
    roles = case.uses.split()
    uses = PointerUses(tuple(PointerUse(f"p{n}", "r" in word, "w" in word) for n, word in enumerate(roles)))
    kept = KeptArguments([f"p{n}" for n in range(len(arguments))], arguments, {}, uses)

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
