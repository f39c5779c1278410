"""Compile examples with and without the tap and compare every artifact: `python identity.py cuda:90 [NAME...]`.

Prints a line a kernel, and ends with 1 where an artifact differs by a byte: tapped against plain, and compiled again
from the capture's own source against both.
"""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from compile_cases import CASES, compile_case

from irscope.record import triton_api
from irscope.record.assembly import Assembly
from irscope.record.compiles import Watch, watch_compiles
from irscope.record.recompile import compile_text
from irscope.record.request import RecordRequest
from irscope.record.requests import request_from_capture

ONE_CASE_A_KERNEL = {(case.script, case.kernel): case.name for case in reversed(CASES)}


def check(case, target):
    """What differs between the compiles of one case; empty where nothing does."""
    with tempfile.TemporaryDirectory() as folder:
        with triton_api.private_cache(Path(folder, "plain")):
            plain = compile_case(case, target).asm
        assembly = Assembly(RecordRequest(mode="script"), "", "")
        with triton_api.private_cache(Path(folder, "tapped")), watch_compiles(Watch(sink=assembly.feed)):
            tapped = compile_case(case, target).asm
    (capture,) = assembly.captures()
    told = {artifact.stage: artifact.data for artifact in capture.artifacts}
    if "ptx" in plain and told["ptx"] == plain["ptx"] and told["cubin"] != plain["cubin"]:
        print(
            f"{case.name}: ptxas makes other bytes of the same PTX each time: {len(assembled(case, target))} in 6 tries"
        )
        plain = {stage: data for stage, data in plain.items() if stage != "cubin"}
    problems = [f"{stage} made" for stage in plain if tapped[stage] != plain[stage]]
    problems += [f"{stage} told" for stage in plain if told.get(stage) != plain[stage]]
    again = Assembly(RecordRequest(mode="text"), "", "")
    with watch_compiles(watch := Watch(sink=again.feed)):
        compile_text(request_from_capture(capture), watch, capture.target)
    remade = {artifact.stage: artifact.data for artifact in again.captures()[0].artifacts}
    # The names of block arguments are not in the source's text: ttir is the same but for them.
    return problems + [
        f"{stage} made again" for stage in plain if stage != "ttir" and remade.get(stage) != plain[stage]
    ]


def assembled(case, target):
    """The distinct cubins of six plain compiles; ends the program where they are all the same."""
    cubins = set()
    for _ in range(6):
        with tempfile.TemporaryDirectory() as folder, triton_api.private_cache(Path(folder)):
            cubins.add(compile_case(case, target).asm["cubin"])
    if len(cubins) == 1:
        sys.exit(f"{case.name}: the cubin differs, and ptxas is not to blame")
    return cubins


def main():
    target, *names = sys.argv[1:]
    failed = False
    for case in CASES:
        if case.name not in (names or ONE_CASE_A_KERNEL.values()):
            continue
        problems = check(case, target)
        failed = failed or bool(problems)
        print(f"{case.name}: {', '.join(problems) or 'identical'}", flush=True)
    sys.stdout.flush()
    os._exit(failed)


if __name__ == "__main__":
    triton_api.silence_known_noise()
    main()
