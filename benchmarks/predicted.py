"""Predicted times against measured ones: the error, and the order within each family of configurations.

    python -m benchmarks.predicted FOLDER [--part h100] [--family NAME] [--rows]

FOLDER holds captures and `results.jsonl`, as `benchmarks/timing` makes it: a row for each configuration, with its
family, its capture and the median time of its launches.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from math import exp, log
from pathlib import Path
from typing import Any

from irscope.store.file import load
from irscope.timing.predict import predict_with

_SHORT_US = 20.0


def predicted(task: tuple[str, str]) -> dict[str, Any]:
    """The prediction of one capture, or why there is none."""
    path, part = task
    try:
        capture = load(Path(path))
        began = time.process_time()
        one = predict_with(capture, part=part, what_if=False)
        return {
            "us": one.seconds * 1e6, "bound": one.bound, "busy": one.busy[:4], "waits": one.waits[:4],
            "notes": one.notes, "took_s": time.process_time() - began, "compile_s": (capture.compile_us or 0) / 1e6,
        }  # fmt: skip
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def kendall(pairs: list[tuple[float, float]]) -> float:
    """Kendall's tau-b of (predicted, measured)."""
    concordant = discordant = tied_a = tied_b = 0
    for number, (a, b) in enumerate(pairs):
        for c, d in pairs[number + 1 :]:
            x, y = (a > c) - (a < c), (b > d) - (b < d)
            concordant += x * y > 0
            discordant += x * y < 0
            tied_a += not x and y != 0
            tied_b += not y and x != 0
    total = ((concordant + discordant + tied_a) * (concordant + discordant + tied_b)) ** 0.5
    return (concordant - discordant) / total if total else 0.0


def main() -> int:
    """Score a folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", default="h100")
    parser.add_argument("--family", default="")
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for line in (options.folder / "results.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row.get("status") == "ok" and row.get("capture") and options.family in row["family"]:
            rows.append(row)
    rows = rows[:: options.every]
    rows = [row for row in rows if (options.folder / row["capture"]).exists()]
    tasks = [(str(options.folder / row["capture"]), options.part) for row in rows]
    with ProcessPoolExecutor(options.jobs) as pool:
        answers = list(pool.map(predicted, tasks, chunksize=4))
    families: dict[str, list[tuple[float, float]]] = defaultdict(list)
    errors: list[float] = []
    costs: list[float] = []
    for row, answer in zip(rows, answers, strict=True):
        if "error" in answer:
            print(row["capture"], answer["error"], file=sys.stderr)
            continue
        us, measured = answer["us"], row["median_us"]
        families[row["family"]].append((us, measured))
        if answer["compile_s"]:
            costs.append(answer["took_s"] / answer["compile_s"])
        if measured >= _SHORT_US:
            errors.append(us / measured - 1)
        if options.rows:
            busy = " ".join(f"{name}:{part:.2f}" for name, part in answer["busy"])
            waits = " ".join(f"{name}:{part:.2f}" for name, part in answer["waits"])
            head = f"{row['capture']:34} {measured:9.1f} {us:9.1f} {us / measured:5.2f}  {answer['bound'][:18]:18}"
            print(f"{head} {busy} | {waits} | {row['config']}")
    print(f"{'family':28} {'n':>4} {'tau':>6} {'first':>6} {'top 3':>5} {'error':>7} {'bias':>6}")
    taus: list[float] = []
    firsts: list[float] = []
    found = 0
    for name, pairs in sorted(families.items()):
        if len(pairs) < 3:
            continue
        best = min(measured for _, measured in pairs)
        order = [measured for _, measured in sorted(pairs)]
        tau = kendall(pairs)
        taus.append(tau)
        firsts.append(order[0] / best)
        found += best in order[:3]
        off = statistics.median(abs(a / b - 1) for a, b in pairs)
        bias = exp(statistics.mean(log(a / b) for a, b in pairs))
        choice = f"{order[0] / best:6.2f} {best in order[:3]!s:>5}"
        print(f"{name:28} {len(pairs):4} {tau:6.2f} {choice} {off:7.0%} {bias:6.2f}")
    if taus:
        geometric = exp(statistics.mean(map(log, firsts)))
        print(
            f"mean tau {statistics.mean(taus):.2f}, min {min(taus):.2f}; first choice {geometric:.3f} times the best; "
            f"best among three in {found / len(taus):.0%} of {len(taus)} families"
        )
    if errors:
        sizes = sorted(map(abs, errors))
        print(
            f"{len(errors)} launches of {_SHORT_US:.0f} µs and more: median error {statistics.median(sizes):.0%}, "
            f"90th percentile {sizes[int(0.9 * len(sizes))]:.0%}"
        )
    if costs:
        most = sorted(costs)[int(0.9 * len(costs))]
        print(f"a prediction takes {statistics.median(costs):.2f} of the compile (90th percentile {most:.2f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
