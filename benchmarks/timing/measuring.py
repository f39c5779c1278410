"""Times of every configuration on this machine's GPU, in a child process that is started anew after a fault.

As `triton.testing.do_bench` does, each launch is timed by two CUDA events after 256 MB were set to zero, which flushes
L2; the launches are enqueued without waiting, so that the host's time is hidden behind the flush. The clock rate is
read right after the last launch, by a kernel that counts clocks against the global timer.
"""

from __future__ import annotations

import datetime
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl

from benchmarks.timing.family import FAMILIES, Launch
from benchmarks.timing.recording import capture_name, failure_name

_FLUSHED_BYTES = 256 << 20
_MOST_MS, _FEWEST, _MOST = 25.0, 7, 40
_METHOD = "CUDA events around each launch, 256 MB set to zero before it (flushes L2), medians"


@triton.jit
def _clock_probe(out, x, ROUNDS: tl.constexpr):
    clock = tl.inline_asm_elementwise("mov.u64 $0, %clock64;", "=l", [], tl.int64, is_pure=False, pack=1)
    timer = tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], tl.int64, is_pure=False, pack=1)
    value = tl.load(x)
    for _ in range(ROUNDS):
        value = tl.inline_asm_elementwise(
            "fma.rn.f32 $0, $1, $1, $1;", "=f,f", [value], tl.float32, is_pure=False, pack=1
        )
    later = tl.inline_asm_elementwise("mov.u64 $0, %clock64;", "=l", [], tl.int64, is_pure=False, pack=1)
    after = tl.inline_asm_elementwise("mov.u64 $0, %globaltimer;", "=l", [], tl.int64, is_pure=False, pack=1)
    tl.store(out, later - clock)  # pyright: ignore[reportOperatorIssue]
    tl.store(out + 1, after - timer)  # pyright: ignore[reportOperatorIssue]
    tl.store(x, value)


class Clock:
    """Reads the clock rate of the multiprocessors while they are still as fast as the last kernel left them."""

    def __init__(self) -> None:
        self._out = torch.zeros(2, device="cuda", dtype=torch.int64)
        self._x = torch.zeros(1, device="cuda")
        self.start()
        self.read_mhz()

    def start(self) -> None:
        """Enqueue the kernel; it takes some 50 µs."""
        _clock_probe[(1,)](self._out, self._x, ROUNDS=25000, num_warps=1)  # pyright: ignore[reportCallIssue]

    def read_mhz(self) -> float:
        """Wait for the kernel, and return clocks per microsecond."""
        clocks, nanoseconds = self._out.tolist()
        return clocks / max(nanoseconds, 1) * 1e3


def time_launch(launch: Launch, flushed: torch.Tensor, clock: Clock) -> dict[str, Any]:
    """Return the times of one launch, in microseconds, and the clock rate."""
    launch()
    torch.cuda.synchronize()
    first = _timed(launch, flushed, 1)[0]
    rounds = int(min(max(_MOST_MS * 1e3 / (first + 100.0), _FEWEST), _MOST))
    times = sorted(_timed(launch, flushed, rounds, clock))
    quarter = len(times) // 4
    return {
        "median_us": round(statistics.median(times), 3),
        "min_us": round(times[0], 3),
        "low_us": round(times[quarter], 3),
        "high_us": round(times[-1 - quarter], 3),
        "max_us": round(times[-1], 3),
        "rounds": rounds,
        "clock_mhz": round(clock.read_mhz()),
    }


def _timed(launch: Launch, flushed: torch.Tensor, rounds: int, clock: Clock | None = None) -> list[float]:
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(rounds)]
    for before, after in events:
        flushed.zero_()
        before.record()
        launch()
        after.record()
    if clock is not None:
        clock.start()
    torch.cuda.synchronize()
    return [before.elapsed_time(after) * 1e3 for before, after in events]


def machine(command: str) -> dict[str, Any]:
    """Describe the card, the versions, the date and the method: the first line of a file of results."""
    properties = torch.cuda.get_device_properties(0)
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    driver = subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()
    return {
        "machine": properties.name,
        "multiprocessors": properties.multi_processor_count,
        "l2_bytes": properties.L2_cache_size,
        "driver": driver,
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": sys.version.split()[0],
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "method": _METHOD,
        "command": command,
    }


def measure_here(work: list[tuple[str, int]], captures: Path, results: Path) -> None:
    """Measure in this process, and append a row for each configuration; a fault of the GPU ends the process."""
    flushed = torch.empty(_FLUSHED_BYTES // 4, device="cuda", dtype=torch.int32)
    clock = Clock()
    left = list(work)
    with results.open("a") as stream:
        while left:
            # What still compiles is passed over: some configurations take minutes.
            place = next((place for place, ready in enumerate(left) if _is_recorded(*ready, captures)), None)
            if place is None:
                time.sleep(0.02)
                continue
            name, number = left.pop(place)
            print(json.dumps([name, number]), flush=True)
            row: dict[str, Any] = {"family": name, "number": number, "config": dict(FAMILIES[name].configs[number])}
            failure = captures / failure_name(name, number)
            if failure.exists():
                row |= {"status": "failed", "message": failure.read_text()[:300]}
            else:
                row |= _row(name, number, flushed, clock) | {"capture": capture_name(name, number)}
            stream.write(json.dumps(row, default=str) + "\n")
            stream.flush()


def _is_recorded(name: str, number: int, captures: Path) -> bool:
    return (captures / capture_name(name, number)).exists() or (captures / failure_name(name, number)).exists()


def _row(name: str, number: int, flushed: torch.Tensor, clock: Clock) -> dict[str, Any]:
    family = FAMILIES[name]
    began = time.perf_counter()
    try:
        prepared = family.prepare(family.configs[number])
        torch.cuda.synchronize()
        ready = time.perf_counter()
        prepared()
        launched = time.perf_counter()
        times = time_launch(prepared, flushed, clock)
    except triton.runtime.errors.OutOfResources as error:
        return {"status": "does not fit", "message": str(error)}
    host = {"prepare_s": round(ready - began, 3), "load_s": round(launched - ready, 3)}
    return {"status": "ok", "grid": list(prepared.grid), **times, **host}


def measure(work: list[tuple[str, int]], captures: Path, results: Path, command: str, seconds: float) -> None:
    """Measure in child processes until `seconds` are over: one that faults loses its configuration alone."""
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(json.dumps(machine(command)) + "\n")
    until = time.monotonic() + seconds
    left = [(name, number) for name, number in work]
    while left and time.monotonic() < until:
        child = [sys.executable, "-m", "benchmarks.timing", "measure-here", str(captures), str(results)]
        process = subprocess.Popen(
            child, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            printed, errors = process.communicate(json.dumps(left), timeout=max(until - time.monotonic(), 1.0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            print("stopped: the time is over", flush=True)
            return
        begun = [(name, number) for name, number in map(json.loads, printed.splitlines())]
        left = [place for place in left if place not in set(begun)]
        if process.returncode and not begun:
            sys.exit(f"nothing could be measured: {errors[-1000:]}")
        if process.returncode:
            name, number = begun[-1]
            last = (errors.strip().splitlines() or [""])[-1][:300]
            row = {"family": name, "number": number, "config": dict(FAMILIES[name].configs[number])}
            with results.open("a") as stream:
                stream.write(json.dumps(row | {"status": "fault", "message": last}, default=str) + "\n")
            print(f"fault in {name} {number}: {last}", flush=True)
