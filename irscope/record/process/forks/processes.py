"""The processes that a Child follows: spawned, or forks of this process."""

from __future__ import annotations

import os
import subprocess
from typing import IO, Protocol

__all__ = ["ForkedProcess", "Process", "SpawnedProcess"]


class Process(Protocol):
    """A process that somebody has to wait for."""

    pid: int
    returncode: int | None
    """Its exit code, a signal as a negative number; None until it was waited for."""

    @property
    def stdin(self) -> IO[bytes] | None:
        """The pipe by whose end it knows that this process is gone."""
        ...

    def is_over(self) -> bool:
        """Whether it has ended; it is still to be waited for."""
        ...

    def wait(self) -> int:
        """Wait for its end, and return its exit code."""
        ...


class SpawnedProcess(subprocess.Popen[bytes]):
    """A new process."""

    def is_over(self) -> bool:
        """Whether it has ended; it is still to be waited for, where the system can tell."""
        if self.returncode is not None or not hasattr(os, "waitid"):
            return self.poll() is not None
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


class ForkedProcess:
    """A fork of this process."""

    stdin = None
    returncode: int | None = None

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def is_over(self) -> bool:
        """Whether it has ended; it is still to be waited for, where the system can tell."""
        if self.returncode is not None or not hasattr(os, "waitid"):
            return self._waited(os.WNOHANG) is not None
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def wait(self) -> int:
        """Wait for its end, and return its exit code."""
        return self._waited(0) or 0

    def _waited(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode
