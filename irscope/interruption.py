"""SIGINT, SIGTERM and SIGHUP as one exception, and blocks in which they are only noted."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)  # Windows has no SIGHUP.


class Interrupted(BaseException):
    """A signal that asks the process to end. Not a KeyboardInterrupt: Typer would make an exit code of that itself."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def exit_code(error: BaseException) -> int:
    """What a command exits with that an interruption ended, as a shell has it: 130 for ^C, 143 for SIGTERM."""
    return 128 + (error.number if isinstance(error, Interrupted) else signal.SIGINT)


def raise_on_signals() -> None:
    """Let the signals raise Interrupted from now on, for a command; one that is ignored stays so."""
    for number in SIGNALS:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _raise)


def _raise(number: int, frame: object) -> None:
    if number != signal.SIGINT:
        _ignore()
    raise Interrupted(number)


def _ignore() -> None:
    """The process is on its way out: what a group is sent comes more than once."""
    for number in SIGNALS:
        if signal.getsignal(number) == _raise:
            signal.signal(number, signal.SIG_IGN)


@dataclass(slots=True)
class Noted:
    """The first signal that came."""

    number: int = 0
    """0 where none came."""

    def take(self, number: int, frame: object) -> None:
        """Note a signal, as its handler."""
        self.number = self.number or number


@contextmanager
def noted_signals() -> Iterator[Noted]:
    """Note the signals within the block in place of raising: what it does is done whole.

    Handlers that are neither Python's own nor `raise_on_signals`'s stay, as does every handler outside the main thread.
    An error that ends the block after a signal becomes that interruption.
    """
    noted = Noted()
    before = {number: signal.getsignal(number) for number in SIGNALS}
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
