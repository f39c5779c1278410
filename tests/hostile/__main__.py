"""`python -m tests.hostile [KIND COUNT]… [--jobs N] [--seed FIRST] [--only SEED] [--budget SECONDS]`.

Mutates real files, reproducibly, and asks every command and reader for each: captures, logs (MLIR's, LLVM's and
Triton's caches) and texts of each language. No kind means the long run. Needs neither Triton, nor a GPU, nor a network.
Prints each fault with its kind and seed, which `KIND --only SEED` repeats, and one line at the end; exit code 1 where
there was a fault.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.hostile.cases import KINDS, steps_of, unmutated
from tests.hostile.worker import Case, fault_of, search, used_s

LONG_RUN = {"captures": 3000, "logs": 2000} | dict.fromkeys(KINDS[2:], 1000)


def main(arguments: list[str]) -> int:
    """Run them, each in a process of its own."""
    asked = _parser().parse_args(arguments)
    counts = _counts(asked.kinds)
    first, last = (asked.only, asked.only + 1) if asked.only is not None else (asked.seed, None)
    rows = [(seed, kind) for kind, count in counts.items() for seed in range(first, last or first + count)]
    # By turns: a budget cuts every kind alike.
    cases = sorted((Case(seed, kind) for seed, kind in rows))
    done: Counter[str] = Counter()
    faulty = 0
    with tempfile.TemporaryDirectory(prefix="irscope-hostile-") as folder:
        tempfile.tempdir = folder
        os.environ["IRSCOPE_HOME"] = str(Path(folder) / "home")
        plain = [f"{step.name}: {fault}" for step in unmutated(Path(folder)) if (fault := fault_of(step))]
        for fault in plain:
            print(f"unmutated: {fault}", flush=True)
        for case, faults in search(cases, steps_of, asked.jobs, asked.budget):
            done[case.kind] += 1
            faulty += bool(faults)
            for fault in faults:
                print(f"{case.kind} --only {case.seed}: {fault}", flush=True)
    numbers = ", ".join(f"{done[kind]} {kind}" for kind in counts)
    print(f"{sum(done.values())} files ({numbers}), {faulty} with a fault; {used_s():.0f} s of processor time")
    return int(bool(faulty or plain))


def _counts(words: list[str]) -> dict[str, int]:
    if not words:
        return LONG_RUN
    counts: dict[str, int] = {}
    for word in words:
        if word.isdigit() and counts:
            counts[list(counts)[-1]] = int(word)
        elif word in KINDS:
            counts[word] = LONG_RUN[word]
        else:
            sys.exit(f"{word!r} is no kind: {', '.join(KINDS)}, each with how many.")
    return counts


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile")
    parser.add_argument("kinds", nargs="*", metavar="KIND COUNT", help=f"{', '.join(KINDS)}; default: the long run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="workers at a time")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--only", type=int, help="this one seed")
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="SECONDS", help="of processor time")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
