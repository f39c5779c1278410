"""Child processes that are forks of one that has imported what they would, which saves each half a second."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import IO, TypeVar

from irscope.errors import IrscopeError, RecordingError
from irscope.record.process.child import Child, Start, child_environment, child_process, starts_children
from irscope.record.process.forks.fork_server import ANSWERS, Fork, Forked, Import, Imported, Reap, Reaped
from irscope.record.process.own_folder import own_folder

__all__ = ["warm_children"]

_READ_LATE = ("COLUMNS", "NO_COLOR", "PYTEST_CURRENT_TEST", "TRITON_CACHE_DIR")
"""Environment variables that nothing reads when it is imported; nor those of irscope."""
_PREFIX_READ_LATE = "IRSCOPE_"

_Answer = TypeVar("_Answer", bound="Imported | Forked | Reaped")


@contextmanager
def warm_children() -> Iterator[None]:
    """Fork the children of this thread, until the end of the block, from processes that have imported their modules.

    Each is started for the first child that could use it. A child of another interpreter is a new process, and so is
    one whose environment differs from the present one in a variable that may be read on import.
    """
    with _Warm() as warm, starts_children(warm.started):
        yield


class _Warm:
    """The fork servers, by what they have imported."""

    def __init__(self) -> None:
        self._held = ExitStack()
        self._servers: dict[tuple[str, ...], _Server | None] = {}
        """None for one that could not be started."""
        self._interpreter = sys.executable
        self._environment = _read_early(child_environment())

    def __enter__(self) -> _Warm:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def started(self, start: Start) -> _WarmProcess | None:
        """A fork for a child; None if it has to be a new process."""
        # Without the first there is no way to learn of the end of what is no child of this process.
        if (
            not hasattr(os, "pidfd_open")
            or not start.ahead
            or (start.interpreter or sys.executable) != self._interpreter
        ):
            return None
        if _read_early(start.environment) != self._environment:
            return None
        if start.ahead not in self._servers:
            self._servers[start.ahead] = None
            with contextlib.suppress(IrscopeError, OSError):
                self._servers[start.ahead] = self._new_server(start.ahead)
        server = self._servers[start.ahead]
        if server is None:
            return None
        try:
            return server.forked(start)
        except (IrscopeError, OSError):
            # The server is gone; what it forked ends with it.
            self._servers[start.ahead] = None
            return None

    def _new_server(self, modules: tuple[str, ...]) -> _Server:
        with ExitStack() as stack:
            folder = stack.enter_context(own_folder())
            # A server is no fork of a server: it has nothing ahead.
            child = stack.enter_context(child_process("irscope.record.process.forks.fork_server", folder, ANSWERS))
            server = _Server(child)
            server.ask(Import(0, modules), (), Imported)
            self._held.push(stack.pop_all())
            return server


class _Server:
    """A fork server, seen from here; each command waits for its answer."""

    def __init__(self, child: Child[Imported | Forked | Reaped]) -> None:
        self._child = child
        self._numbers = count(1)

    def forked(self, start: Start) -> _WarmProcess:
        """A fork that runs what a child is to run."""
        read_end, write_end = os.pipe()
        try:
            command = Fork(next(self._numbers), start.module, dict(start.environment), os.getcwd())
            descriptors = (read_end, start.output.fileno(), start.descriptor)
            pid = self.ask(command, descriptors, Forked).pid
            return _WarmProcess(pid, open(write_end, "wb", buffering=0), self)
        except BaseException:
            os.close(write_end)
            raise
        finally:
            os.close(read_end)

    def reaped(self, pid: int) -> int:
        """The exit code of a fork, after waiting for its end."""
        return self.ask(Reap(next(self._numbers), pid), (), Reaped).code

    def ask(self, command: Import | Fork | Reap, descriptors: Sequence[int], kind: type[_Answer]) -> _Answer:
        """The answer to a command; raises RecordingError if there is none."""
        self._child.send(command, *descriptors)
        while not self._child.at_end:
            for answer in self._child.read():
                if isinstance(answer, Imported) and answer.failure:
                    raise RecordingError(answer.failure)
                # That of a command which a signal interrupted comes late.
                if isinstance(answer, kind) and answer.number == command.number:
                    return answer
        raise RecordingError(f"the process that others are forked from ended.\n{self._child.last_lines()}".rstrip())


class _WarmProcess:
    """A fork of a server's, with the methods that a Child calls."""

    returncode: int | None = None

    def __init__(self, pid: int, stdin: IO[bytes], server: _Server) -> None:
        self.pid = pid
        self.stdin = stdin
        self._server = server

    def is_over(self) -> bool:
        """Whether it has ended; its server has not waited for it."""
        if self.returncode is not None:
            return True
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            # Its server is gone.
            return True
        try:
            return bool(select.select([descriptor], [], [], 0)[0])
        finally:
            os.close(descriptor)

    def wait(self) -> int:
        """Wait for its end, and return its exit code."""
        if self.returncode is None:
            self.returncode = self._server.reaped(self.pid)
        return self.returncode


def _read_early(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that may have been read when a module was imported."""
    return {
        name: value
        for name, value in environment.items()
        if name not in _READ_LATE and not name.startswith(_PREFIX_READ_LATE)
    }
