"""The warm process that compiles variants: imports Triton once, then forks a worker for each request.

`python -m irscope.record.variants.fork_server FD` serves the socket FD; `messages` has the commands and the answers.
The worker leads a session of its own, so that it is ended with all that it started.

Forking is safe as long as this process has one thread and has made no MLIR context: it imports, and looks at
versions, but compiles nothing itself.
"""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from irscope.errors import IrscopeError
from irscope.model.capture import Target
from irscope.record.process.child import end_group
from irscope.record.process.codec import MessageReader, MessageWriter
from irscope.record.process.events import Refused
from irscope.record.process.parent import report_work
from irscope.record.process.requests import RecordRequest
from irscope.record.programs.recording import describe_environment
from irscope.record.programs.worker import work
from irscope.record.triton import api as triton_api
from irscope.record.triton.identity import compiler_fingerprint
from irscope.record.triton.versions import triton_version
from irscope.record.variants.messages import COMMANDS, Fork, Forked, Ready, Reap, Reaped

_CHUNK = 1 << 16


def main(descriptor: int) -> None:
    """Serve the socket until its other end is closed."""
    with socket.socket(fileno=descriptor) as control:
        answer = MessageWriter(descriptor)
        try:
            answer(_import_all())
        except IrscopeError as error:
            answer(Refused(type(error).__name__, str(error)))
            return
        # What is there by now stays as it is: no collection of a worker's touches, and so copies, its pages.
        gc.collect()
        gc.freeze()
        running: set[int] = set()
        try:
            for command, descriptors in _commands(control):
                if isinstance(command, Reap):
                    _, status = os.waitpid(command.pid, 0)
                    running.discard(command.pid)
                    answer(Reaped(os.waitstatus_to_exitcode(status)))
                else:
                    pid = _fork(control, command.request, *descriptors)
                    running.add(pid)
                    answer(Forked(pid))
        finally:
            # The pool is gone.
            for pid in running:
                end_group(pid)


def _import_all() -> Ready:
    triton_api.silence_known_noise()
    triton_api.require_triton()
    triton_api.backend_classes()
    import irscope.record.compile.recompile  # noqa: F401 - what a worker would import first

    return Ready(triton_version(), compiler_fingerprint())


def _commands(control: socket.socket) -> Iterator[tuple[Fork | Reap, list[int]]]:
    """(command, the descriptors that came with it), one after another."""
    reader = MessageReader(COMMANDS)
    descriptors: list[int] = []
    while True:
        data, received, _, _ = socket.recv_fds(control, _CHUNK, 2)
        descriptors += received
        if not data:
            return
        # The pool waits for each answer, so there is never a second command behind the first.
        for command in reader.feed(data):
            yield command, descriptors
            for number in descriptors:
                os.close(number)
            descriptors = []


def _fork(control: socket.socket, request: RecordRequest, events: int, log: int) -> int:
    _warm_up(request)
    pid = os.fork()
    if pid:
        return pid
    _serve(control, request, events, log)


def _warm_up(request: RecordRequest) -> None:
    """Do what every worker would do again: read the assembler's version, which is kept."""
    with contextlib.suppress(Exception):
        describe_environment(Target.parse(request.targets[0]))


def _serve(control: socket.socket, request: RecordRequest, events: int, log: int) -> NoReturn:
    code = 1
    try:
        os.setsid()
        control.close()
        os.dup2(log, 1)
        os.dup2(log, 2)
        # Beside the log: where this process is killed, whoever asked removes both.
        tempfile.tempdir = str(Path(request.log_path).parent)
        with tempfile.TemporaryDirectory(prefix="irscope-") as folder:
            code = report_work(MessageWriter(events), lambda sink: work(request, sink, Path(folder)))
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        # The pipe's end shows that the process is gone, so nothing closes it before that.
        os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]))
