"""Messages between processes arrive as they were sent, and what is no message is an error that quotes it."""

from __future__ import annotations

import inspect
import os
import pickle
import struct
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path, PurePath
from types import ModuleType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from irscope.errors import RecordingError
from irscope.model.capture import PassSnapshot
from irscope.record.gpu import messages as gpu
from irscope.record.process import annotations, events, messages
from irscope.record.process.child import MessageStream
from irscope.record.process.events import Note, PassEnded, ScriptEnd, SourceRead
from irscope.record.process.messages import MessageError, MessageReader, MessageWriter, frame_of
from irscope.record.process.requests import CompileJob, RecordRequest
from irscope.record.process.session import record_request
from tests.record.telling_child import telling_child

SAMPLES: dict[Any, Any] = {
    bool: True,
    int: 7,
    float: 2.5,
    str: 'a "text"\n\x00é\udc80',
    bytes: b"\x00\xff",
    Any: (1, ("x", None)),
}


def messages_of(module: ModuleType) -> list[type]:
    values = [value for value in vars(module).values() if inspect.isclass(value) and is_dataclass(value)]
    return [value for value in values if value.__module__ == module.__name__ and value.__dataclass_params__.frozen]  # type: ignore[attr-defined]


MESSAGES = [
    *(kind for module in (events, messages, annotations, gpu) for kind in messages_of(module)),
    RecordRequest,
    CompileJob,
]


def sample(kind: Any) -> Any:
    """A value of a type, with something in every place."""
    arguments = get_args(kind)
    if kind in SAMPLES:
        return SAMPLES[kind]
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{item.name: sample(hints[item.name]) for item in fields(kind)})  # type: ignore[operator]
    if get_origin(kind) is Literal:
        return arguments[-1]
    if get_origin(kind) is tuple:
        return (sample(arguments[0]),) * 2 if arguments[-1] is ... else tuple(map(sample, arguments))
    if get_origin(kind) in (dict, Mapping):
        return {"key": [1, ["x", None]] if arguments[1] is Any else sample(arguments[1])}
    assert get_origin(kind) in (Union, UnionType), kind
    return sample(arguments[0])


def read(frame: bytes) -> list[Any]:
    return list(MessageReader().feed(frame))


def framed(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_every_message_arrives_as_it_was_sent(kind: type) -> None:
    message = sample(kind)
    assert read(frame_of(message)) == [message]
    hints = get_type_hints(kind)
    required = {
        item.name: sample(hints[item.name])
        for item in fields(kind)  # type: ignore[arg-type]
        if item.default is MISSING and item.default_factory is MISSING
    }
    assert read(frame_of(kind(**required))) == [kind(**required)]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_messages_arrive_however_they_are_cut(size: int) -> None:
    sent = [sample(kind) for kind in messages_of(events)]
    data = b"".join(map(frame_of, sent))
    reader = MessageReader()
    assert [one for start in range(0, len(data), size) for one in reader.feed(data[start : start + size])] == sent


def test_what_was_cut_off_is_no_message() -> None:
    data = frame_of(Note("first")) + frame_of(SourceRead("k.py", "text" * 100))
    for end in range(len(frame_of(Note("first"))), len(data)):
        assert read(data[:end]) == [Note("first")]


class Number(int):
    pass


class Row(tuple):
    pass


@dataclass(frozen=True)
class Setting:
    name: str


def test_values_of_a_programs_own_classes_arrive_as_plain_ones() -> None:
    options = {"a": Number(3), "b": Row((1, PurePath("x"))), "c": Setting("y"), "d": Setting, "e": [True, None, 0.5]}
    (event,) = read(frame_of(events.OptionsKnown(0, options)))
    assert event.options == {**options, "b": (1, "x"), "c": "Setting(name='y')", "d": str(Setting)}
    assert [type(value) for value in event.options.values()] == [int, tuple, str, str, list]


class Hostile:
    """What runs something where it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(Setting("x")),
        pickle.dumps(3),
        pickle.dumps(eval),
        b"cirscope.record.process.messages\nos.getcwd\n)R.",
        b"cirscope.record.process.own_folder\nsweep\n)R.",
        b"hello",
        b"",
    ],
)
def test_reading_executes_nothing_of_what_was_written(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(MessageError, match=r"invalid (message|frame)"):
        read(framed(data))
    with pytest.raises(MessageError, match=r"invalid (message|frame)"):
        read(framed(pickle.dumps(Hostile(tmp_path / "made"))))
    assert not (tmp_path / "made").exists()


def test_what_was_printed_into_a_stream_is_quoted() -> None:
    with pytest.raises(MessageError, match="invalid message: b'Traceback"):
        read(b"Traceback (most recent call last)")


@pytest.mark.parametrize("data", ["b'printed here'", "b'\\x05\\0\\0\\0\\0\\0\\0\\0hello'"])
def test_a_recording_process_that_sends_no_event_is_a_clear_failure(tmp_path: Path, data: str) -> None:
    interpreter = telling_child(tmp_path, 1, late=f"os.write(descriptor, {data})")
    request = RecordRequest(mode="script", path="script.py", targets=("cuda:90",), interpreter=interpreter)
    before = sorted(os.listdir("/proc/self/fd"))
    with pytest.raises(RecordingError, match=r"invalid (message|frame)"):
        record_request(request)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_stream_ends_where_its_writer_does() -> None:
    read_end, write_end = os.pipe()
    stream = MessageStream(read_end)
    sink = MessageWriter(write_end)
    assert stream.read(0) == []
    sink(ScriptEnd(3, "it failed"))
    sink(PassEnded(0, PassSnapshot(1, "ttir", "cse", 1, text="module {}")))
    assert [type(event) for event in stream.read(1)] == [ScriptEnd, PassEnded]
    os.close(write_end)
    assert stream.read(1) == []
    assert stream.at_end
    stream.close()
