"""What `irscope verify` calls wrong is wrong on a GPU, as far as it shows there, and what it calls safe is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.test_gpu_commands import irscope

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


def test_a_release_by_one_thread_is_judged_as_it_shows() -> None:
    from tests.gpu.scripts.released import PAIRS, stale_values
    from tests.gpu.scripts.released import __file__ as script

    answer = irscope("verify", script, "--json")
    assert answer.returncode in (0, 1), answer.stderr
    count = sum(stale_values(PAIRS) for _ in range(RUNS))
    assert (count > 0) == (answer.returncode == 1), f"{count} stale values: {answer.stdout}"


SANITIZED = str(Path(__file__).with_name("scripts") / "sanitized.py")
# Sanitizer, kernel, and a part of the line that it names.
REPORTED = (
    ("global", "split_k_plain", "tl.load(y_ptr + offsets)"), ("global", "split_k_atomic", ""),
    ("concurrency", "waits_for_nothing", "buffer.load"), ("concurrency", "waits", ""),
    ("memory", "past_the_end", "tl.load(x_ptr"), ("memory", "copy_to_n", ""),
)  # fmt: skip


@pytest.mark.parametrize(("sanitizer", "kernel", "line"), REPORTED)
def test_a_sanitizer_reports_at_the_line(sanitizer: str, kernel: str, line: str) -> None:
    answer = irscope("run", SANITIZED, "--sanitize", sanitizer, "--json", "--", kernel)
    code, err = answer.returncode, answer.stderr
    if code and ("has no" in err or "not on the PATH" in err):
        pytest.skip(err)
    found = json.loads(answer.stdout)
    assert (code, found["passes"], bool(found["reports"])) == (int(bool(line)), not line, bool(line)), err
    for report in found["reports"][:1]:
        file, _, number = report["place"].rpartition(":")
        assert SANITIZED.endswith(file)
        assert line in Path(SANITIZED).read_text("utf-8").splitlines()[int(number) - 1]


def test_the_fp_sanitizer_compares_exactly() -> None:
    script = str(Path(__file__).parents[2] / "examples" / "softmax.py")
    answer = irscope("run", script, "--sanitize", "fp", "-d", "reduce_data_duplication", "--json")
    if answer.returncode and "has no" in answer.stderr:
        pytest.skip(answer.stderr)
    assert {row["verdict"] for row in json.loads(answer.stdout)["launches"]} == {"identical"}
