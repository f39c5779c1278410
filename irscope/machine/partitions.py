"""The partitions of a warp-specialised kernel: each runs until it waits for what another one does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from irscope.errors import NeverEnds


class _Stopped(Exception):
    """Another partition failed."""


class Partitions:
    """Hands one turn from partition to partition; each is a thread, of which one runs at a time."""

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._alive: list[int] = []
        """The partitions that are not at their end, the one whose turn it is first."""
        self._own = threading.local()
        self._idle = 0
        """Turns in a row in which nothing was done."""
        self._error: BaseException | None = None

    @property
    def number(self) -> int | None:
        """The partition that runs; None outside of specialised warps."""
        return getattr(self._own, "number", None)

    def run(self, tasks: Sequence[Callable[[], object]]) -> None:
        """Run all tasks to their ends; raises what the first one that fails raises."""
        self._alive, self._idle, self._error = list(range(len(tasks))), 0, None
        threads = [threading.Thread(target=self._run, args=(number, task)) for number, task in enumerate(tasks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error

    def _run(self, number: int, task: Callable[[], object]) -> None:
        self._own.number = number
        try:
            with np.errstate(all="ignore"):
                self._await_turn(number)
                task()
        except _Stopped:
            pass
        except BaseException as error:
            self._error = self._error or error
        finally:
            with self._turn:
                self._alive.remove(number)
                self._idle = 0
                self._turn.notify_all()
            self._own.number = None

    def _await_turn(self, number: int) -> None:
        with self._turn:
            self._turn.wait_for(lambda: self._alive[0] == number or self._error is not None)
        if self._error is not None:
            raise _Stopped

    def wait(self, is_ready: Callable[[], bool], what: str) -> None:
        """Wait until something is ready, which the partition itself or another one does.

        Raises NeverEnds if that never comes: every partition waits.
        """
        number = self.number
        while not is_ready():
            if number is None or self._idle > len(self._alive):
                raise NeverEnds(f"{what}: it waits for what never comes")
            with self._turn:
                self._idle += 1
                self._alive.append(self._alive.pop(0))
                self._turn.notify_all()
            self._await_turn(number)
        self._idle = 0
