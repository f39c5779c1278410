"""`python -m irscope.record.device COMMANDS EVENTS`: runs a script on the GPU, and variants of one of its launches.

Commands come in on one pipe, what happens is told on the other, both as `irscope.record.events` frames. The first
command says what to do. After a fault of the GPU nothing more can be done in a process: it says so, and ends.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from irscope.errors import IrscopeError, NoDevice, UsageError
from irscope.record import triton_api
from irscope.record.events import Event, EventSink, EventWriter, FrameReader
from irscope.record.lifeline import end_with_parent
from irscope.record.own_folder import parent_of_temporaries
from irscope.record.request import RecordRequest
from irscope.target import Target

NEEDS_GPU = "There is no GPU here that Triton's driver takes: launching needs one, with its driver and a torch for it."


def main(commands: int, events: int) -> None:
    """Do what the commands ask for; ends the process."""
    end_with_parent(0)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    sys.stdin = open(os.devnull)  # noqa: SIM115 - stays open for the script
    waiting = read_commands(commands)
    with os.fdopen(events, "wb", buffering=0) as stream:
        sink = EventWriter(stream)
        code = 0
        try:
            with tempfile.TemporaryDirectory(prefix="irscope-", dir=parent_of_temporaries()) as folder:
                _serve(waiting, sink, Path(folder))
        except IrscopeError as error:
            sink(Event("error", {"error": type(error).__name__, "message": str(error)}))
            code = 1
        sink(Event("done"))
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def read_commands(descriptor: int) -> Iterator[Event]:
    """The commands on a pipe, until its other end is closed."""
    frames = FrameReader()
    while chunk := os.read(descriptor, 1 << 20):
        yield from frames.feed(chunk)


def _serve(commands: Iterator[Event], sink: EventSink, folder: Path) -> None:
    first = next(commands)
    request = RecordRequest.from_json(first["request"])
    require_gpu(request.targets)
    if first.kind == "check-script":
        from irscope.record.device_checks import check_script

        check_script(request, sink, folder, first["launch"], first["every"])
        return
    from irscope.record.device_launch import hold_launch

    held = hold_launch(request, sink, folder, first["launch"])
    with triton_api.private_cache(folder / "triton"):
        held.prepare(sink)
        for command in commands:
            held.do(command, sink)


def require_gpu(targets: tuple[str, ...]) -> Any:
    """The GPU that is there; raises NoDevice, and UsageError where another target is asked for."""
    present = triton_api.present_gpu()
    if present is None:
        raise NoDevice(NEEDS_GPU)
    triton_api.require_triton()
    for text in targets:
        if Target.parse(text) != present:
            raise UsageError(f"{text} cannot run here: the GPU is {present}. Leave out --target.")
    return present


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
