"""Runs a script under a plan, in the child, and checks its launches against the same ones under the empty plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch

from irscope.analysis.measurement import Agreement
from irscope.errors import IrscopeError
from irscope.plan import PassPlan
from irscope.record.device_baselines import other_baselines
from irscope.record.device_kernels import SeenLaunch, launch, watched_launches
from irscope.record.device_launch import Compiles, compile_again, end_in_fault, first_line, is_broken, keep
from irscope.record.device_watch import is_timed_now
from irscope.record.events import Event, EventSink
from irscope.record.request import RecordRequest
from irscope.record.watched_compile import Watch
from irscope.record.worker import work


def check_script(request: RecordRequest, sink: EventSink, folder: Path, wanted: int | None, every: bool) -> None:
    """Run the script and check its launches: the first of each compile or every one; of number `wanted`, if given."""
    compiles = Compiles(sink)

    @contextmanager
    def around(watch: Watch) -> Iterator[None]:
        with watched_launches(_Checker(compiles, watch, sink, wanted, every).on_launch):
            yield

    work(request, compiles, folder, around)


class _Checker:
    def __init__(self, compiles: Compiles, watch: Watch, sink: EventSink, wanted: int | None, every: bool) -> None:
        self._compiles = compiles
        self._watch = watch
        self._sink = sink
        self._wanted = wanted
        self._every = every
        self._baselines: dict[int, Any] = {}
        self._counts: dict[int, int] = {}
        """Launches of each compile so far, those that autotuning times left out."""

    def on_launch(self, seen: SeenLaunch, proceed: Callable[[], Any]) -> Any:
        """Check a launch, if it is to be checked, and make it."""
        number = self._compiles.number_of(seen.kernel)
        if torch.cuda.is_current_stream_capturing():
            return proceed()
        where = {"launch": number or 0, "count": 0, "kernel": seen.kernel_name, "grid": list(seen.grid)}
        if number is not None and not is_timed_now():
            where["count"] = self._counts[number] = self._counts.get(number, 0) + 1
            if (self._every or where["count"] == 1) and self._wanted in (None, number):
                agreement = self._agreement(seen, number, where)
                self._sink(Event("checked", {**where, "agreement": agreement.as_json()}))
        return self._guarded(proceed, where)

    def _agreement(self, seen: SeenLaunch, number: int, where: dict[str, Any]) -> Agreement:
        try:
            baseline = self._baseline(seen.kernel, number)
            kept = keep(seen, baseline)
        except IrscopeError as error:
            return Agreement("failed", detail=str(error))
        except Exception as error:
            return Agreement("failed", detail=f"it does not compile under the empty plan: {first_line(error)}")

        def run(kernel: Any) -> None:
            launch(kernel, seen.grid, kept.arguments)
            torch.cuda.synchronize()

        empty = {**where, "plan": "empty"}

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
        alive = partial(self._sink, Event("alive"))
        try:
            return self._guarded(lambda: kept.check(partial(run, seen.kernel), alive), where)
        except Exception as error:
            return Agreement("failed", detail=first_line(error))

    def _guarded(self, proceed: Callable[[], Any], where: dict[str, Any]) -> Any:
        """Make a launch and wait for it: a fault is then this launch's, not one's that came later."""
        self._sink(Event("launch-begins", where))
        try:
            result = proceed()
            torch.cuda.synchronize()
        except Exception as error:
            if is_broken():
                end_in_fault(first_line(error), self._sink, **where)
            raise
        finally:
            self._sink(Event("launch-ended"))
        return result

    def _baseline(self, kernel: Any, number: int) -> Any:
        """The same source compiled under the empty plan, once."""
        if number not in self._baselines:
            self._baselines[number] = self._compiled(kernel, self._compiles.options[number])
        return self._baselines[number]

    def _compiled(self, kernel: Any, options: dict[str, Any]) -> Any:
        watch = self._watch
        before = watch.plan, watch.sink, watch.snapshots
        # Not told of: what is recorded is the plan's own compile.
        watch.plan, watch.sink, watch.snapshots = PassPlan(), lambda _: None, "none"
        try:
            return compile_again(kernel, options)
        finally:
            watch.plan, watch.sink, watch.snapshots = before
