"""The recording process: does what a RecordRequest asks for, and reports it as events.

`python -m irscope.record FD` reads the request from the socket FD, and writes its events to it. The user's script runs
here, and the compiler may abort here: events already written survive that.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NoReturn

from irscope import __version__
from irscope.errors import IrscopeError, RecordingError
from irscope.model.capture import Target
from irscope.record.binaries.steps import BinarySteps
from irscope.record.compile.launches import describe_traceback, find_kernel, parse_signature
from irscope.record.compile.watch import Watch, watch_compiles
from irscope.record.layouts.steps import LayoutSteps
from irscope.record.process.events import Begun, EventSink, Note, ScriptEnd
from irscope.record.process.parent import serve_parent
from irscope.record.process.requests import RecordRequest
from irscope.record.programs.joining import program_environment, recorded_processes
from irscope.record.programs.running import import_program, run_program
from irscope.record.programs.scratch import move_to_scratch_copy
from irscope.record.triton import api as triton_api
from irscope.record.triton.architectures import check_architecture
from irscope.record.triton.debug_output import print_reasons
from irscope.record.triton.native_calls import note_of_restart
from irscope.record.triton.versions import triton_version, untried_note
from irscope.record.virtual.arguments import assumptions_under_way

_DEFAULT_TARGET = "cuda:90"

_AroundScript = Callable[[Watch], AbstractContextManager[None]]
"""What else is in place while a script runs."""


def main(descriptor: int) -> None:
    """Do what the request asks for that comes through a socket; ends the process."""
    ends_by_itself = False

    def record(requests: Iterator[RecordRequest], sink: EventSink) -> None:
        nonlocal ends_by_itself
        request = next(requests)
        # MLIR writes the end of its dump when the process ends by itself.
        ends_by_itself = bool(request.mlir_dump_path)
        # The parent's folder, which it removes: this process may end in any way.
        work(request, sink, Path(request.log_path).parent)
        atexit._run_exitfuncs()

    code = serve_parent(descriptor, (RecordRequest,), record)
    if ends_by_itself:
        sys.exit(code)
    # Tearing torch and the compiler down takes time, and prints notes that say nothing of the kernel.
    os._exit(code)


def work(request: RecordRequest, sink: EventSink, folder: Path, around: _AroundScript | None = None) -> None:
    """Record in this process, with what it needs on disk in `folder`; `around` is entered for the script's run."""
    if request.dry and request.mode != "text":
        move_to_scratch_copy(folder)
    if request.way == "command":
        become_command(request, folder)
    with recording(request, sink, folder) as (watch, begun, target):
        if request.mode == "script":
            _script(watch, begun, target, folder, around)
        elif request.mode == "signature":
            _signature(watch, target)
        else:
            _text(watch, target)


def become_command(request: RecordRequest, folder: Path) -> NoReturn:
    """Run the command of a request in place of this process; raises RecordingError if there is no such program."""
    os.environ.update(program_environment(folder))
    program, *_ = request.arguments
    try:
        os.execvp(program, list(request.arguments))
    except OSError as error:
        raise RecordingError(
            f"the command {program!r} cannot be run: {error.strerror}. A script is run by its Python: "
            "irscope record -- python SCRIPT."
        ) from error


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
    present = None if request.virtual or request.mode != "script" else triton_api.present_gpu()
    asked = Target.parse(request.targets[0]) if request.targets else None
    target = asked or present or Target.parse(request.compiled_target or _DEFAULT_TARGET)
    triton_api.make_backend(target)
    if asked is not None:
        check_architecture(asked)
    real = present is not None and present == target
    begun = describe_environment(target, _gpu_name() if real else "", real=real)
    sink(begun)

    for note in (untried_note(), note_of_restart(request.ended_in) if request.ended_in else ""):
        if note:
            sink(Note(note))
    with with_steps(sink, request) as watched_sink:
        watch = Watch(watched_sink, request, assumptions=assumptions_under_way)
        if request.compiler_log:
            print_reasons(watch.native)
        with triton_api.private_cache(folder / "triton"), watch_compiles(watch):
            yield watch, begun, target


@contextmanager
def with_steps(sink: EventSink, request: RecordRequest) -> Iterator[EventSink]:
    """A sink that adds to the events what is made beside the compiles: layouts, disassembly, Python files."""
    layout_steps = LayoutSteps(sink) if request.layouts else contextlib.nullcontext(sink)
    with layout_steps as layout_sink, BinarySteps(layout_sink, request) as steps:
        yield steps


def recorded_launches(watch: Watch, target: Target, real: bool) -> AbstractContextManager[None]:
    """Report the launches of what runs in the block: on the GPU if there is a `real` one, else on the virtual one."""
    from irscope.record.programs.launch_watch import real_launches, virtual_launches

    request = watch.request
    if not real:
        return virtual_launches(target, request.config, watch.report, dict(request.assume))
    if request.assume:
        watch.report(Note("--assume set nothing: the script ran on a GPU, where nothing is assumed."))
    return real_launches(watch.report)


def _prints_to(log: str) -> bool:
    """Whether the standard error of this process goes to a file."""
    with contextlib.suppress(OSError):
        return bool(log) and os.path.samestat(os.fstat(2), os.stat(log))
    return False


def _script(watch: Watch, begun: Begun, target: Target, folder: Path, around: _AroundScript | None) -> None:
    launches = recorded_launches(watch, target, begun.real)
    others = recorded_processes(watch, begun, folder)
    try:
        with launches, others, around(watch) if around is not None else contextlib.nullcontext():
            end = run_program(watch)
    except IrscopeError:
        raise
    except SystemExit as stop:
        code = int(stop.code) if isinstance(stop.code, int) else (0 if stop.code is None else 1)
        watch.report(ScriptEnd(code, "" if code == 0 else f"it exited with {stop.code!r}"))
    except BaseException as error:
        described = describe_traceback(error)
        own = watch.last_error is not None and error is watch.last_error
        watch.report(ScriptEnd(1, described["message"], described["frames"], of_compile=own))
    else:
        watch.report(end)


def _signature(watch: Watch, target: Target) -> None:
    from irscope.record.compile.retarget import left_out_of_pointers
    from irscope.record.programs.launch_watch import virtual_launches

    request = watch.request
    path = Path(request.path)
    backend = triton_api.make_backend(target)
    triton_api.check_options(backend, target, dict(request.options))
    with virtual_launches(target, "first", lambda event: None):
        try:
            namespace = import_program(request)
        except IrscopeError:
            raise
        except BaseException as error:
            described = describe_traceback(error)
            watch.report(ScriptEnd(1, described["message"], described["frames"]))
            return
        function = find_kernel(namespace, request.kernel, path)
        signature, constants, attributes = parse_signature(function, request.signature or "", dict(request.constexprs))
        attributes = {path: backend.parse_attr("D") for path in attributes}
        named = {function.arg_names[path[0]]: tuple(map(tuple, rows)) for path, rows in attributes.items()}
        if lost := left_out_of_pointers(backend, signature, named):
            watch.report(Note(f"Compiled from a signature: {lost}."))
        src = triton_api.ast_source(function, signature, constants, attributes)
        # A compile that fails was reported as such.
        with contextlib.suppress(Exception):
            triton_api.compile_function()(src, target=triton_api.gpu_target(target), options=dict(request.options))


def _text(watch: Watch, target: Target) -> None:
    from irscope.record.compile.recompile import compile_text

    try:
        compile_text(watch, target)
    except IrscopeError:
        raise
    except Exception:
        # Reported as a failed compile.
        return


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
