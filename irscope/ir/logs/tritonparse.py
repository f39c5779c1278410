"""Reads a trace of tritonparse, as its hooks write it or as its parser completes it, as captures; and writes one."""

from __future__ import annotations

import ast
import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from irscope.ir.logs.launch_text import (
    UNKNOWN_TARGET,
    items,
    launch_of_metadata,
    mapping,
    number,
    parsed_json,
    shown_metadata,
    target_of_metadata,
    target_of_module,
)
from irscope.model.capture import STAGES, Artifact, Capture, Environment, Launch, SourceFile, StageKind, stage_rank
from irscope.model.evidence import GraphOrigin
from irscope.model.launch_record import Argument, Autotuning, LaunchRecord
from irscope.model.plain import constant_value, python_tree, storable

# ── The Python side of a compile in a trace: the kernel's text, its parameters and constants ────────────────────────

_MOST_CHARACTERS = 1 << 22
_MOST_LINES = 200_000
# (3,)   (2, 0)
_PATH = re.compile(r"\((\d{1,4}),((?: ?\d{1,4},){0,64}(?: ?\d{1,4})?)\)")
# def softmax(
_FUNCTION = re.compile(r"^[ \t]*(?:async )?def ([A-Za-z_]\w*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PythonSource:
    """What a trace holds of a kernel's file."""

    path: str = ""
    text: str = ""
    """The file as far as it is known: lines before a function that was kept alone are empty."""
    function: str = ""
    function_text: str = ""
    """With its decorators."""
    first_line: int = 0
    """1-based line of the first of these."""
    line: int = 0
    """1-based line of the `def`."""
    parameters: tuple[str, ...] = ()

    @staticmethod
    def of(values: Mapping[str, Any]) -> PythonSource:
        """The `python_source` of an event; empty for what is none."""
        path, code = values.get("file_path"), values.get("code")
        start = values.get("function_start_line") or values.get("start_line")
        if not isinstance(path, str) or not isinstance(code, str) or len(code) > _MOST_CHARACTERS:
            return PythonSource()
        if type(start) is not int or not 0 < start <= _MOST_LINES:
            return PythonSource(path, "")
        whole = "function_start_line" in values
        text = code if whole else "\n" * (start - 1) + code
        function_text = _block("".join(code.splitlines(keepends=True)[start - 1 :]) if whole else code)
        found = _FUNCTION.search(function_text)
        if found is None:
            return PythonSource(path, text)
        line = start + function_text.count("\n", 0, found.end())
        return PythonSource(path, text, found[1], function_text, start, line, _parameters(function_text))


def _block(text: str) -> str:
    lines = text.splitlines(keepends=True)
    found = next((at for at, line in enumerate(lines) if _FUNCTION.match(line)), None)
    if found is None:
        return text
    indent = len(lines[found]) - len(lines[found].lstrip())
    opened = 0
    for at in range(found, len(lines)):
        line = lines[at]
        plain = line.strip()
        outside = plain and not plain.startswith(("#", ")", "]")) and len(line) - len(line.lstrip()) <= indent
        if at > found and opened <= 0 and outside:
            return "".join(lines[:at]).rstrip() + "\n"
        opened += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
    return text


def _parameters(function_text: str) -> tuple[str, ...]:
    """The names of a function's parameters; none where its text is no function of this Python."""
    found = python_tree(textwrap.dedent(function_text)).body
    function = next((node for node in found if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))), None)
    if function is None:
        return ()
    given = function.args
    return tuple(one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs))


def _constants_of(values: Mapping[str, Any], parameters: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Constants by parameter, as Python prints them, of `{"(3,)": 128}`."""
    found: dict[str, str] = {}
    for path, value in values.items():
        match = _PATH.fullmatch(path)
        if match is None or int(match[1]) >= len(parameters):
            continue
        elements = "".join(f"[{one}]" for one in re.findall(r"\d+", match[2]))
        found[parameters[int(match[1])] + elements] = repr(value)
    return tuple(found.items())


# ── Launches and tunings in a trace: the grid, the arguments, and which configuration was the fastest ───────────────

_LARGEST = 1 << 53
_MOST_ARGUMENTS = 10_000
_MOST_ALIGNMENT = 512


def _grid_of(event: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """The grid of a launch; None where it has none."""
    sizes = _sizes(event.get("grid"))
    if sizes is None or not 1 <= len(sizes) <= 3:
        return None
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def _record_of(event: Mapping[str, Any], launch: Launch) -> LaunchRecord | None:
    """What a launch was given; None where the trace does not say, or says what cannot be."""
    given = event.get("extracted_args")
    if not isinstance(given, dict) or len(cast("dict[str, Any]", given)) > _MOST_ARGUMENTS:
        return None
    constants = dict(launch.constants)
    rows: list[Argument] = []
    for name, value in cast("dict[str, Any]", given).items():
        if name in constants or not isinstance(value, dict):
            continue
        row = _argument(name, cast("dict[str, Any]", value))
        if row is None:
            return None
        rows.append(row)
    return LaunchRecord(tuple(rows))


def _argument(name: str, value: Mapping[str, Any]) -> Argument | None:
    kind = value.get("type")
    if kind == "tensor":
        return _tensor(name, value)
    if kind == "TensorDescriptor":
        shape, strides, block = (_sizes(value.get(key)) for key in ("shape", "strides", "block_shape"))
        if shape is None or strides is None or block is None:
            return None
        dtype = _dtype(mapping(value.get("base")))
        return Argument(name, "descriptor", dtype, shape=shape, strides=strides, block_shape=block)
    scalar = value.get("value")
    if kind in ("int", "float", "bool") and isinstance(scalar, (bool, int, float, str)):
        return Argument(name, "scalar", str(kind), scalar)
    return None


def _tensor(name: str, value: Mapping[str, Any]) -> Argument | None:
    shape, strides = _sizes(value.get("shape")), _sizes(value.get("stride"))
    if shape is None or strides is None or len(shape) != len(strides):
        return None
    offset = number(value.get("storage_offset"))
    return Argument(
        name,
        "tensor",
        _dtype(value),
        shape=shape,
        strides=strides,
        storage_offset=offset if offset is not None and 0 <= offset < _LARGEST else None,
        alignment_bytes=_alignment(value.get("data_ptr")),
    )


def _dtype(value: Mapping[str, Any]) -> str:
    return str(value.get("dtype", "")).removeprefix("torch.")


def _alignment(address: Any) -> int | None:
    """The greatest power of two that divides an address such as `0x7f0000003200`, up to 512."""
    try:
        known = int(address, 16) if isinstance(address, str) and len(address) <= 20 else 0
    except ValueError:
        return None
    return min(known & -known, _MOST_ALIGNMENT) if known > 0 else None


def _sizes(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, list) or len(cast("list[Any]", value)) > 100:
        return None
    rows = tuple(number(item) for item in cast("list[Any]", value))
    return cast("tuple[int, ...]", rows) if all(row is not None and 0 <= row < _LARGEST for row in rows) else None


def _autotuning_of(tunings: Sequence[Mapping[str, Any]], launch: Launch) -> Autotuning | None:
    """Where a launch stands in the first tuning of its kernel that has its configuration; None where none has."""
    known = {**dict(launch.constants), **{key: repr(value) for key, value in launch.options}}
    for event in tunings:
        timings = event.get("configs_timings")
        if event.get("kernel_name") != launch.kernel.name or not isinstance(timings, dict):
            continue
        rows = list(cast("dict[str, Any]", timings).items())
        fitting = [at for at, (config, _) in enumerate(rows) if _is_of(config, known)]
        if len(fitting) != 1:
            continue
        config, times = rows[fitting[0]]
        return Autotuning(
            fitting[0], len(rows), config, winner=config == event.get("best_config"), median_ms=_median(times)
        )
    return None


def _is_of(config: str, known: Mapping[str, str]) -> bool:
    """Whether a compile has the settings of `BLOCK: 128, num_warps: 4, num_ctas: 1`; what it does not name may vary."""
    pairs = [part.partition(": ") for part in config.split(", ")]
    return bool(pairs) and all(name not in known or known[name] == value for name, _, value in pairs)


def _median(times: Any) -> float | None:
    first: Any = cast("list[Any]", times)[0] if isinstance(times, list) and times else cast("Any", times)
    if type(first) is int or type(first) is float:
        return float(first) if 0 <= first < _LARGEST else None
    return None


_MAX_EVENT_CHARACTERS = 1 << 26
"""Of one line: the texts of all stages of a kernel, each of which tritonparse cuts at 10 MiB."""
_MAX_COMPILES = 20_000
_BEGINNINGS = ("<file too large: ", "<error reading file: ")
"""What tritonparse writes in place of a text that it left out."""
_OWN = ("env", "src_attrs", "src_cache_key", "src_constants", "times", "cache_hit")
"""What it adds to Triton's metadata."""
_KINDS: tuple[StageKind, ...] = ("mlir", "llvm", "ptx", "amdgcn")
# Its SASS is in a format of its own.
_STAGES = {stage.name for stage in STAGES if stage.kind in _KINDS}


@dataclass(slots=True)
class _TracedCompile:
    """One compile, and what the trace says of it later."""

    payload: Mapping[str, Any]
    date: str
    launches: int = 0
    first: Mapping[str, Any] = field(default_factory=dict[str, Any])


def is_trace(text: str) -> bool:
    """Whether a text begins like a trace: with an event."""
    head = text[:4096].lstrip()
    return head.startswith("{") and '"event_type"' in text[:_MAX_EVENT_CHARACTERS].partition("\n")[0]


def captures_from_trace(text: str, name: str) -> tuple[Capture, ...]:
    """The captures of a trace, one for each compile, in the order of the first event of each.

    Launches give the grid and the arguments, tunings which configuration was the fastest. Lines that are no event are
    passed over: a trace of a process that was killed ends in one.
    """
    compiles: dict[str, _TracedCompile] = {}
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
            compiles.setdefault(key, _TracedCompile(payload, _date(event.get("timestamp"))))
        elif kind == "launch":
            known = compiles.get(_key(mapping(event.get("compilation_metadata")), event))
            if known is not None:
                known.first = known.first or event
                known.launches += 1
        elif kind == "autotune":
            tunings.append(event)
    said = [f"Read from the tritonparse trace {name}: no pass was recorded, and the binaries are not in it."]
    if damaged:
        said.append(f"{damaged} lines of the trace are not events and were skipped.")
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
            event = parsed_json(line)
            yield mapping(event) if isinstance(event, dict) else None
        start = end + 1


def _key(metadata: Mapping[str, Any], event: Mapping[str, Any]) -> str:
    return f"{metadata.get('hash') or id(event)} {metadata.get('name', '')}"


def _capture(compile_: _TracedCompile, tunings: list[Mapping[str, Any]], notes: tuple[str, ...]) -> Capture:
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
        launch = replace(launch, grid=_grid_of(compile_.first), record=_record_of(compile_.first, launch))
        count = "1 launch" if compile_.launches == 1 else f"{compile_.launches} launches"
        notes = (*notes, f"The trace has {count} of it; grid and arguments are those of the first.")
    if left_out:
        notes = (*notes, f"The trace holds no text of {', '.join(left_out)}.")
    launch = replace(launch, autotuning=_autotuning_of(tunings, launch))
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
    found: dict[str, int] = {}
    for row in items(times.get("lowering_stages")):
        if isinstance(row, list) and len(cast("list[Any]", row)) == 2:
            stage, duration = cast("list[Any]", row)
            known = number(duration)
            if isinstance(stage, str) and known is not None and 0 <= known < _LARGEST:
                found[stage] = known
    return found


def _launch(launch: Launch, source: PythonSource, metadata: Mapping[str, Any]) -> Launch:
    constants = _constants_of(mapping(metadata.get("src_constants")), source.parameters)
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


# ── A trace written: captures as the events that tritonparse's hooks would have made of them ────────────────────────


def trace_of(capture: Capture) -> tuple[dict[str, Any], ...]:
    """The events of a capture: its compile, and its launch where the grid is known; none where no stage has a text.

    What tritonparse has no place for (passes, layouts, binaries, SASS, findings) is left out, and so are addresses,
    which no capture holds: an import of the trace does not know the alignment of the arguments.
    """
    texts = {stage: text for stage, text in capture.texts.items() if stage in _STAGES}
    if not texts:
        return ()
    launch, environment = capture.launch, capture.environment
    constants = {path: constant_value(text) for path, text in launch.constants}
    parameters = [name for name, _ in launch.signature]
    target = capture.target
    metadata: dict[str, Any] = {
        **dict(capture.metadata),
        **dict(launch.options),
        "hash": capture.id,
        "name": capture.name,
        "target": {
            "backend": target.backend,
            "arch": int(target.arch) if target.arch.isdecimal() else target.arch,
            "warp_size": target.warp_size,
        },
        "triton_version": environment.triton_version,
    }
    own = {
        "env": dict(environment.variables),
        "src_attrs": {_path_of(name, parameters): _pairs(text) for name, text in launch.attributes},
        "src_constants": {_path_of(path, parameters): value for path, value in constants.items()},
        "times": {
            "lowering_stages": [
                [one.stage, one.duration_us] for one in capture.artifacts if one.duration_us is not None
            ]
        },
        "cache_hit": False,
    }
    files = {f"{capture.name}.{stage}": text for stage, text in texts.items()}
    payload: dict[str, Any] = {
        "metadata": metadata | own,
        # The viewer shows no kernel without paths; a capture has none of Triton's cache.
        "file_path": {name: name for name in files},
        "file_content": files,
    }
    kernel = launch.kernel
    if kernel.source and kernel.first_line:
        lines = kernel.source.count("\n") + (not kernel.source.endswith("\n"))
        payload["python_source"] = {
            "file_path": kernel.file,
            "start_line": kernel.first_line,
            "end_line": kernel.first_line + lines - 1,
            "code": kernel.source,
        }
    if info := _graph_info(capture.graphs):
        payload["pt_info"] = info
    event: dict[str, Any] = {
        "pid": 0,
        "timestamp": f"{environment.date[:19] or '1970-01-01T00:00:00'}.000000Z",
        "stack": [],
    }
    compilation: dict[str, Any] = {"event_type": "compilation", **event, "payload": payload}
    if launch.grid is None:
        return (compilation,)
    arguments = launch.record.arguments if launch.record is not None else ()
    extracted = {one.path: _extracted(one) for one in arguments}
    extracted |= {path: {"type": type(value).__name__, "value": value} for path, value in constants.items()}
    launched = {"name": capture.name, "function": None, "stream": 0, "grid": [*launch.grid]}
    shown = {"compilation_metadata": metadata, "extracted_args": extracted}
    return compilation, {"event_type": "launch", **event, **launched, **shown}


def _path_of(path: str, parameters: Sequence[str]) -> str:
    """`(3,)` of the parameter with index 3, and `(2, 0)` of an element of a tuple."""
    name, *elements = path.replace("]", "").split("[")
    index = parameters.index(name) if name in parameters else path
    return f"({', '.join(map(str, (index, *elements)))}{'' if elements else ','})"


def _pairs(attributes: str) -> list[list[Any]]:
    pairs = (one.partition("=") for one in attributes.split(", "))
    return [[name, constant_value(value)] for name, _, value in pairs]


def _extracted(argument: Argument) -> dict[str, Any]:
    if argument.kind == "scalar":
        return {"type": argument.dtype, "value": argument.value}
    shape, strides = [*argument.shape], [*argument.strides]
    dtype = f"torch.{argument.dtype}"
    if argument.kind == "descriptor":
        base = {"type": "tensor", "dtype": dtype}
        block = [*argument.block_shape]
        return {"type": "TensorDescriptor", "shape": shape, "strides": strides, "block_shape": block, "base": base}
    values: dict[str, Any] = {"type": "tensor", "shape": shape, "dtype": dtype, "stride": strides}
    values["numel"] = math.prod(shape)
    if argument.storage_offset is not None and argument.storage_offset >= 0:
        values["storage_offset"] = argument.storage_offset
    return values


def _graph_info(graphs: Sequence[GraphOrigin]) -> dict[str, int]:
    for graph in graphs:
        frame, _, again = graph.graph.partition("/")
        if frame.isdecimal() and again.isdecimal():
            return {"frame_id": int(frame), "frame_compile_id": int(again)}
    return {}
