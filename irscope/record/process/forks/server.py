"""A fork server as its parent sees it: it imports what its forks need, forks them, and waits for their ends."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import IO, TypeVar

from irscope.errors import RecordingError
from irscope.interruption import reset_signals
from irscope.record.process.child import Child, Start, child_environment, child_process, forked_child
from irscope.record.process.forks.fork_server import ANSWERS, Fork, Forked, Import, Imported, Reap, Reaped, main

__all__ = ["ForkServer", "ServedProcess", "fork_server"]

_Answer = TypeVar("_Answer", bound="Imported | Forked | Reaped")


@contextmanager
def fork_server(
    folder: Path, *, interpreter: str | None = None, ahead: Iterable[str] = (), is_fork: bool = False
) -> Iterator[ForkServer]:
    """Run a fork server until the end of the block, which ends its forks; other arguments as of `child_process`.

    `is_fork`: whether it may be a fork of this process, which has most of irscope imported. It is a new process where
    this one has Triton or torch imported, which may have threads.
    """
    if is_fork and interpreter is None and not {"triton", "torch"} & sys.modules.keys():
        started = forked_child(partial(_serve, folder), folder, ANSWERS)
    else:
        module = "irscope.record.process.forks.fork_server"
        started = child_process(module, folder, ANSWERS, interpreter=interpreter, ahead=ahead)
    with started as child:
        yield ForkServer(child)


def _serve(folder: Path, descriptor: int) -> int:
    """Be a fork server in a fork of this process, with what a new process would have of its own."""
    os.setsid()
    reset_signals()
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    environment = child_environment(folder)
    os.environ.clear()
    os.environ.update(environment)
    try:
        main(descriptor)
    except SystemExit as end:
        # Of a fork's module.
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


class ForkServer:
    """A process whose forks have imported what it has; its answers come in the order of the commands."""

    def __init__(self, child: Child[Imported | Forked | Reaped]) -> None:
        self._child = child
        self._numbers = count()
        self.pid = child.pid

    def end(self) -> None:
        """End it, and its forks."""
        self._child.end()

    def begin_import(self, modules: Iterable[str], function: str = "", *arguments: str) -> int:
        """Have it import modules and call a function, `MODULE:NAME`; returns the number for `imported`."""
        return self._sent(Import(next(self._numbers), tuple(modules), function, arguments))

    def imported(self, number: int) -> tuple[str, ...]:
        """What the function returned, after waiting for it; raises RecordingError, or the IrscopeError it raised."""
        answer = self._answer(number, Imported)
        if answer.refusal is not None:
            raise answer.refusal.as_error()
        return answer.answer

    def fork(self, start: Start) -> ServedProcess:
        """A fork that runs what a child is to run; raises RecordingError if the server is gone."""
        read_end, write_end = os.pipe()
        try:
            command = Fork(next(self._numbers), start.module, dict(start.environment), os.getcwd())
            number = self._sent(command, (read_end, start.output.fileno(), start.descriptor))
            pid = self._answer(number, Forked).pid
            return ServedProcess(pid, open(write_end, "wb", buffering=0), self)
        except BaseException:
            os.close(write_end)
            raise
        finally:
            os.close(read_end)

    def reaped(self, pid: int) -> int:
        """The exit code of a fork, after waiting for its end; raises RecordingError if the server is gone."""
        return self._answer(self._sent(Reap(next(self._numbers), pid)), Reaped).code

    def _sent(self, command: Import | Fork | Reap, descriptors: Sequence[int] = ()) -> int:
        self._child.send(command, *descriptors)
        return command.number

    def _answer(self, number: int, kind: type[_Answer]) -> _Answer:
        while not self._child.at_end:
            for answer in self._child.read():
                # That of a command which a signal interrupted comes late.
                if isinstance(answer, kind) and answer.number == number:
                    return answer
        raise RecordingError(f"the process that others are forked from ended.\n{self._child.last_lines()}".rstrip())


class ServedProcess:
    """A fork of a server, with the methods that a Child calls."""

    returncode: int | None = None

    def __init__(self, pid: int, stdin: IO[bytes], server: ForkServer) -> None:
        self.pid = pid
        self.stdin = stdin
        self._server = server

    def is_over(self) -> bool:
        """Whether it has ended, where the system can tell; its server has not waited for it."""
        if self.returncode is not None:
            return True
        if not hasattr(os, "pidfd_open"):
            return False
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
            try:
                self.returncode = self._server.reaped(self.pid)
            except RecordingError:
                # Nobody knows how it ended but its server, which is gone: all that it forked is killed.
                self.returncode = -signal.SIGKILL
        return self.returncode
