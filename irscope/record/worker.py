"""The recording process: does what a RecordRequest asks for, and tells of it as events.

`python -m irscope.record` reads the request from standard input and writes its events to the pipe whose number it is
given. The user's script runs here, the compiler may abort here: whatever happens, what was told stays told.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import platform
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from irscope.capture import Target
from irscope.errors import IrscopeError
from irscope.plan import PassPlan
from irscope.record import triton_api
from irscope.record.architectures import check_architecture
from irscope.record.binary_steps import BinarySteps
from irscope.record.compiles import Watch, watch_compiles
from irscope.record.events import Event, EventSink, EventWriter
from irscope.record.launches import (
    describe_traceback,
    find_kernel,
    import_file,
    parse_signature,
    run_script,
)
from irscope.record.layout_steps import LayoutSteps
from irscope.record.lifeline import end_with_parent
from irscope.record.request import RecordRequest

DEFAULT_TARGET = "cuda:90"

AroundScript = Callable[[Watch], AbstractContextManager[None]]
"""What else is in place while a script runs."""


def main(event_descriptor: int) -> None:
    """Do what the request on standard input asks for, a line; ends the process."""
    request = RecordRequest.from_json(sys.stdin.readline())
    end_with_parent(0)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    sys.stdin = open(os.devnull)  # noqa: SIM115 - stays open for the script
    with os.fdopen(event_descriptor, "wb", buffering=0) as stream:
        sink = EventWriter(stream)
        code = 0
        try:
            # The parent's folder, which it removes: this process may end in any way.
            work(request, sink, Path(request.log_path).parent)
            atexit._run_exitfuncs()
        except IrscopeError as error:
            sink(Event("error", {"error": type(error).__name__, "message": str(error)}))
            code = 1
        sink(Event("done"))
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    if request.mlir_dump_path:
        # MLIR writes the end of its dump when the process ends of itself.
        sys.exit(code)
    # Tearing torch and the compiler down takes time, and prints notes that say nothing of the kernel.
    os._exit(code)


def work(request: RecordRequest, sink: EventSink, folder: Path, around: AroundScript | None = None) -> None:
    """Record in this process, with what it needs on disk in `folder`; `around` is entered for the script's run."""
    triton_api.silence_known_noise()
    # In this process, where it can be watched, not in workers of its own.
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
    if request.mlir_dump_path:
        os.environ.update(MLIR_ENABLE_DUMP="1", MLIR_DUMP_PATH=request.mlir_dump_path)
    triton_api.require_triton()
    present = None if request.virtual or request.mode != "script" else triton_api.present_gpu()
    asked = Target.parse(request.targets[0]) if request.targets else None
    target = asked or present or Target.parse(request.launch_target or DEFAULT_TARGET)
    triton_api.make_backend(target)
    if asked is not None:
        check_architecture(asked)
    real = present is not None and present == target
    sink(Event("begin", {**describe_environment(target), "gpu": _gpu_name() if real else "", "real": real}))

    layout_steps = LayoutSteps(sink) if request.layouts else contextlib.nullcontext(sink)
    with layout_steps as layout_sink, BinarySteps(layout_sink, request) as watched_sink:
        watch = Watch(
            sink=watched_sink,
            plan=PassPlan.parse(request.plan),
            snapshots=request.snapshots,
            llvm_passes=request.llvm_passes,
            tap=not request.mlir_dump_path,
            log_path=request.log_path,
            limit_s=request.limit_s,
            resume=(request.resume_stage, request.resume_after),
            constants=dict(request.constants),
            wanted=lambda name: not request.kernel or request.kernel == name,
        )
        with triton_api.private_cache(folder / "triton"), watch_compiles(watch):
            if request.mode == "script":
                _script(request, watch, target, real, around)
            elif request.mode == "signature":
                _signature(request, watch, target)
            else:
                _text(request, watch, target)


def _script(request: RecordRequest, watch: Watch, target: Target, real: bool, around: AroundScript | None) -> None:
    from irscope.record.child_processes import watched_children
    from irscope.record.device_watch import real_launches, virtual_launches

    launches = (
        real_launches(watch.emit)
        if real
        else virtual_launches(target, request.configs, watch.emit, dict(request.assume))
    )
    if real and request.assume:
        watch.emit("note", text="--assume set nothing: the script ran on a GPU, where nothing is assumed.")
    try:
        with launches, watched_children(watch), around(watch) if around is not None else contextlib.nullcontext():
            run_script(Path(request.path), request.arguments)
    except IrscopeError:
        raise
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else (0 if stop.code is None else 1)
        watch.emit("script-end", code=code, message="" if code == 0 else f"it exited with {stop.code!r}", frames="")
    except BaseException as error:
        described = describe_traceback(error)
        own = watch.last_error is not None and error is watch.last_error
        watch.emit("script-end", code=1, message=described["message"], frames=described["frames"], of_compile=own)
    else:
        watch.emit("script-end", code=0, message="", frames="")


def _signature(request: RecordRequest, watch: Watch, target: Target) -> None:
    from irscope.record.device_watch import virtual_launches
    from irscope.record.retarget import left_out_of_pointers

    path = Path(request.path)
    backend = triton_api.make_backend(target)
    triton_api.check_options(backend, target, dict(request.options))
    with virtual_launches(target, "first", lambda *_, **__: None):
        try:
            namespace = import_file(path)
        except IrscopeError:
            raise
        except BaseException as error:
            described = describe_traceback(error)
            watch.emit("script-end", code=1, message=described["message"], frames=described["frames"])
            return
        function = find_kernel(namespace, request.kernel, path)
        signature, constants, attributes = parse_signature(function, request.signature, dict(request.constexprs))
        attributes = {path: backend.parse_attr("D") for path in attributes}
        named = {function.arg_names[path[0]]: tuple(map(tuple, rows)) for path, rows in attributes.items()}
        if lost := left_out_of_pointers(backend, signature, named):
            watch.emit("note", text=f"Compiled from a signature: {lost}.")
        src = triton_api.ast_source(function, signature, constants, attributes)
        # A compile that fails is told of as one: nothing is left to do here.
        with contextlib.suppress(Exception):
            triton_api.compile_function()(src, target=triton_api.gpu_target(target), options=dict(request.options))


def _text(request: RecordRequest, watch: Watch, target: Target) -> None:
    from irscope.record.recompile import compile_text

    try:
        compile_text(request, watch, target)
    except IrscopeError:
        raise
    except Exception:
        # Told of as a failed compile.
        return


def describe_environment(target: Target) -> dict[str, Any]:
    """Versions, platform and tools of this process, as JSON."""
    from importlib.metadata import PackageNotFoundError, version

    from irscope import __version__

    torch_version = ""
    with contextlib.suppress(PackageNotFoundError):
        torch_version = version("torch")
    return {
        "irscope_version": __version__,
        "triton_version": triton_api.triton_version(),
        "torch_version": torch_version,
        "python_version": platform.python_version(),
        "platform": platform.platform(),
        "tools": triton_api.tool_versions(target),
    }


def _gpu_name() -> str:
    torch = sys.modules.get("torch")
    return str(torch.cuda.get_device_name()) if torch is not None else "a GPU"
