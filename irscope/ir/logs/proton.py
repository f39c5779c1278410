"""Reads what Proton, Triton's profiler, writes: hatchet's JSON and Chrome traces, of launches, lines and scopes.

Formats by `third_party/proton/csrc/lib/Data` and `third_party/proton/common/lib/TraceDataIO/TraceWriter.cpp`. A tree of
hatchet has the sum of a kernel's launches, and with `pcsampling` the samples of its lines, as `FILE:LINE@FUNCTION`, or
in newer ones `FILE:FUNCTION@LINE`: of what was loaded since Proton began, of any other kernel it has no lines. A Chrome
trace has each launch, or with `backend="instrumentation"` the scopes of each warp.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from irscope.errors import ParseError
from irscope.ir.logs.launch_text import items, mapping, parsed_json

_MOST_NODES = 1_000_000
_MOST_DEPTH = 500
_FORMS = "hatchet's JSON (data='tree') and Chrome traces (data='trace') are read"


@dataclass(frozen=True, slots=True)
class MeasuredSpan:
    """A launch on a stream, or a scope of a warp: times in microseconds from the beginning of the trace."""

    name: str
    track: str
    start_us: float
    duration_us: float
    process: str = ""
    """Of a scope, `KERNEL CoreN CTAN`; empty for a launch."""


@dataclass(slots=True)
class MeasuredKernel:
    name: str
    launches: int = 0
    seconds: float = 0.0
    spans: list[MeasuredSpan] = field(default_factory=list[MeasuredSpan])
    scopes: list[MeasuredSpan] = field(default_factory=list[MeasuredSpan])
    samples: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    """Samples of the program counter, by file and line of Python."""

    def is_of(self, kernel: str) -> bool:
        """Whether this is a kernel of that name: a launch hook may have added words to it."""
        return self.name.partition(" ")[0].partition("<")[0] == kernel


def read_proton(text: str, name: str) -> tuple[Sequence[MeasuredKernel], int]:
    """The kernels of a file of Proton's, and how many lines of it are none of its objects; raises ParseError."""
    kernels: dict[str, MeasuredKernel] = {}
    if text.lstrip().startswith("["):
        _read_tree(_parsed(text, name), kernels)
        damaged = 0
    elif '"traceEvents"' in text:
        damaged = _read_traces(text, kernels)
    else:
        raise ParseError(f"{name} is not an output of Proton: {_FORMS}.")
    if not kernels:
        raise ParseError(f"{name} holds no kernel that Proton measured: {_FORMS}.")
    return tuple(kernels.values()), damaged


def _parsed(text: str, name: str) -> list[Any]:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(
            f"{name} is not complete JSON ({error}): was the program killed before proton.finalize()?"
        ) from error
    return items(found)


def _read_tree(roots: list[Any], kernels: dict[str, MeasuredKernel]) -> None:
    waiting = [(mapping(root), "", 0) for root in roots]
    seen = 0
    while waiting and seen < _MOST_NODES:
        node, parent, depth = waiting.pop()
        seen += 1
        title, metrics = str(mapping(node.get("frame")).get("name", "")), mapping(node.get("metrics"))
        # File and line of `matmul.py:37@matmul_kernel`, or as newer ones have it `matmul.py:matmul_kernel@37`; or None.
        before, _, last = title.rpartition("@")
        file, _, inner = before.rpartition(":")
        line = last if last.isdecimal() else inner
        found = (file, int(line)) if file and line.isdecimal() and len(line) < 10 else None
        samples = _number(metrics.get("num_samples"))
        if found is not None and samples and parent:
            kernel = kernels.setdefault(parent, MeasuredKernel(parent))
            kernel.samples[found] = kernel.samples.get(found, 0) + int(samples)
        elif title and title != "ROOT" and (nanoseconds := _number(metrics.get("time (ns)"))):
            kernel = kernels.setdefault(title, MeasuredKernel(title))
            kernel.launches += int(_number(metrics.get("count")) or 1)
            kernel.seconds += nanoseconds / 1e9
        if depth < _MOST_DEPTH:
            own = parent if found is not None else title
            waiting += [(mapping(child), own, depth + 1) for child in items(node.get("children"))]


def _read_traces(text: str, kernels: dict[str, MeasuredKernel]) -> int:
    damaged = 0
    for row in text.splitlines():
        if not row.strip():
            continue
        found = parsed_json(row)
        damaged += found is None
        for event in items(mapping(found).get("traceEvents")):
            _take(mapping(event), kernels)
    return damaged


def _take(event: dict[str, Any], kernels: dict[str, MeasuredKernel]) -> None:
    start, duration = _number(event.get("ts")), _number(event.get("dur"))
    name, category = event.get("name"), event.get("cat")
    if event.get("ph") != "X" or start is None or duration is None or not isinstance(name, str):
        return
    if category == "kernel":
        kernel = kernels.setdefault(name, MeasuredKernel(name))
        kernel.launches += 1
        kernel.seconds += duration / 1e6
        kernel.spans.append(MeasuredSpan(name, f"stream {event.get('tid')}", start, duration))
    elif isinstance(category, str) and isinstance(event.get("pid"), str):
        kernel = kernels.setdefault(category, MeasuredKernel(category))
        kernel.scopes.append(MeasuredSpan(name, str(event.get("tid")), start, duration, str(event.get("pid"))))


def _number(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and 0 <= value < 1e18 else None


def shares_of_lines(kernel: MeasuredKernel) -> Iterator[tuple[str, int, float]]:
    """(file, line, its part of the samples), the greatest first."""
    whole = sum(kernel.samples.values())
    for (file, line), count in sorted(kernel.samples.items(), key=lambda row: (-row[1], row[0])):
        yield file, line, count / whole
