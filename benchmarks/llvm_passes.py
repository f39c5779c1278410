"""Each of LLVM's passes of four kernels switched off: what compiles to the same code, to other code, or fails where.

`python -m benchmarks.llvm_passes [KERNEL …] [--target TARGET] [--jobs N]` records the first launch of each example and
prints a table for docs/compile-time.md, and every pass whose absence fails. Ends with 1 where a variant has neither
code nor a failure with a message.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

import irscope
from irscope.analysis.passes.ablation import Ablation
from irscope.api.passes import AblationRun, AblationSearch
from irscope.record.variants.pool import VariantPool

EXAMPLES = Path(__file__).parents[1] / "examples"
KERNELS = ("vector_add", "softmax", "layer_norm", "matmul")


def ablated(kernel: str, target: str, jobs: int) -> Ablation:
    """The first launch of an example without each of LLVM's passes."""
    with VariantPool(jobs=jobs, timeout_s=300) as pool:
        capture = irscope.record(EXAMPLES / f"{kernel}.py", target=target, snapshots="none", virtual=True)
        return AblationRun(AblationSearch(("llvm",))).compile(capture, pool)


def main() -> int:
    """Switch off, and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.llvm_passes", description=__doc__)
    parser.add_argument("kernels", nargs="*", default=KERNELS)
    parser.add_argument("--target", default="cuda:90")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    print("| kernel | passes | same code | other code | fail |\n|---|---|---|---|---|")
    unnamed = 0
    failures = Counter[str]()
    for kernel in given.kernels:
        ablation = ablated(kernel, given.target, given.jobs)
        rows = ablation.variants
        failed = [row for row in rows if not row.compiles]
        same = sum(row.compiles and ablation.same_program(row) for row in rows)
        print(
            f"| `{kernel}.py` | {len(rows)} | {same} | {len(rows) - same - len(failed)} | {len(failed)} |", flush=True
        )
        for row in failed:
            said = row.message.strip().splitlines()
            unnamed += not said
            failures[f"{row.name} fails in {row.failed_in}: {said[0][:100] if said else 'nothing is said'}"] += 1
    for text, count in failures.most_common():
        print(f"{count} × {text}")
    print(f"{unnamed} failures without a message")
    return int(unnamed > 0)


if __name__ == "__main__":
    sys.exit(main())
