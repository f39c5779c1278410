"""Times the parts of one compile by the clock, where that is requested: nothing of this runs in a normal recording."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from time import perf_counter_ns
from typing import Any, cast

from irscope.ir.logs.time_trace import Part
from irscope.model.evidence import SpanKind
from irscope.record.triton import api as triton_api
from irscope.record.triton.patches import Patches

_NOTHING = nullcontext()


class Stopwatch:
    """Notes the parts of one compile, in the order they begin: hundreds, so each is a list, timed by this itself."""

    def __init__(self) -> None:
        self._begun: list[list[Any]] = []
        self._under_way: list[list[Any]] = []
        self._processor_ns = processor_ns()

    def part(self, name: str, kind: SpanKind) -> AbstractContextManager[None]:
        under_way = self._under_way
        if kind == "irscope" and under_way and under_way[-1][1] == "irscope":
            return _NOTHING
        # As `Part` has it, without a duration until it ends.
        part = [name, kind, perf_counter_ns(), 0, len(under_way)]
        self._begun.append(part)
        under_way.append(part)
        return self

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        part = self._under_way.pop()
        part[3] = perf_counter_ns() - part[2]

    def parts(self) -> tuple[Part, ...]:
        return cast("tuple[Part, ...]", tuple(map(tuple, self._begun)))

    def used_ns(self) -> int:
        return processor_ns() - self._processor_ns


_Current = Callable[[], Stopwatch | None]


def processor_ns() -> int:
    """Nanoseconds of processor time of this process so far, and of the tools that it waited for."""
    import resource

    own, tools = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return int(1e9 * (own.ru_utime + own.ru_stime + tools.ru_utime + tools.ru_stime))


@contextmanager
def timed_calls(current: _Current, backends: Iterable[type]) -> Iterator[None]:
    """Time what compiles call outside of their passes: for all of them at once, since Python caches look-ups."""
    with Patches() as patches:
        for owner, attribute, title in list(triton_api.timed_functions(backends)):
            real, kind = vars(owner)[attribute], "front end" if title == "front end" else "call"
            if isinstance(real, staticmethod):
                patches.set(owner, attribute, staticmethod(_timed(current, title, kind, real.__func__)))
            else:
                patches.set(owner, attribute, _timed(current, title, kind, real))
        generator = triton_api.code_generator_class()
        # The front end, by the function that it reads: each called one within its caller.
        visit = _timed(current, lambda _, node: str(node.name), "front end", generator.visit_FunctionDef)
        patches.set(generator, "visit_FunctionDef", visit)
        patches.set(subprocess, "run", _timed(current, _program_of, "tool", subprocess.run))
        yield


def _timed(
    current: _Current, name: str | Callable[..., str], kind: SpanKind, function: Callable[..., Any]
) -> Callable[..., Any]:

    def call(*args: Any, **keywords: Any) -> Any:
        if (stopwatch := current()) is None:
            return function(*args, **keywords)
        with stopwatch.part(name if isinstance(name, str) else name(*args), kind):
            return function(*args, **keywords)

    return call


def _program_of(command: Any, *_: Any) -> str:
    program = command if isinstance(command, str) else str(command[0])
    return Path(program.split()[0]).name
