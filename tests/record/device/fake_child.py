"""Stands in for `python -m irscope.record.device`: the same frames, with no GPU. What it does is in what it is given.

A variant's binary says what becomes of it: b"same", b"wrong", b"fault", b"hang", b"die", b"slow", b"refused".
"""

from __future__ import annotations

import json
import os
import sys
import time

from irscope.record.device import read_commands
from irscope.record.events import Event, EventWriter

SOURCE = "module {\n  tt.func public @kernel(%x: !tt.ptr<f32>) {\n    tt.return\n  }\n}\n"


def main(commands: int, events: int) -> None:
    """Answer as the real one does."""
    sink = EventWriter(os.fdopen(events, "wb", buffering=0))
    waiting = read_commands(commands)
    first = next(waiting)
    with open(os.environ["FAKE_STARTS"], "a") as file:
        file.write(
            json.dumps({"kind": first.kind, **{key: first.fields[key] for key in first.fields if key != "request"}})
        )
        file.write("\n")
    scenario = os.environ.get("FAKE_SCENARIO", "")
    print("the script prints this", flush=True)
    if scenario == "no-gpu":
        sink(Event("error", {"error": "NoDevice", "message": "There is no GPU here."}))
        return
    if scenario == "dies":
        os._exit(7)
    compile_kernel(sink)
    if scenario == "dies-after":
        os._exit(7)
    if first.kind == "check-script":
        check_script(sink, scenario)
        return
    if scenario == "hangs":
        sink(Event("alive"))
        time.sleep(60)
    sink(Event("script-end", {"code": 0, "message": "", "frames": ""}))
    held = {"launch": first["launch"] or 1, "bytes": 4096, "noise": "", "outputs": ["x"], "poisoned": ["x"]}
    sink(Event("held", {**held, "device": "Fake GPU", "scalars": {"n": 4}, "l2_bytes": 1 << 20}))
    serve(waiting, sink)


def compile_kernel(sink: EventWriter) -> None:
    """Tell of one compile."""
    environment = {"irscope_version": "0", "triton_version": "3.6.0", "torch_version": "2", "python_version": "3"}
    sink(Event("begin", {**environment, "platform": "here", "tools": {}, "gpu": "Fake GPU", "real": True}))
    launch = {"kernel": {"name": "kernel", "file": "", "line": 0}, "signature": [["x", "*fp32"]], "constants": []}
    sink(Event("compile-begin", {"n": 0, "target": "cuda:90", "warp_size": 32, "launch": launch}))
    sink(Event("options", {"n": 0, "options": {"num_warps": 4}}))
    sink(Event("artifact", {"n": 0, "stage": "source"}, SOURCE))
    sink(Event("artifact", {"n": 0, "stage": "cubin"}, b"base"))
    metadata = {"name": "kernel", "shared": 0, "num_warps": 4}
    sink(Event("compile-end", {"n": 0, "hash": "h", "metadata": metadata, "log": "", "cached": False}))
    sink(Event("launch", {"hash": "h", "grid": [3, 2, 1]}))


def serve(waiting: object, sink: EventWriter) -> None:
    """Answer commands."""
    variants: dict[str, bytes] = {}
    for command in waiting:  # type: ignore[attr-defined]
        if command.kind == "variant":
            assert command["key"] not in variants, "a variant is given once"
            assert json.loads(json.dumps(command["metadata"])) == command["metadata"]
            variants[command["key"]] = command.data
        elif command.kind == "check":
            binary = variants[command["key"]]
            sink(Event("alive"))
            if binary == b"fault":
                sink(Event("fault", {"detail": "CUDA error: an illegal memory access was encountered"}))
                os._exit(1)
            if binary == b"die":
                os.kill(os.getpid(), 11)
            if binary == b"hang":
                time.sleep(60)
            verdicts = {b"wrong": "different", b"refused": "failed"}
            sink(Event("agreement", {"verdict": verdicts.get(binary, "identical"), "differing": 3, "of later": 1}))
        elif command.kind == "time":
            names = [variants[key] for key in command["keys"]]
            if b"fault" in names:
                sink(Event("fault", {"detail": "CUDA error: misaligned address"}))
                os._exit(1)
            rows = [[100.0 + number for number in range(command["rounds"])] for _ in range(2 + len(names))]
            for row, name in zip(rows[2:], names, strict=True):
                row[:] = [time_us * (2 if name == b"slow" else 1) for time_us in row]
            sink(Event("times", {"times_us": rows}))
        elif command.kind == "ceilings":
            sink(Event("ceilings", {"bytes_per_s": 4e12, "flops_per_s": 8e14 if command["dtype"] else None}))


def check_script(sink: EventWriter, scenario: str) -> None:
    """Check one launch, in the way that the scenario says."""
    where = {"launch": 1, "count": 1, "kernel": "kernel", "grid": [3, 2, 1]}
    sink(Event("launch-begins", where))
    if scenario == "hangs":
        time.sleep(60)
    if scenario == "killed":
        os.kill(os.getpid(), 9)
    if scenario == "empty-faults":
        sink(Event("fault", {**where, "plan": "empty", "detail": "CUDA error: an illegal memory access"}))
        os._exit(1)
    sink(Event("launch-ended"))
    verdict = "different" if scenario == "wrong" else "identical"
    sink(Event("checked", {**where, "agreement": {"verdict": verdict, "differing": 2, "argument": "x"}}))
    if scenario == "faults-itself":
        sink(Event("fault", {**where, "detail": "CUDA error: unspecified launch failure"}))
        os._exit(1)
    fails = scenario == "script-fails"
    sink(Event("script-end", {"code": int(fails), "message": "AssertionError: wrong" if fails else "", "frames": ""}))
    sink(Event("done"))


if __name__ == "__main__":
    main(int(sys.argv[-2]), int(sys.argv[-1]))
