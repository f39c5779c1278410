"""Scripts under a sanitizer, on a GPU: a pass of Triton's, or NVIDIA's compute-sanitizer.

Triton's passes put assertions of the device into the code, with the line of each operation; one that fails ends the
script's use of the GPU. What is printed is read here, and brought to lines of Python.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from irscope.errors import MissingTool, NoDevice, UsageError, did_you_mean
from irscope.ir.locations.mlir import read_mlir
from irscope.ir.locations.model import line_text, place_of
from irscope.model.capture import Capture
from irscope.record.gpu.messages import LaunchChecked
from irscope.record.gpu.session import ScriptCheck
from irscope.record.process.child import variables_set
from irscope.record.process.events import ScriptEnd
from irscope.record.process.requests import RecordRequest
from irscope.record.process.session import record_request
from irscope.tools import installed_program

Sanitizer = Literal["concurrency", "fp", "global", "memory"]
_MODES: Mapping[Sanitizer, tuple[str, str]] = {
    "concurrency": ("consan", "concurrency_sanitizer"), "fp": ("fpsan", "fp_sanitizer"),
    "global": ("gsan", "global_sanitizer"),
}  # fmt: skip
"""Sanitizer → the value of Triton's variable, and its pass."""
_RUNNERS: Mapping[Sanitizer, str] = {
    "concurrency": "irscope.record.gpu.allocating", "global": "triton.tools.gsan",
}  # fmt: skip
"""The modules that run a script whose kernels have memory of their own: a record of what is in flight, shadows."""
_VERSIONS = (
    "For NVIDIA's GPUs Triton 3.6 and 3.7 have concurrency, 3.8 and 3.9 all three; for AMD's 3.9 has fp (gfx942, "
    "gfx950, gfx1250) and concurrency (gfx1250)."
)
_MODE_VARIABLE = "TRITON_INSTRUMENTATION_MODE"
_KINDS = ("Invalid", "Misaligned", "Uninitialized", "Race", "Barrier")
"""With which a report of compute-sanitizer begins."""
_TOOL_PLACES = ("usr/local/cuda*/bin/compute-sanitizer", "opt/nvidia/compute-sanitizer/compute-sanitizer")


@dataclass(frozen=True, slots=True)
class SanitizerReport:
    """One thing that a sanitizer reported at one line, of all threads together."""

    what: str
    """In the sanitizer's own words."""
    place: str
    """`FILE:LINE` of the user's Python; of the library where no launch calls it there; empty without a line."""
    block: tuple[int, ...]
    """The first program that reported it."""
    thread: tuple[int, ...]
    count: int = 1

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"block": list(self.block), "thread": list(self.thread)}


@dataclass(frozen=True, slots=True)
class SanitizerRun:
    sanitizer: Sanitizer
    captures: tuple[Capture, ...]
    reports: tuple[SanitizerReport, ...]
    script_end: ScriptEnd | None

    @property
    def passes(self) -> bool:
        """Whether kernels ran, nothing was reported, and the script ended well."""
        return bool(self.captures) and not self.reports and self.script_end is not None and not self.script_end.stopped

    def as_json(self) -> dict[str, Any]:
        end = self.script_end
        return {
            "sanitizer": self.sanitizer,
            "passes": self.passes,
            "kernels": [capture.name for capture in self.captures],
            "reports": [report.as_json() for report in self.reports],
            "script": None if end is None else {"code": end.code, "message": end.message},
        }


def sanitizer_named(name: str) -> Sanitizer:
    known: dict[str, Sanitizer] = {one: one for one in (*_MODES, "memory")}
    if name not in known:
        near = did_you_mean(name, known, or_all=False)
        raise UsageError(f"--sanitize {name!r} is not one of {', '.join(known)}.{near}")
    return known[name]


def instrumented(sanitizer: Sanitizer | None) -> AbstractContextManager[None]:
    """Let the processes that are started until the end of the block compile with a sanitizer's pass."""
    mode = _MODES[sanitizer][0] if sanitizer is not None and sanitizer in _MODES else ""
    return variables_set({_MODE_VARIABLE: mode} if mode else {})


def sanitize_script(
    request: RecordRequest, sanitizer: Sanitizer, *, echo: Callable[[str], None] | None = None
) -> SanitizerRun:
    """Run a script on the GPU under a sanitizer.

    Raises NoDevice where nothing ran, and MissingTool where this Triton has no such pass, or compute-sanitizer is not
    installed.
    """
    command: list[str] = []
    if sanitizer == "memory":
        command = [_tool(), "--tool", "memcheck", *_python(request, sanitizer)]
    elif sanitizer in _RUNNERS:
        command = [*_python(request, sanitizer), "-m", _RUNNERS[sanitizer]]
    if command:
        request = replace(request, way="command", arguments=(*command, request.path, *request.arguments))
    with instrumented(sanitizer):
        recording = record_request(request, echo=echo).whole()
    captures = tuple(recording.captures)
    if f"No module named {_RUNNERS['global']}" in recording.output:
        raise MissingTool(f"this Triton has no global sanitizer: {_VERSIONS}")
    require_instrumented(captures, sanitizer)
    if captures and not any(capture.environment.gpu for capture in captures):
        ways = f" with the pass {_MODES[sanitizer][1]}" if sanitizer in _MODES else ""
        raise NoDevice(
            f"--sanitize needs a GPU, and there is none here: {len(captures)} kernels were compiled{ways}, none ran."
        )
    end = next((end for end in recording.script_ends if end.stopped), next(iter(recording.script_ends), None))
    return SanitizerRun(sanitizer, captures, read_reports(recording.output, captures), end)


def exactly(checked: ScriptCheck) -> ScriptCheck:
    """The launches under the fp sanitizer, whose floats are numbers of a ring: equal in all bits, or other."""
    require_instrumented(checked.captures, "fp")
    rows: list[LaunchChecked] = []
    for row in checked.launches:
        own = row.agreement
        if own.verdict in ("identical", "close", "different", "nan"):
            own = replace(own, verdict="different" if own.differing else "identical")
        rows.append(replace(row, agreement=own))
    return replace(checked, launches=tuple(rows))


def require_instrumented(captures: Sequence[Capture], sanitizer: Sanitizer) -> None:
    """Raise MissingTool where a sanitizer's pass ran in no compile."""
    if sanitizer not in _MODES:
        return
    compiled = [capture for capture in captures if capture.failure is None]
    name = _MODES[sanitizer][1]
    if compiled and not any(one.name == name for capture in compiled for one in capture.passes()):
        triton, target = compiled[0].environment.triton_version, compiled[0].target
        raise MissingTool(
            f"Triton {triton} has no {sanitizer} sanitizer for {target}: no pass {name!r} ran. {_VERSIONS}"
        )


def _python(request: RecordRequest, sanitizer: Sanitizer) -> tuple[str, ...]:
    if request.way != "file" or not request.path:
        raise UsageError(f"--sanitize {sanitizer} runs a script: give its FILE.")
    return (request.interpreter or sys.executable,)


def _tool() -> str:
    if (found := installed_program("compute-sanitizer", _TOOL_PLACES)) is None:
        raise MissingTool(
            "--sanitize memory runs the script under NVIDIA's compute-sanitizer, which is not on the PATH: it comes "
            "with the CUDA toolkit. 'irscope verify' finds accesses out of bounds without it."
        )
    return found


def read_reports(output: str, captures: Sequence[Capture] = ()) -> tuple[SanitizerReport, ...]:
    """What sanitizers printed, one row for each text and line; a line of the library becomes that of its caller."""
    callers = _callers(captures)
    found: dict[tuple[str, str], SanitizerReport] = {}
    for row in _reported(output):
        row = replace(row, place=callers.get(row.place, row.place))
        known = found.setdefault((row.what, row.place), replace(row, count=0))
        found[row.what, row.place] = replace(known, count=known.count + 1)
    return tuple(found.values())


def _reported(text: str) -> Iterator[SanitizerReport]:
    what, place = "", ""
    for line in text.splitlines():
        if line.startswith("========="):
            # ========= Invalid __global__ read of size 4 bytes
            # =========     at copy_past_n+0x1f0 in kernel.py:17
            # =========     by thread (3,0,0) in block (3,0,0)
            words = line.removeprefix("=========").strip()
            if words.startswith(_KINDS):
                what, place = words, ""
            elif words.startswith("at ") and what:
                place = words.partition(" in ")[2]
            elif words.startswith("by thread (") and what:
                thread, _, block = words.removeprefix("by thread (").partition(") in block (")
                yield _report(what, place, block.partition(")")[0], thread)
                what = ""
            continue
        # /home/me/kernel.py:12: unknown: block: [3,0,0], thread: [32,0,0] Assertion `Read after write race` failed.
        head, _, rest = line.partition(": block: [")
        block, _, rest = rest.partition("], thread: [")
        thread, _, rest = rest.partition("] Assertion `")
        if rest:
            yield _report(rest.rpartition("`")[0], head.rpartition(": ")[0], block, thread)


def _report(what: str, place: str, block: str, thread: str) -> SanitizerReport:
    file, _, line = place.rpartition(":")
    program, own = (tuple(int(part) for part in text.split(",") if part.isdecimal()) for text in (block, thread))
    is_known = bool(file) and line.isdecimal() and len(line) < 10
    return SanitizerReport(what.strip(), f"{file}:{int(line)}" if is_known else "", program, own)


def _callers(captures: Sequence[Capture]) -> dict[str, str]:
    """`FILE:LINE` of the library, with its path or its name alone → the line of a kernel that calls it."""
    rows: dict[str, str] = {}
    for capture in captures:
        for chain in read_mlir(capture.texts.get("ttgir", "")).chains:
            user = line_text(place_of(chain, capture.launch.kernel.file))
            if chain and user:
                frame = chain[0]
                for name in (frame.file, os.path.basename(frame.file)):
                    rows.setdefault(f"{name}:{frame.line}", user)
    return rows
