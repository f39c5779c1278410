"""Reads the trace that torch writes to TORCH_TRACE, which tlparse reads too, and writes artifacts into one.

A line is `V1126 20:43:45.085000 2767 torch/_inductor/graph.py:2745] {"inductor_output_code": {…}, "has_payload": …}`;
the lines of a payload follow it, each after a tab. tlparse copies the trace to `raw.log` in the folder that it writes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from irscope.ir.logs.launch_text import items, mapping, parsed_json

_FILES = ("dedicated_log_torch_trace_*.log", "raw.log")
"""What torch and tlparse name such a file."""

_MOST_CHARACTERS = 1 << 24
"""Of the JSON of one event."""
_CODE, _KERNELS = "inductor_output_code", "triton_kernel_info"
_GRAPHS = ("inductor_post_grad_graph", "aot_forward_graph", "aot_backward_graph", "aot_inference_graph")
"""The graphs whose nodes the comments of the code name: of an event or an artifact of that name."""
_OF_COMPILE = ("rank", "compiled_autograd_id", "frame_id", "frame_compile_id", "attempt")


@dataclass(slots=True)
class TracedGraph:
    """The code of one graph, and what the events of the same compile say of it."""

    code: str
    graphs: tuple[str, ...]
    """The texts of its FX graph at several stages, which have lines of Python; the last is the most like the code."""
    compile: Mapping[str, Any]
    """What its event says of which compile it is of: rank, frame, and how often that was compiled."""
    configs: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Of each kernel, the constants and options of its configuration, if it was chosen when it was compiled."""
    compile_us: dict[str, int] = field(default_factory=dict[str, int])


def is_torch_trace(text: str) -> bool:
    """Whether a text begins like such a trace."""
    return _start_of_event(text.lstrip()[:8192].partition("\n")[0]) is not None


def graphs_of_trace(text: str) -> tuple[TracedGraph, ...]:
    """The graphs whose code a trace holds, in its order; a line that is cut, as at a kill, is passed over."""
    graphs: list[TracedGraph] = []
    texts: dict[str, list[str]] = {}
    for event, payload in _events(text):
        of_compile = {key: event[key] for key in _OF_COMPILE if event.get(key) is not None}
        key = json.dumps(of_compile, sort_keys=True, default=str)
        name = next((known for known in (_CODE, *_GRAPHS) if known in event), "")
        name = name or str(mapping(event.get("artifact")).get("name", ""))
        if name in _GRAPHS:
            texts.setdefault(key, []).append(payload)
        elif name == _CODE:
            graphs.append(TracedGraph(payload, tuple(texts.get(key, ())), of_compile))
        elif name == _KERNELS:
            mine = [graph for graph in graphs if graph.compile == of_compile]
            _note_kernels(payload, mine)
    return tuple(graphs)


def _events(text: str) -> Iterator[tuple[dict[str, Any], str]]:
    """(event, payload) of each event that may be one of those that are read."""
    wanted = (f'"{_CODE}"', '"artifact"', *(f'"{name}"' for name in _GRAPHS))
    rows = iter(text.split("\n"))
    row: str | None = next(rows, None)
    while row is not None:
        found = _start_of_event(row)
        payload: list[str] = []
        line, row = row, next(rows, None)
        while row is not None and row.startswith("\t"):
            payload.append(row[1:])
            row = next(rows, None)
        if found is None or not line.startswith(wanted, found + 1) or len(line) > _MOST_CHARACTERS:
            continue
        if event := mapping(parsed_json(line[found:])):
            yield event, "\n".join(payload)


def _start_of_event(line: str) -> int | None:
    """Where the JSON of a line begins; None for a line that is no event."""
    head, found, _ = line.partition("] {")
    parts = head.split(" ", 3)
    is_event = bool(found) and len(parts) == 4 and len(parts[0]) == 5 and parts[0][1:].isdecimal()
    return len(head) + 2 if is_event and parts[1].count(":") == 2 and parts[2].isdecimal() else None


def _note_kernels(payload: str, graphs: Sequence[TracedGraph]) -> None:
    """Take what Inductor says of its kernels' configurations and compile times."""
    for name, said in mapping(parsed_json(payload)).items():
        graph = next((one for one in reversed(graphs) if f"{name} = async_compile.triton(" in one.code), None)
        if graph is None or not isinstance(said, dict):
            continue
        values = mapping(said)
        pairs = map(items, items(values.get("best_config") or values.get("only_config")))
        graph.configs[name] = {str(row[0]): row[1] for row in pairs if len(row) == 2}
        if type(took := values.get("compile_time_us")) is int:
            graph.compile_us[name] = took


def trace_files(folder: Path) -> list[Path]:
    """The traces of a folder of TORCH_TRACE, one for each process, or of tlparse's output, one for each rank."""
    for pattern in _FILES:
        if found := sorted((*folder.glob(pattern), *folder.glob(f"rank_*/{pattern}"))):
            return found
    return []


# ── Artifacts written into a trace, which tlparse shows with the compile that they are of ───────────────────────────


def artifact_event(name: str, text: str, like: str, compile_: Mapping[str, Any]) -> str:
    """An artifact as lines of a trace, with the time and thread of the line `like`; tlparse shows NAME_N.txt."""
    digest = hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
    event = {"artifact": {"name": name, "encoding": "string"}, **compile_, "has_payload": digest}
    rows = "".join(f"\t{row}\n" for row in text.split("\n"))
    return f"{_head(like)}{json.dumps(event)}\n{rows}"


def link_event(name: str, url: str, like: str) -> str:
    """A link as a line of a trace, which tlparse shows at its top."""
    return f"{_head(like)}{json.dumps({'link': {'name': name, 'url': url}})}\n"


def _head(like: str) -> str:
    # V1126 20:43:45.085000 2767 torch/_logging/structured.py:28] {…
    return " ".join([*like.split(" ", 3)[:3], "irscope/ir/logs/torch_trace.py:1] "])
