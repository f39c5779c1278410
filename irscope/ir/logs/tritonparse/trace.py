"""Reads a trace of tritonparse, as its hooks write it or as its parser completes it, as captures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from irscope.ir.logs.launch_text import UNKNOWN_TARGET, target_of_module
from irscope.ir.logs.metadata import launch_of_metadata, number, shown_metadata, target_of_metadata
from irscope.ir.logs.tritonparse.launches import autotuning_of, grid_of, record_of
from irscope.ir.logs.tritonparse.source import PythonSource, constants_of
from irscope.model.capture import (
    STAGES,
    Artifact,
    Capture,
    Environment,
    Launch,
    SourceFile,
    StageKind,
    stage_rank,
)
from irscope.model.evidence import GraphOrigin
from irscope.model.plain import storable

__all__ = ["captures_from_trace", "is_trace"]

_MAX_EVENT_CHARACTERS = 1 << 26
"""Of one line: the texts of all stages of a kernel, each of which tritonparse cuts at 10 MiB."""
_MAX_COMPILES = 20_000
_LARGEST = 1 << 53
_BEGINNINGS = ("<file too large: ", "<error reading file: ")
"""What tritonparse writes in place of a text that it left out."""
_OWN = ("env", "src_attrs", "src_cache_key", "src_constants", "times", "cache_hit")
"""What it adds to Triton's metadata."""
_KINDS: tuple[StageKind, ...] = ("mlir", "llvm", "ptx", "amdgcn")
# Its SASS is in a format of its own.
_STAGES = {stage.name for stage in STAGES if stage.kind in _KINDS}


@dataclass(slots=True)
class _Compile:
    """One compile, and what the trace says of it later."""

    payload: Mapping[str, Any]
    date: str
    launches: int = 0
    first: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Its first launch."""


def is_trace(text: str) -> bool:
    """Whether a text begins like a trace: with an event."""
    head = text[:4096].lstrip()
    return head.startswith("{") and '"event_type"' in text[:_MAX_EVENT_CHARACTERS].partition("\n")[0]


def captures_from_trace(text: str, name: str) -> tuple[Capture, ...]:
    """The captures of a trace, one for each compile, in the order of the first event of each.

    Launches give the grid and the arguments, tunings which configuration was the fastest. Lines that are no event are
    passed over: a trace of a process that was killed ends in one.
    """
    compiles: dict[str, _Compile] = {}
    tunings: list[Mapping[str, Any]] = []
    damaged = 0
    for event in _events(text):
        if event is None:
            damaged += 1
            continue
        kind = event.get("event_type")
        if kind == "compilation" and len(compiles) < _MAX_COMPILES:
            payload = mapping(event.get("payload"))
            key = _key(mapping(payload.get("metadata")), event)
            compiles.setdefault(key, _Compile(payload, _date(event.get("timestamp"))))
        elif kind == "launch":
            known = compiles.get(_key(mapping(event.get("compilation_metadata")), event))
            if known is not None:
                known.first = known.first or event
                known.launches += 1
        elif kind == "autotune":
            tunings.append(event)
    said = [f"Read from the tritonparse trace {name}: no pass was recorded, and the binaries are not in it."]
    if damaged:
        said.append(f"{damaged} lines of the trace are no events, and were passed over.")
    made = (_capture(item, tunings, tuple(said)) for item in compiles.values())
    return tuple(capture for capture in made if capture.artifacts)


def _events(text: str) -> Iterator[Mapping[str, Any] | None]:
    """Each line as an event; None for one that is none."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if end - start > _MAX_EVENT_CHARACTERS:
            yield None
        elif line := text[start:end].strip():
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                event = None
            yield cast("Mapping[str, Any]", event) if isinstance(event, dict) else None
        start = end + 1


def _key(metadata: Mapping[str, Any], event: Mapping[str, Any]) -> str:
    return f"{metadata.get('hash') or id(event)} {metadata.get('name', '')}"


def _capture(compile_: _Compile, tunings: list[Mapping[str, Any]], notes: tuple[str, ...]) -> Capture:
    payload = compile_.payload
    metadata = storable(mapping(payload.get("metadata")))
    times = mapping(metadata.get("times"))
    own = {key: value for key, value in metadata.items() if key not in _OWN}
    artifacts, left_out = _artifacts(mapping(payload.get("file_content")), _durations(times))
    texts = {item.stage: item.text for item in artifacts}
    source = PythonSource.of(mapping(payload.get("python_source")))
    kernel = str(own.get("name") or source.function or "kernel")
    launch = _launch(launch_of_metadata(kernel, own, texts), source, metadata)
    if compile_.first:
        launch = replace(launch, grid=grid_of(compile_.first), record=record_of(compile_.first, launch))
        count = "1 launch" if compile_.launches == 1 else f"{compile_.launches} launches"
        notes = (*notes, f"The trace has {count} of it; grid and arguments are those of the first.")
    if left_out:
        notes = (*notes, f"The trace holds no text of {', '.join(left_out)}.")
    launch = replace(launch, autotuning=autotuning_of(tunings, launch))
    named = (found for text in texts.values() if (found := target_of_module(text)))
    return Capture(
        launch=launch,
        target=target_of_metadata(own) or next(named, UNKNOWN_TARGET),
        artifacts=artifacts,
        environment=Environment(
            triton_version=str(own.get("triton_version") or ""),
            date=compile_.date,
            variables=tuple(
                (str(key), str(value)) for key, value in sorted(mapping(metadata.get("env")).items()) if value
            ),
        ),
        metadata=shown_metadata(own),
        sources=(SourceFile(source.path, source.text),) if source.path and source.text else (),
        notes=notes,
        graphs=_graphs(mapping(payload.get("pt_info"))),
        snapshot_level="none",
        compile_us=sum(item.duration_us or 0 for item in artifacts) or None,
    )


def _artifacts(
    content: Mapping[str, Any], durations: Mapping[str, int]
) -> tuple[tuple[Artifact, ...], tuple[str, ...]]:
    """The stages that have a text, and those that tritonparse left out."""
    made: dict[str, Artifact] = {}
    left_out: list[str] = []
    for file, text in content.items():
        stage = file.rpartition(".")[2]
        if stage not in _STAGES or not isinstance(text, str) or not text or stage in made:
            continue
        if text.startswith(_BEGINNINGS) and len(text) < 1000:
            left_out.append(stage)
        else:
            made[stage] = Artifact(stage, text, durations.get(stage))
    return tuple(sorted(made.values(), key=lambda item: stage_rank(item.stage))), tuple(left_out)


def _durations(times: Mapping[str, Any]) -> dict[str, int]:
    rows = times.get("lowering_stages")
    found: dict[str, int] = {}
    for row in cast("list[Any]", rows) if isinstance(rows, list) else []:
        if isinstance(row, list) and len(cast("list[Any]", row)) == 2:
            stage, duration = cast("list[Any]", row)
            known = number(duration)
            if isinstance(stage, str) and known is not None and 0 <= known < _LARGEST:
                found[stage] = known
    return found


def _launch(launch: Launch, source: PythonSource, metadata: Mapping[str, Any]) -> Launch:
    """The launch with what the trace says of the Python side."""
    constants = constants_of(mapping(metadata.get("src_constants")), source.parameters)
    kernel = replace(launch.kernel, source=source.function_text, first_line=source.first_line)
    if source.path:
        kernel = replace(kernel, file=source.path, line=source.line or kernel.line)
    types = dict(launch.signature)
    signature = launch.signature
    if source.parameters and types.keys() <= {*source.parameters}:
        known = dict(constants)
        rows = ((name, types.get(name) or ("constexpr" if name in known else "")) for name in source.parameters)
        signature = tuple(row for row in rows if row[1])
    options = tuple((key, value) for key, value in launch.options if key not in _OWN)
    return replace(launch, kernel=kernel, signature=signature, constants=constants, options=options)


def _graphs(info: Mapping[str, Any]) -> tuple[GraphOrigin, ...]:
    frame, again = number(info.get("frame_id")), number(info.get("frame_compile_id"))
    if frame is None or again is None:
        return ()
    return (GraphOrigin(f"{frame}/{again}", ""),)


def _date(timestamp: Any) -> str:
    # 2026-11-22T17:50:50.%fZ: its own format leaves the fraction as it is.
    text = str(timestamp)[:19] if isinstance(timestamp, str) else ""
    return f"{text}+00:00" if len(text) == 19 and text[10] == "T" else ""


def mapping(value: Any) -> Mapping[str, Any]:
    """An object of JSON; an empty one for anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
