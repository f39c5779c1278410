"""What the CPU may take to run a launch, by the options of a recording."""

from __future__ import annotations

from irscope.machine.launch import RunLimits
from irscope.model.recording_options import RecordingOptions
from irscope.record.process.requests import default_jobs


def run_limits(options: RecordingOptions) -> RunLimits:
    memory_bytes = round(options.values_memory_gib * 2**30)
    return RunLimits(memory_bytes, options.values_timeout_s, jobs=options.jobs or default_jobs())
