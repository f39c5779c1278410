"""Runs cases in forked workers that are limited in processor time and memory, and tells what went wrong in each."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irscope.errors import IrscopeError
from tests.hostile.viewing import LARGEST_BYTES, LONGEST_S, run_quietly

_GIVEN_UP_S = 600.0
"""When a worker is killed by the clock: it ran into neither limit, and does not end."""


@dataclass(frozen=True)
class Step:
    """One thing that is asked of what was mutated: a command line, or a reader."""

    name: str
    run: Callable[[], object] | tuple[str, ...]
    must_work: bool = False
    """Whether a command's exit code must be 0: what it reads is not mutated."""


@dataclass(frozen=True, order=True)
class Case:
    """One mutation, and all that is asked of it."""

    seed: int
    kind: str


StepsOf = Callable[[Case, Path], Iterable[Step]]


class _TooLong(BaseException):
    """Raised where a step used its processor time up; no `except Exception` of the product's takes it."""


def search(cases: Iterable[Case], steps_of: StepsOf, jobs: int, budget_s: float) -> Iterator[tuple[Case, list[str]]]:
    """(case, its faults) as they end.

    Begins no further case once this process and its workers have used `budget_s` seconds of processor time.
    """
    fork: Any = multiprocessing.get_context("fork")
    waiting = iter(cases)
    running: dict[Any, tuple[Case, Any, float]] = {}
    while True:
        while len(running) < jobs and used_s() < budget_s and (case := next(waiting, None)) is not None:
            ours, theirs = fork.Pipe(duplex=False)
            worker = fork.Process(target=_work, args=(case, steps_of, theirs))
            worker.start()
            theirs.close()
            running[ours] = (case, worker, time.monotonic())
        if not running:
            return
        pipes: list[Any] = multiprocessing.connection.wait(list(running), timeout=5)
        for pipe in pipes:
            case, worker, _ = running.pop(pipe)
            try:
                faults: list[str] = pipe.recv()
                worker.join()
            except EOFError:
                worker.join()
                faults = [f"the process ended with {worker.exitcode}"]
            yield case, faults
        for _, worker, began in running.values():
            if time.monotonic() - began > _GIVEN_UP_S:
                worker.kill()


def used_s() -> float:
    """The processor time of this process and of its workers that ended."""
    both = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in both)


def _work(case: Case, steps_of: StepsOf, pipe: Any) -> None:
    faults: list[str] = []
    with tempfile.TemporaryDirectory(prefix="irscope-hostile-") as folder:
        home = Path(folder) / "home"
        os.environ["IRSCOPE_HOME"] = str(home)
        # A step that asks this process's own standard input for something gets an end of file.
        sys.stdin = open(os.devnull)  # noqa: SIM115
        steps = list(steps_of(case, Path(folder)))
        _limit_memory()
        for step in steps:
            if fault := fault_of(step):
                faults.append(f"{step.name}: {fault}")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        if peak > LARGEST_BYTES:
            faults.append(f"{peak >> 20} MiB of memory")
        outside = [path.name for path in Path(folder).parent.glob("*escaped*")]
        faults += [f"written outside its folder: {name}" for name in outside]
    pipe.send(faults)


def _limit_memory() -> None:
    """Let this process have `LARGEST_BYTES` more than it has: past it, a MemoryError."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + LARGEST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def fault_of(step: Step) -> str:
    """What went wrong in a step, empty where nothing did: anything but an answer or an error of irscope's own."""

    def stop(*_: object) -> None:
        # Behind it, so that what swallows one does not go on for ever.
        signal.setitimer(signal.ITIMER_PROF, 1)
        raise _TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
    try:
        if isinstance(step.run, tuple):
            code, _, told = run_quietly(step.run)
            if (
                "internal error" in told
                or "not enough memory" in told
                or code not in ((0,) if step.must_work else (0, 1, 2))
            ):
                return f"exit {code}: {told[-300:].strip()}"
        else:
            with contextlib.suppress(IrscopeError):
                step.run()
    except _TooLong as error:
        return f"more than {LONGEST_S:g} s of processor time {_place(error)}"
    except BaseException as error:
        return f"{type(error).__name__}: {str(error)[:200]} {_place(error)}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return ""


def _place(error: BaseException) -> str:
    """Where in the product it was raised, or what called what raised it."""
    rows = [row for row in traceback.extract_tb(error.__traceback__) if "/irscope/" in row.filename]
    return f"({Path(rows[-1].filename).name}:{rows[-1].lineno} in {rows[-1].name})" if rows else ""
