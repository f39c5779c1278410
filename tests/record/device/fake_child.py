"""Stands in for `python -m irscope.record.gpu.child`: the same frames, with no GPU; it does what it is given.

A variant's binary says what becomes of it: b"same", b"wrong", b"fault", b"hang", b"die", b"slow", b"refused". The
variables FAKE_FACTOR and FAKE_LEAVES say how long its own launch takes, and what that leaves on another's inputs.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from irscope.device.measurement import Agreement
from irscope.model.capture import Environment, Kernel, Launch, Target
from irscope.record.gpu.messages import (
    Alive,
    Answered,
    CeilingsMeasured,
    CheckScript,
    Do,
    Fault,
    LaunchBegun,
    LaunchChecked,
    LaunchEnded,
    LaunchInfo,
    LaunchPlace,
    PinLaunch,
)
from irscope.record.process.events import (
    ArtifactMade,
    Begun,
    CompileBegun,
    CompileEnded,
    Done,
    Launched,
    OptionsKnown,
    Refused,
    ScriptEnd,
)
from irscope.record.process.messages import MessageReader, MessageWriter

SOURCE = "module {\n  tt.func public @kernel(%x: !tt.ptr<f32>) {\n    tt.return\n  }\n}\n"


def read_commands(descriptor: int) -> Iterator[object]:
    """The commands, as they come."""
    reader = MessageReader()
    while chunk := os.read(descriptor, 1 << 20):
        yield from reader.feed(chunk)


def main(descriptor: int) -> None:
    """Answer as the real one does."""
    sink = MessageWriter(descriptor)
    waiting = read_commands(descriptor)
    first = next(waiting)
    assert isinstance(first, (CheckScript, PinLaunch))
    with open(os.environ["FAKE_STARTS"], "a") as file:
        file.write(json.dumps({"kind": type(first).__name__, "launch": first.launch}) + "\n")
    scenario = os.environ.get("FAKE_SCENARIO", "")
    print("the script prints this", flush=True)
    if scenario == "no-gpu":
        sink(Refused("NoDevice", "There is no GPU here."))
        return
    if scenario == "dies":
        os._exit(7)
    compile_kernel(sink)
    if scenario == "dies-after":
        os._exit(7)
    if isinstance(first, CheckScript):
        check_script(sink, scenario)
        return
    if scenario == "hangs":
        sink(Alive())
        time.sleep(60)
    sink(ScriptEnd())
    sink(LaunchInfo(first.launch or 1, "Fake GPU", 4096, ("x",), "", (("n", 4),), 1 << 20))
    serve(waiting, sink)


def compile_kernel(sink: MessageWriter) -> None:
    """Tell of one compile."""
    sink(Begun(Environment("0", "3.6.0", "2", "3", "here", "Fake GPU"), real=True))
    sink(CompileBegun(0, Target.parse("cuda:90"), Launch(Kernel("kernel"), signature=(("x", "*fp32"),))))
    sink(OptionsKnown(0, {"num_warps": 4}))
    sink(ArtifactMade(0, "source", SOURCE))
    sink(ArtifactMade(0, "cubin", b"base"))
    sink(CompileEnded(0, "h", {"name": "kernel", "shared": 0, "num_warps": 4}, ""))
    sink(Launched("h", (3, 2, 1)))


def serve(waiting: Iterator[object], sink: MessageWriter) -> None:
    """Answer commands."""
    launch = KeptLaunch(sink)
    for command in waiting:
        assert isinstance(command, Do)
        sink(Answered(getattr(launch, command.method)(*command.arguments)))


class KeptLaunch:
    """Has the methods of the real one."""

    def __init__(self, sink: MessageWriter) -> None:
        self.sink = sink
        self.variants: dict[str, bytes] = {}

    def load(self, key: str, metadata: dict[str, object], binary: bytes, grid: tuple[int, int, int] | None) -> None:
        assert key not in self.variants, "a variant is given once"
        self.variants[key] = binary

    def check(self, key: str) -> Agreement:
        binary = self.variants[key]
        self.sink(Alive())
        if binary == b"fault":
            self.sink(Fault("CUDA error: an illegal memory access was encountered"))
            os._exit(1)
        if binary == b"die":
            os.kill(os.getpid(), 11)
        if binary == b"hang":
            time.sleep(60)
        verdicts = {b"wrong": "different", b"refused": "failed"}
        return Agreement(verdicts.get(binary, "identical"), differing=3)  # type: ignore[arg-type]

    def time(self, keys: tuple[str, ...], rounds: int, cold: bool) -> tuple[tuple[float, ...], ...]:
        names = [self.variants[key] for key in keys]
        if b"fault" in names:
            self.sink(Fault("CUDA error: misaligned address"))
            os._exit(1)
        factor = float(os.environ.get("FAKE_FACTOR", "1"))
        rows = [[factor * (100.0 + number) for number in range(rounds)] for _ in range(2 + len(names))]
        for row, name in zip(rows[2:], names, strict=True):
            row[:] = [time_us * (2 if name == b"slow" else 1) for time_us in row]
        return tuple(map(tuple, rows))

    def ceilings(self, dtype: str) -> CeilingsMeasured:
        return CeilingsMeasured(4e12, 8e14 if dtype else None)

    def store_inputs(self, folder: str) -> None:
        Path(folder, "held").write_text("inputs")

    def make_again(self, inputs: str, outputs: str) -> str:
        """Leave what FAKE_LEAVES says."""
        assert Path(inputs, "held").read_text() == "inputs"
        left = os.environ.get("FAKE_LEAVES", "identical")
        if left == "fault":
            self.sink(Fault("CUDA error: an illegal memory access was encountered"))
            os._exit(1)
        if left == "hang":
            time.sleep(60)
        Path(outputs, "left").write_text(left)
        return "x holds other integers" if left == "other" else ""

    def check_outputs(self, folder: str) -> Agreement:
        return Agreement(Path(folder, "left").read_text(), differing=3)  # type: ignore[arg-type]


def check_script(sink: MessageWriter, scenario: str) -> None:
    """Check one launch, in the way that the scenario says."""
    where = LaunchPlace(1, 1, "kernel", (3, 2, 1))
    sink(LaunchBegun(where))
    if scenario == "hangs":
        time.sleep(60)
    if scenario == "killed":
        os.kill(os.getpid(), 9)
    if scenario == "empty-faults":
        sink(Fault("CUDA error: an illegal memory access", replace(where, empty_plan=True)))
        os._exit(1)
    sink(LaunchEnded())
    verdict = "different" if scenario == "wrong" else "identical"
    sink(LaunchChecked(where, Agreement(verdict, differing=2, argument="x")))
    if scenario == "faults-itself":
        sink(Fault("CUDA error: unspecified launch failure", where))
        os._exit(1)
    fails = scenario == "script-fails"
    sink(ScriptEnd(int(fails), "AssertionError: wrong" if fails else ""))
    sink(Done())


if __name__ == "__main__":
    main(int(sys.argv[-1]))
