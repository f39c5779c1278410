"""Runs programs on virtual GPUs, one after another: `on_virtual_gpu.py TARGET SCRIPT POLICY [TARGET SCRIPT ...]`.

For each it prints one line to the file named by IRSCOPE_TEST_RESULTS: what the program printed, launched and
autotuned, as JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import sys
import traceback

from irscope.capture import Target
from irscope.record.virtual_gpu import virtual_gpu


def run(target: str, script: str, policy: str) -> dict[str, object]:
    launches: list[dict[str, object]] = []

    def note(kernel: object, grid: tuple[int, int, int]) -> None:
        attributes = {str(index[0]): value for index, value in kernel.src.attrs.items() if value}
        step = gpu.tuning_step
        launches.append(
            {
                "kernel": kernel.name,
                "grid": grid,
                "arch": str(kernel.metadata.target.arch),
                "attributes": attributes,
                "step": step and [step.kernel, step.index, step.total],
            }
        )

    sys.argv = [script]
    printed, error = io.StringIO(), ""
    with virtual_gpu(Target.parse(target), note) as gpu, contextlib.redirect_stdout(printed):
        gpu.autotune = policy
        try:
            runpy.run_path(script, run_name="__main__")
        except Exception:
            error = traceback.format_exc()
    names = ("kernel", "total", "pruned", "compiled", "failed", "configs")
    autotuned = [{name: getattr(record, name) for name in names} for record in gpu.autotuned]
    return {"error": error, "stdout": printed.getvalue(), "launches": launches, "autotuned": autotuned}


jobs = sys.argv[1:]
with open(os.environ["IRSCOPE_TEST_RESULTS"], "w") as results:
    for at in range(0, len(jobs), 3):
        print(json.dumps(run(*jobs[at : at + 3])), file=results, flush=True)
