"""The process that launches on the GPU, as its parent sees it: commands go in, events come out, and it may end."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from irscope.record.gpu.messages import DEVICE_EVENTS, CheckScript, Command, PinLaunch
from irscope.record.process.annotations import Annotations
from irscope.record.process.assembly import Assembly
from irscope.record.process.child import LONGEST_WAIT_S, Child, child_process
from irscope.record.process.events import RecordingEvent
from irscope.record.process.layout_server import LayoutServer
from irscope.record.process.session import Progress
from irscope.record.triton.native_calls import SWITCH, call_that_ended

_LONGEST_END_S = 5.0


class DeviceProcess:
    """A child that runs a script on the GPU; `device_process` starts it."""

    def __init__(
        self, child: Child[RecordingEvent], assembly: Assembly, annotations: Annotations, progress: Progress | None
    ) -> None:
        self.assembly = assembly
        """What it has recorded so far."""
        self.annotations = annotations
        """Feed that, and add to it."""
        self.loaded: set[str] = set()
        """The keys of the variants that it was given."""
        self.log = child.log
        """The file of what it prints."""
        self.last_lines = child.last_lines
        self._child = child
        self._progress = progress
        self._waiting: deque[RecordingEvent] = deque()

    def send(self, command: Command) -> None:
        """Give it a command; that it is gone shows when its answer is read."""
        self._child.send(command)

    def read(self, timeout_s: float | None) -> RecordingEvent | None:
        """The next event, also fed to the assembly; None once the process has ended.

        Raises TimeoutError if none comes for `timeout_s` seconds.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._waiting:
            left_s = LONGEST_WAIT_S if deadline is None else min(LONGEST_WAIT_S, deadline - time.monotonic())
            if left_s < 0:
                raise TimeoutError
            self._waiting.extend(self._child.read(left_s))
            if self._child.at_end and not self._waiting:
                return None
        event = self._waiting.popleft()
        self.annotations(event)
        if self._progress is not None:
            self._progress(self.assembly.working_on)
        return event

    def how_it_ended(self) -> str:
        """Why there are no more events, in words."""
        self._child.wait(_LONGEST_END_S)
        outcome = self._child.end()
        call = call_that_ended(self._child.log, self._child.pid, outcome.code)
        # What a script does to a GPU is not done twice unasked.
        where = f" in {call}, which irscope calls by its symbol ({SWITCH}=0 switches that off)" if call else ""
        return f"the process {outcome}{where}"


@contextmanager
def device_process(
    first: CheckScript | PinLaunch,
    folder: Path,
    *,
    progress: Progress | None,
    echo: Callable[[str], None] | None = None,
) -> Iterator[DeviceProcess]:
    """Start the child with its first command, until the end of the block.

    `folder`: for what it prints, and its temporary files. Raises RecordingError if the interpreter cannot be started.
    """
    module = "irscope.record.gpu.child"
    request = first.request
    with (
        LayoutServer(request.interpreter) as server,
        child_process(module, folder, DEVICE_EVENTS, interpreter=request.interpreter, echo=echo) as child,
    ):
        child.send(replace(first, request=replace(request, log_path=str(child.log))))
        assembly = Assembly(request)
        yield DeviceProcess(child, assembly, Annotations(assembly.feed, request, server), progress)
