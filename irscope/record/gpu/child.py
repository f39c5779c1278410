"""`python -m irscope.record.gpu.child FD`: runs a script on the GPU, and variants of one of its launches.

Commands come in and events go out through the socket FD; `messages` has both. With two paths in its place, the commands
are all in the first file, and the events go to the second: a profiler that starts this process passes on no socket. The
first command says what to do. After a fault of the GPU nothing more can be done in a process: it reports that, and
ends.

Nsight Compute itself starts the process that it measures: that leads no group, and irscope is not its parent. So a
process of this module runs the profiler, in a group that ends when irscope is gone.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from irscope.errors import NoDevice, UsageError
from irscope.record.gpu.messages import Answered, CheckScript, PinLaunch, RunProgram
from irscope.record.process.events import EventSink
from irscope.record.process.messages import MessageReader, MessageWriter, report_work, serve_parent
from irscope.record.process.own_folder import parent_of_temporaries
from irscope.record.triton import api as triton_api
from irscope.target import Target

_NEEDS_GPU = (
    "Triton's driver finds no GPU on this machine: launching needs one, with its driver and a torch that supports it."
)


def main(descriptor: int) -> None:
    os._exit(serve_parent(descriptor, _serve))


def _main_of_files(commands: Path, events: Path) -> None:
    with events.open("wb") as output:
        waiting = MessageReader().feed(commands.read_bytes())
        code = report_work(MessageWriter(output.fileno()), lambda sink: _serve(waiting, sink))
    # By itself, so that the profiler has all it wants.
    sys.exit(code)


def _serve(commands: Iterator[Any], sink: EventSink) -> None:
    first = next(commands)
    if isinstance(first, RunProgram):
        done = subprocess.run(first.command, stdin=subprocess.DEVNULL, check=False)
        sink(Answered(done.returncode))
        return
    assert isinstance(first, (CheckScript, PinLaunch))
    _require_gpu(first.request.targets)
    with tempfile.TemporaryDirectory(prefix="irscope-", dir=parent_of_temporaries()) as name:
        folder = Path(name)
        if isinstance(first, CheckScript):
            from irscope.record.gpu.launch import check_script

            check_script(first, sink, folder)
            return
        from irscope.record.gpu.launch import pin_launch

        pinned = pin_launch(first, sink, folder)
        with triton_api.private_cache(folder / "triton"):
            pinned.prepare()
            for command in commands:
                pinned.do(command)


def _require_gpu(targets: tuple[str, ...]) -> Any:
    triton_api.require_triton()
    present = triton_api.present_gpu()
    if present is None:
        raise NoDevice(_NEEDS_GPU)
    for text in targets:
        if Target.parse(text) != present:
            raise UsageError(f"{text} cannot run here: the GPU is {present}. Leave out --target.")
    return present


if __name__ == "__main__":
    if len(sys.argv) > 2:
        _main_of_files(Path(sys.argv[1]), Path(sys.argv[2]))
    else:
        main(int(sys.argv[1]))
