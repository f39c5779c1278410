"""Products whose K is in another order on real matrix units are close, and 1 % in one place is different."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the tensors that are judged are torch's")

SCRIPT = Path(__file__).parent / "scripts" / "products.py"
PLACES = {
    "row": (slice(7, 8), slice(None)),
    "column": (slice(None), slice(200, 201)),
    "tile": (slice(64, 80), slice(128, 144)),
}

pytestmark = [pytest.mark.gpu, pytest.mark.triton]


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
def test_k_in_another_order_is_close_and_one_percent_is_different(name: str) -> None:
    from irscope.record.gpu.kernels import SeenLaunch, launch, other_baselines, watched_launches
    from irscope.record.gpu.launch import compile_again, keep_arguments

    spec = importlib.util.spec_from_file_location("products", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    products = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(products)

    seen: list[SeenLaunch] = []
    with watched_launches(lambda one, proceed: seen.append(one)):
        products.launch(getattr(torch, name))
    (one,) = seen
    kept = keep_arguments(one, one.kernel)
    assert kept.arithmetic.reads_tf32 == (name == "float32")
    assert not kept.arithmetic.rounds_between
    options = {key: getattr(one.kernel.metadata, key) for key in ("num_warps", "num_stages", "enable_fp_fusion")}

    def run(kernel: Any) -> None:
        launch(kernel, one.grid, kept.arguments)
        torch.cuda.synchronize()

    def others() -> Iterator[tuple[str, Callable[[], None]]]:
        for label, kernel in other_baselines(one.kernel, options, lambda own: compile_again(one.kernel, options | own)):
            yield label, lambda kernel=kernel: run(kernel)

    kept.take_reference(lambda: run(one.kernel), others)
    tensors = kept.arguments[:3]
    reordered = [(16, False), (64, False), (128, False), (16, True), (32, True), (64, True), (128, True)]
    for block_k, backwards in reordered:

        def other(block_k: int = block_k, backwards: bool = backwards) -> None:
            products.launch(None, block_k, backwards, tensors)
            torch.cuda.synchronize()

        found = kept.check(other)
        assert found.passes, (block_k, backwards, found)
    for fault, place in PLACES.items():

        def wrong(place: Any = place) -> None:
            products.launch(None, 64, True, tensors)
            torch.cuda.synchronize()
            tensors[2][place] *= 1.01

        found = kept.check(wrong)
        assert found.verdict == "different", (fault, found)
