"""Child processes that are forks of one that has imported what they would, which saves each half a second."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

from irscope.errors import IrscopeError
from irscope.record.process.child import Start, child_environment, starts_children
from irscope.record.process.forks.server import ForkServer, ServedProcess, fork_server
from irscope.record.process.own_folder import own_folder

__all__ = ["warm_children"]

_READ_LATE = ("COLUMNS", "NO_COLOR", "PYTEST_CURRENT_TEST", "TRITON_CACHE_DIR")
"""Environment variables that nothing reads when it is imported; nor those of irscope."""
_PREFIX_READ_LATE = "IRSCOPE_"


@contextmanager
def warm_children() -> Iterator[None]:
    """Fork the children of this thread, until the end of the block, from processes that have imported their modules.

    Each is started for the first child that could use it. A child of another interpreter is a new process, and so is
    one whose environment differs from the present one in a variable that may be read on import.
    """
    with _Warm() as warm, starts_children(warm.started):
        yield


class _Warm:
    """The fork servers, by what they have imported."""

    def __init__(self) -> None:
        self._held = ExitStack()
        self._servers: dict[tuple[str, ...], ForkServer | None] = {}
        """None for one that could not be started."""
        self._interpreter = sys.executable
        self._environment = _read_early(child_environment())

    def __enter__(self) -> _Warm:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def started(self, start: Start) -> ServedProcess | None:
        """A fork for a child; None if it has to be a new process."""
        # Without the first there is no way to learn of the end of what is no child of this process.
        if (
            not hasattr(os, "pidfd_open")
            or not start.ahead
            or (start.interpreter or sys.executable) != self._interpreter
        ):
            return None
        if _read_early(start.environment) != self._environment:
            return None
        if start.ahead not in self._servers:
            self._servers[start.ahead] = None
            with contextlib.suppress(IrscopeError, OSError):
                self._servers[start.ahead] = self._new_server(start.ahead)
        server = self._servers[start.ahead]
        if server is None:
            return None
        try:
            return server.fork(start)
        except (IrscopeError, OSError):
            # The server is gone; what it forked ends with it.
            self._servers[start.ahead] = None
            return None

    def _new_server(self, modules: tuple[str, ...]) -> ForkServer:
        with ExitStack() as stack:
            # A server is no fork of a server: it has nothing ahead.
            server = stack.enter_context(fork_server(stack.enter_context(own_folder())))
            server.imported(server.begin_import(modules))
            self._held.push(stack.pop_all())
            return server


def _read_early(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that may have been read when a module was imported."""
    return {
        name: value
        for name, value in environment.items()
        if name not in _READ_LATE and not name.startswith(_PREFIX_READ_LATE)
    }
