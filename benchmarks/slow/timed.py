"""Times every pair on this machine's GPU: `python -m benchmarks.slow.timed RESULT.json [NAME…]`.

Medians of `triton.testing.do_bench`, the slow one and its twin in turns. All are compiled first, side by side.
"""

from __future__ import annotations

import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch
import triton

from benchmarks.slow.pairs import PAIRS
from irscope.record.virtual.gpu import virtual_gpu
from irscope.target import Target

ROUNDS = 3
_MOST_SECONDS = 330


def _warm(number: int) -> None:
    one = PAIRS[number // 2]
    try:
        with virtual_gpu(Target.parse("cuda:90")):
            (one.slow, one.fast)[number % 2](*one.arguments())
    except Exception as error:
        print(f"{one.name}: {type(error).__name__}: {error}"[:300], flush=True)


def warm() -> None:
    """Compile the launches of all pairs into Triton's cache, before this process uses the GPU."""
    with ProcessPoolExecutor(os.cpu_count(), get_context("fork")) as pool:
        list(pool.map(_warm, range(2 * len(PAIRS))))


def main() -> None:
    path, names = sys.argv[1], sys.argv[2:]
    warm()
    started = time.perf_counter()
    rows = []
    found = {"gpu": torch.cuda.get_device_name(), "triton": triton.__version__, "pairs": rows}
    for one in PAIRS:
        if (names and one.name not in names) or time.perf_counter() - started > _MOST_SECONDS:
            continue
        row: dict[str, object] = {"name": one.name}
        rows.append(row)
        try:
            given = one.arguments()
            times: dict[str, list[float]] = {"slow": [], "fast": []}
            for _ in range(ROUNDS):
                for side, run in (("slow", one.slow), ("fast", one.fast)):
                    ms = triton.testing.do_bench(lambda run=run, given=given: run(*given), 5, 40, return_mode="median")
                    times[side].append(ms * 1e3)
            row.update({f"{side}_us": sorted(each)[ROUNDS // 2] for side, each in times.items()})
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"[:300]
        print(row, flush=True)
        with open(path, "w") as file:
            json.dump(found, file, indent=1)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
