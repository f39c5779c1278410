"""Runs programs on virtual GPUs, one after another: `on_virtual_gpu.py TARGET SCRIPT POLICY [TARGET SCRIPT ...]`.

For each it prints one line to the file named by IRSCOPE_TEST_RESULTS: what the program printed and launched, and the
configurations that were compiled to be timed, as JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import sys
import traceback

from irscope.model.capture import Autotuning, Target
from irscope.record.triton.autotuner import configuration_under_way
from irscope.record.virtual.gpu import virtual_gpu


def run(target: str, script: str, policy: str) -> dict[str, object]:
    launches: list[dict[str, object]] = []
    timed: list[dict[str, object]] = []

    def note(kernel: object, grid: tuple[int, int, int], *_: object) -> None:
        attributes = {str(index[0]): value for index, value in kernel.src.attrs.items() if value}
        step = configuration_under_way(kernel.name)
        launches.append(
            {
                "kernel": kernel.name,
                "grid": grid,
                "arch": str(kernel.metadata.target.arch),
                "attributes": attributes,
                "step": step and [step.index, step.count],
            }
        )

    def note_times(kernel: str, tuning: int, step: Autotuning, times_ms: list[float]) -> None:
        fits = times_ms[0] != float("inf")
        timed.append({"kernel": kernel, "tuning": tuning, "index": step.index, "kept": step.kept, "fits": fits})

    sys.argv = [script]
    printed, error = io.StringIO(), ""
    with (
        virtual_gpu(Target.parse(target), note, configs=policy, on_timed=note_times),
        contextlib.redirect_stdout(printed),
    ):
        try:
            runpy.run_path(script, run_name="__main__")
        except Exception:
            error = traceback.format_exc()
    return {"error": error, "stdout": printed.getvalue(), "launches": launches, "timed": timed}


jobs = sys.argv[1:]
with open(os.environ["IRSCOPE_TEST_RESULTS"], "w") as results:
    for at in range(0, len(jobs), 3):
        print(json.dumps(run(*jobs[at : at + 3])), file=results, flush=True)
