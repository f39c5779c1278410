"""What many variants take: on all cores against one, in turns, and a store of a thousand captures.

`one core`: the process and its children may run on one core alone. `-j 1` compiles one after another, but what is done
beside a compile (layouts, storing) may run on a second core. Ratios by the clock mean something on a machine with
nothing else to do; the processor time beside them says what the forks cost. `SCALE_VARIANTS`, `SCALE_ROUNDS` and
`SCALE_JOBS` set other numbers.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import irscope
from benchmarks.commands import installed
from irscope.model.capture import Capture
from irscope.store.recent import CaptureStore

ROOT = Path(__file__).parents[1]
VARIANTS = int(os.environ.get("SCALE_VARIANTS", "100"))
ROUNDS = int(os.environ.get("SCALE_ROUNDS", "3"))
JOBS = [1, *map(int, os.environ.get("SCALE_JOBS", "2").split(","))]
STORED = 1000

SCRIPT = """
import sys
import torch, triton, triton.language as tl
configs = [
    triton.Config({{"BLOCK": 2 ** (5 + n % 5), "REPEATS": 1 + n // 5}}, num_warps=4) for n in range({variants})
]
@triton.autotune(configs, key=[])
@triton.jit
def sums(x, y, n, BLOCK: tl.constexpr, REPEATS: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n, other=0.0)
    for _ in tl.static_range(REPEATS):
        values = tl.exp(values) + tl.sum(values)
    tl.store(y + at, values, mask=at < n)
x = torch.empty(4096, device="cuda")
sums[(8,)](x, x, 4096)
"""


ONE_CORE = "one core"


def took(command: list[str], environment: dict[str, str], cores: Iterable[int] = ()) -> tuple[float, float]:
    """Seconds by the clock, and of the processors, that a command takes, on all `cores` or some; it must succeed."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    all_cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores or all_cores)
    try:
        answer = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    finally:
        os.sched_setaffinity(0, all_cores)
    clock, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if answer.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{answer.stderr[-2000:]}")
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def variants(folder: Path, environment: dict[str, str]) -> None:
    """One compile at a time, and several."""
    script = folder / "variants.py"
    script.write_text(SCRIPT.format(variants=VARIANTS))
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in (ONE_CORE, *(f"-j {jobs}" for jobs in JOBS))}
    for number in range(ROUNDS):
        for name, rows in times.items():
            cores = {min(os.sched_getaffinity(0))} if name == ONE_CORE else ()
            words = [] if name == ONE_CORE else name.split()
            home = {"IRSCOPE_HOME": str(folder / f"{number}{name}")}
            command = [sys.executable, "-m", "irscope", "dump", str(script), "--config", "all", *words]
            rows.append(took(command, environment | home, cores))
    print(f"{VARIANTS} variants, medians of {ROUNDS} in turns")
    for name, rows in times.items():
        ratios = [one / row for (one, _), (row, _) in zip(times[ONE_CORE], rows, strict=True)]
        clock, processor = (statistics.median(column) for column in zip(*rows, strict=True))
        print(
            f"  {name}: {clock:.1f} s, {processor:.1f} s of processors, {statistics.median(ratios):.2f} times one core"
        )


def thousand(folder: Path, environment: dict[str, str]) -> None:
    """A store of a thousand captures, listed, filtered and reported."""
    home = folder / "thousand"
    store = CaptureStore(home / "captures", limit_bytes=1 << 40)
    found = sorted((ROOT / "tests" / "data").rglob("*.irscope"))
    (capture,) = [irscope.load(found[0])]
    began = time.process_time()
    store.complete([store.add(_variant(capture, number), is_complete=False) for number in range(STORED)])
    print(f"a store of {STORED} captures of {found[0].name}")
    print(f"  stored: {(time.process_time() - began) / STORED * 1000:.1f} ms of a processor each")
    command = [sys.executable, "-m", "irscope"]
    ways = {
        "ls": ["ls"],
        "ls, filtered": ["ls", "--where", "NUMBER=7", "--since", "1d"],
        "ls --json": ["ls", "--json"],
        "show last": ["show", "last"],
        "report last": ["report", "last", "-o", str(folder / "report.html")],
    }
    for name, words in ways.items():
        rows = [took([*command, *words], environment | {"IRSCOPE_HOME": str(home)}) for _ in range(ROUNDS)]
        clock, processor = (statistics.median(column) for column in zip(*rows, strict=True))
        print(f"  {name}: {clock:.2f} s, {processor:.2f} s of processors", flush=True)


def _variant(capture: Capture, number: int) -> Capture:
    constants = (*capture.launch.constants, ("NUMBER", str(number)))
    return replace(capture, launch=replace(capture.launch, constants=constants))


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        environment = installed(name)
        variants(Path(name), environment)
        thousand(Path(name), environment)


if __name__ == "__main__":
    main()
