"""The process that launches on the GPU, as its parent sees it: commands go in, events come out, and it may end."""

from __future__ import annotations

import contextlib
import datetime
import os
import select
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from irscope import errors
from irscope.errors import DeviceFault, IrscopeError, RecordingError
from irscope.record.assembly import Assembly
from irscope.record.events import Event, EventWriter, FrameReader
from irscope.record.own_folder import own_folder
from irscope.record.request import RecordRequest
from irscope.record.session import Progress, Tail, child_environment, how_it_died, kill

_TAIL_LINES = 15
_LONGEST_WAIT_S = 0.2
"""Between looks at what the script prints."""


class DeviceProcess:
    """A child that runs a script on the GPU; `device_process` starts it."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        commands: int,
        events: int,
        assembly: Assembly,
        tail: Tail,
        progress: Progress | None,
    ) -> None:
        self.assembly = assembly
        """What it has recorded so far."""
        self.loaded: set[str] = set()
        """The keys of the variants that it was given."""
        self._process = process
        self._commands = os.fdopen(commands, "wb", buffering=0)
        self._write = EventWriter(self._commands)
        self._events = events
        self._frames = FrameReader()
        self._waiting: deque[Event] = deque()
        self._tail = tail
        self._progress = progress

    def send(self, command: Event) -> None:
        """Give it a command; one that is gone is noticed when its answer is read."""
        with contextlib.suppress(OSError):
            self._write(command)

    def read(self, timeout_s: float | None) -> Event | None:
        """The next event, also fed to the assembly; None once the process has ended.

        Raises TimeoutError where nothing is told for `timeout_s` seconds.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._waiting:
            left = _LONGEST_WAIT_S if deadline is None else min(_LONGEST_WAIT_S, deadline - time.monotonic())
            if left < 0:
                raise TimeoutError
            ready = select.select([self._events], [], [], left)[0]
            self._tail.read()
            if not ready:
                continue
            chunk = os.read(self._events, 1 << 20)
            if not chunk:
                return None
            self._waiting.extend(self._frames.feed(chunk))
        event = self._waiting.popleft()
        self.assembly.feed(event)
        if self._progress is not None:
            self._progress(self.assembly.working_on)
        return event

    def how_it_ended(self) -> str:
        """Why there are no more events, in words."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        kill(self._process)
        return f"the process {how_it_died(self._process.returncode)}"

    def close(self) -> None:
        """End it; harmless where it has ended."""
        kill(self._process)
        with contextlib.suppress(OSError):
            self._commands.close()
        os.close(self._events)
        self._tail.read()


@contextmanager
def log_file() -> Iterator[Path]:
    """A file for what the children print."""
    with own_folder() as folder:
        log = folder / "log"
        log.touch()
        yield log


def start_device_process(
    first: Event,
    request: RecordRequest,
    log: Path,
    *,
    interpreter: str | None,
    progress: Progress | None,
    echo: Callable[[str], None] | None,
) -> DeviceProcess:
    """Start the child and tell it what to do; raises RecordingError where the interpreter can't be started."""
    command_end, commands = os.pipe()
    events, event_end = os.pipe()
    python = interpreter or sys.executable
    tail = Tail(log, echo)
    try:
        with open(log, "wb") as output:
            process = subprocess.Popen(
                [python, "-m", "irscope.record.device", str(command_end), str(event_end)],
                # Its end tells the child that this process is gone.
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=(command_end, event_end),
                env=child_environment(log.parent),
                # Its own group: a time-out ends ptxas and whatever else it started too.
                start_new_session=True,
            )
    except OSError as error:
        os.close(commands)
        os.close(events)
        raise RecordingError(f"the interpreter {python!r} cannot be started: {error.strerror}.") from error
    finally:
        os.close(command_end)
        os.close(event_end)
    command_line = os.environ.get("IRSCOPE_COMMAND_LINE") or " ".join(["irscope", *sys.argv[1:]])
    date = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    child = DeviceProcess(process, commands, events, Assembly(request, command_line, date), tail, progress)
    request = replace(request, log_path=str(log))
    child.send(Event(first.kind, {**first.fields, "request": request.to_json()}))
    return child


def refusal(name: str, message: str) -> IrscopeError:
    """The error that a child refused with, of the class it named."""
    kind = getattr(errors, name, RecordingError)
    return kind(message) if isinstance(kind, type) and issubclass(kind, IrscopeError) else DeviceFault(message)


def last_lines(log: Path) -> str:
    """What the children printed last."""
    return "\n".join(log.read_text("utf-8", "replace").splitlines()[-_TAIL_LINES:])
