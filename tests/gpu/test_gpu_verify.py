"""What `irscope verify` calls wrong is wrong on a GPU, as far as it shows there, and what it calls safe is right."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the kernels are launched on tensors of torch")
pytestmark = [pytest.mark.gpu, pytest.mark.triton]
RUNS = 20


def wrong_values(kernel: str) -> int:
    """How many values of 20 launches are not those of the program in its order."""
    from tests.verify import kernels

    block, count = 512, 0
    for _ in range(RUNS):
        if kernel.startswith("recurrence"):
            x = torch.zeros(33 * block, device="cuda")
            getattr(kernels, kernel)[(1,)](x, 32, BLOCK=block)
            expected = torch.arange(33, device="cuda").repeat_interleave(block).float()
            count += int((x != expected).sum())
        elif kernel.startswith("split_k"):
            x, y = torch.ones(block * 64, device="cuda"), torch.zeros(block, device="cuda")
            locks: list[Any] = [torch.zeros(1, dtype=torch.int32, device="cuda")] if "lock" in kernel else []
            getattr(kernels, kernel)[(64,)](x, y, *locks, BLOCK=block)
            count += int((y != 64).sum())
        elif kernel.startswith("other_layout"):
            x, y = torch.zeros(64 * 64, device="cuda"), torch.randn(64 * 64, device="cuda")
            before = y.clone()
            getattr(kernels, kernel)[(1,)](x, y, 64, 64)
            count += int((y != before).sum())
        else:
            x, y = torch.zeros(block, device="cuda"), torch.randn(block, device="cuda")
            before = y.clone()
            getattr(kernels, kernel)[(1,)](x, y, BLOCK=block)
            is_reversed = kernel.startswith("reversed")
            count += int((y != (before.flip(0) if is_reversed else before + 1)).sum())
    return count


@pytest.mark.parametrize(
    "kernel",
    ["recurrence", "split_k_atomic", "split_k_lock", "reversed_read_back_after_barrier", "same_thread_read_back"],
)
def test_what_is_safe_is_right(kernel: str) -> None:
    assert wrong_values(kernel) == 0


@pytest.mark.parametrize("kernel", ["recurrence_pipelined", "split_k_plain", "reversed_read_back"])
def test_what_is_wrong_shows(kernel: str) -> None:
    assert wrong_values(kernel) > 0
