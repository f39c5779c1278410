"""What timing a compile's parts costs: processor time of compiles without irscope, recorded, and timed, alternating.

`python -m benchmarks.timing_cost [ROUNDS] [--target TARGET]` compiles four kernels of the examples so often in each of
the three ways, in one process, and prints the medians with those of ptxas in them. Recorded: no IR is kept.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from irscope.record.compile.stopwatch import processor_ns
from irscope.record.compile.watch import Watch, watch_compiles
from irscope.record.process.requests import RecordRequest
from irscope.record.triton import api as triton_api
from tests.examples.compile_cases import CASES, Case, compile_case

KERNELS = ("vector_add", "softmax", "layer_norm", "matmul")
WAYS = ("plain", "recorded", "timed")


def processor_ms(case: Case, target: str, way: str) -> float:
    """Of one compile, of which Triton's cache has nothing."""

    def compile_it() -> None:
        compile_case(case, target)

    with tempfile.TemporaryDirectory() as folder, triton_api.private_cache(Path(folder)):
        if way == "plain":
            return _processor_ms(compile_it)
        request = RecordRequest(mode="script", snapshots="none", times=way == "timed")
        with watch_compiles(Watch(lambda _: None, request)):
            return _processor_ms(compile_it)


def _processor_ms(work: Callable[[], None]) -> float:
    gc.collect()
    before = processor_ns()
    work()
    return (processor_ns() - before) / 1e6


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.timing_cost", description=__doc__)
    parser.add_argument("rounds", nargs="?", type=int, default=15)
    parser.add_argument("--target", default="cuda:90")
    given = parser.parse_args()
    cases = {name: next(one for one in CASES if one.script == name) for name in KERNELS}
    print(f"| kernel | {' | '.join(WAYS)} | timed / recorded |\n|{'---|' * (len(WAYS) + 2)}")
    ratios: list[float] = []
    for name, case in cases.items():
        taken: dict[str, list[float]] = {way: [] for way in WAYS}
        for round_ in range(given.rounds + 1):
            # A timed one first: LLVM reads what it is to print once in a process.
            for way in reversed(WAYS):
                duration_ms = processor_ms(case, given.target, way)
                if round_:
                    taken[way].append(duration_ms)
        medians = [median(taken[way]) for way in WAYS]
        ratios.append(
            median(timed / recorded for recorded, timed in zip(taken["recorded"], taken["timed"], strict=True))
        )
        cells = " | ".join(f"{value:.0f} ms" for value in medians)
        print(f"| `{name}.py` | {cells} | {ratios[-1]:.3f} |", flush=True)
    print(f"median of the four: {median(ratios):.3f}")


if __name__ == "__main__":
    main()
