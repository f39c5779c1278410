"""Typed messages between processes in frames on a stream, and the side of a child that reads and sends them.

A frame is the length of its header (4 bytes, little endian), the header as JSON, and the payload. The header is the
name of the message's class, its fields, and the payload's kind and length; the payload is the field `data`, a text or
bytes too large for JSON. Reading executes nothing of what was written, a frame that was cut off ends the stream, and a
frame that is no message of its stream is a MessageError: both ends run the same irscope.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import struct
import sys
import threading
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from irscope.errors import IrscopeError, RecordingError
from irscope.model.plain import tupled
from irscope.record.process.events import Done, Refused, Resumed
from irscope.record.process.own_folder import connected, keep_parent_of_temporaries, parent_of_temporaries

_LENGTH = struct.Struct("<I")
_LARGEST_HEADER = 1 << 29
_LONGEST_SHOWN = 200

_Message = TypeVar("_Message")
_Read = Callable[[Any, str], Any]


class MessageError(RecordingError):
    """A process sent what is no message; the text names the message and the field."""


class MessageWriter:
    """Writes messages to a pipe, socket or file, each whole before the next; usable from several threads."""

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


class MessageReader(Generic[_Message]):
    """Turns the bytes of a stream, as they come, into messages of some classes."""

    def __init__(self, kinds: Iterable[type[_Message]]) -> None:
        self._kinds = {kind.__name__: kind for kind in kinds}
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> Iterator[_Message]:
        """The messages that the bytes so far complete; raises MessageError."""
        self._buffer += chunk
        start = 0
        while len(self._buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, start)
            if length > _LARGEST_HEADER:
                raise MessageError(f"a process sent what is no message: {bytes(self._buffer[start:][:40])!r}.")
            body = start + _LENGTH.size
            if len(self._buffer) < body + length:
                break
            name, values, payload_kind, size = _header(bytes(self._buffer[body : body + length]))
            end = body + length + size
            if len(self._buffer) < end:
                break
            if payload_kind is not None:
                payload = bytes(self._buffer[body + length : end])
                values["data"] = payload.decode("utf-8", "surrogateescape") if payload_kind == "text" else payload
            start = end
            if name not in self._kinds:
                raise MessageError(f"a process sent {name!r}; this stream has {', '.join(sorted(self._kinds))}.")
            yield _reader(self._kinds[name])(values, name)
        del self._buffer[:start]


def frame_of(message: object) -> bytes:
    """The bytes of a message on a stream."""
    values = _fields_of(message)
    data = values.pop("data", None)
    payload = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else (data or b"")
    kind = None if data is None else ("text" if isinstance(data, str) else "bytes")
    header = _HEADERS.encode([type(message).__name__, values, kind, len(payload)]).encode()
    return _LENGTH.pack(len(header)) + header + payload


def _fields_of(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in _names_of(type(value))}


@cache
def _names_of(kind: Any) -> tuple[str, ...]:
    return tuple(item.name for item in fields(kind))


def _plain(value: Any) -> Any:
    return _fields_of(value) if is_dataclass(value) else str(value)


_HEADERS = json.JSONEncoder(default=_plain)


def _header(text: bytes) -> tuple[str, dict[str, Any], str | None, int]:
    with contextlib.suppress(ValueError):
        name, values, payload_kind, size = json.loads(text)
        if isinstance(name, str) and isinstance(values, dict) and isinstance(size, int) and size >= 0:
            return name, values, payload_kind, size
    raise MessageError(f"a process sent a frame that is no message: {text[:_LONGEST_SHOWN]!r}.")


@cache
def _reader(kind: Any) -> _Read:
    """What reads a value of a type; the types are those of the messages' fields."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return lambda value, where: value
    if is_dataclass(kind):
        return _dataclass_reader(kind)
    if origin in (Union, types.UnionType):
        return _union_reader(kind, arguments)
    if origin is Literal:
        return _checked(kind, lambda value: value in arguments)
    if origin is tuple:
        return _tuple_reader(kind, arguments)
    if origin is dict:
        item = _reader(arguments[1])
        is_mapping = _checked(kind, lambda value: isinstance(value, dict))
        return lambda value, where: {key: item(one, f"{where}.{key}") for key, one in is_mapping(value, where).items()}
    if kind is float:
        return _checked(kind, lambda value: isinstance(value, (int, float)) and not isinstance(value, bool))
    return _checked(kind, lambda value: type(value) is kind)


def _checked(kind: Any, fits: Callable[[Any], bool]) -> _Read:
    def read(value: Any, where: str) -> Any:
        if not fits(value):
            name = kind.__name__ if isinstance(kind, type) else str(kind)
            raise MessageError(f"{where} is {repr(value)[:_LONGEST_SHOWN]}, which is not {name}.")
        return value

    return read


def _union_reader(kind: Any, arguments: tuple[Any, ...]) -> _Read:
    choices = [_reader(one) for one in arguments if one is not types.NoneType]

    def read(value: Any, where: str) -> Any:
        if value is None and types.NoneType in arguments:
            return None
        if len(choices) == 1:
            return choices[0](value, where)
        for choice in choices:
            try:
                return choice(value, where)
            except MessageError:
                continue
        raise MessageError(f"{where} is {repr(value)[:_LONGEST_SHOWN]}, which is not {kind}.")

    return read


def _tuple_reader(kind: Any, arguments: tuple[Any, ...]) -> _Read:
    is_list = _checked(kind, lambda value: isinstance(value, (list, tuple)))
    # JSON has lists where a value had tuples.
    items = [
        (lambda value, where: tupled(value)) if one is Any else _reader(one) for one in arguments if one is not ...
    ]
    if arguments[-1] is ...:
        return lambda value, where: tuple(items[0](one, where) for one in is_list(value, where))
    has_length = _checked(kind, lambda value: len(value) == len(items))

    def read(value: Any, where: str) -> Any:
        rows = has_length(is_list(value, where), where)
        return tuple(item(one, where) for item, one in zip(items, rows, strict=True))

    return read


def _dataclass_reader(kind: Any) -> _Read:
    hints = get_type_hints(kind)
    readers = {item.name: _reader(hints[item.name]) for item in fields(kind)}
    required = {item.name for item in fields(kind) if item.default is MISSING and item.default_factory is MISSING}
    is_mapping = _checked(kind, lambda value: isinstance(value, Mapping))
    # Most values of most messages: there are hundreds of messages in a compile.
    plain = {name: hint for name, hint in hints.items() if hint in (str, int, bool)}

    def read(value: Any, where: str) -> Any:
        rows = is_mapping(value, where)
        if unknown := rows.keys() - readers.keys():
            raise MessageError(f"{where} has {', '.join(sorted(unknown))}, which {kind.__name__} has not.")
        if missing := required - rows.keys():
            raise MessageError(f"{where} lacks {', '.join(sorted(missing))}.")
        values = {
            name: one if type(one) is plain.get(name) else readers[name](one, f"{where}.{name}")
            for name, one in rows.items()
        }
        return kind(**values)

    return read


_Command = TypeVar("_Command")
MOST_DESCRIPTORS = 4096
_HIGH_DESCRIPTOR, _ROOM = 1024, 32


def serve_parent(
    descriptor: int, kinds: Iterable[type[_Command]], work: Callable[[Iterator[_Command], Callable[[Any], None]], None]
) -> int:
    """Do the commands, of the classes `kinds`, that come through a socket; returns the exit code.

    `work` gets the commands, as they come, and a function that sends events.
    """
    _end_with_parent(0)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    keep_parent_of_temporaries()
    channel = Channel(descriptor, parent_of_temporaries())
    code = report_work(channel, lambda sink: work(_commands(channel, kinds), sink))
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


def _end_with_parent(descriptor: int) -> None:
    """Have this process's group ended once the other end of a pipe is closed, however that comes.

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
            _wait(descriptor)
    finally:
        os._exit(0)


def _wait(descriptor: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    # Above all the pipe of events, whose end shows that the recording process is gone.
    os.dup2(descriptor, 0)
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
            raise FileNotFoundError("the connection was closed, and no folder has another one")
        self._take(_out_of_the_way(connected(Path(self._folder)).detach()))
        _write_all(self.descriptor, frame_of(Resumed(self._process)))


def _identity_of(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def report_work(sink: Callable[[Any], None], work: Callable[[Callable[[Any], None]], None]) -> int:
    """Do something, and report its end; returns the exit code."""
    code = 0
    try:
        work(sink)
    except IrscopeError as error:
        sink(Refused(type(error).__name__, str(error)))
        code = 1
    sink(Done())
    return code


def _commands(channel: Channel, kinds: Iterable[type[_Command]]) -> Iterator[_Command]:
    """The commands, of the classes `kinds`, that come through a channel, until its other end is closed."""
    reader = MessageReader(kinds)
    while chunk := os.read(channel.descriptor, 1 << 20):
        yield from reader.feed(chunk)
