"""Times the parts of one compile by the clock, where that is requested: nothing of this runs in a normal recording."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from irscope.model.evidence import CompileTimes, SpanKind, TimeSpan
from irscope.record.triton import api as triton_api
from irscope.record.triton.patches import Patches


@dataclass(slots=True)
class _Part:
    name: str
    kind: SpanKind
    start_ns: int
    depth: int
    duration_ns: int | None = None
    """None while it is under way."""

    def holds(self, moment_ns: int) -> bool:
        return self.duration_ns is None or moment_ns < self.start_ns + self.duration_ns


class _Timing:
    """The block of a part: hundreds of them are timed in a compile, and a generator takes three times as long."""

    __slots__ = ("_part", "_stopwatch")

    def __init__(self, stopwatch: Stopwatch, part: _Part) -> None:
        self._stopwatch, self._part = stopwatch, part

    def __enter__(self) -> None:
        self._stopwatch.begin(self._part)

    def __exit__(self, *_: object) -> None:
        self._stopwatch.end(self._part)


class Stopwatch:
    """The parts of one compile, in the order they begin."""

    def __init__(self, before: Iterable[TimeSpan] = ()) -> None:
        """`before`: parts that ended before the compile."""
        self._parts = [_Part(span.name, span.kind, span.start_ns, span.depth, span.duration_ns) for span in before]
        self._open = 0
        self._processor_ns = processor_ns()
        self.notes: list[str] = []

    def part(self, name: str, kind: SpanKind) -> _Timing:
        """Time a block."""
        # First its time: what is done here between two parts is in none of them.
        return _Timing(self, _Part(name, kind, time.perf_counter_ns(), self._open))

    def begin(self, part: _Part) -> None:
        self._parts.append(part)
        self._open += 1

    def end(self, part: _Part) -> None:
        self._open -= 1
        part.duration_ns = time.perf_counter_ns() - part.start_ns

    def add(self, spans: Iterable[TimeSpan]) -> None:
        """Add parts that were timed elsewhere, each within the innermost part around it."""
        rows = [(part.start_ns, part, 0) for part in self._parts]
        rows += [
            (span.start_ns, _Part(span.name, span.kind, span.start_ns, 0, span.duration_ns), span.depth + 1)
            for span in spans
        ]
        around: list[_Part] = []
        # One that starts with one of ours starts within it.
        for start_ns, part, depth in sorted(rows, key=lambda row: (row[0], row[2])):
            if depth:
                part.depth = sum(other.holds(start_ns) for other in around) + depth - 1
            else:
                del around[part.depth :]
                around.append(part)
        self._parts = [part for _, part, _ in sorted(rows, key=lambda row: (row[0], row[1].depth))]

    def result(self) -> CompileTimes:
        first = self._parts[0].start_ns if self._parts else 0
        spans = (
            TimeSpan(part.name, part.kind, part.start_ns - first, part.duration_ns or 0, part.depth)
            for part in self._parts
        )
        return CompileTimes(tuple(spans), processor_ns() - self._processor_ns, tuple(self.notes))

    def timed(self, name: str | Callable[..., str], kind: SpanKind, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose calls are timed; `name`: of each, or what gives it of the first arguments of a call."""

        @wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            with self.part(name if isinstance(name, str) else name(*args), kind):
                return function(*args, **keywords)

        return call


def processor_ns() -> int:
    """Nanoseconds of processor time of this process so far, and of the tools that it waited for."""
    import resource

    own, tools = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return int(1e9 * (own.ru_utime + own.ru_stime + tools.ru_utime + tools.ru_stime))


@contextmanager
def whole_compile(stopwatch: Stopwatch, name: str, backends: Iterable[type]) -> Iterator[None]:
    """Time a compile, and what it calls outside of its passes."""
    with ExitStack() as stack, Patches() as patches:
        for owner, attribute, title in list(triton_api.timed_functions(backends)):
            real, kind = vars(owner)[attribute], "front end" if title == "front end" else "call"
            if isinstance(real, staticmethod):
                patches.set(owner, attribute, staticmethod(stopwatch.timed(title, kind, real.__func__)))
            else:
                patches.set(owner, attribute, stopwatch.timed(title, kind, real))
        generator = triton_api.code_generator_class()
        # The front end, by the function that it reads: each called one within its caller.
        visit = stopwatch.timed(lambda _, node: str(node.name), "front end", generator.visit_FunctionDef)
        patches.set(generator, "visit_FunctionDef", visit)
        patches.set(subprocess, "run", stopwatch.timed(_program_of, "tool", subprocess.run))
        stack.enter_context(stopwatch.part(name, "compile"))
        yield


def _program_of(command: Any, *_: Any) -> str:
    program = command if isinstance(command, str) else str(command[0])
    return Path(program.split()[0]).name
