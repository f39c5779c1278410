"""The Trace Event Format, as its document has it for what irscope writes: complete events and names of tracks.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU; Perfetto and chrome://tracing read it.
Perfetto's trace processor is a program that its Python package fetches when it first runs; this needs no network.
"""

from __future__ import annotations

from typing import Any

from jsonschema import Draft202012Validator

_NAMES = ("process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index")
_NUMBER = {"type": "number", "minimum": 0}
_COMPLETE = {
    "type": "object",
    "required": ["name", "cat", "ph", "ts", "dur", "pid", "tid"],
    "properties": {
        "ph": {"const": "X"},
        "name": {"type": "string", "minLength": 1},
        "cat": {"type": "string", "minLength": 1},
        "ts": _NUMBER,
        "dur": _NUMBER,
        "pid": {"type": "integer"},
        "tid": {"type": "integer"},
        "args": {"type": "object"},
    },
    "additionalProperties": False,
}
_METADATA = {
    "type": "object",
    "required": ["name", "ph", "pid", "args"],
    "properties": {
        "ph": {"const": "M"},
        "name": {"enum": list(_NAMES)},
        "pid": {"type": "integer"},
        "tid": {"type": "integer"},
        "args": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
    },
    "additionalProperties": False,
}
_SCHEMA = {
    "type": "object",
    "required": ["traceEvents"],
    "properties": {
        "traceEvents": {"type": "array", "items": {"oneOf": [_COMPLETE, _METADATA]}},
        "displayTimeUnit": {"enum": ["ms", "ns"]},
    },
    "additionalProperties": False,
}


def tracks(data: dict[str, Any]) -> dict[str, list[tuple[str, float, float]]]:
    """The spans of a Chrome trace by process and thread: (name, start, end), checked by the format.

    Perfetto needs spans of one thread to nest, and drops those that do not.
    """
    Draft202012Validator(_SCHEMA).validate(data)
    events: list[dict[str, Any]] = data["traceEvents"]
    named = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    found: dict[str, list[tuple[str, float, float]]] = {}
    for event in events:
        if event["ph"] == "X":
            row = event["name"], float(event["ts"]), float(event["ts"] + event["dur"])
            found.setdefault(f"{named[event['pid']]} / {event['tid']}", []).append(row)
    for spans in found.values():
        open_until: list[float] = []
        for _, start, end in sorted(spans, key=lambda span: (span[1], -span[2])):
            while open_until and open_until[-1] <= start + 1e-9:
                open_until.pop()
            assert not open_until or end <= open_until[-1] + 1e-9
            open_until.append(end)
    return found
