"""Messages between processes arrive as they were sent, and what is no message is an error that names it."""

from __future__ import annotations

import json
import os
import struct
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from irscope.errors import RecordingError
from irscope.model.capture import PassSnapshot
from irscope.record.gpu.messages import COMMANDS, DEVICE_EVENTS
from irscope.record.process import fork_server
from irscope.record.process.annotations import Message, Question
from irscope.record.process.child import MessageStream
from irscope.record.process.events import EVENTS, Note, PassEnded, ScriptEnd, SourceRead
from irscope.record.process.messages import MessageError, MessageReader, MessageWriter, frame_of
from irscope.record.process.requests import RecordRequest
from irscope.record.process.session import record_request
from tests.record.telling_child import telling_child

SERVER = (*fork_server.COMMANDS, *fork_server.ANSWERS)
MESSAGES = tuple(
    dict.fromkeys(
        (*DEVICE_EVENTS, *COMMANDS, *fork_server.COMMANDS, *fork_server.ANSWERS, Question, Message, RecordRequest)
    )
)
SAMPLES: dict[Any, Any] = {
    bool: True,
    int: 7,
    float: 2.5,
    str: 'a "text"\n\x00é',
    bytes: b"\x00\xff",
    Any: (1, ("x", None)),
}


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
    if get_origin(kind) is dict:
        return {"key": [1, ["x", None]] if arguments[1] is Any else sample(arguments[1])}
    assert get_origin(kind) in (Union, UnionType), kind
    return sample(arguments[0])


def read(frame: bytes, *kinds: type) -> list[Any]:
    return list(MessageReader(kinds or MESSAGES).feed(frame))


def header(name: str, values: dict[str, Any]) -> bytes:
    text = json.dumps([name, values, None, 0]).encode()
    return struct.pack("<I", len(text)) + text


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_every_message_arrives_as_it_was_sent(kind: type) -> None:
    message = sample(kind)
    assert read(frame_of(message)) == [message]
    required = {
        item.name: sample(get_type_hints(kind)[item.name])
        for item in fields(kind)
        if item.default is MISSING and item.default_factory is MISSING
    }
    assert read(frame_of(kind(**required))) == [kind(**required)]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_messages_arrive_however_they_are_cut(size: int) -> None:
    sent = [sample(kind) for kind in EVENTS]
    data = b"".join(map(frame_of, sent))
    reader = MessageReader(EVENTS)
    assert [one for start in range(0, len(data), size) for one in reader.feed(data[start : start + size])] == sent


def test_what_was_cut_off_is_no_message() -> None:
    data = frame_of(Note("first")) + frame_of(SourceRead("k.py", "text" * 100))
    for end in range(len(frame_of(Note("first"))), len(data)):
        assert read(data[:end]) == [Note("first")]


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_a_damaged_field_is_an_error_that_names_it(kind: type) -> None:
    hints = get_type_hints(kind)
    frame = frame_of(sample(kind))
    good = json.loads(frame[4 : 4 + struct.unpack_from("<I", frame)[0]])[1]
    with pytest.raises(MessageError, match=rf"^{kind.__name__} has surplus"):
        read(header(kind.__name__, {**good, "surplus": 1}))
    for item in fields(kind):
        if item.default is MISSING and item.default_factory is MISSING:
            with pytest.raises(MessageError, match=rf"^{kind.__name__} lacks .*{item.name}"):
                read(header(kind.__name__, {name: value for name, value in good.items() if name != item.name}))
        if item.name == "data":
            continue
        good |= {"data": "x"} if "data" in hints else {}
        wrong = 0.5 if get_origin(hints[item.name]) in (tuple, dict) else [{"x": 1}]
        with pytest.raises(MessageError, match=rf"^{kind.__name__}\.{item.name} is "):
            read(header(kind.__name__, {**good, item.name: wrong}))


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (header("Nothing", {}), "'Nothing'; this stream has Done, Note"),
        (header("Note", {"text": 3}), "Note.text is 3, which is not str"),
        (struct.pack("<I", 5) + b"hello", "no message: b'hello'"),
        (struct.pack("<I", 2) + b"{}", "no message"),
        (b"Traceback (most recent call last)", "no message: b'Traceback"),
    ],
)
def test_what_is_no_message_of_the_stream(frame: bytes, said: str) -> None:
    from irscope.record.process.events import Done

    with pytest.raises(MessageError) as error:
        read(frame, Note, Done)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("os.write(descriptor, frame(['Nothing', {}, None, 0]))", "'Nothing'"),
        ("os.write(descriptor, frame(['Note', {'txt': 'x'}, None, 0]))", "Note has txt"),
        ("os.write(descriptor, frame(['Note', {}, None, 0]))", "Note lacks text"),
        ("os.write(descriptor, b'printed here')", "no message"),
    ],
)
def test_a_recording_process_that_sends_no_event_is_a_clear_failure(tmp_path: Path, code: str, said: str) -> None:
    frame = "import struct; frame = lambda rows: struct.pack('<I', len(json.dumps(rows))) + json.dumps(rows).encode()"
    interpreter = telling_child(tmp_path, 1, late=f"{frame}\n{code}".replace("{", "{{").replace("}", "}}").format())
    request = RecordRequest(mode="script", path="script.py", targets=("cuda:90",), interpreter=interpreter)
    before = sorted(os.listdir("/proc/self/fd"))
    with pytest.raises(RecordingError) as error:
        record_request(request)
    assert said in str(error.value)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_stream_ends_where_its_writer_does() -> None:
    read_end, write_end = os.pipe()
    stream = MessageStream(read_end, EVENTS)
    sink = MessageWriter(write_end)
    assert stream.read(0) == []
    sink(ScriptEnd(3, "it failed"))
    sink(PassEnded(0, PassSnapshot(1, "ttir", "cse", 1), data="module {}"))
    assert [type(event) for event in stream.read(1)] == [ScriptEnd, PassEnded]
    os.close(write_end)
    assert stream.read(1) == []
    assert stream.at_end
    stream.close()
