"""Times launches with the device's events: interleaved, warmed up, and with a cold L2 unless asked otherwise."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Sequence
from typing import Any

import torch

_WARM_UP_MS = 20.0
_LEAST_FLUSH_BYTES = 64 << 20
_LEAD_CYCLES = 200_000
"""About 0.1 ms: the host runs ahead of the device by that much, so that no launch waits for it."""

_COPY_BYTES = 1 << 30
_MATMUL_SIZE = 8192

Launch = Callable[[], Any]


def _flush_bytes(device: int) -> int:
    """Bytes that are overwritten to flush the L2: four times its size, as far as the device says it."""
    l2 = int(getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0))
    return max(4 * l2, _LEAST_FLUSH_BYTES)


def time_launches(
    launches: Sequence[Launch], rounds: int, cold: bool, before_each: Launch, alive: Callable[[], None] = lambda: None
) -> list[list[float]]:
    """Microseconds of each launch in each round.

    Every round times each launch once, in an order of its own: what drifts, and what the one before leaves behind,
    hits all alike. `before_each` puts back what a launch changes of its own inputs.
    """
    device = torch.cuda.current_device()
    scratch = torch.empty(_flush_bytes(device) // 4, dtype=torch.int32, device="cuda")
    for run in launches:
        _warm_up(run, before_each)
        alive()
    times: list[list[float]] = [[] for _ in launches]
    order = list(range(len(launches)))
    shuffle = random.Random(0).shuffle
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            shuffle(order)
            events = {index: _timed(launches[index], scratch if cold else None, before_each) for index in order}
            torch.cuda.synchronize()
            for index, (start, end) in events.items():
                times[index].append(start.elapsed_time(end) * 1000.0)
            alive()
    finally:
        if collecting:
            gc.enable()
    return times


def _timed(run: Launch, scratch: torch.Tensor | None, before_each: Launch) -> tuple[Any, Any]:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    if scratch is None:
        torch.cuda._sleep(_LEAD_CYCLES)
        run()
        before_each()
    else:
        before_each()
        scratch.zero_()
    start.record()
    run()
    end.record()
    return start, end


def _warm_up(run: Launch, before_each: Launch) -> None:
    """Load the binary, and bring the clocks up."""
    before_each()
    run()
    torch.cuda.synchronize()
    spent = 0.0
    while spent < _WARM_UP_MS:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        before_each()
        start.record()
        run()
        end.record()
        torch.cuda.synchronize()
        # However short it is, it does not run for ever.
        spent += max(start.elapsed_time(end), 0.2)


def copy_bytes_per_second() -> float:
    """What a large copy on the device moves, bytes read plus bytes written, in a second."""
    free, _ = torch.cuda.mem_get_info()
    size = min(_COPY_BYTES, free // 4)
    source = torch.empty(size // 4, dtype=torch.int32, device="cuda").random_()
    target = torch.empty_like(source)
    (times,) = time_launches([lambda: target.copy_(source)], 15, True, lambda: None)
    return 2 * source.nbytes / (sorted(times)[len(times) // 2] * 1e-6)


def matmul_flops_per_second(dtype_name: str) -> float | None:
    """What torch's matrix product of a dtype reaches, on random data; None where torch has none."""
    dtype = getattr(torch, dtype_name, None)
    if dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        return None
    size = _MATMUL_SIZE if dtype.itemsize <= 2 else _MATMUL_SIZE // 2
    one, other = (torch.randn(size, size, device="cuda", dtype=torch.float32).to(dtype) for _ in range(2))
    out = torch.empty_like(one)
    precision = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        (times,) = time_launches([lambda: torch.matmul(one, other, out=out)], 10, True, lambda: None)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = precision
    return 2.0 * size**3 / (sorted(times)[len(times) // 2] * 1e-6)
