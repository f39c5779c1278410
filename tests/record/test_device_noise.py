"""What counts as rounding: right kernels in other orders are close, planted wrong results are different; on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the tensors that are judged are torch's")

from irscope.analysis.measurement import Agreement  # noqa: E402
from irscope.analysis.pointer_uses import PointerUse, PointerUses  # noqa: E402
from irscope.record.device_memory import KeptLaunch  # noqa: E402
from tests.record.device.noisy_kernels import PLANTS, Case, cases, plant  # noqa: E402

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
NAMES = [case.name for case in cases(torch.float32)]


def held(case: Case, seed: int = 0, others: tuple[int, ...] = (1, 2, 3, 4)) -> KeptLaunch:
    """A launch of a case, with its baseline run."""
    torch.set_num_threads(1)
    arguments = case.make(torch.Generator().manual_seed(seed))
    roles = case.uses.split()
    uses = PointerUses(tuple(PointerUse(f"p{n}", "r" in word, "w" in word) for n, word in enumerate(roles)))
    kept = KeptLaunch([f"p{n}" for n in range(len(arguments))], arguments, {}, uses)

    def reordered() -> Iterator[tuple[str, Any]]:
        for order in others:
            yield f"order {order}", lambda order=order: case.run(kept.arguments, order, "")

    kept.take_reference(lambda: case.run(kept.arguments, 0, ""), reordered)
    return kept


def outputs(case: Case, kept: KeptLaunch) -> list[Any]:
    return [value for value, role in zip(kept.arguments, case.uses.split(), strict=True) if role == "w"]


def planted(case: Case, kept: KeptLaunch, kind: str, seed: int) -> Agreement:
    def run() -> None:
        case.run(kept.arguments, 0, "")
        plant(kind, outputs(case, kept), torch.Generator().manual_seed(seed))

    return kept.check(run)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
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
