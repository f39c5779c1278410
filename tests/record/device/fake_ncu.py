"""Stands in for Nsight Compute and for what it profiles: FAKE_NCU says how it goes, FAKE_PAGES what it measured.

Run, it reads the commands that the child would, writes the events that it would, and a report, which is the pages as
CSV; with --import it prints the report.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from irscope.record.gpu.messages import Answered, Do, LaunchInfo, PinLaunch
from irscope.record.process.events import ArtifactMade, Done, Refused
from irscope.record.process.messages import MessageReader, MessageWriter
from tests.record.device.fake_child import compile_kernel


def main(arguments: list[str]) -> int:
    if "--version" in arguments:
        print("NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2025.3.1.0 (build 1) (public-release)")
        return 0
    if "--import" in arguments:
        print(Path(arguments[arguments.index("--import") + 1]).read_text("utf-8"), end="")
        return 0
    how = os.environ.get("FAKE_NCU", "")
    if how == "denied":
        print(
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"
        )
        return 1
    Path(os.environ["FAKE_SAID"]).write_text("\n".join(arguments), "utf-8")
    commands, events = map(Path, arguments[-2:])
    first, *rest = MessageReader().feed(commands.read_bytes())
    assert isinstance(first, PinLaunch)
    launches = sum(one.method == "profile" for one in rest if isinstance(one, Do))
    assert arguments[arguments.index("--launch-count") + 1] == str(launches)
    with events.open("wb") as output:
        sink = MessageWriter(output.fileno())
        if how == "no-gpu":
            sink(Refused("NoDevice", "There is no GPU here."))
            sink(Done())
            return 1
        compile_kernel(sink)
        sink(ArtifactMade(0, "source", os.environ["FAKE_SOURCE"]))
        sink(LaunchInfo(1, "Fake GPU", 4096))
        for _ in range(launches):
            sink(Answered(None))
        sink(Done())
    if how != "no-report":
        report = Path(arguments[arguments.index("--export") + 1])
        report.write_text(Path(os.environ["FAKE_PAGES"]).read_text("utf-8"), "utf-8")
    print("==PROF== Disconnected from process 1")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
