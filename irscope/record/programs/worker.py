"""The process that records: it does what a RecordRequest or a CompileJob asks for, and reports it as events.

`python -m irscope.record FD` reads commands from the socket FD, and writes its events to it. The compiler may abort
here: events already written survive that.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from irscope.device.parts import part_of
from irscope.errors import IrscopeError, RecordingError
from irscope.model.capture import Target
from irscope.model.plain import tupled
from irscope.record.compile.hand_over import Handover
from irscope.record.compile.launches import describe_traceback, find_kernel, parse_signature
from irscope.record.compile.watch import Watch, finished, watch_compiles
from irscope.record.process import events
from irscope.record.process.events import EventSink
from irscope.record.process.messages import flush_streams, serve_parent
from irscope.record.process.own_folder import parent_of_temporaries
from irscope.record.process.requests import CompileJob, RecordRequest, default_jobs
from irscope.record.programs.joining import program_environment, recorded_processes
from irscope.record.programs.recording import recorded_launches, recording
from irscope.record.programs.running import import_program, move_to_scratch_copy, run_program
from irscope.record.triton import api as triton_api
from irscope.record.triton.driver import install_driver
from irscope.record.triton.identity import compiler_fingerprint
from irscope.record.triton.patches import Patches
from irscope.record.triton.versions import triton_version

_INTERRUPTED, _UNWRITTEN = 130, 120
"""The exit codes of a program that a KeyboardInterrupt ends, as a shell tells it, and of one with unwritten output."""

_AroundScript = Callable[[Watch], AbstractContextManager[None]]
"""What else is in place while a script runs."""


def main(descriptor: int) -> None:
    """Do one request that comes through a socket, or compiles, one after another; ends the process."""
    ends_by_itself = False

    def serve(commands: Iterator[RecordRequest | CompileJob], sink: EventSink) -> None:
        nonlocal ends_by_itself
        for command in commands:
            if isinstance(command, CompileJob):
                _resume(command, sink)
                flush_streams()
                sink(events.JobEnded(command.number))
                continue
            # MLIR writes the end of its dump when the process ends by itself.
            ends_by_itself = bool(command.mlir_dump_path)
            # The parent's folder, which it removes: this process may end in any way.
            work(command, sink, Path(command.log_path).parent)
            atexit._run_exitfuncs()
            return

    code = serve_parent(descriptor, serve)
    if ends_by_itself:
        sys.exit(code)
    # Tearing torch and the compiler down takes time, and prints notes that say nothing of the kernel.
    os._exit(code)


def import_compiler() -> tuple[str, str]:
    """Import what a worker would first, and compile nothing; returns Triton's version and its fingerprint."""
    triton_api.silence_known_noise()
    triton_api.require_triton()
    triton_api.backend_classes()
    import irscope.record.compile.recompile  # noqa: F401

    return triton_version(), compiler_fingerprint()


def _resume(job: CompileJob, sink: EventSink) -> None:
    """Go on with a compile as its process would have, and leave the kernel in that one's cache."""
    if dict(os.environ) != job.environment:
        os.environ.clear()
        os.environ.update(job.environment)
    triton_api.silence_known_noise()
    triton_api.require_triton()
    target = Target.parse(job.target)
    watch = Watch(sink, replace(job.request, stored=()), is_virtual=True)
    with ExitStack() as stack:
        stack.enter_context(triton_api.private_cache(Path(job.cache)))
        stack.enter_context(watch_compiles(watch))
        current = watch.resume(job)
        stack.callback(watch.end)

        def parse(context: Any) -> None:
            current.module = triton_api.parse_text(job.module, context, parent_of_temporaries())

        source = triton_api.parsed_source(job, parse)
        options = tupled(job.options)

        def compiled() -> Any:
            return triton_api.compile_function()(source, target=triton_api.gpu_target(target), options=options)

        # What the compile raises is reported.
        with contextlib.suppress(Exception):
            kernel = finished(current, compiled, options)
            if (error := _load_error(kernel, target)) is not None:
                sink(events.LoadFailed(job.number, type(error).__name__, f"{type(error).__name__}: {error}"))


def _load_error(kernel: Any, target: Target) -> Exception | None:
    with Patches() as patches:
        install_driver(part_of(f"{target.backend}:{target.arch}"), target.arch, None, None, patches)
        try:
            kernel._init_handles()
        except Exception as error:
            return error
    return None


def work(request: RecordRequest, sink: EventSink, folder: Path, around: _AroundScript | None = None) -> None:
    """Record in this process, with what it needs on disk in `folder`; `around` is entered for the script's run."""
    if request.dry and request.mode != "text":
        move_to_scratch_copy(folder)
    if request.way == "command":
        _become_command(request, folder)
    with recording(request, sink, folder) as (watch, begun, target):
        if request.mode == "script":
            if not begun.real:
                watch.handover = _handover(watch, folder)
            _script(watch, begun, target, folder, around)
        elif request.mode == "signature":
            _signature(watch, target)
        else:
            _text(watch, target)


def _become_command(request: RecordRequest, folder: Path) -> NoReturn:
    os.environ.update(program_environment(folder))
    program, *_ = request.arguments
    try:
        os.execvp(program, list(request.arguments))
    except OSError as error:
        raise RecordingError(
            f"the command {program!r} cannot be run: {error.strerror}. A script is run by its Python: "
            "irscope record -- python SCRIPT."
        ) from error


def _handover(watch: Watch, folder: Path) -> Handover | None:
    request = watch.request
    # A launch that is run needs its IR at once.
    if (
        request.computes
        or (request.jobs or default_jobs()) == 1
        or request.compiler_log
        or request.times
        or request.mlir_dump_path
        or request.constants
    ):
        return None
    return Handover(folder)


def _script(watch: Watch, begun: events.Begun, target: Target, folder: Path, around: _AroundScript | None) -> None:
    launches = recorded_launches(watch, target, begun.real)
    others = recorded_processes(watch, begun, folder)
    process = os.getpid()
    with launches, others:
        end = _run(watch, around, process)
        if around is None:
            # As Python ends: what these launch is recorded too. A process that goes on with a launch has not ended:
            # no executor takes work after this.
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
        if os.getpid() != process:
            # A process that the program forked leaves the rest to its parent.
            flush_streams()
            os._exit(end.code)
    watch.report(end if end.code else _with_streams(end))


def _run(watch: Watch, around: _AroundScript | None, process: int) -> events.ScriptEnd:
    # What is around it may end the program at a launch.
    end = events.ScriptEnd(0)
    try:
        with around(watch) if around is not None else contextlib.nullcontext():
            end = run_program(watch)
    except IrscopeError:
        raise
    except SystemExit as stop:
        # The system takes the last byte.
        code = stop.code & 0xFF if isinstance(stop.code, int) else int(stop.code is not None)
        return events.ScriptEnd(code, "" if code == 0 else f"it exited with {stop.code!r}")
    except BaseException as error:
        if os.getpid() != process:
            traceback.print_exception(error)
        described = describe_traceback(error)
        own = watch.last_error is not None and error is watch.last_error
        code = _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
        return events.ScriptEnd(code, described["message"], described["frames"], of_compile=own)
    return end


def _with_streams(end: events.ScriptEnd) -> events.ScriptEnd:
    """The end of a program as Python tells it, whose streams can perhaps not write what they hold back."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None or getattr(stream, "closed", False):
            continue
        try:
            stream.flush()
        except Exception as error:
            problem = f"its output could not be written: {type(error).__name__}: {error}"
            return events.ScriptEnd(_UNWRITTEN, "\n".join(filter(None, [end.message, problem])))
    return end


def _signature(watch: Watch, target: Target) -> None:
    from irscope.record.compile.recompile import left_out_of_pointers
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
            watch.report(events.ScriptEnd(1, described["message"], described["frames"]))
            return
        function = find_kernel(namespace, request.kernel, path)
        signature, constants, attributes = parse_signature(function, request.signature or "", dict(request.constexprs))
        attributes = {path: backend.parse_attr("D") for path in attributes}
        named = {function.arg_names[path[0]]: tuple(map(tuple, rows)) for path, rows in attributes.items()}
        if lost := left_out_of_pointers(backend, signature, named):
            watch.report(events.Note(f"Compiled from a signature: {lost}."))
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
