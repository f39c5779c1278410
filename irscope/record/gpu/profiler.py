"""`python -m irscope.record.gpu.profiler FD`: runs a program in its own group, which ends when its parent is gone.

Nsight Compute itself starts the process that it measures: that leads no group, and irscope is not its parent.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

from irscope.record.gpu.messages import ProgramEnded, RunProgram
from irscope.record.process.events import EventSink
from irscope.record.process.messages import serve_parent


def main(descriptor: int) -> None:
    """Run the one program that the command names; ends the process."""
    os._exit(serve_parent(descriptor, (RunProgram,), _run))


def _run(commands: Iterator[RunProgram], sink: EventSink) -> None:
    done = subprocess.run(next(commands).command, stdin=subprocess.DEVNULL, check=False)
    sink(ProgramEnded(done.returncode))


if __name__ == "__main__":
    main(int(sys.argv[1]))
