"""Compile examples with and without the tap and compare every artifact: `python identity.py cuda:90 [NAME...]`.

Prints a line a kernel, and ends with 1 where an artifact differs by a byte: tapped against plain, handed over to a
worker against plain, and compiled again from the capture's own source against both.
"""

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from compile_cases import CASES, ONE_CASE_A_KERNEL, compile_case

from irscope.model.launch_record import LaunchRecord
from irscope.record.compile.hand_over import Handover
from irscope.record.compile.launches import PendingLaunches
from irscope.record.compile.recompile import compile_text
from irscope.record.compile.watch import Watch, watch_compiles
from irscope.record.process.assembly import Assembly
from irscope.record.process.events import HandedOver
from irscope.record.process.messages import MessageReader, frame_of
from irscope.record.process.requests import RecordRequest, request_from_capture
from irscope.record.programs.worker import _resume
from irscope.record.triton import api as triton_api
from irscope.record.triton.patches import replaced


def check(case, target):
    """What differs between the compiles of one case; empty where nothing does."""
    with tempfile.TemporaryDirectory() as folder:
        with triton_api.private_cache(Path(folder, "plain")):
            plain = compile_case(case, target).asm
        assembly = Assembly(RecordRequest(mode="script"))
        own = RecordRequest(mode="script", snapshots="all", log_path=str(Path(folder, "log")))
        with (
            triton_api.private_cache(Path(folder, "tapped")),
            watch_compiles(Watch(assembly.feed, own)),
        ):
            tapped = compile_case(case, target).asm
    (capture,) = assembly.captures()
    told = {artifact.stage: artifact.data for artifact in capture.artifacts}
    again = Assembly(RecordRequest(mode="text"))
    with watch_compiles(watch := Watch(again.feed, request_from_capture(capture))):
        compile_text(watch, capture.target)
    remade = {artifact.stage: artifact.data for artifact in again.captures()[0].artifacts}
    if any(told.get("ptx") == one.get("ptx") and one.get("cubin") != told.get("cubin") for one in (plain, remade)):
        print(f"{case.name}: ptxas makes other bytes of the same PTX, the {other_cubin(case, target)}. time")
        plain = {stage: data for stage, data in plain.items() if stage != "cubin"}
    worked = handed_over(case, target, Path(folder))
    if worked.get("ptx") == plain.get("ptx") and "cubin" not in plain:
        worked.pop("cubin", None)
    problems = [f"{stage} handed over" for stage in plain if worked.get(stage) != plain[stage]]
    problems += [f"{stage} made" for stage in plain if tapped[stage] != plain[stage]]
    problems += [f"{stage} told" for stage in plain if told.get(stage) != plain[stage]]
    # The names of block arguments are not in the source's text: ttir is the same but for them.
    return problems + [
        f"{stage} made again" for stage in plain if stage != "ttir" and remade.get(stage) != plain[stage]
    ]


def handed_over(case, target, folder):
    """The artifacts of a compile that a worker goes on with, as the capture has them."""
    events, assembly = [], Assembly(RecordRequest(mode="script"))
    own = RecordRequest(mode="script", log_path=str(folder / "log"))
    with (
        triton_api.private_cache(folder / "handed"),
        replaced(PendingLaunches, "take", lambda *_: {"record": LaunchRecord(())}),
        replaced(Handover, "takes_launches", lambda _: True),
        watch_compiles(watch := Watch(events.append, own)),
    ):
        watch.handover = Handover(folder)
        compile_case(case, target)
    handed = [event for event in events if isinstance(event, HandedOver)]
    if not handed:
        return {}
    (event,) = handed
    for one in events:
        assembly.feed(one)
    # As it is sent.
    (job,) = MessageReader().feed(frame_of(replace(event.job, request=own)))
    _resume(job, assembly.feed)
    return {artifact.stage: artifact.data for artifact in assembly.captures()[0].artifacts}


def other_cubin(case, target):
    """Which of several plain compiles made another cubin than the first; ends the program where none does."""
    cubins = set()
    for number in range(1, 21):
        with tempfile.TemporaryDirectory() as folder, triton_api.private_cache(Path(folder)):
            cubins.add(compile_case(case, target).asm["cubin"])
        if len(cubins) > 1:
            return number
    sys.exit(f"{case.name}: the cubin differs, and ptxas is not to blame")


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
