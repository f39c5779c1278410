"""A worker of the pool of variants: it does one request. It is a fork of a process that has imported Triton."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path

from irscope.model.capture import Target
from irscope.record.process.codec import MessageWriter
from irscope.record.process.parent import read_commands, report_work
from irscope.record.process.requests import RecordRequest
from irscope.record.programs.recording import describe_environment
from irscope.record.programs.worker import work
from irscope.record.triton import api as triton_api
from irscope.record.triton.identity import compiler_fingerprint
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
    """Do the request that comes through a socket; ends the process."""
    request = next(read_commands(descriptor, (RecordRequest,)))
    folder = Path(request.log_path).parent
    # The pool removes it, however this process ends.
    tempfile.tempdir = str(folder)
    code = report_work(MessageWriter(descriptor), lambda sink: work(request, sink, folder))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
