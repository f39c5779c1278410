"""Compiles a small kernel to show the pipeline of a target."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import as_file, files

from irscope.cli.subject.captures import check_plan, run_request
from irscope.model.recording_options import RecordingOptions
from irscope.record.process.requests import request_for
from irscope.store.shelf import CaptureFile, StoredCaptures


def pipeline_captures(asked: RecordingOptions) -> StoredCaptures:
    """A capture for each target of a matmul with a loop, on which every pass of the pipelines works."""
    with as_file(files("irscope.record.triton") / "sample_kernel.py") as path:
        recorded: list[CaptureFile] = []
        for target in asked.targets:
            one = replace(
                asked,
                targets=(target,),
                signature="*fp16:16, *fp16:16, *fp32:16, i32:16",
                constexprs=(("BLOCK", "64"),),
                snapshots="none",
            )
            recorded += run_request(request_for(path, one, kernel="sample_matmul")).captures.files
    captures = StoredCaptures(recorded)
    check_plan(asked.plan, captures)
    return captures
