"""SIGINT, SIGTERM and SIGHUP as one exception, and blocks that delay them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)  # Windows has no SIGHUP.


class Interrupted(BaseException):
    """A signal asked the process to end. Not a KeyboardInterrupt, which Typer would turn into an exit code itself."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def signal_of(error: BaseException) -> int:
    return error.number if isinstance(error, Interrupted) else int(signal.SIGINT)


def exit_code(error: BaseException) -> int:
    """The exit code of an interrupted command, as in a shell: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + signal_of(error)


def raise_on_signals() -> None:
    """Make the signals raise Interrupted from now on; signals that are ignored stay ignored."""
    for number in _SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _raise)


def _raise(number: int, frame: object) -> None:
    if number != signal.SIGINT:
        _ignore()
    raise Interrupted(number)


def _ignore() -> None:
    """Ignore further signals: the process is ending, and a signal to its group may arrive more than once."""
    for number in _SIGNALS:
        if signal.getsignal(number) == _raise:
            signal.signal(number, signal.SIG_IGN)


@dataclass(slots=True)
class Noted:
    """The first signal that arrived in a block."""

    number: int = 0
    """0 if none arrived."""

    def take(self, number: int, frame: object) -> None:
        """The signal handler: note the signal."""
        self.number = self.number or number


@contextmanager
def noted_signals() -> Iterator[Noted]:
    """Note signals until the end of the block instead of raising, so that its work is completed.

    Handlers other than Python's own and that of `raise_on_signals` are kept; outside of the main thread all are.
    If an error ends the block after a signal, that interruption is raised instead of it.
    """
    noted = Noted()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    ours = {number: handler for number, handler in before.items() if handler in (_raise, signal.default_int_handler)}
    if threading.current_thread() is not threading.main_thread():
        ours = {}
    for number in ours:
        signal.signal(number, noted.take)
    try:
        yield noted
    except Exception as error:
        if noted.number and ours[noted.number] == signal.default_int_handler:
            raise KeyboardInterrupt from error
        if noted.number:
            raise Interrupted(noted.number) from error
        raise
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
        if noted.number:
            _ignore()
