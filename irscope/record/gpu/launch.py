"""A script on the GPU, in the child: one launch kept with copies of its inputs for variants, or each launch checked."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import torch

from irscope.device.measurement import Agreement
from irscope.errors import DeviceFault, IrscopeError, RecordingError
from irscope.plan import PassPlan
from irscope.record.compile.recompile import chosen_options
from irscope.record.compile.watched_compile import Watch
from irscope.record.gpu import messages
from irscope.record.gpu.kernels import (
    SeenLaunch,
    arithmetic_of,
    launch,
    other_baselines,
    pointer_uses_of,
    watched_launches,
    with_binary,
)
from irscope.record.gpu.memory import KeptArguments
from irscope.record.gpu.noise import float_format
from irscope.record.process import events
from irscope.record.process.events import EventSink
from irscope.record.programs.worker import work
from irscope.record.triton import api as triton_api
from irscope.record.triton.autotuner import is_timing

_POISONS = (0, 1)
_HEADER = "memory.json"


def store_inputs(arguments: KeptArguments, folder: Path, alive: Callable[[], None] = lambda: None) -> None:
    (folder / _HEADER).write_text(json.dumps(_header(arguments)), "utf-8")
    for number, storage in enumerate(arguments.storages):
        if not storage.is_output:
            torch.save(storage.pristine.cpu(), folder / str(number))
            alive()


def take_inputs(arguments: KeptArguments, folder: Path, alive: Callable[[], None] = lambda: None) -> str:
    """Put stored inputs in the place of a launch's own, whose reference ends; returns why not, or an empty text."""
    if json.loads((folder / _HEADER).read_text("utf-8")) != _header(arguments):
        return "the two launches differ in scalars or tensors, or in their use of them"
    floats: list[tuple[torch.Tensor, torch.Tensor]] = []
    for number, storage in enumerate(arguments.storages):
        if storage.is_output:
            continue
        given = torch.load(folder / str(number), weights_only=True).to(storage.pristine.device)
        alive()
        if torch.equal(given, storage.pristine):
            continue
        if storage.mixed or float_format(storage.dtype) is None:
            return f"{storage.name} holds other integers when the other environment runs the script"
        floats.append((storage.pristine, given))
    for own, given in floats:
        own.copy_(given)
    return ""


def store_outputs(
    arguments: KeptArguments, run: Callable[[], None], folder: Path, alive: Callable[[], None] = lambda: None
) -> None:
    """Launch with each poison, and store the memory that the launch changes."""
    for poison in _POISONS:
        arguments.fill(poison)
        run()
        for number, storage in enumerate(arguments.storages):
            if storage.reference is not None:
                torch.save(storage.body.cpu(), folder / f"{poison}-{number}")
                alive()


def check_outputs(arguments: KeptArguments, folder: Path, alive: Callable[[], None] = lambda: None) -> Agreement:
    """Compare what `store_outputs` of another process stored with what this launch leaves, as a variant's runs are."""
    poisons = cycle(_POISONS)

    def put() -> None:
        poison = next(poisons)
        for number, storage in enumerate(arguments.storages):
            path = folder / f"{poison}-{number}"
            # What the other launch left alone is as it was at the launch.
            if path.exists():
                storage.body.copy_(torch.load(path, weights_only=True))
                alive()

    return arguments.check(put, alive, most=len(_POISONS))


def _header(arguments: KeptArguments) -> list[object]:
    """What must be the same of two launches: their numbers, the memory behind their tensors, what becomes of it."""
    memory = [[row.names, row.pristine.numel(), str(row.dtype), row.is_output] for row in arguments.storages]
    return [[repr(value) for value in arguments.arguments if isinstance(value, (bool, int, float))], memory]


class _StopScript(BaseException):
    """Ends a script at the launch that was wanted; no error, and not for the script to catch."""


class _NumberedCompiles:
    def __init__(self, sink: EventSink) -> None:
        self._sink = sink
        self._numbers: dict[int, int] = {}
        self._by_hash: dict[str, int] = {}
        self.options: dict[int, dict[str, Any]] = {}

    def __call__(self, event: events.RecordingEvent) -> None:
        self._sink(event)
        if isinstance(event, events.CompileBegun):
            self._numbers[event.n] = len(self._numbers) + 1
        elif isinstance(event, events.OptionsKnown):
            self.options[self._numbers[event.n]] = event.options
        elif isinstance(event, events.CompileEnded):
            self._by_hash.setdefault(event.hash, self._numbers[event.n])

    def number_of(self, kernel: Any) -> int | None:
        """Which compile made a CompiledKernel; None for one that is not recorded."""
        return self._by_hash.get(kernel.hash)


class _PinnedLaunch:
    def __init__(self, number: int, seen: SeenLaunch, options: dict[str, Any], sink: EventSink) -> None:
        self.sink = sink
        self.number = number
        self.options = options
        self.kernel = seen.kernel
        self.grid = seen.grid
        self.device = torch.cuda.current_device()
        self.kept = keep_arguments(seen, seen.kernel)
        self._variants: dict[str, tuple[Any, tuple[int, int, int] | None]] = {}
        """Key → Triton's CompiledKernel, and its grid if it has one of its own."""

    def run(self, kernel: Any, grid: tuple[int, int, int] | None = None, wait: bool = True) -> None:
        launch(kernel, grid or self.grid, self.kept.arguments)
        if wait:
            torch.cuda.synchronize()

    def prepare(self) -> None:
        torch.cuda.set_device(self.device)
        self._alive()
        try:
            self.kept.take_reference(partial(self.run, self.kernel), self._others)
        except Exception as error:
            raise DeviceFault(f"{self.kernel.name} cannot be run as it is: {first_line(error)}") from error
        arguments = zip(self.kernel.src.fn.arg_names, self.kept.arguments, strict=True)
        self.sink(
            messages.LaunchInfo(
                launch=self.number,
                device=torch.cuda.get_device_name(self.device),
                bytes=self.kept.compulsory_bytes,
                outputs=tuple(storage.name for storage in self.kept.storages if storage.reference is not None),
                noise=self.kept.noise,
                scalars=tuple((name, value) for name, value in arguments if isinstance(value, (int, float))),
                l2_bytes=getattr(torch.cuda.get_device_properties(self.device), "L2_cache_size", None),
            )
        )

    def _others(self) -> Iterator[tuple[str, Callable[[], None]]]:
        return _other_runs(self.kernel, self.options, partial(compile_again, self.kernel), self.run)

    def do(self, command: messages.Do) -> None:
        """Call one of the methods below, and answer; a fault of the GPU is reported and ends the process."""
        try:
            value = getattr(self, command.method)(*command.arguments)
        except IrscopeError as error:
            self.sink(events.Refused(type(error).__name__, str(error)))
        else:
            self.sink(messages.Answered(value))

    def load(self, key: str, metadata: dict[str, Any], binary: bytes, grid: tuple[int, int, int] | None = None) -> None:
        self._variants[key] = with_binary(self.kernel, binary, metadata), grid

    def check(self, key: str) -> Agreement:
        run = partial(self.run, *self._variants[key])
        return self._guarded(lambda: self.kept.check(run, self._alive))

    def time(self, keys: tuple[str, ...], rounds: int, cold: bool) -> tuple[tuple[float, ...], ...]:
        """Microseconds in each round of the launch's own kernel, of that loaded once more, and of each variant."""
        from irscope.record.gpu.timing import time_launches

        # Its own program once more, loaded elsewhere: what that differs from itself is noise.
        again = with_binary(self.kernel, self.kernel.kernel, {})
        kernels = [(self.kernel, None), (again, None), *(self._variants[key] for key in keys)]
        times: list[list[float]] = []

        def measure() -> Agreement:
            self.kept.fill()
            runs = [partial(self.run, *kernel, wait=False) for kernel in kernels]
            times.extend(time_launches(runs, rounds, cold, self.kept.refill_changed, self._alive))
            return Agreement("identical")

        ended = self._guarded(measure)
        if not ended.passes:
            raise DeviceFault(f"the timing stopped: {ended.detail}")
        return tuple(map(tuple, times))

    def profile(self, key: str) -> None:
        kernel, grid = self._variants[key]
        self.kept.fill()
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        self.run(kernel, grid)
        torch.cuda.profiler.stop()

    def ceilings(self, dtype: str) -> messages.CeilingsMeasured:
        from irscope.record.gpu.timing import copy_bytes_per_second, matmul_flops_per_second

        bytes_per_s = copy_bytes_per_second()
        self._alive()
        return messages.CeilingsMeasured(bytes_per_s, matmul_flops_per_second(dtype) if dtype else None)

    def store_inputs(self, folder: str) -> None:
        store_inputs(self.kept, Path(folder), self._alive)

    def make_again(self, inputs: str, outputs: str) -> str:
        """Launch on the inputs that another process stored, and store what that leaves; or say why not."""
        why_not: list[str] = []

        def make() -> Agreement:
            why_not.append(take_inputs(self.kept, Path(inputs), self._alive))
            if not why_not[0]:
                run = partial(self.run, self.kernel)
                self.kept.take_reference(run, self._others)
                store_outputs(self.kept, run, Path(outputs), self._alive)
            return Agreement("identical")

        ended = self._guarded(make)
        return why_not[0] if ended.passes else ended.detail

    def check_outputs(self, folder: str) -> Agreement:
        return self._guarded(lambda: check_outputs(self.kept, Path(folder), self._alive))

    def _alive(self) -> None:
        self.sink(messages.Alive())

    def _guarded(self, measure: Callable[[], Agreement]) -> Agreement:
        """What `measure` gives; "failed" where a launch is refused. A fault of the GPU ends the process."""
        try:
            return measure()
        except Exception as error:
            _end_if_broken(error, self.sink)
            return Agreement("failed", detail=first_line(error))


def keep_arguments(seen: SeenLaunch, baseline: Any) -> KeptArguments:
    if not seen.has_arguments:
        raise RecordingError(f"{seen.kernel_name} was not launched through @triton.jit: its launch cannot be repeated.")
    uses, arithmetic = pointer_uses_of(baseline), arithmetic_of(baseline)
    return KeptArguments(seen.names, seen.arguments, seen.signature, uses, arithmetic)


def compile_again(kernel: Any, options: dict[str, Any]) -> Any:
    return triton_api.compile_function()(kernel.src, target=kernel.metadata.target, options=chosen_options(options))


def pin_launch(command: messages.PinLaunch, sink: EventSink, folder: Path) -> _PinnedLaunch:
    """Run a script under the empty plan up to a launch, and keep that; raises RecordingError if it ends without."""
    request, wanted = command.request, command.launch
    compiles = _NumberedCompiles(sink)
    pinned: list[_PinnedLaunch] = []
    refused: list[IrscopeError] = []

    def on_launch(seen: SeenLaunch, proceed: Callable[[], Any]) -> Any:
        number = compiles.number_of(seen.kernel)
        is_it = number is not None and (number == wanted if wanted is not None else not is_timing())
        if pinned or refused or number is None or not is_it:
            return proceed()
        sink(events.Launched(seen.kernel.hash, seen.grid))
        try:
            pinned.append(_PinnedLaunch(number, seen, compiles.options.get(number, {}), sink))
        except IrscopeError as error:
            refused.append(error)
        raise _StopScript

    @contextmanager
    def around(_: Watch) -> Iterator[None]:
        with watched_launches(on_launch):
            try:
                yield
            except _StopScript:
                return

    work(request, compiles, folder, around)
    if refused:
        raise refused[0]
    if not pinned:
        which = f"launch {wanted}" if wanted is not None else "launch"
        made = (
            f"its kernels were compiled {len(compiles.options)} times" if compiles.options else "it compiled no kernel"
        )
        raise RecordingError(f"{Path(request.path).name} ended without the requested {which}: {made}.")
    return pinned[0]


def _end_if_broken(error: Exception, sink: EventSink, where: messages.LaunchPlace | None = None) -> None:
    """Report a fault, and end the process, where the GPU takes nothing more from it after an error."""
    try:
        torch.cuda.synchronize()
        torch.zeros(1, device="cuda").item()
    except Exception:
        sink(messages.Fault(first_line(error), where))
        os._exit(1)


def _other_runs(
    kernel: Any, options: dict[str, Any], compile_: Callable[[dict[str, Any]], Any], run: Callable[[Any], None]
) -> Iterator[tuple[str, Callable[[], None]]]:
    for label, other in other_baselines(kernel, options, lambda own: compile_(options | own)):
        yield label, partial(run, other)


def first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return text[0].strip() if text else type(error).__name__


def check_script(command: messages.CheckScript, sink: EventSink, folder: Path) -> None:
    compiles = _NumberedCompiles(sink)

    @contextmanager
    def around(watch: Watch) -> Iterator[None]:
        with watched_launches(_Checker(compiles, watch, sink, command).on_launch):
            yield

    work(command.request, compiles, folder, around)


class _Checker:
    def __init__(
        self, compiles: _NumberedCompiles, watch: Watch, sink: EventSink, command: messages.CheckScript
    ) -> None:
        self._compiles = compiles
        self._watch = watch
        self._sink = sink
        self._wanted = command.launch
        self._every = command.every
        self._baselines: dict[int, Any] = {}
        self._counts: dict[int, int] = {}
        """Launches of each compile so far, those that autotuning times left out."""

    def on_launch(self, seen: SeenLaunch, proceed: Callable[[], Any]) -> Any:
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
            arguments = keep_arguments(seen, baseline)
        except IrscopeError as error:
            return Agreement("failed", detail=str(error))
        except Exception as error:
            return Agreement("failed", detail=f"it does not compile under the empty plan: {first_line(error)}")

        def run(kernel: Any) -> None:
            launch(kernel, seen.grid, arguments.arguments)
            torch.cuda.synchronize()

        empty = replace(where, empty_plan=True)

        def others() -> Iterator[tuple[str, Callable[[], None]]]:
            return _other_runs(baseline, self._compiles.options[number], partial(self._compiled, baseline), run)

        try:
            self._guarded(lambda: arguments.take_reference(partial(run, baseline), others), empty)
        except Exception as error:
            return Agreement("failed", detail=f"under the empty plan already: {first_line(error)}")
        alive = partial(self._sink, messages.Alive())
        try:
            return self._guarded(lambda: arguments.check(partial(run, seen.kernel), alive), where)
        except Exception as error:
            return Agreement("failed", detail=first_line(error))

    def _guarded(self, proceed: Callable[[], Any], where: messages.LaunchPlace) -> Any:
        """Make a launch and wait for it: a fault is then this launch's, not one's that came later."""
        self._sink(messages.LaunchBegun(where))
        try:
            result = proceed()
            torch.cuda.synchronize()
        except Exception as error:
            _end_if_broken(error, self._sink, where)
            raise
        finally:
            self._sink(messages.LaunchEnded())
        return result

    def _baseline(self, kernel: Any, number: int) -> Any:
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
