"""Ends a child of irscope, and all that it started, when its parent is gone."""

from __future__ import annotations

import os
import signal

MOST_DESCRIPTORS = 4096


def end_with_parent(descriptor: int) -> None:
    """Have this process's group ended once the other end of a pipe is closed, however that comes.

    A process in the group waits for it: it works on every system, while the compiler runs, and when this process is
    gone but what it started is not. To be called before there are threads, in a process that leads its group.
    """
    if os.getpgrp() != os.getpid():
        # Started by hand: the group is a shell's.
        return
    try:
        pid = os.fork()
    except OSError:
        return
    if pid:
        os.waitpid(pid, 0)
        return
    try:
        # No child of this process's, which may wait for all of its own.
        if os.fork() == 0:
            _wait(descriptor)
    finally:
        os._exit(0)


def _wait(descriptor: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    # Above all the pipe of events, whose end shows that the recording process is gone.
    os.dup2(descriptor, 0)
    os.closerange(1, MOST_DESCRIPTORS)
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)
