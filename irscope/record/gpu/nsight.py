"""Nsight Compute: launches of a script profiled by it, and its reports exported; the parent's side.

Its own child runs the script up to the launch and holds that, as for `bench`, and launches each variant once between
the calls that start and stop a profiler; Nsight Compute profiles nothing else. What is launched is the capture's own
binary. Commands and events go through files, for Nsight Compute starts the process that it measures itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from irscope.errors import DeviceFault, MissingTool, NoDevice, RecordingError
from irscope.ir.logs.source_page import read_source_page
from irscope.model.capture import Capture
from irscope.model.evidence import Profile
from irscope.record.gpu.messages import Answered, Do, Fault, LaunchInfo, PinLaunch, RunProgram
from irscope.record.gpu.session import load_command, own_grid
from irscope.record.process.assembly import Assembly
from irscope.record.process.child import child_process, module_command
from irscope.record.process.events import RecordingEvent, Refused
from irscope.record.process.messages import MessageReader, frame_of
from irscope.record.process.own_folder import own_folder
from irscope.record.process.requests import RecordRequest
from irscope.record.process.session import Progress
from irscope.tools import ToolLimits, installed_program, run_tool

_PLACES = ("usr/local/cuda*/bin/ncu", "opt/nvidia/nsight-compute/*/ncu")
_OPTIONS = ("--clock-control", "none", "--section", "SourceCounters", "--section", "InstructionStats")
_EXPORT = ("--page", "source", "--csv", "--print-source", "sass")
_EXPORT_LIMITS = ToolLimits(processor_s=600.0)
_ELSEWHERE = (
    "A profile made elsewhere can be read anywhere: 'ncu -i REPORT.ncu-rep --page source --csv --print-source sass "
    "> REPORT.csv' there, 'irscope profile CAPTURE --counters REPORT.csv' here."
)

# Version 2025.3.1.0 (build 36398880) (public-release)
_VERSION = re.compile(r"Version (\d[\d.]*)")
# ==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters …
_ERROR = re.compile(r"^==ERROR== (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Nsight:
    path: str
    version: str
    """`2025.3.1.0`; empty if it does not say one."""

    @property
    def name(self) -> str:
        """`Nsight Compute 2025.3.1.0`."""
        return f"Nsight Compute {self.version}".rstrip()

    def export(self, report: Path) -> str:
        """The source page of a report, as CSV; raises RecordingError if it cannot be read, or ToolTooSlow."""
        command = [self.path, "--import", str(report), *_EXPORT]
        done = run_tool(command, limits=_EXPORT_LIMITS)
        text = done.stdout.decode("utf-8", "replace")
        if done.returncode or not read_source_page(text):
            printed = (done.stderr.decode("utf-8", "replace") + text).strip()
            raise RecordingError(f"{self.name} cannot export {str(report)!r}: {_errors_in(printed)}")
        return text


def find_nsight() -> Nsight:
    """The installed Nsight Compute, `ncu` on the PATH first; raises MissingTool if there is none."""
    if (path := installed_program("ncu", _PLACES)) is None:
        raise MissingTool(
            "Nsight Compute is not installed: the PATH has no ncu. It comes with the CUDA toolkit, or separately "
            "from https://developer.nvidia.com/nsight-compute; it supports NVIDIA GPUs only (AMD: rocprofv3). "
            f"{_ELSEWHERE}"
        )
    try:
        answer = run_tool([path, "--version"])
    except OSError as error:
        raise MissingTool(f"{path!r} cannot be run: {error}. {_ELSEWHERE}") from error
    version = _VERSION.search(answer.stdout.decode("utf-8", "replace"))
    return Nsight(path, version[1] if version else "")


def profile_launch(
    nsight: Nsight,
    request: RecordRequest,
    number: int,
    captures: Sequence[Capture],
    *,
    progress: Progress | None = None,
    echo: Callable[[str], None] | None = None,
) -> tuple[Profile, ...]:
    """The counters of a script's launch, for each of some captures of it, all on its inputs.

    Raises NoDevice without a GPU, DeviceFault where a launch fails, and RecordingError where the script makes another
    launch this time, or Nsight Compute may not read the counters.
    """
    with own_folder() as folder:
        loads = [load_command(capture, own_grid(capture, captures[0])) for capture in captures]
        commands = [PinLaunch(request, number), *loads, *(Do("profile", load.arguments[:1]) for load in loads)]
        files = folder / "commands", folder / "events"
        files[0].write_bytes(b"".join(map(frame_of, commands)))
        report = folder / "report.ncu-rep"
        program = module_command("irscope.record.gpu.child", *map(str, files), interpreter=request.interpreter)
        profiler = (nsight.path, *_OPTIONS, "--import-source", "yes", "--profile-from-start", "off")
        chosen = ("--kernel-name", f"regex:^{re.escape(captures[0].name)}$", "--launch-count", str(len(captures)))
        with child_process("irscope.record.gpu.child", folder, echo=echo) as child:
            child.send(RunProgram((*profiler, *chosen, "--force-overwrite", "--export", str(report), *program)))
            if progress is not None:
                progress(f"{captures[0].name}: {nsight.name}")
            code = None
            while code is None and not child.at_end:
                code = next((event.value for event in child.read() if isinstance(event, Answered)), None)
            printed = child.log.read_text("utf-8", "replace")
        _check(_events_of(files[1]), request, captures[0], printed)
        if not report.is_file():
            raise RecordingError(f"{nsight.name} made no report: {_errors_in(printed)}")
        pages = [kernel.page for kernel in read_source_page(nsight.export(report))]
    if len(pages) != len(captures):
        raise RecordingError(f"{nsight.name} profiled {len(pages)} of {len(captures)} launches: {_errors_in(printed)}")
    gpu = captures[0].environment.gpu
    return tuple(Profile(page, gpu, nsight.name, own_binary=True) for page in pages)


def _events_of(file: Path) -> list[RecordingEvent]:
    return list(MessageReader().feed(file.read_bytes())) if file.is_file() else []


def _check(events: Sequence[RecordingEvent], request: RecordRequest, capture: Capture, printed: str) -> None:
    _raise_denied(printed)
    assembly = Assembly(request)
    for event in events:
        assembly.feed(event)
        if isinstance(event, Refused):
            raise event.as_error()
        if isinstance(event, Fault):
            raise DeviceFault(event.detail)
        if isinstance(event, LaunchInfo):
            again = assembly.capture(assembly.numbers[event.launch - 1])
            if again.text("source") != capture.text("source"):
                raise RecordingError(
                    f"{os.path.basename(request.path)} launched another kernel, or with other arguments, when it ran "
                    "again: its launches must not change."
                )
    if not any(isinstance(event, LaunchInfo) for event in events):
        raise RecordingError(f"the script ended under Nsight Compute before its launch: {_errors_in(printed)}")


def _raise_denied(printed: str) -> None:
    if "ERR_NVGPUCTRPERM" in printed:
        raise RecordingError(
            "Nsight Compute may not read the GPU's counters (ERR_NVGPUCTRPERM): the driver gives them to "
            "administrators alone. Run it as root, give the container --cap-add=SYS_ADMIN, or let every user: "
            "'options nvidia NVreg_RestrictProfilingToAdminUsers=0' in /etc/modprobe.d, and load the driver again "
            "(https://developer.nvidia.com/ERR_NVGPUCTRPERM)."
        )
    if "No supported GPU" in printed or "no CUDA-capable device" in printed:
        raise NoDevice("Nsight Compute finds no supported GPU on this machine.")


def _errors_in(text: str) -> str:
    errors = [error.strip() for error in _ERROR.findall(text)]
    return " ".join(dict.fromkeys(errors)) or " / ".join(text.strip().splitlines()[-3:]) or "it printed nothing."
