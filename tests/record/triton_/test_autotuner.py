"""The one patch of the autotuner: what it reports, against what Triton compiles, launches and keeps."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("triton", reason="the autotuner is Triton's, which is not installed")
pytestmark = pytest.mark.triton

import triton  # noqa: E402
import triton.language as tl  # noqa: E402
from triton.runtime.autotuner import Autotuner  # noqa: E402

from irscope.model.capture import Autotuning, Target  # noqa: E402
from irscope.record.triton import autotuner  # noqa: E402
from irscope.record.triton.sample_kernel import sample_matmul  # noqa: E402
from irscope.record.virtual.gpu import virtual_gpu  # noqa: E402


class Buffer:
    """A tensor, as far as a launch needs it."""

    dtype = "fp32"

    def data_ptr(self) -> int:
        return 4096


def keep_two(configs: list[Any], named_args: Any, **_: Any) -> list[Any]:
    return configs[1:]


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}, num_warps=1) for block in (32, 64, 128)],
    key=["n"],
    prune_configs_by={"early_config_prune": keep_two},
)
@triton.jit
def fill_kernel(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), n)


def seen(policy: Any, *, watched_twice: bool = False) -> tuple[list[Any], list[Any], list[Any]]:
    """Per configuration that was timed (tuning, index, kept, times), per launch (index, what Triton compiled)."""
    timed: list[Any] = []
    outer: list[Any] = []
    launched: list[Any] = []

    def on_timed(rows: list[Any]) -> autotuner.OnTimed:
        def note(kernel: str, tuning: int, row: Autotuning, times_ms: list[float]) -> None:
            assert kernel == "fill_kernel"
            rows.append((tuning, row.index, row.count, row.kept, times_ms[0]))

        return note

    def on_launch(kernel: Any, *_: Any) -> None:
        row = autotuner.configuration_under_way("fill_kernel")
        assert row is not None
        assert autotuner.configuration_under_way("another_kernel") is None
        block = kernel.src.constants[2,]
        assert f"BLOCK: {block}," in row.config
        launched.append((row.index, block, autotuner.is_timing()))

    with virtual_gpu(Target.parse("cuda:90"), on_launch, configs=policy, on_timed=on_timed(timed)):
        if watched_twice:
            with autotuner.watched_autotuner(on_timed(outer)):
                fill_kernel[(1,)](Buffer(), 7)
        else:
            fill_kernel[(1,)](Buffer(), 7)
            fill_kernel[(1,)](Buffer(), 7)
            fill_kernel[(1,)](Buffer(), 8)
    return timed, outer, launched


def test_the_first_is_compiled_once_and_its_trial_is_no_launch() -> None:
    timed, _, launched = seen("first")
    assert timed == [(1, 1, 3, 2, 1.0), (2, 1, 3, 2, 1.0)]
    assert launched == [(1, 64, False)] * 3


def test_all_are_compiled_and_launched() -> None:
    timed, _, launched = seen("all")
    assert timed == [(tuning, index, 3, 2, 1.0) for tuning in (1, 2) for index in (1, 2)]
    trials = [(1, 64, True), (2, 128, True)]
    assert launched == [*trials, (1, 64, False), (1, 64, False), *trials, (1, 64, False)]


@pytest.mark.parametrize(("picked", "index"), [(2, 2), (0, 1)])
def test_a_function_picks_and_where_it_picks_none_the_first_stands_for_them(picked: int, index: int) -> None:
    _, _, launched = seen(lambda number, config: number == picked)
    assert [row[0] for row in launched if not row[2]] == [index] * 3


def test_two_watchers_agree() -> None:
    timed, outer, launched = seen("all", watched_twice=True)
    assert timed == outer
    assert [row[0] for row in launched] == [1, 2, 1]


def test_nothing_stays() -> None:
    before = dict(vars(Autotuner))
    fill_kernel.cache = held = {("old",): fill_kernel.configs[0]}
    seen("all")
    assert dict(vars(Autotuner)) == before
    assert fill_kernel.cache is held
    assert len(held) == 1
    assert autotuner.configuration_under_way("fill_kernel") is None
    assert not autotuner.is_timing()
    assert not autotuner.is_rehearsal()


def test_what_has_every_attribute_is_no_wrapper_of_a_kernel() -> None:
    """A mock answers `.fn.fn.fn…` without end, and a wrapper may wrap itself."""
    circle = SimpleNamespace(run=None)
    circle.fn = circle
    tuned = triton.autotune([triton.Config({})], [])(triton.heuristics({})(sample_matmul))
    namespace = {"mock": MagicMock(), "circle": circle, "plain": sample_matmul, "tuned": tuned, "number": 1}
    assert autotuner.kernel_functions(namespace) == {"plain": sample_matmul, "tuned": sample_matmul}
