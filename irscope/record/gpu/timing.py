"""Times launches with the device's events: interleaved, warmed up, and with a cold L2 unless asked otherwise."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from irscope.record.triton import api as triton_api

_SIZE, _BLOCK = 256, 64
_LAUNCHES = 20
_DTYPES = ("float16", "bfloat16", "float32")


def count() -> dict[str, Any]:
    """How many devices torch sees, or why it sees none."""
    if torch.cuda.is_available():
        return {"devices": torch.cuda.device_count(), "why": ""}
    built = torch.version.cuda or torch.version.hip
    why = "this torch is built without CUDA and ROCm" if built is None else "torch finds no device and driver for it"
    return {"devices": 0, "why": f"{why} (torch {torch.__version__})"}


def _try_device(number: int) -> dict[str, Any]:
    torch.cuda.set_device(number)
    properties = torch.cuda.get_device_properties(number)
    major, minor = torch.cuda.get_device_capability(number)
    answer: dict[str, Any] = {
        "device": number,
        "name": properties.name,
        "capability": f"{major}.{minor}",
        "memory_bytes": properties.total_memory,
        "driver": _driver_version(),
        "error": "",
    }
    with tempfile.TemporaryDirectory(prefix="irscope-") as folder, triton_api.private_cache(Path(folder)):
        try:
            answer |= _run_sample()
            answer |= _measure(f"cuda:{major}{minor}")
        except Exception as error:
            text = str(error).strip().splitlines()
            answer["error"] = f"{type(error).__name__}: {text[0] if text else ''}"
    return answer


def _run_sample() -> dict[str, Any]:
    from irscope.record.triton.sample_kernel import sample_matmul

    triton_api.silence_known_noise()
    kernel: Any = sample_matmul
    a, b = (torch.randn(_SIZE, _SIZE, device="cuda", dtype=torch.float16) for _ in range(2))
    out = torch.full((_SIZE, _SIZE), float("nan"), device="cuda", dtype=torch.float32)
    grid = (_SIZE // _BLOCK, _SIZE // _BLOCK)
    started = time.perf_counter()
    kernel[grid](a, b, out, _SIZE, BLOCK=_BLOCK)
    torch.cuda.synchronize()
    compile_s = time.perf_counter() - started
    expected = a.cpu().double() @ b.cpu().double()
    error = float((out.cpu().double() - expected).norm() / expected.norm())
    times: list[float] = []
    for _ in range(_LAUNCHES):
        start, end = _between_events(lambda: kernel[grid](a, b, out, _SIZE, BLOCK=_BLOCK))
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1000.0)
    # A NaN is no number that is small enough.
    return {
        "relative_error": error,
        "right": error < 1e-3,
        "compile_s": compile_s,
        "launch_us": sorted(times)[_LAUNCHES // 2],
    }


def _measure(cuda_target: str) -> dict[str, Any]:
    arch = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "gcnArchName", "")
    rates = {name: matmul_flops_per_second(name) for name in _DTYPES}
    return {
        "target": f"hip:{arch.partition(':')[0]}" if torch.version.hip else cuda_target,
        "bytes_per_s": copy_bytes_per_second(),
        "flops_per_s": {name: rate for name, rate in rates.items() if rate is not None},
    }


def _driver_version() -> str:
    for path in ("/sys/module/nvidia/version", "/sys/module/amdgpu/version"):
        with contextlib.suppress(OSError):
            return Path(path).read_text().strip()
    with contextlib.suppress(OSError, IndexError):
        # NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release Build  (…)
        words = Path("/proc/driver/nvidia/version").read_text().splitlines()[0].split()
        return next(word for word in words if word[:1].isdigit() and "." in word)
    with contextlib.suppress(AttributeError, RuntimeError):
        version = int(getattr(torch._C, "_cuda_getDriverVersion")())  # noqa: B009 - not in torch's own types
        return f"for CUDA {version // 1000}.{version % 1000 // 10}"
    return ""


def main() -> None:
    answer = count() if len(sys.argv) < 2 else _try_device(int(sys.argv[1]))
    print(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)


_WARM_UP_MS = 20.0
_LEAST_FLUSH_BYTES = 64 << 20
_LEAD_CYCLES = 200_000
"""About 0.1 ms: the host runs ahead of the device by that much, so that no launch waits for it."""

_COPY_BYTES = 1 << 30
_MATMUL_SIZE = 8192

Launch = Callable[[], Any]


def time_launches(
    launches: Sequence[Launch], rounds: int, cold: bool, before_each: Launch, alive: Callable[[], None] = lambda: None
) -> list[list[float]]:
    """Microseconds of each launch in each round, which has an order of its own: what drifts hits all alike.

    `before_each` puts back what a launch changes of its own inputs.
    """
    # The L2 is flushed by overwriting four times its size, as far as the device says it.
    l2 = int(getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "L2_cache_size", 0))
    scratch = torch.empty(max(4 * l2, _LEAST_FLUSH_BYTES) // 4, dtype=torch.int32, device="cuda")
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
    if scratch is None:
        torch.cuda._sleep(_LEAD_CYCLES)
        run()
        before_each()
    else:
        before_each()
        scratch.zero_()
    return _between_events(run)


def _between_events(run: Launch) -> tuple[Any, Any]:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    run()
    end.record()
    return start, end


def _warm_up(run: Launch, before_each: Launch) -> None:
    before_each()
    run()
    torch.cuda.synchronize()
    spent = 0.0
    while spent < _WARM_UP_MS:
        before_each()
        start, end = _between_events(run)
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


if __name__ == "__main__":
    main()
