"""Reports the compiles and launches of a process: a recording process's own, or one of the recorded program's."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from irscope import __version__
from irscope.errors import MissingTool
from irscope.model.capture import Target
from irscope.record.binaries.steps import BinarySteps
from irscope.record.compile.watch import Watch, watch_compiles
from irscope.record.compile.workers import Steps
from irscope.record.layouts.server import LayoutServer
from irscope.record.layouts.steps import LayoutSteps
from irscope.record.process.events import Begun, EventSink, Note
from irscope.record.process.requests import RecordRequest
from irscope.record.triton import api as triton_api
from irscope.record.triton.architectures import check_architecture
from irscope.record.triton.debug_output import print_reasons
from irscope.record.triton.names import refusal_of, require_names
from irscope.record.triton.native_calls import note_of_restart
from irscope.record.triton.versions import triton_version, untried_note
from irscope.record.virtual.arguments import assumptions_under_way, known_values

__all__ = ["DEFAULT_TARGET", "describe_environment", "recorded_launches", "recording", "with_steps"]

DEFAULT_TARGET = "cuda:90"


@contextmanager
def recording(
    request: RecordRequest, sink: EventSink, folder: Path, *, joined: bool = False
) -> Iterator[tuple[Watch, Begun, Target]]:
    """Report the compiles of this process until the end of the block; what it needs on disk is in `folder`.

    `joined`: whether this is a process of the program's own, which need not print to the log of the recording.

    Yields what watches the compiles, the event that it began with, and the target.
    """
    if joined and not _prints_to(request.log_path):
        request = replace(request, log_path="")
    triton_api.silence_known_noise()
    # In this process, where it can be watched, not in workers of its own.
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
    if request.mlir_dump_path:
        os.environ.update(MLIR_ENABLE_DUMP="1", MLIR_DUMP_PATH=request.mlir_dump_path)
    triton_api.require_triton()
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

    for note in (untried_note(), note_of_restart(request.ended_in) if request.ended_in else ""):
        if note:
            sink(Note(note))
    with with_steps(sink, request) as watched_sink:
        watch = Watch(
            watched_sink,
            request,
            assumptions=assumptions_under_way,
            values=partial(known_values, most_bytes=request.data_limit_bytes),
        )
        watch.is_virtual = request.mode == "script" and not real
        if request.compiler_log:
            print_reasons(watch.native, verified=request.verifies_log, parts=request.log_parts)
        with (
            _telling_of_untried(),
            triton_api.private_cache(folder / "triton"),
            watch_compiles(watch),
        ):
            yield watch, begun, target


@contextmanager
def _telling_of_untried() -> Iterator[None]:
    """Raise MissingTool for what irscope looks for in vain in a Triton that it was not tried with."""
    try:
        yield
    except (AttributeError, ImportError, KeyError, TypeError) as error:
        if not untried_note():
            raise
        raise MissingTool(
            refusal_of(f"differs in what irscope reads of it ({type(error).__name__}: {error})")
        ) from error


@contextmanager
def with_steps(sink: EventSink, request: RecordRequest) -> Iterator[EventSink]:
    """A sink that adds to the events what is made beside the compiles: layouts, disassembly, Python files."""
    with steps_of_compiles(request) as steps, steps(sink, {}) as watched_sink:
        yield watched_sink


@contextmanager
def steps_of_compiles(request: RecordRequest) -> Iterator[Steps]:
    """Sinks as `with_steps` makes them, one after another, that ask the same process for layouts.

    Each is given the targets of the compiles that have begun.
    """

    @contextmanager
    def steps(sink: EventSink, targets: Mapping[int, Target]) -> Iterator[EventSink]:
        layout_steps = LayoutSteps(sink, server, targets) if request.layouts else contextlib.nullcontext(sink)
        with layout_steps as layout_sink, BinarySteps(layout_sink, request) as watched_sink:
            yield watched_sink

    with LayoutServer() as server:
        yield steps


def recorded_launches(watch: Watch, target: Target, real: bool) -> AbstractContextManager[None]:
    """Report the launches of what runs in the block: on the GPU if there is a `real` one, else on the virtual one."""
    from irscope.record.programs.launch_watch import real_launches, virtual_launches

    request = watch.request
    if not real:
        return virtual_launches(target, request.config, watch.report, dict(request.assume))
    if request.assume:
        watch.report(Note("--assume set nothing: the script ran on a GPU, where nothing is assumed."))
    return real_launches(watch.report, request.data_limit_bytes)


def _prints_to(log: str) -> bool:
    """Whether the standard error of this process goes to a file."""
    with contextlib.suppress(OSError):
        return bool(log) and os.path.samestat(os.fstat(2), os.stat(log))
    return False


def describe_environment(target: Target, gpu: str = "", *, real: bool = False) -> Begun:
    """Versions, platform and tools of this process.

    `gpu`: the name of the GPU that runs the launches. `real`: whether there is one.
    """
    torch_version = ""
    with contextlib.suppress(PackageNotFoundError):
        torch_version = version("torch")
    return Begun(
        irscope_version=__version__,
        triton_version=triton_version(),
        torch_version=torch_version,
        python_version=platform.python_version(),
        platform=platform.platform(),
        tools=triton_api.tool_versions(target),
        gpu=gpu,
        real=real,
    )


def _gpu_name() -> str:
    torch = sys.modules.get("torch")
    return str(torch.cuda.get_device_name()) if torch is not None else "a GPU"
