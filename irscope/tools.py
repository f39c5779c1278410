"""Runs programs of other projects, such as nvdisasm and dot, with limits that do not depend on the machine's load.

A limit by the clock would give another answer on a loaded machine. A program may use so much processor time, with all
that it started; and it may sleep for so long, neither running nor ready to run. A program that waits for a processor
uses up neither limit.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from irscope.errors import ToolTooSlow

POLL_S = 0.25
"""How often a program that is waited for is looked at."""
_RUNNABLE = "R"


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """How long a program may take; a float of seconds each."""

    processor_s: float = 120.0
    """Processor time, with all that it started."""
    asleep_s: float = 120.0
    """Time in which it neither ran nor could have run."""
    clock_s: float = 900.0
    """Time by the clock, on a system that does not show what another process does (no /proc)."""


class LimitWatch:
    """What a process, with all that it started, has used of its limits."""

    def __init__(self, pid: int, limits: ToolLimits) -> None:
        self._pid = pid
        self._limits = limits
        self._asleep_s = 0.0
        self._clock_s = 0.0
        self._last_used_s = -1.0
        self._used_before_s = 0.0

    def begin_again(self) -> None:
        """Count from now on: the process has just shown that it goes on."""
        self._used_before_s = sum(process.used_s for process in _descendants(self._pid))
        self._asleep_s = self._clock_s = 0.0

    def exceeded(self, waited_s: float) -> str:
        """Which limit is exceeded, as `took more than 120 s of processor time`; empty if none is.

        `waited_s`: seconds since the last call, as they were asked for: the clock goes on where nothing runs.
        """
        processes = _descendants(self._pid)
        self._clock_s += waited_s
        if not processes:
            return f"took more than {self._limits.clock_s:g} s" if self._clock_s > self._limits.clock_s else ""
        used_s = sum(process.used_s for process in processes)
        if used_s - self._used_before_s > self._limits.processor_s:
            return f"took more than {self._limits.processor_s:g} s of processor time"
        is_asleep = used_s == self._last_used_s and not any(process.state == _RUNNABLE for process in processes)
        self._asleep_s = self._asleep_s + waited_s if is_asleep else 0.0
        self._last_used_s = used_s
        return f"did nothing for {self._limits.asleep_s:g} s" if self._asleep_s > self._limits.asleep_s else ""


class ToolProcess:
    """A program that was started, and is ended when it exceeds its limits."""

    def __init__(
        self,
        command: Sequence[str],
        limits: ToolLimits,
        *,
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes],
        stderr: IO[bytes],
    ) -> None:
        """Start it; raises OSError if that fails. What it prints goes to files: a full pipe would stop it."""
        self._name = os.path.basename(command[0])
        self._process = subprocess.Popen(command, stdin=stdin or subprocess.DEVNULL, stdout=stdout, stderr=stderr)
        self._watch = LimitWatch(self._process.pid, limits)
        self._slow: str | None = None

    @property
    def ended(self) -> bool:
        """Whether `wait` would return at once."""
        return self._process.poll() is not None

    def wait(self) -> int:
        """Its exit code; raises ToolTooSlow where it exceeded a limit, and was ended."""
        while self._slow is None:
            # Polls are counted, not the clock: where this process gets no processor, the other one may get none either.
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._process.wait(POLL_S)
            self.count_poll()
        raise ToolTooSlow(self._slow)

    def count_poll(self) -> None:
        """Add `POLL_S` seconds to its time, and end it where it exceeds a limit: for a caller that does not wait."""
        if (exceeded := self._watch.exceeded(POLL_S)) and not self.ended:
            self.end()
            self._slow = f"{self._name} {exceeded}, and was ended."

    def end(self) -> None:
        """End it, with all that it started, if it still runs."""
        if self._process.poll() is not None:
            return
        for process in _descendants(self._process.pid):
            with contextlib.suppress(OSError):
                os.kill(process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()


def run_tool(
    command: Sequence[str], stdin: bytes = b"", limits: ToolLimits | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end.

    Args:
        limits: the defaults of `ToolLimits` if None.

    Returns its exit code and what it printed. Raises OSError where it cannot be started, and ToolTooSlow where it
    exceeded a limit.
    """
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        given.write(stdin)
        given.seek(0)
        process = ToolProcess(command, limits or ToolLimits(), stdin=given, stdout=out, stderr=errors)
        try:
            code = process.wait()
        finally:
            process.end()
        out.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(command, code, out.read(), errors.read())


def installed_program(name: str, places: Sequence[str]) -> str | None:
    """The path of a program: on the PATH, or the newest in places, which are patterns below `/`; None for none."""
    below = (str(path) for place in places for path in sorted(Path("/").glob(place), reverse=True))
    return shutil.which(name) or next(below, None)


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    state: str
    used_s: float
    """Processor time of it and of those of its children that ended."""


def _descendants(pid: int) -> list[_Process]:
    """A process and all that it started; empty on a system without /proc."""
    processes = _all_processes()
    members = {pid}
    while children := {item.pid for item in processes if item.parent in members} - members:
        members |= children
    return [item for item in processes if item.pid in members]


def _all_processes() -> list[_Process]:
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []
    processes: list[_Process] = []
    for pid in pids:
        # A process may end between the two reads.
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = process_status(pid)
            used_s = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
            processes.append(_Process(pid, int(fields[1]), fields[0], used_s))
    return processes


def process_status(pid: int) -> list[str]:
    """What Linux says of a process: its state, the number of its parent, …, as proc(5) lists them behind the name.

    Raises OSError where there is no such process, or no /proc.
    """
    with open(f"/proc/{pid}/stat", "rb") as file:
        # 4242 (nv) disasm) R 4200 … utime stime cutime cstime …: a name may hold blanks and parentheses.
        return file.read().decode("utf-8", "replace").rpartition(")")[2].split()
