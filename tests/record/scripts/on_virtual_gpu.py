"""Runs a program on a virtual GPU: `on_virtual_gpu.py TARGET SCRIPT [POLICY]`; the last line of stderr is what happened, as JSON."""

from __future__ import annotations

import json
import runpy
import sys

from irscope.capture import Target
from irscope.record.virtual_gpu import virtual_gpu

target, script, *policy = sys.argv[1:]
launches: list[dict[str, object]] = []


def note(kernel: object, grid: tuple[int, int, int]) -> None:
    source = kernel.src
    launches.append(
        {
            "kernel": kernel.name,
            "grid": grid,
            "arch": str(kernel.metadata.target.arch),
            "warps": kernel.metadata.num_warps,
            "aligned": sorted(index[0] for index, attributes in source.attrs.items() if attributes),
            "attributes": {str(index[0]): attributes for index, attributes in source.attrs.items() if attributes},
            "constants": {str(index): value for index, value in source.constants.items() if isinstance(value, int)},
        }
    )


sys.argv = [script]
with virtual_gpu(Target.parse(target), note) as gpu:
    if policy:
        gpu.autotune = policy[0]
    runpy.run_path(script, run_name="__main__")
autotuned = [
    {
        "kernel": record.kernel,
        "total": record.total,
        "pruned": record.pruned,
        "compiled": record.compiled,
        "failed": record.failed,
        "configs": record.configs,
    }
    for record in gpu.autotuned
]
print(json.dumps({"launches": launches, "autotuned": autotuned}), file=sys.stderr)
