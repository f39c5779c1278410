"""What runs side by side, partitions of a warp-specialised kernel or programs: each until it waits for another one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from irscope.errors import NeverEnds

_Result = TypeVar("_Result")


class _Stopped(Exception):
    """Another partition failed."""


class Partitions:
    """Hands one turn from partition to partition; each is a thread, of which one runs at a time.

    Programs of a launch that wait for one another are handed turns alike. A thread starts when it is its turn first.
    """

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._alive: list[int] = []
        """The partitions that are not at their end, the one whose turn it is first."""
        self._own = threading.local()
        self._idle = 0
        """Turns in a row in which nothing was done."""
        self._error: BaseException | None = None
        self._waits: dict[int | None, tuple[Callable[[], str], Any]] = {}
        """Partition → what it waits for, and the operation that does."""

    @property
    def number(self) -> int | None:
        """The partition that runs; None outside of specialised warps."""
        return getattr(self._own, "number", None)

    def run(self, tasks: Sequence[Callable[[], _Result]]) -> list[_Result]:
        """Run all tasks to their ends; returns their results, and raises what the first one that fails raises."""
        results: dict[int, _Result] = {}

        def run_task(number: int) -> None:
            results[number] = tasks[number]()

        self._alive, self._idle, self._error = list(range(len(tasks))), 0, None
        threads: dict[int, threading.Thread] = {}
        try:
            while True:
                with self._turn:
                    self._turn.wait_for(lambda: not self._alive or self._error or self._alive[0] not in threads)
                    if not self._alive or self._error is not None:
                        break
                    number = self._alive[0]
                    threads[number] = threading.Thread(target=self._run, args=(number, partial(run_task, number)))
                threads[number].start()
        except BaseException as error:
            # An interrupt: none of them waits for a turn that does not come.
            with self._turn:
                self._error = error
                self._turn.notify_all()
        for thread in threads.values():
            thread.join()
        if self._error is not None:
            raise self._error
        return [results[number] for number in range(len(tasks))]

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

    def wait(self, is_ready: Callable[[], bool], what: Callable[[], str], operation: Any) -> None:
        """Wait until something is ready; raises NeverEnds, with `what` and each operation, if every partition waits."""
        number = self.number
        while not is_ready():
            self._waits[number] = what, operation
            if number is None or self._idle > len(self._alive):
                waits = self._waits.values()
                raise NeverEnds(" and ".join(text() for text, _ in waits), tuple(one for _, one in waits))
            self._pass_turn(number)
        self._waits.pop(number, None)
        self._idle = 0

    def pause(self, number: int, is_idle: bool) -> bool:
        """Let the others run, in a loop that waits for them; false if all are in such loops, and none does more.

        `is_idle`: whether the last iteration left everything as it was.
        """
        if not is_idle:
            self._idle = 0
        elif self._idle > len(self._alive):
            return False
        self._pass_turn(number)
        return True

    def _pass_turn(self, number: int) -> None:
        with self._turn:
            self._idle += 1
            self._alive.append(self._alive.pop(0))
            self._turn.notify_all()
        self._await_turn(number)
