"""The warm process that compiles variants: imports Triton once, then forks a worker for each request.

`python -m irscope.record.zygote FD` serves the socket FD. Each message is one line of JSON: `{"compile": REQUEST}`
comes with two file descriptors (the pipe for the worker's events, the file for what it prints) and is answered with the
worker's process id; `{"wait": PID}` is answered with how that worker ended. The worker is a session of its own, so that
whatever it starts can be ended with it. A first line tells what was imported, or why nothing could be.

Forking is safe as long as this process has one thread and has made no MLIR context: it imports, and looks at
versions, but compiles nothing itself.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

from irscope.capture import Target
from irscope.errors import IrscopeError
from irscope.record import triton_api
from irscope.record.compiler_identity import compiler_fingerprint
from irscope.record.events import Event, EventWriter
from irscope.record.request import RecordRequest
from irscope.record.worker import describe_environment, work

_CHUNK = 1 << 16


def main(descriptor: int) -> None:
    """Serve the socket until its other end is closed."""
    with socket.socket(fileno=descriptor) as control:
        try:
            _say(control, _import_all())
        except IrscopeError as error:
            _say(control, {"error": type(error).__name__, "message": str(error)})
            return
        # What is there by now stays as it is: no collection of a worker's touches, and so copies, its pages.
        gc.collect()
        gc.freeze()
        running: set[int] = set()
        try:
            for message, descriptors in _messages(control):
                if "wait" in message:
                    _, status = os.waitpid(message["wait"], 0)
                    running.discard(message["wait"])
                    _say(control, {"code": os.waitstatus_to_exitcode(status)})
                else:
                    pid = _fork(control, message["compile"], *descriptors)
                    running.add(pid)
                    _say(control, {"pid": pid})
        finally:
            # Whoever asked is gone.
            for pid in running:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)


def _import_all() -> dict[str, Any]:
    triton_api.silence_known_noise()
    triton_api.require_triton()
    triton_api.backend_classes()
    import irscope.record.recompile  # noqa: F401 - what a worker would import first

    return {"triton_version": triton_api.triton_version(), "compiler": compiler_fingerprint()}


def _messages(control: socket.socket) -> Any:
    """(message, the descriptors that came with it), one after another."""
    buffer = bytearray()
    descriptors: list[int] = []
    while True:
        data, received, _, _ = socket.recv_fds(control, _CHUNK, 2)
        descriptors += received
        if not data:
            return
        buffer += data
        # The other end waits for each answer, so there is never a second message behind the first.
        if buffer.endswith(b"\n"):
            message = json.loads(buffer)
            yield message, descriptors
            for number in descriptors:
                os.close(number)
            buffer.clear()
            descriptors = []


def _say(control: socket.socket, message: dict[str, Any]) -> None:
    control.sendall(json.dumps(message).encode() + b"\n")


def _fork(control: socket.socket, text: str, events: int, log: int) -> int:
    request = RecordRequest.from_json(text)
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
        with open(events, "wb", buffering=0, closefd=False) as stream:
            sink = EventWriter(stream)
            try:
                with tempfile.TemporaryDirectory(prefix="irscope-") as folder:
                    work(request, sink, Path(folder))
                code = 0
            except IrscopeError as error:
                sink(Event("error", {"error": type(error).__name__, "message": str(error)}))
            sink(Event("done"))
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        # The pipe's end tells that the process is gone, so nothing closes it before that.
        os._exit(code)


if __name__ == "__main__":
    main(int(sys.argv[1]))
