"""The pipeline of a target, seen by compiling a small kernel of irscope's own."""

from __future__ import annotations

from importlib.resources import as_file, files

from irscope.capture import Capture
from irscope.cli.subject import How, check_plan, run_request
from irscope.record.requests import request_for


def pipeline_captures(asked: How) -> list[Capture]:
    """A capture for each target of a matmul with a loop, which every pass of the pipelines sees."""
    with as_file(files("irscope.record") / "sample_kernel.py") as path:
        captures: list[Capture] = []
        for target in asked.targets:
            request = request_for(
                path,
                kernel="sample_matmul",
                targets=(target,),
                plan=str(asked.plan),
                signature="*fp16:16, *fp16:16, *fp32:16, i32:16",
                constexprs={"BLOCK": "64"},
                options=asked.options,
                snapshots="none",
            )
            captures += run_request(request, asked).captures
    check_plan(asked.plan, captures)
    return captures
