"""`python -m irscope.record.process.fork_server FD`: a process that imports, forks and reaps as the socket FD says.

A fork becomes what a new process would be that runs a module: it leads a session, and has the environment, the working
folder and the descriptors that came with the command. Forking is safe as long as this process has one thread and has
made no MLIR context: it does nothing else. `child` is the other side.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from importlib.machinery import PathFinder, SourceFileLoader
from types import ModuleType

from irscope.errors import IrscopeError, RecordingError
from irscope.record.process.events import Refused
from irscope.record.process.messages import MOST_DESCRIPTORS, Answer, Fork, Import, MessageReader, MessageWriter, Reap

_CHUNK = 1 << 16
_ENVIRONMENT = dict(os.environ)
"""Before anything was imported. An interpreter that is a script of the user's sets variables of its own."""


def main(descriptor: int) -> None:
    # Where it is ignored, nobody learns how a process ended; a fork has what this process was started with.
    inherited = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with socket.socket(fileno=descriptor) as control:
        forked = _serve(control)
    if forked is not None:
        signal.signal(signal.SIGCHLD, inherited)
        # Not within the loop: an exception of the module's ends the fork as it would end a process.
        _run(*forked)


def _serve(control: socket.socket) -> tuple[Fork, int, int, int] | None:
    """The command and the descriptors that a fork is for; None at the end of the server."""
    answer = MessageWriter(control.fileno())
    running: set[int] = set()
    for command, descriptors in _commands(control):
        if isinstance(command, Import):
            answer(_imported(command))
        elif isinstance(command, Reap):
            _, status = os.waitpid(command.pid, 0)
            running.discard(command.pid)
            answer(Answer(command.number, os.waitstatus_to_exitcode(status)))
        else:
            pid = os.fork()
            if not pid:
                stdin, output, channel = descriptors
                return command, stdin, output, channel
            running.add(pid)
            answer(Answer(command.number, pid))
    for pid in running:
        end_group(pid)
    return None


def _imported(command: Import) -> Answer:
    value: tuple[str, ...] = ()
    module, _, name = command.function.partition(":")
    try:
        for required in filter(None, (*command.modules, module)):
            importlib.import_module(required)
        if name:
            value = getattr(sys.modules[module], name)()
    except IrscopeError as error:
        return Answer(command.number, refusal=Refused(type(error).__name__, str(error)))
    except Exception as error:
        return Answer(command.number, refusal=Refused(RecordingError.__name__, f"{type(error).__name__}: {error}"))
    # What is there by now stays as it is: no collection of a fork's touches, and so copies, its pages.
    gc.collect()
    gc.freeze()
    return Answer(command.number, value)


def _commands(control: socket.socket) -> Iterator[tuple[Import | Fork | Reap, list[int]]]:
    reader = MessageReader()
    descriptors: list[int] = []
    while True:
        data, received, _, _ = socket.recv_fds(control, _CHUNK, 3)
        descriptors += received
        if not data:
            return
        # A command to import may be followed by others at once; one to fork is waited for.
        for command in reader.feed(data):
            if not isinstance(command, Fork):
                yield command, []
                continue
            yield command, descriptors
            for number in descriptors:
                os.close(number)
            descriptors = []


def _run(command: Fork, stdin: int, output: int, channel: int) -> None:
    os.setsid()
    os.dup2(stdin, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.closerange(3, channel)
    os.closerange(channel + 1, MOST_DESCRIPTORS)
    os.environ.clear()
    os.environ.update(_ENVIRONMENT | command.changed)
    for name in command.removed:
        os.environ.pop(name, None)
    # What was read from the environment and the disk before.
    tempfile.tempdir = None
    importlib.invalidate_caches()
    with contextlib.suppress(OSError):
        os.chdir(command.folder)
    sys.argv[1:] = [str(channel)]
    _run_as_main(command.module)


def _run_as_main(name: str) -> None:
    """As `python -m` does; `runpy` would ask the finders of what this is a fork of, and pytest's gives no code."""
    if hasattr(importlib.import_module(name), "__path__"):
        name += ".__main__"
    package = sys.modules[name.rpartition(".")[0]]
    spec = PathFinder.find_spec(name, package.__path__)
    assert spec is not None
    assert isinstance(spec.loader, SourceFileLoader)
    code = spec.loader.get_code(name)
    assert code is not None
    main = sys.modules["__main__"] = ModuleType("__main__")
    vars(main).update(__spec__=spec, __package__=spec.parent, __file__=spec.origin, __loader__=spec.loader)
    sys.argv[0] = str(spec.origin)
    exec(code, vars(main))


def end_group(leader: int) -> None:
    for kill in (os.kill, os.killpg):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(leader, signal.SIGKILL)


if __name__ == "__main__":
    main(int(sys.argv[1]))
