"""A worker: it makes compiles that need no script, those that a script's process began and those from a stage's text.

It is a fork of a process that has imported Triton (`irscope.record.process.warm`). `python -m
irscope.record.programs.compile_worker FD` serves the socket FD.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from irscope.device.parts import part_of
from irscope.model.capture import Target
from irscope.model.plain import tupled
from irscope.record.compile.watch import Watch, finished, watch_compiles
from irscope.record.process.events import EventSink, JobEnded, LoadFailed
from irscope.record.process.messages import MessageWriter, flush_streams, read_commands, report_work
from irscope.record.process.requests import CompileJob, RecordRequest
from irscope.record.programs.recording import describe_environment
from irscope.record.programs.worker import work
from irscope.record.triton import api as triton_api
from irscope.record.triton.driver import install_driver
from irscope.record.triton.identity import compiler_fingerprint
from irscope.record.triton.patches import Patches
from irscope.record.triton.versions import triton_version

__all__ = ["import_compiler", "main", "read_tools"]


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


def main(descriptor: int) -> None:
    """Do one request that comes through a socket, or compiles, one after another; ends the process."""

    def serve(sink: EventSink) -> None:
        for command in read_commands(descriptor, (RecordRequest, CompileJob)):
            folder = Path(_request_of(command).log_path).parent
            # The parent removes it, however this process ends.
            tempfile.tempdir = str(folder)
            if isinstance(command, RecordRequest):
                work(command, sink, folder)
                return
            _resume(command, sink)
            flush_streams()
            sink(JobEnded(command.number))

    code = report_work(MessageWriter(descriptor), serve)
    flush_streams()
    os._exit(code)


def _request_of(command: RecordRequest | CompileJob) -> RecordRequest:
    return command if isinstance(command, RecordRequest) else command.request


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
            with tempfile.NamedTemporaryFile("w", suffix=".mlir", encoding="utf-8", errors="surrogateescape") as file:
                file.write(job.module)
                file.flush()
                current.module = triton_api.parse_module(Path(file.name), context)

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


if __name__ == "__main__":
    main(int(sys.argv[1]))
