"""Messages between processes in frames on a stream, and the side of a child that reads and sends them.

A message is a frozen dataclass of irscope's. A frame is the length of its pickle (8 bytes, little endian) and the
pickle, of which only such dataclasses and plain values are read: reading executes nothing of what was written. A frame
that was cut off ends the stream, and one that holds anything else is a MessageError: both ends run the same irscope.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import signal
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from irscope.errors import IrscopeError, RecordingError
from irscope.record.process.events import Done, RecordingEvent, Refused, Resumed
from irscope.record.process.own_folder import connected, keep_parent_of_temporaries, parent_of_temporaries

_LENGTH = struct.Struct("<Q")
_LARGEST_FRAME = 1 << 40
_LONGEST_SHOWN = 40
_PLAIN: dict[str, Any] = {kind.__name__: kind for kind in (bool, int, float, str, bytes, tuple, list, dict)}


class MessageError(RecordingError):
    """A process sent what is no message."""


class MessageWriter:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def __call__(self, message: object) -> None:
        frame = frame_of(message)
        with self._lock:
            _write_all(self._descriptor, frame)


def _write_all(descriptor: int, data: bytes) -> None:
    """Write all of some bytes: a signal may cut a write short."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


class MessageReader:
    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> Iterator[Any]:
        """The messages that the bytes so far complete; raises MessageError."""
        self._buffer += chunk
        start = 0
        while len(self._buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, start)
            begin = start + _LENGTH.size
            if length > _LARGEST_FRAME:
                raise MessageError(f"a process sent an invalid message: {_shown(self._buffer[start:])}.")
            if len(self._buffer) < begin + length:
                break
            start = begin + length
            yield _message_in(bytes(self._buffer[begin:start]))
        del self._buffer[:start]


def frame_of(message: object) -> bytes:
    stream = io.BytesIO(bytes(_LENGTH.size))
    stream.seek(0, os.SEEK_END)
    _Pickler(stream, protocol=4).dump(message)
    with stream.getbuffer() as frame:
        _LENGTH.pack_into(frame, 0, len(frame) - _LENGTH.size)
    return stream.getvalue()


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        """Anything that is neither plain nor a message, such as an option that a program sets, becomes plain."""
        own: type[Any] = obj if isinstance(obj, type) else type(obj)
        if own.__module__.startswith("irscope.") or (own is obj and own in _PLAIN.values()):
            return NotImplemented
        kind = next((kind for kind in _PLAIN.values() if isinstance(obj, kind)), str)
        return kind, (kind(obj),)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> Any:
        if module_name == "builtins" and global_name in _PLAIN:
            return _PLAIN[global_name]
        if module_name.startswith("irscope."):
            # Nothing is imported for it: who understands a message has its class.
            kind = getattr(sys.modules.get(module_name), global_name, None)
            if isinstance(kind, type) and is_dataclass(kind) and kind.__dataclass_params__.frozen:  # pyright: ignore
                return kind
        raise pickle.UnpicklingError(f"{module_name}.{global_name}")


def _message_in(data: bytes) -> Any:
    try:
        message = _Unpickler(io.BytesIO(data)).load()
    except Exception as error:
        raise MessageError(f"a process sent an invalid frame: {_shown(data)} ({error}).") from error
    if not is_dataclass(message):
        raise MessageError(f"a process sent an invalid frame: {_shown(data)}.")
    return message


def _shown(data: bytes | bytearray) -> str:
    return repr(bytes(data[:_LONGEST_SHOWN]))


MOST_DESCRIPTORS = 4096
_HIGH_DESCRIPTOR, _ROOM = 1024, 32


def serve_parent(descriptor: int, work: Callable[[Iterator[Any], Callable[[Any], None]], None]) -> int:
    """Do the commands that come through a socket, with `work(commands, sink of events)`; returns the exit code."""
    _end_with_parent()
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    keep_parent_of_temporaries()
    channel = Channel(descriptor, parent_of_temporaries())
    code = report_work(channel, lambda sink: work(_commands(channel), sink))
    flush_streams()
    return code


def flush_streams() -> None:
    """Write what is held back of the output, as far as the program's own streams can."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _out_of_the_way(descriptor: int) -> int:
    """Move a descriptor to where programs look for none, and hide it from what they start."""
    # Viewing, which reads this module's neighbours, needs no POSIX.
    import fcntl
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = max(3, min(_HIGH_DESCRIPTOR, soft) - _ROOM)
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
    os.close(descriptor)
    return moved


def _end_with_parent() -> None:
    """Have this process's group ended once the other end of standard input is closed, however that comes.

    A process in the group waits for it: it works on every system, while the compiler runs, and when this process is
    gone but what it started is not. To be called before there are threads, in a process that leads its group.
    """
    if os.getpgrp() != os.getpid():
        # Started by hand: the group is a shell's.
        return
    try:
        pid = os.fork()
    except OSError:
        return
    if pid:
        # Where a process ignores SIGCHLD, from its own parent on, the wait ends with this error.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
        return
    try:
        # No child of this process's, which may wait for all of its own.
        if os.fork() == 0:
            _wait()
    finally:
        os._exit(0)


def _wait() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    # Above all the pipe of events, whose end shows that the recording process is gone.
    os.closerange(1, MOST_DESCRIPTORS)
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


class Channel:
    """Writes messages to the parent, each whole before the next; usable from several threads.

    The process runs a program, which may close every descriptor, and open files with their numbers: what is not the
    socket any more is not written to, but another connection is made, to the socket in the recording's folder. Once the
    recording has ended, nothing is written: the program may go on after that.
    """

    def __init__(self, descriptor: int, folder: str | None) -> None:
        self._process = os.getpid()
        self._folder = folder
        # A handler of a signal, which runs amid anything, may send too: what comes amid a frame is sent after it.
        self._lock = threading.RLock()
        self._is_sending = False
        self._frames = deque[bytes]()
        # That of `signal` makes enumerations of all of them, which takes a millisecond.
        self._mask = import_module("_signal").pthread_sigmask
        self._signals = tuple(map(int, signal.valid_signals()))
        self._is_open = True
        self._take(_out_of_the_way(descriptor))

    def __call__(self, message: object) -> None:
        # A process that was forked past Python's hooks has the descriptor, and is not the one that it is for.
        if os.getpid() != self._process or not self._is_open:
            return
        self._frames.append(frame_of(message))
        with self._lock:
            while self._frames and not self._is_sending:
                blocked = self._mask(signal.SIG_BLOCK, ())
                try:
                    # A handler that raises would leave half a frame.
                    self._mask(signal.SIG_BLOCK, self._signals)
                    self._is_sending = True
                    self._send(self._frames.popleft())
                finally:
                    self._is_sending = False
                    self._mask(signal.SIG_SETMASK, blocked)

    def _send(self, frame: bytes) -> None:
        try:
            if not self._is_own():
                self._reconnect()
            _write_all(self.descriptor, frame)
        except OSError:
            self._is_open = False

    def _take(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._identity = _identity_of(descriptor)

    def _is_own(self) -> bool:
        try:
            return _identity_of(self.descriptor) == self._identity
        except OSError:
            return False

    def _reconnect(self) -> None:
        if self._folder is None:
            raise FileNotFoundError("the connection was closed, and there is no folder to reconnect through")
        self._take(_out_of_the_way(connected(Path(self._folder)).detach()))
        _write_all(self.descriptor, frame_of(Resumed(self._process)))


def _identity_of(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def report_work(sink: Callable[[Any], None], work: Callable[[Callable[[Any], None]], None]) -> int:
    code = 0
    try:
        work(sink)
    except IrscopeError as error:
        sink(Refused(type(error).__name__, str(error)))
        code = 1
    sink(Done())
    return code


def _commands(channel: Channel) -> Iterator[Any]:
    reader = MessageReader()
    while chunk := os.read(channel.descriptor, 1 << 20):
        yield from reader.feed(chunk)


@dataclass(frozen=True, slots=True)
class Import:
    """Have a fork server import modules, then call a function."""

    number: int
    """Of this command; its answer has the same."""
    modules: tuple[str, ...]
    function: str = ""
    """`MODULE:NAME`; empty for none. It returns a tuple of texts."""


@dataclass(frozen=True, slots=True)
class Fork:
    """Have it fork a process; with the command come its standard input, the file for what it prints, and its socket."""

    number: int
    module: str
    changed: dict[str, str]
    """Environment variables that differ from those that the server was started with."""
    removed: tuple[str, ...]
    """Environment variables that it was started with, and that this process has not."""
    folder: str


@dataclass(frozen=True, slots=True)
class Reap:
    number: int
    pid: int


class Answer(RecordingEvent):
    number: int
    value: Any = None
    """What the function returned; the number of the process; or its exit code, a signal as a negative number."""
    refusal: Refused | None = None
