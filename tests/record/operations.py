"""Find the operation of each instruction of the examples: `python operations.py cuda:90 [NAME...]`.

Without names it does one case a kernel. It prints a line each, with the share of instructions that have an operation,
and ends with 1 where the compile with the operations' own locations gives other code than the capture has.
"""

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from compile_cases import CASES, ONE_CASE_A_KERNEL, compile_case

from irscope.analysis.source.map import read_stage_operations
from irscope.model.capture import Artifact, stage_named
from irscope.record.compile.second import find_operations
from irscope.record.compile.watch import Watch, watch_compiles
from irscope.record.process.annotations import Disassembly, installed_nvdisasm
from irscope.record.process.assembly import Assembly
from irscope.record.process.requests import RecordRequest
from irscope.record.triton import api as triton_api


def captured(case, target):
    """The capture of one case, with SASS."""
    request = RecordRequest(mode="script", snapshots="none")
    assembly = Assembly(request)
    watch = Watch(assembly.feed, request)
    with tempfile.TemporaryDirectory() as folder, triton_api.private_cache(Path(folder)), watch_compiles(watch):
        compile_case(case, target)
    (capture,) = assembly.captures()
    if "cubin" not in capture.stages:
        return capture
    sass = Artifact("sass", Disassembly(capture.cubin, installed_nvdisasm()).result()[0] or "")
    return replace(capture, artifacts=(*capture.artifacts, sass))


def check(case, target):
    """What is told of one case, and whether all its stages have their operations."""
    capture = captured(case, target)
    rows = find_operations(capture)
    told = []
    for row in rows:
        instructions = read_stage_operations(capture.text(row.stage), stage_named(row.stage).kind).lines
        known = sum(1 for line in instructions if row.runs and row.by_line[line - 1])
        told.append(f"{row.stage} {row.reason or f'identical, {known / len(instructions):.1%}'}")
    return ", ".join(told), bool(rows) and not any(row.reason for row in rows)


def main():
    target, *names = sys.argv[1:]
    failed = False
    for case in CASES:
        if case.name in (names or ONE_CASE_A_KERNEL.values()):
            told, same = check(case, target)
            failed = failed or not same
            print(f"{case.name}: {told}", flush=True)
    sys.stdout.flush()
    os._exit(failed)


if __name__ == "__main__":
    triton_api.silence_known_noise()
    main()
