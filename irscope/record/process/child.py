"""Starts, follows and ends child processes: every process of irscope's own that runs user code or the compiler.

A child leads a session of its own, so that it is ended with all that it started. Its standard input is a pipe that only
ends: by that it knows that this process is gone (`parent`). Commands and events are messages on one socket, and what
it prints goes to a file in a folder that this process makes and removes. `parent` is the other side.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Generic, Protocol, TypeVar

from irscope import errors
from irscope.errors import MissingTool, RecordingError
from irscope.record.process.messages import MessageReader, frame_of
from irscope.record.process.own_folder import FOLDER_VARIABLE, PROGRAM_VARIABLE

LONGEST_WAIT_S = 0.2
"""Between looks at what a child prints, its time, and the signals that came."""

_RUN_MODULE = """
import importlib.util, runpy, sys
package, name = sys.argv[1:3]
del sys.argv[1:3]
if "irscope" not in sys.modules:
    spec = importlib.util.spec_from_file_location("irscope", package)
    sys.modules["irscope"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
runpy.run_module(name, run_name="__main__", alter_sys=True)
"""
_LOG = "log"
_LOG_TAIL_LINES = 20

_Message = TypeVar("_Message")


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


class _SpawnedProcess(subprocess.Popen[bytes]):
    """A new process."""

    def is_over(self) -> bool:
        """Whether it has ended; it is still to be waited for."""
        return self.returncode is not None or is_over(self.pid)


def is_over(pid: int) -> bool:
    """Whether a process has ended, waited for or not."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # 4711 (python3) Z 4710 …
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except (FileNotFoundError, ProcessLookupError):
        return True


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a process ended."""

    code: int
    """Its exit code; a signal as a negative number."""

    def __str__(self) -> str:
        if self.code < 0:
            with contextlib.suppress(ValueError):
                return f"was ended by {signal.Signals(-self.code).name}"
        return f"exited with code {self.code}"


class MessageStream(Generic[_Message]):
    """The messages that come through a pipe or a socket, which it owns."""

    def __init__(self, descriptor: int, kinds: Iterable[type[_Message]]) -> None:
        self._descriptor = descriptor
        self._reader = MessageReader(kinds)
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self.at_end = False
        """Whether the other end is closed, and everything was read."""

    def fileno(self) -> int:
        """The descriptor, for a selector."""
        return self._descriptor

    def has_data(self) -> bool:
        """Whether something came that is to be read: messages, a part of one, or the end."""
        return not self.at_end and bool(self._poll.poll(0))

    def read(self, timeout_s: float) -> list[_Message]:
        """The messages that came, after waiting for the first; none if it took longer. Raises MessageError."""
        if self.at_end or not self._poll.poll(max(0.0, timeout_s) * 1000.0):
            return []
        try:
            chunk = os.read(self._descriptor, 1 << 20)
        except ConnectionResetError:
            # The process ended with commands that it had not read.
            chunk = b""
        self.at_end = not chunk
        return list(self._reader.feed(chunk))

    def close(self) -> None:
        """Close this end."""
        os.close(self._descriptor)


@dataclass(frozen=True, slots=True)
class Start:
    """What a child process is to be."""

    module: str
    ahead: tuple[str, ...]
    """Modules that it will import, and that a process which it is forked from may have imported."""
    interpreter: str | None
    environment: Mapping[str, str]
    descriptor: int
    """Its socket."""
    output: IO[bytes]


_starter: ContextVar[Callable[[Start], Process | None]] = ContextVar("_starter", default=lambda start: None)


@contextmanager
def starts_children(starter: Callable[[Start], Process | None]) -> Iterator[None]:
    """Have a function start the child processes of this thread, those for which it gives one."""
    token = _starter.set(starter)
    try:
        yield
    finally:
        _starter.reset(token)


class Child(Generic[_Message]):
    """A child process; `child_process` starts it."""

    def __init__(
        self,
        process: Process,
        control: socket.socket,
        kinds: Iterable[type[_Message]],
        log: Path,
        echo: Callable[[str], None] | None,
    ) -> None:
        self._process = process
        self._control = control
        self._stream = MessageStream(control.fileno(), kinds)
        self._echo = echo
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._printed = open(log, "rb")  # noqa: SIM115 - the script may remove its name
        self._last_output = b""
        self.pid = process.pid
        self.log = log
        """The file of what it prints."""

    @property
    def at_end(self) -> bool:
        """Whether nothing more comes from it."""
        return self._stream.at_end

    @property
    def is_over(self) -> bool:
        """Whether the process has ended, and nothing more comes from it."""
        return self._stream.at_end and self._process.is_over()

    def fileno(self) -> int:
        """The descriptor that its messages come through, for a selector."""
        return self._stream.fileno()

    def send(self, message: object, *descriptors: int) -> None:
        """Send a message, and open files with it; that the child is gone shows when its answer is read."""
        data = frame_of(message)
        with contextlib.suppress(OSError):
            if descriptors:
                data = data[socket.send_fds(self._control, [data], list(descriptors)) :]
            self._control.sendall(data)

    def read(self, timeout_s: float = LONGEST_WAIT_S) -> list[_Message]:
        """The messages that came, after waiting for the first; none if it took longer. Raises MessageError."""
        messages = self._stream.read(timeout_s)
        if not messages and not self.at_end and self._process.is_over():
            # A process that it forked may hold the stream open.
            messages = self._stream.read(0)
            self._stream.at_end = not messages
        self._echo_output()
        return messages

    def rest(self) -> Iterator[_Message]:
        """What it sent before its end, and was not read yet."""
        while messages := self._stream.read(0):
            yield from messages
        self._echo_output()

    def wait(self, timeout_s: float, stop: Callable[[], object] = lambda: False) -> None:
        """Wait for its end, for some seconds at most, or until `stop()` is true."""
        deadline, pause_s = time.monotonic() + timeout_s, 0.001
        while not stop() and not self._process.is_over() and time.monotonic() < deadline:
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, 0.05)

    def end(self) -> Outcome:
        """End it and all that it started, also if it has ended itself; harmless to call again."""
        if self._process.returncode is None:
            # It was not waited for, so the group's number is no other's.
            end_group(self.pid)
        code = self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        return Outcome(code)

    def close(self) -> None:
        """End it, and close the socket."""
        self.end()
        self._echo_output()
        self._stream.at_end = True
        self._control.close()
        if not self._printed.closed:
            self._last_output = self.output()
            self._printed.close()

    def output(self) -> bytes:
        """All that it printed so far."""
        if self._printed.closed:
            return self._last_output
        return os.pread(self._printed.fileno(), os.fstat(self._printed.fileno()).st_size, 0)

    def last_lines(self) -> str:
        """What it printed last."""
        return "\n".join(self.output().decode("utf-8", "replace").splitlines()[-_LOG_TAIL_LINES:])

    def _echo_output(self) -> None:
        # A read may cut a character.
        if self._echo is not None and (text := self._decoder.decode(self._printed.read())):
            self._echo(text)


@contextmanager
def child_process(
    module: str,
    folder: Path,
    kinds: Iterable[type[_Message]],
    *,
    interpreter: str | None = None,
    echo: Callable[[str], None] | None = None,
    ahead: Iterable[str] = (),
) -> Iterator[Child[_Message]]:
    """Run a module with DESCRIPTOR as its argument until the end of the block: that of its socket.

    `folder`: for its log and its temporary files; this process removes it. `kinds`: the classes of the messages that it
    sends. `interpreter`: a Python with another Triton. `echo`: gets what it prints, as it comes. `ahead`: modules that
    it may find imported (`warm`). Raises RecordingError if the interpreter cannot be started.
    """
    environment = child_environment(folder)
    log = folder / _LOG
    ours, theirs = socket.socketpair()
    with ours:
        with theirs, open(log, "wb") as output:
            start = Start(module, tuple(ahead), interpreter, environment, theirs.fileno(), output)
            process = _starter.get()(start)
            if process is None:
                command = module_command(module, str(start.descriptor), interpreter=interpreter)
                process = _started(command, environment, subprocess.PIPE, output, output, start.descriptor)
        child = Child(process, ours, kinds, log, echo)
        try:
            yield child
        finally:
            child.close()


def ask_child(module: str, *arguments: str, interpreter: str | None = None, timeout_s: float) -> dict[str, Any]:
    """The JSON that a module prints as its last line.

    Raises MissingTool if it prints none, and RecordingError if it cannot be started, or does not end.
    """
    command = module_command(module, *arguments, interpreter=interpreter)
    with _started(command, child_environment(), subprocess.DEVNULL, subprocess.PIPE, subprocess.PIPE) as process:
        try:
            output, said = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            raise RecordingError(f"{module} did not end in {timeout_s:g} s.") from error
        finally:
            if process.returncode is None:
                end_group(process.pid)
    try:
        return json.loads(output.splitlines()[-1])
    except (ValueError, IndexError):
        tail = said.decode("utf-8", "replace").strip().splitlines()[-1:] or [str(Outcome(process.wait()))]
        raise MissingTool(tail[0]) from None


def end_group(leader: int) -> None:
    """Kill a process that leads a group, and the group."""
    for kill in (os.kill, os.killpg):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(leader, signal.SIGKILL)


def module_command(module: str, *arguments: str, interpreter: str | None = None) -> list[str]:
    """The command that runs a module of this irscope under an interpreter that need not have irscope installed.

    Only irscope is taken from here, which needs no more than the standard library to record: with its folder on the
    path, what lies beside it (another Triton, another torch) would come before the interpreter's own packages.
    """
    package = str(Path(errors.__file__).resolve().with_name("__init__.py"))
    return [interpreter or sys.executable, "-c", _RUN_MODULE, package, module, *arguments]


def child_environment(folder: Path | None = None) -> dict[str, str]:
    """The environment of a child. `folder`: where its temporary files go, which its parent removes."""
    environment = dict(os.environ)
    environment.setdefault("PYTHONUNBUFFERED", "1")
    # A process of irscope's own is none of the program's.
    environment.pop(PROGRAM_VARIABLE, None)
    if folder is not None:
        environment[FOLDER_VARIABLE] = str(folder)
    return environment


def _started(
    command: list[str], environment: Mapping[str, str], stdin: int, output: Any, errors: Any, *descriptors: int
) -> _SpawnedProcess:
    try:
        return _SpawnedProcess(
            command,
            stdin=stdin,
            stdout=output,
            stderr=errors,
            pass_fds=descriptors,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise RecordingError(f"the interpreter {command[0]!r} cannot be started: {error.strerror}.") from error
