"""The process that records: it does what a RecordRequest or a CompileJob asks for, and reports it as events.

`python -m irscope.record FD` reads commands from the socket FD, and writes its events to it. The user's script runs
here, and the compiler may abort here: events already written survive that. The workers of a recording and of a pool are
such processes too: they make compiles that need no script, those that a script's process began and those from a stage's
text.
"""

from __future__ import annotations

import atexit
import contextlib
import linecache
import os
import platform
import re
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NoReturn

from irscope import __version__
from irscope.device.parts import part_of
from irscope.errors import IrscopeError, MissingTool, RecordingError
from irscope.ir.quoted import unescape_ir
from irscope.model.capture import Environment, Target
from irscope.model.plain import tupled
from irscope.record.compile.hand_over import Handover
from irscope.record.compile.launches import describe_traceback, find_kernel, parse_signature
from irscope.record.compile.watch import Watch, finished, watch_compiles
from irscope.record.process.events import (
    ArtifactMade,
    Begun,
    CompileBegun,
    EventSink,
    JobEnded,
    LoadFailed,
    Note,
    RecordingEvent,
    ScriptEnd,
    SourceRead,
)
from irscope.record.process.messages import flush_streams, serve_parent
from irscope.record.process.own_folder import parent_of_temporaries
from irscope.record.process.requests import CompileJob, RecordRequest, default_jobs
from irscope.record.programs.joining import program_environment, recorded_processes
from irscope.record.programs.running import import_program, move_to_scratch_copy, run_program
from irscope.record.triton import api as triton_api
from irscope.record.triton.driver import install_driver
from irscope.record.triton.identity import check_architecture, compiler_fingerprint
from irscope.record.triton.patches import Patches
from irscope.record.triton.reasons import print_reasons
from irscope.record.triton.versions import refusal_of, require_names, triton_version, untried_note
from irscope.record.virtual.arguments import assumptions_under_way, known_values

__all__ = [
    "DEFAULT_TARGET",
    "SourceFiles",
    "describe_environment",
    "import_compiler",
    "main",
    "read_tools",
    "recorded_launches",
    "recording",
    "work",
]

DEFAULT_TARGET = "cuda:90"
_MOST_SOURCE_BYTES = 4 << 20
_INTERRUPTED, _UNWRITTEN = 130, 120
"""The exit codes of a program that a KeyboardInterrupt ends, as a shell tells it, and of one with unwritten output."""

# #loc1 = loc("/kernels/matmul.py":31:20)   |   loc("<stdin>":4:8)   |   loc("/kernels/matmul.ipynb#cell3":4:8)
_LOCATION_FILE = re.compile(r'loc\("([^"\n]+(?:\.py|>|\.ipynb#cell\d+))":\d+:\d+')

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
                sink(JobEnded(command.number))
                continue
            # MLIR writes the end of its dump when the process ends by itself.
            ends_by_itself = bool(command.mlir_dump_path)
            # The parent's folder, which it removes: this process may end in any way.
            work(command, sink, Path(command.log_path).parent)
            atexit._run_exitfuncs()
            return

    code = serve_parent(descriptor, (RecordRequest, CompileJob), serve)
    if ends_by_itself:
        sys.exit(code)
    # Tearing torch and the compiler down takes time, and prints notes that say nothing of the kernel.
    os._exit(code)


def import_compiler() -> tuple[str, str]:
    """Import what a worker would first; returns Triton's version and a text that changes with every rebuild of it.

    For the process that workers are forked from, which may have one thread and no MLIR context: it compiles nothing.
    """
    triton_api.silence_known_noise()
    triton_api.require_triton()
    triton_api.backend_classes()
    import irscope.record.compile.recompile  # noqa: F401

    return triton_version(), compiler_fingerprint()


def read_tools(target: str) -> tuple[()]:
    """Read what every worker would read again, and Triton keeps: the assembler's version."""
    with contextlib.suppress(Exception):
        describe_environment(Target.parse(target))
    return ()


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
                sink(LoadFailed(job.number, type(error).__name__, f"{type(error).__name__}: {error}"))


def _load_error(kernel: Any, target: Target) -> Exception | None:
    """What the part raises as it loads a kernel, if it does."""
    with Patches() as patches:
        install_driver(part_of(f"{target.backend}:{target.arch}"), target.arch, None, None, patches)
        try:
            kernel._init_handles()
        except Exception as error:
            return error
    return None


def work(
    request: RecordRequest,
    sink: EventSink,
    folder: Path,
    around: _AroundScript | None = None,
) -> None:
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


def _handover(watch: Watch, folder: Path) -> Handover | None:
    """What hands the compiles of launches over; None where all is compiled here, one after another."""
    request = watch.request
    if (request.jobs or default_jobs()) == 1 or request.compiler_log or request.mlir_dump_path or request.constants:
        return None
    return Handover(folder)


def _script(watch: Watch, begun: Begun, target: Target, folder: Path, around: _AroundScript | None) -> None:
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


def _run(watch: Watch, around: _AroundScript | None, process: int) -> ScriptEnd:
    # What is around it may end the program at a launch.
    end = ScriptEnd(0)
    try:
        with around(watch) if around is not None else contextlib.nullcontext():
            end = run_program(watch)
    except IrscopeError:
        raise
    except SystemExit as stop:
        code = int(stop.code) if isinstance(stop.code, int) else (0 if stop.code is None else 1)
        return ScriptEnd(code, "" if code == 0 else f"it exited with {stop.code!r}")
    except BaseException as error:
        if os.getpid() != process:
            traceback.print_exception(error)
        described = describe_traceback(error)
        own = watch.last_error is not None and error is watch.last_error
        code = _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
        return ScriptEnd(code, described["message"], described["frames"], of_compile=own)
    return end


def _with_streams(end: ScriptEnd) -> ScriptEnd:
    """The end of a program as Python tells it, whose streams can perhaps not write what they hold back."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None or getattr(stream, "closed", False):
            continue
        try:
            stream.flush()
        except Exception as error:
            problem = f"its output could not be written: {type(error).__name__}: {error}"
            return ScriptEnd(_UNWRITTEN, "\n".join(filter(None, [end.message, problem])))
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


@contextmanager
def recording(
    request: RecordRequest, sink: EventSink, folder: Path, *, joined: bool = False
) -> Iterator[tuple[Watch, Begun, Target]]:
    """Report the compiles of this process until the end of the block; what it needs on disk is in `folder`.

    `joined`: whether this is a process of the program's own, which need not print to the log of the recording.

    Yields what watches the compiles, the event that it began with, and the target.
    """
    with _telling_of_untried(), _recording(request, sink, folder, joined=joined) as begun:
        yield begun


@contextmanager
def _recording(
    request: RecordRequest, sink: EventSink, folder: Path, *, joined: bool
) -> Iterator[tuple[Watch, Begun, Target]]:
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

    if untried := untried_note():
        sink(Note(untried))
    watch = Watch(
        SourceFiles(sink, request),
        request,
        assumptions=assumptions_under_way,
        values=partial(known_values, most_bytes=request.data_limit_bytes),
    )
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
            refusal_of(f"differs in what irscope reads of it ({type(error).__name__}: {error})")
        ) from error


class SourceFiles:
    """A sink that passes events on, and adds the Python files of the artifacts that it sees."""

    def __init__(self, sink: EventSink, request: RecordRequest) -> None:
        self._sink = sink
        self._is_wanted = request.mode != "text"
        self._files: set[str] = set()

    def __call__(self, event: RecordingEvent) -> None:
        """Pass an event on, and add what it names."""
        self._sink(event)
        if not self._is_wanted:
            return
        if isinstance(event, CompileBegun):
            self._report(event.launch.kernel.file)
        elif isinstance(event, ArtifactMade) and event.stage == "source" and isinstance(event.data, str):
            for path in dict.fromkeys(_LOCATION_FILE.findall(event.data)):
                self._report(unescape_ir(path))

    def _report(self, path: str) -> None:
        if not path or path in self._files:
            return
        self._files.add(path)
        file = Path(path)
        if file.suffix == ".py" and file.is_file() and file.stat().st_size <= _MOST_SOURCE_BYTES:
            self._sink(SourceRead(path, file.read_text("utf-8", "replace")))
        elif path in linecache.cache and (lines := linecache.getlines(path)):
            # A cell of a notebook, or standard input.
            self._sink(SourceRead(path, "".join(lines)))


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
    environment = Environment(
        irscope_version=__version__,
        triton_version=triton_version(),
        torch_version=torch_version,
        python_version=platform.python_version(),
        platform=platform.platform(),
        tools=tuple(sorted(triton_api.tool_versions(target).items())),
        gpu=gpu,
    )
    return Begun(environment, real, str(triton_api.nvidia_tools().get("nvdisasm", "")))


def _gpu_name() -> str:
    torch = sys.modules.get("torch")
    return str(torch.cuda.get_device_name()) if torch is not None else "a GPU"
