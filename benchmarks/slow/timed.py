"""Times every pair on this machine's GPU: `python -m benchmarks.slow.timed RESULT.json [NAME…]`.

Medians of `triton.testing.do_bench`, the slow one and its twin in turns.
"""

from __future__ import annotations

import json
import sys
import time

import torch
import triton

from benchmarks.slow.pairs import PAIRS

ROUNDS = 3
_MOST_SECONDS = 330


def main() -> None:
    path, names = sys.argv[1], sys.argv[2:]
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
