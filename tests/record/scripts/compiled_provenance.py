"""Runs compiled_models.py, and writes what TorchInductor itself says of each kernel: FILE NAME…

Its own tracking of provenance is on: for each kernel the nodes of the graph after its passes, and their stack traces.
"""

import json
import runpy
import sys
from pathlib import Path

import torch._inductor.config
import torch._inductor.debug as provenance

torch._inductor.config.trace.provenance_tracking_level = 1
said = []
follow = provenance.set_kernel_post_grad_provenance_tracing


def followed(schedule, name, is_extern=False):
    handle = follow(schedule, name, is_extern)
    key = f"{name}:{handle}"
    said.append(
        {
            "kernel": name,
            "extern": is_extern,
            "nodes": provenance._inductor_triton_kernel_to_post_grad_node_info.get(key, []),
            "traces": provenance._inductor_kernel_stack_trace.get(key, []),
        }
    )
    return handle


provenance.set_kernel_post_grad_provenance_tracing = followed
torch._inductor.ir.set_kernel_post_grad_provenance_tracing = followed
target = Path(sys.argv.pop(1))
sys.argv[0] = str(Path(__file__).with_name("compiled_models.py"))
runpy.run_path(sys.argv[0], run_name="__main__")
target.write_text(json.dumps(said), "utf-8")
