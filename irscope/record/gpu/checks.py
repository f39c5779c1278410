"""Runs a script under a plan, in the child, and checks its launches against the same ones under the empty plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from irscope.device.measurement import Agreement
from irscope.errors import IrscopeError
from irscope.plan import PassPlan
from irscope.record.compile.watched_compile import Watch
from irscope.record.gpu import messages
from irscope.record.gpu.baselines import other_baselines
from irscope.record.gpu.kernels import SeenLaunch, launch, watched_launches
from irscope.record.gpu.launch import Compiles, compile_again, end_in_fault, first_line, is_broken, keep_arguments
from irscope.record.process.events import EventSink
from irscope.record.programs.worker import work
from irscope.record.triton.autotuner import is_timing


def check_script(command: messages.CheckScript, sink: EventSink, folder: Path) -> None:
    """Run the script and check its launches."""
    compiles = Compiles(sink)

    @contextmanager
    def around(watch: Watch) -> Iterator[None]:
        with watched_launches(_Checker(compiles, watch, sink, command).on_launch):
            yield

    work(command.request, compiles, folder, around)


class _Checker:
    def __init__(self, compiles: Compiles, watch: Watch, sink: EventSink, command: messages.CheckScript) -> None:
        self._compiles = compiles
        self._watch = watch
        self._sink = sink
        self._wanted = command.launch
        self._every = command.every
        self._baselines: dict[int, Any] = {}
        self._counts: dict[int, int] = {}
        """Launches of each compile so far, those that autotuning times left out."""

    def on_launch(self, seen: SeenLaunch, proceed: Callable[[], Any]) -> Any:
        """Check a launch, if it is to be checked, and make it."""
        number = self._compiles.number_of(seen.kernel)
        if torch.cuda.is_current_stream_capturing():
            return proceed()
        where = messages.LaunchPlace(number or 0, 0, seen.kernel_name, seen.grid)
        if number is not None and not is_timing():
            count = self._counts[number] = self._counts.get(number, 0) + 1
            where = replace(where, count=count)
            if (self._every or count == 1) and self._wanted in (None, number):
                self._sink(messages.LaunchChecked(where, self._agreement(seen, number, where)))
        return self._guarded(proceed, where)

    def _agreement(self, seen: SeenLaunch, number: int, where: messages.LaunchPlace) -> Agreement:
        try:
            baseline = self._baseline(seen.kernel, number)
            kept = keep_arguments(seen, baseline)
        except IrscopeError as error:
            return Agreement("failed", detail=str(error))
        except Exception as error:
            return Agreement("failed", detail=f"it does not compile under the empty plan: {first_line(error)}")

        def run(kernel: Any) -> None:
            launch(kernel, seen.grid, kept.arguments)
            torch.cuda.synchronize()

        empty = replace(where, empty_plan=True)

        def others() -> Iterator[tuple[str, Callable[[], None]]]:
            options = self._compiles.options[number]
            for label, kernel in other_baselines(
                baseline, options, lambda own: self._compiled(baseline, options | own)
            ):
                yield label, partial(run, kernel)

        try:
            self._guarded(lambda: kept.take_reference(partial(run, baseline), others), empty)
        except Exception as error:
            return Agreement("failed", detail=f"under the empty plan already: {first_line(error)}")
        alive = partial(self._sink, messages.Alive())
        try:
            return self._guarded(lambda: kept.check(partial(run, seen.kernel), alive), where)
        except Exception as error:
            return Agreement("failed", detail=first_line(error))

    def _guarded(self, proceed: Callable[[], Any], where: messages.LaunchPlace) -> Any:
        """Make a launch and wait for it: a fault is then this launch's, not one's that came later."""
        self._sink(messages.LaunchBegun(where))
        try:
            result = proceed()
            torch.cuda.synchronize()
        except Exception as error:
            if is_broken():
                end_in_fault(first_line(error), self._sink, where)
            raise
        finally:
            self._sink(messages.LaunchEnded())
        return result

    def _baseline(self, kernel: Any, number: int) -> Any:
        """The same source compiled under the empty plan, once."""
        if number not in self._baselines:
            self._baselines[number] = self._compiled(kernel, self._compiles.options[number])
        return self._baselines[number]

    def _compiled(self, kernel: Any, options: dict[str, Any]) -> Any:
        watch = self._watch
        before = watch.request, watch.sink
        # Not reported: what is recorded is the plan's own compile.
        watch.request, watch.sink = replace(watch.request, plan=PassPlan(), snapshots="none"), lambda _: None
        try:
            return compile_again(kernel, options)
        finally:
            watch.request, watch.sink = before
