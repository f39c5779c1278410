"""Starts, follows and ends child processes: every process of irscope's own that runs user code or the compiler.

A child leads a session of its own, so that it is ended with all that it started. Its standard input is a pipe that
only ends: by that it knows that this process is gone. `messages` has its side of the socket. Within `warm_children` it
is a fork of a process that has imported what it needs (`fork_server`), which saves half a second each.
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
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO, Any

from irscope import errors
from irscope.errors import IrscopeError, MissingTool, RecordingError
from irscope.record.process.events import RecordingEvent
from irscope.record.process.fork_server import end_group
from irscope.record.process.messages import Answer, Fork, Import, MessageReader, Reap, frame_of
from irscope.record.process.own_folder import FOLDER_VARIABLE, PROGRAM_VARIABLE, own_folder
from irscope.record.triton.patches import environment_variable
from irscope.tools import process_status

LONGEST_WAIT_S = 0.2
"""Between looks at what a child prints, its time, and the signals that came."""

_RUN_MODULE = """
import sys
# What -c puts first: a copy.py in the working folder is not the standard library's.
if sys.path and not sys.path[0]:
    del sys.path[0]
import importlib.util, runpy
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


def last_lines(output: bytes) -> str:
    return "\n".join(output.decode("utf-8", "replace").splitlines()[-_LOG_TAIL_LINES:])


def is_over(pid: int) -> bool:
    try:
        return process_status(pid)[0] in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return True


@dataclass(frozen=True, slots=True)
class Outcome:
    code: int
    """Its exit code; a signal as a negative number."""

    def __str__(self) -> str:
        if self.code < 0:
            with contextlib.suppress(ValueError):
                return f"was ended by {signal.Signals(-self.code).name}"
        return f"exited with code {self.code}"


class MessageStream:
    """The events that come through a pipe or a socket, which it owns."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._reader = MessageReader()
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self.at_end = False

    def fileno(self) -> int:
        return self._descriptor

    def has_data(self) -> bool:
        return not self.at_end and bool(self._poll.poll(0))

    def read(self, timeout_s: float) -> list[RecordingEvent]:
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
        os.close(self._descriptor)


class Child:
    def __init__(
        self,
        process: subprocess.Popen[bytes] | _ServedProcess,
        control: socket.socket,
        log: Path,
        echo: Callable[[str], None] | None,
    ) -> None:
        self._process = process
        self._control = control
        self._stream = MessageStream(control.fileno())
        self._echo = echo
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._printed = open(log, "rb")  # noqa: SIM115 - the script may remove its name
        self._last_output = b""
        self.pid = process.pid
        self.log = log

    @property
    def at_end(self) -> bool:
        """Whether nothing more comes from it."""
        return self._stream.at_end

    @property
    def is_over(self) -> bool:
        return self._stream.at_end and self._has_ended

    @property
    def _has_ended(self) -> bool:
        return self._process.returncode is not None or is_over(self.pid)

    def fileno(self) -> int:
        return self._stream.fileno()

    def send(self, message: object, *descriptors: int) -> None:
        """Send a message, and open files with it; that the child is gone shows when its answer is read."""
        data = frame_of(message)
        with contextlib.suppress(OSError):
            if descriptors:
                data = data[socket.send_fds(self._control, [data], list(descriptors)) :]
            self._control.sendall(data)

    def read(self, timeout_s: float = LONGEST_WAIT_S) -> list[RecordingEvent]:
        """The messages that came, after waiting for the first; none if it took longer. Raises MessageError."""
        messages = self._stream.read(timeout_s)
        if not messages and not self.at_end and self._has_ended:
            # A process that it forked may hold the stream open.
            messages = self._stream.read(0)
            self._stream.at_end = not messages
        self._echo_output()
        return messages

    def rest(self) -> Iterator[RecordingEvent]:
        """What it sent before its end, and was not read yet."""
        while messages := self._stream.read(0):
            yield from messages
        self._echo_output()

    def wait(self, timeout_s: float, stop: Callable[[], object] = lambda: False) -> None:
        """Wait for its end, for some seconds at most, or until `stop()` is true."""
        deadline, pause_s = time.monotonic() + timeout_s, 0.001
        while not stop() and not self._has_ended and time.monotonic() < deadline:
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
        self.end()
        self._echo_output()
        self._stream.at_end = True
        self._control.close()
        if not self._printed.closed:
            self._last_output = self.output()
            self._printed.close()

    def output(self) -> bytes:
        if self._printed.closed:
            return self._last_output
        return os.pread(self._printed.fileno(), os.fstat(self._printed.fileno()).st_size, 0)

    def last_lines(self) -> str:
        return last_lines(self.output())

    def _echo_output(self) -> None:
        # A read may cut a character.
        if self._echo is not None and (text := self._decoder.decode(self._printed.read())):
            self._echo(text)


@contextmanager
def child_process(
    module: str,
    folder: Path,
    *,
    interpreter: str | None = None,
    echo: Callable[[str], None] | None = None,
    ahead: tuple[str, ...] = (),
) -> Iterator[Child]:
    """Run a module with the DESCRIPTOR of its socket as its argument until the end of the block.

    `folder`: for its log and its temporary files. `interpreter`: a Python with another Triton. `ahead`: modules that it
    may find imported. Raises RecordingError if the interpreter cannot be started.
    """
    environment = _child_environment(folder)
    log = folder / _LOG
    ours, theirs = socket.socketpair()
    with ours:
        with theirs, open(log, "wb") as output:
            descriptor = theirs.fileno()
            process = None
            if ahead and (warm := _warm.get()) is not None:
                process = warm.forked(interpreter, environment, ahead, module, descriptor, output)
            if process is None:
                command = module_command(module, str(descriptor), interpreter=interpreter)
                process = _started(command, environment, subprocess.PIPE, output, output, descriptor)
        child = Child(process, ours, log, echo)
        try:
            yield child
        finally:
            child.close()


def ask_child(module: str, *arguments: str, interpreter: str | None = None, timeout_s: float) -> dict[str, Any]:
    """The JSON that a module prints as its last line.

    Raises MissingTool if it prints none, and RecordingError if it cannot be started, or does not end.
    """
    command = module_command(module, *arguments, interpreter=interpreter)
    with _started(command, _child_environment(), subprocess.DEVNULL, subprocess.PIPE, subprocess.PIPE) as process:
        try:
            output, printed = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as error:
            raise RecordingError(f"{module} did not end in {timeout_s:g} s.") from error
        finally:
            if process.returncode is None:
                end_group(process.pid)
    try:
        return json.loads(output.splitlines()[-1])
    except (ValueError, IndexError):
        tail = printed.decode("utf-8", "replace").strip().splitlines()[-1:] or [str(Outcome(process.wait()))]
        raise MissingTool(tail[0]) from None


def module_command(module: str, *arguments: str, interpreter: str | None = None) -> list[str]:
    """The command that runs a module of this irscope under an interpreter that need not have irscope installed.

    Only irscope is taken from here, which needs no more than the standard library to record: with its folder on the
    path, what lies beside it (another Triton, another torch) would come before the interpreter's own packages.
    """
    package = str(Path(errors.__file__).resolve().with_name("__init__.py"))
    return [interpreter or sys.executable, "-c", _RUN_MODULE, package, module, *arguments]


def _child_environment(folder: Path | None = None) -> dict[str, str]:
    environment = dict(os.environ)
    environment.setdefault("PYTHONUNBUFFERED", "1")
    # A process of irscope's own is none of the program's.
    environment.pop(PROGRAM_VARIABLE, None)
    if folder is not None:
        environment[FOLDER_VARIABLE] = str(folder)
    return environment


@contextmanager
def variables_set(values: Mapping[str, str]) -> Generator[None]:
    """Set environment variables of the children that are started until the end of the block."""
    with ExitStack() as stack:
        for name, value in values.items():
            stack.enter_context(environment_variable(name, value))
        yield


def _started(
    command: list[str], environment: Mapping[str, str], stdin: int, output: Any, errors: Any, *descriptors: int
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
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


TRITON = (
    "triton.backends",
    "triton.compiler.code_generator",
    "irscope.record.programs.worker",
    "irscope.record.virtual.gpu",
)
TORCH = (*TRITON, "irscope.record.virtual.torch.session")
"""The same of a script that imports torch."""

_READ_LATE = ("COLUMNS", "NO_COLOR", "PYTEST_CURRENT_TEST", "TMPDIR", "TRITON_CACHE_DIR")
"""Environment variables that nothing reads when it is imported; nor those of irscope."""
_PREFIX_READ_LATE = "IRSCOPE_"


@contextmanager
def warm_children(*, at_once: bool = False, persistent: bool = True) -> Iterator[None]:
    """Fork the children of this thread, until the end of the block, from processes that have imported their modules.

    Each is started for the first child that could use it. A child of another interpreter has one of its own, and so
    has one whose environment differs in a variable that may be read on import. Within such a block, this one does
    nothing.

    `at_once`: whether the first is started now: importing Triton takes about as long as reading a command.
    `persistent`: whether several recordings are expected, so that importing torch ahead pays.
    """
    if _warm.get() is not None:
        yield
        return
    with _Warm(persistent) as warm:
        token = _warm.set(warm)
        try:
            if at_once:
                warm.begin()
            yield
        finally:
            _warm.reset(token)


def warm_server(interpreter: str | None = None) -> ForkServer:
    """The process in the block of `warm_children` that has imported Triton; raises what prevents it."""
    warm = _warm.get()
    if warm is None:
        raise RuntimeError("no block of warm_children is entered")
    return warm.server(interpreter, _child_environment(), TRITON)


def imports_torch_ahead() -> bool:
    """Whether a script that imports torch is to be forked from a process that has imported it."""
    warm = _warm.get()
    return warm is not None and warm.persistent


class ForkServer:
    def __init__(self, child: Child, environment: Mapping[str, str]) -> None:
        self._child = child
        self._environment = environment
        self._numbers = count()
        self._answers: dict[int, Answer] = {}
        """Those that came while another one was waited for."""
        self.pid = child.pid

    def end(self) -> None:
        self._child.end()

    def begin_import(self, modules: Iterable[str], function: str = "") -> int:
        """Have it import modules and call a function, `MODULE:NAME`; returns the number for `imported`."""
        return self._send(Import(next(self._numbers), tuple(modules), function))

    def imported(self, number: int) -> tuple[str, ...]:
        """What the function returned, after waiting for it; raises RecordingError, or the IrscopeError it raised."""
        return self._answer(number)

    def fork(self, environment: Mapping[str, str], module: str, descriptor: int, output: IO[bytes]) -> _ServedProcess:
        read_end, write_end = os.pipe()
        try:
            given = self._environment
            changed = {name: value for name, value in environment.items() if given.get(name) != value}
            removed = tuple(name for name in given if name not in environment)
            command = Fork(next(self._numbers), module, changed, removed, os.getcwd())
            number = self._send(command, (read_end, output.fileno(), descriptor))
            pid = self._answer(number)
            return _ServedProcess(pid, open(write_end, "wb", buffering=0), self)
        except BaseException:
            os.close(write_end)
            raise
        finally:
            os.close(read_end)

    def reaped(self, pid: int) -> int:
        return self._answer(self._send(Reap(next(self._numbers), pid)))

    def _send(self, command: Import | Fork | Reap, descriptors: Sequence[int] = ()) -> int:
        self._child.send(command, *descriptors)
        return command.number

    def _answer(self, number: int) -> Any:
        while number not in self._answers and not self._child.at_end:
            self._answers |= {answer.number: answer for answer in self._child.read() if isinstance(answer, Answer)}
        if (answer := self._answers.pop(number, None)) is not None:
            if answer.refusal is not None:
                raise answer.refusal.as_error()
            return answer.value
        raise RecordingError(f"the fork server ended.\n{self._child.last_lines()}".rstrip())


class _ServedProcess:
    returncode: int | None = None

    def __init__(self, pid: int, stdin: IO[bytes], server: ForkServer) -> None:
        self.pid = pid
        self.stdin = stdin
        self._server = server

    def wait(self) -> int:
        if self.returncode is None:
            try:
                self.returncode = self._server.reaped(self.pid)
            except RecordingError:
                # Nobody knows how it ended but its server, which is gone: all that it forked is killed.
                self.returncode = -signal.SIGKILL
        return self.returncode


class _Warm(ExitStack):
    def __init__(self, persistent: bool) -> None:
        super().__init__()
        self.persistent = persistent
        self._servers: dict[tuple[object, ...], tuple[ForkServer, ExitStack] | IrscopeError] = {}
        """An error for one that could not be started, or ended."""

    def begin(self) -> None:
        with contextlib.suppress(Exception):
            for standard in range(3):
                # A socket must not get the number of one that is closed.
                os.fstat(standard)
            self.server(None, _child_environment(), TRITON)

    def forked(
        self, interpreter: str | None, environment: Mapping[str, str], modules: tuple[str, ...], *start: Any
    ) -> _ServedProcess | None:
        """A fork for a child, as `ForkServer.fork` starts it; None if it has to be a new process."""
        try:
            return self.server(interpreter, environment, modules).fork(environment, *start)
        except IrscopeError as error:
            # What the server forked ends with it.
            kind = _kind_of(interpreter, environment, modules)
            gone, self._servers[kind] = self._servers.get(kind), error
            if isinstance(gone, tuple):
                gone[1].close()
            return None
        except OSError:
            return None

    def server(self, interpreter: str | None, environment: Mapping[str, str], modules: tuple[str, ...]) -> ForkServer:
        kind = _kind_of(interpreter, environment, modules)
        if kind not in self._servers:
            try:
                self._servers[kind] = self._new_server(interpreter, modules)
            except IrscopeError as error:
                self._servers[kind] = error
        server = self._servers[kind]
        if isinstance(server, IrscopeError):
            raise server
        return server[0]

    def _new_server(self, interpreter: str | None, modules: tuple[str, ...]) -> tuple[ForkServer, ExitStack]:
        with ExitStack() as stack:
            folder = stack.enter_context(own_folder())
            # A server is no fork of a server: it has nothing ahead.
            module = "irscope.record.process.fork_server"
            environment = _child_environment(folder)
            child = stack.enter_context(child_process(module, folder, interpreter=interpreter))
            server = ForkServer(child, environment)
            # It imports while this process does something else; what fails is raised in the fork that needs it.
            server.begin_import(modules)
            resources = self.enter_context(stack.pop_all())
            return server, resources


_warm: ContextVar[_Warm | None] = ContextVar("_warm", default=None)


def _kind_of(interpreter: str | None, environment: Mapping[str, str], modules: tuple[str, ...]) -> tuple[object, ...]:
    early = frozenset(
        (name, value)
        for name, value in environment.items()
        if name not in _READ_LATE and not name.startswith(_PREFIX_READ_LATE)
    )
    return interpreter or sys.executable, early, modules
