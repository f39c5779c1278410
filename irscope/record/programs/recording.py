"""Reports the compiles and launches of a process: a recording process's own, or one of the recorded program's."""

from __future__ import annotations

import contextlib
import linecache
import os
import platform
import re
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from irscope import __version__
from irscope.errors import MissingTool
from irscope.ir.logs.time_trace import Part
from irscope.ir.quoted import unescape_ir
from irscope.model.capture import Environment, Target
from irscope.record.compile.watch import Watch, watch_compiles
from irscope.record.process import events
from irscope.record.process.events import EventSink, RecordingEvent
from irscope.record.process.requests import RecordRequest
from irscope.record.triton import api as triton_api
from irscope.record.triton.identity import check_architecture
from irscope.record.triton.reasons import print_reasons
from irscope.record.triton.versions import refusal_of, require_names, triton_version, untried_note
from irscope.record.virtual.arguments import assumptions_under_way, known_values

if TYPE_CHECKING:
    from irscope.machine.launch import RunLimits

DEFAULT_TARGET = "cuda:90"
_MOST_SOURCE_BYTES = 4 << 20

# #loc1 = loc("/kernels/matmul.py":31:20)   |   loc("<stdin>":4:8)   |   loc("/kernels/matmul.ipynb#cell3":4:8)
_LOCATION_FILE = re.compile(r'loc\("([^"\n]+(?:\.py|>|\.ipynb#cell\d+))":\d+:\d+')


@contextmanager
def recording(
    request: RecordRequest, sink: EventSink, folder: Path, *, joined: bool = False
) -> Iterator[tuple[Watch, events.Begun, Target]]:
    """Report the compiles of this process until the end of the block; what it needs on disk is in `folder`.

    `joined`: whether this is a process of the program's own. Yields what watches the compiles, the event that it began
    with, and the target.
    """
    with _telling_of_untried(), _recording(request, sink, folder, joined=joined) as begun:
        yield begun


@contextmanager
def _recording(
    request: RecordRequest, sink: EventSink, folder: Path, *, joined: bool
) -> Iterator[tuple[Watch, events.Begun, Target]]:
    if joined and not _prints_to(request.log_path):
        request = replace(request, log_path="")
    triton_api.silence_known_noise()
    # In this process, where it can be watched, not in workers of its own.
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
    if request.mlir_dump_path:
        os.environ.update(MLIR_ENABLE_DUMP="1", MLIR_DUMP_PATH=request.mlir_dump_path)
    started = time.perf_counter_ns()
    triton_api.require_triton()
    triton_api.backend_classes()
    importing: Part = ("import Triton", "import", started, time.perf_counter_ns() - started, 0)
    require_names(virtual=False)
    present = None if request.virtual or request.mode != "script" else triton_api.present_gpu()
    asked = Target.parse(request.targets[0]) if request.targets else None
    target = asked or present or Target.parse(request.compiled_target or DEFAULT_TARGET)
    triton_api.make_backend(target)
    if asked is not None:
        check_architecture(asked)
    real = present is not None and present == target
    if request.mode != "text" and not real:
        require_names(virtual=True)
    begun = describe_environment(target, _gpu_name() if real else "", real=real)
    sink(begun)

    if untried := untried_note():
        sink(events.Note(untried))
    watch = Watch(
        SourceFiles(sink, request),
        request,
        assumptions=assumptions_under_way,
        values=partial(known_values, most_bytes=request.data_limit_bytes),
    )
    if request.times:
        watch.imports = (importing,)
    watch.is_virtual = request.mode == "script" and not real
    if request.compiler_log:
        print_reasons(verified=request.verifies_log, parts=request.log_parts)
    with triton_api.private_cache(folder / "triton"), watch_compiles(watch):
        yield watch, begun, target


@contextmanager
def _telling_of_untried() -> Iterator[None]:
    """Raise MissingTool for what irscope looks for in vain in a Triton that it was not tried with."""
    try:
        yield
    except (AttributeError, ImportError, KeyError, NameError, TypeError) as error:
        if not untried_note():
            raise
        raise MissingTool(
            refusal_of(f"differs in the parts that irscope reads ({type(error).__name__}: {error})")
        ) from error


class SourceFiles:
    """A sink that passes events on, and adds the Python files of the artifacts that it sees."""

    def __init__(self, sink: EventSink, request: RecordRequest) -> None:
        self._sink = sink
        self._is_wanted = request.mode != "text"
        self._files: set[str] = set()

    def __call__(self, event: RecordingEvent) -> None:
        self._sink(event)
        if not self._is_wanted:
            return
        if isinstance(event, events.CompileBegun):
            self.report(event.launch.kernel.file)
        elif isinstance(event, events.ArtifactMade) and event.stage == "source" and isinstance(event.data, str):
            for path in dict.fromkeys(_LOCATION_FILE.findall(event.data)):
                self.report(unescape_ir(path))

    def report(self, path: str) -> None:
        """Report a file of Python, or what a notebook or standard input holds under that name, once."""
        if not path or path in self._files:
            return
        self._files.add(path)
        file = Path(path)
        if file.suffix == ".py" and file.is_file() and file.stat().st_size <= _MOST_SOURCE_BYTES:
            self._sink(events.SourceRead(path, file.read_text("utf-8", "replace")))
        elif path in linecache.cache and (lines := linecache.getlines(path)):
            # A cell of a notebook, or standard input.
            self._sink(events.SourceRead(path, "".join(lines)))


def recorded_launches(watch: Watch, target: Target, real: bool) -> AbstractContextManager[None]:
    from irscope.record.programs.launch_watch import real_launches, virtual_launches

    request = watch.request
    if not real:
        return virtual_launches(
            target, request.config, watch.report, dict(request.assume), _limits_of(request), request.data_limit_bytes
        )
    if request.assume:
        watch.report(events.Note("--assume had no effect: the script ran on a GPU, where nothing is assumed."))
    return real_launches(watch.report, request.data_limit_bytes)


def _limits_of(request: RecordRequest) -> RunLimits | None:
    if not request.computes:
        return None
    from irscope.record.process.limits import run_limits

    return run_limits(request)


def _prints_to(log: str) -> bool:
    with contextlib.suppress(OSError):
        return bool(log) and os.path.samestat(os.fstat(2), os.stat(log))
    return False


def describe_environment(target: Target, gpu: str = "", *, real: bool = False) -> events.Begun:
    """Versions, platform and tools of this process; `gpu`: the name of what runs the launches, where it is `real`."""
    torch_version = ""
    with contextlib.suppress(PackageNotFoundError):
        torch_version = version("torch")
    environment = Environment(
        irscope_version=__version__,
        triton_version=triton_version(),
        torch_version=torch_version,
        python_version=platform.python_version(),
        platform=platform.platform(),
        tools=tuple(sorted(triton_api.tool_versions(target).items())),
        gpu=gpu,
    )
    return events.Begun(environment, real, str(triton_api.nvidia_tools().get("nvdisasm", "")))


def _gpu_name() -> str:
    torch = sys.modules.get("torch")
    return str(torch.cuda.get_device_name()) if torch is not None else "a GPU"
