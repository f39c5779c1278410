"""One launch of a script, held in the child: its inputs as they were, and variants of it, checked and timed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import torch

from irscope.analysis.measurement import Agreement
from irscope.errors import DeviceFault, IrscopeError, RecordingError
from irscope.record import triton_api
from irscope.record.device_baselines import other_baselines
from irscope.record.device_kernels import SeenLaunch, launch, pointer_uses_of, watched_launches, with_binary
from irscope.record.device_memory import KeptLaunch
from irscope.record.device_watch import is_timed_now
from irscope.record.events import Event, EventSink
from irscope.record.request import RecordRequest
from irscope.record.retarget import chosen_options
from irscope.record.watched_compile import Watch
from irscope.record.worker import work


class StopScript(BaseException):
    """Ends a script at the launch that was wanted; no error, and not for the script to catch."""


class Compiles:
    """A sink that passes events on, and knows the number of each compile: its place among the captures, from 1."""

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink
        self._numbers: dict[int, int] = {}
        self._by_hash: dict[str, int] = {}
        self.options: dict[int, dict[str, Any]] = {}

    def __call__(self, event: Event) -> None:
        """Pass an event on."""
        self._sink(event)
        if event.kind == "compile-begin":
            self._numbers[event["n"]] = len(self._numbers) + 1
        elif event.kind == "options":
            self.options[self._numbers[event["n"]]] = event["options"]
        elif event.kind == "compile-end":
            self._by_hash.setdefault(event["hash"], self._numbers[event["n"]])

    def number_of(self, kernel: Any) -> int | None:
        """Which compile made a CompiledKernel; None for one that is not recorded."""
        return self._by_hash.get(kernel.hash)


class HeldLaunch:
    """The launch, and what has been loaded to run in its place."""

    def __init__(self, number: int, seen: SeenLaunch, options: dict[str, Any]) -> None:
        self.number = number
        self.options = options
        self.kernel = seen.kernel
        self.grid = seen.grid
        self.device = torch.cuda.current_device()
        self.kept = keep(seen, seen.kernel)
        self._variants: dict[str, Any] = {}

    def run(self, kernel: Any, wait: bool = True) -> None:
        """Launch a kernel on the copies."""
        launch(kernel, self.grid, self.kept.arguments)
        if wait:
            torch.cuda.synchronize()

    def prepare(self, sink: EventSink) -> None:
        """Run the launch as it is, for what the variants are compared with."""
        torch.cuda.set_device(self.device)
        sink(Event("alive"))
        try:
            self.kept.take_reference(partial(self.run, self.kernel), self._others)
        except Exception as error:
            raise DeviceFault(f"{self.kernel.name} cannot be run as it is: {first_line(error)}") from error
        sink(
            Event(
                "held",
                {
                    "launch": self.number,
                    "bytes": self.kept.compulsory_bytes,
                    "noise": self.kept.noise,
                    "outputs": [kept.name for kept in self.kept.storages if kept.reference is not None],
                    "poisoned": [kept.name for kept in self.kept.storages if kept.is_output],
                    "device": torch.cuda.get_device_name(self.device),
                    "scalars": {
                        name: value
                        for name, value in zip(self.kernel.src.fn.arg_names, self.kept.arguments, strict=True)
                        if isinstance(value, (int, float))
                    },
                    "l2_bytes": getattr(torch.cuda.get_device_properties(self.device), "L2_cache_size", None),
                },
            )
        )

    def _others(self) -> Iterator[tuple[str, Callable[[], None]]]:
        def compile_(options: dict[str, Any]) -> Any:
            return compile_again(self.kernel, self.options | options)

        for label, kernel in other_baselines(self.kernel, self.options, compile_):
            yield label, partial(self.run, kernel)

    def do(self, command: Event, sink: EventSink) -> None:
        """Do one command, and tell what came of it."""
        alive = partial(sink, Event("alive"))
        if command.kind == "variant":
            self._variants[command["key"]] = with_binary(self.kernel, _bytes(command), command["metadata"])
        elif command.kind == "check":
            kernel = self._variants[command["key"]]
            agreement = guarded(lambda: self.kept.check(partial(self.run, kernel), alive), sink)
            sink(Event("agreement", agreement.as_json()))
        elif command.kind == "time":
            self._time(command, sink, alive)
        elif command.kind == "ceilings":
            self._ceilings(command, sink, alive)

    def _time(self, command: Event, sink: EventSink, alive: Callable[[], None]) -> None:
        from irscope.record.device_timing import time_launches

        # Its own program once more, loaded elsewhere: what that differs from itself is noise.
        again = with_binary(self.kernel, self.kernel.kernel, {})
        kernels = [self.kernel, again, *(self._variants[key] for key in command["keys"])]

        def measure() -> Agreement:
            self.kept.fill()
            times = time_launches(
                [partial(self.run, kernel, wait=False) for kernel in kernels],
                command["rounds"],
                command["cold"],
                self.kept.refill_changed,
                alive,
            )
            sink(Event("times", {"times_us": times}))
            return Agreement("identical")

        ended = guarded(measure, sink)
        if not ended.passes:
            sink(Event("error", {"error": "DeviceFault", "message": f"the timing stopped: {ended.detail}"}))

    def _ceilings(self, command: Event, sink: EventSink, alive: Callable[[], None]) -> None:
        from irscope.record.device_timing import copy_bytes_per_second, matmul_flops_per_second

        bytes_per_s = copy_bytes_per_second()
        alive()
        flops_per_s = matmul_flops_per_second(command["dtype"]) if command["dtype"] else None
        sink(Event("ceilings", {"bytes_per_s": bytes_per_s, "flops_per_s": flops_per_s}))


def keep(seen: SeenLaunch, baseline: Any) -> KeptLaunch:
    """Keep the arguments of a launch; `baseline` is its kernel under the empty plan. Raises RecordingError."""
    if not seen.has_arguments:
        raise RecordingError(
            f"{seen.kernel_name} was launched by something else than @triton.jit: it can't be repeated."
        )
    return KeptLaunch(seen.names, seen.arguments, seen.signature, pointer_uses_of(baseline))


def compile_again(kernel: Any, options: dict[str, Any]) -> Any:
    """Compile the source of a CompiledKernel again, with options as they were recorded."""
    return triton_api.compile_function()(kernel.src, target=kernel.metadata.target, options=chosen_options(options))


def hold_launch(request: RecordRequest, sink: EventSink, folder: Path, wanted: int | None) -> HeldLaunch:
    """Run a script under the empty plan up to a launch, and hold that.

    `wanted`: its number, from 1, among the compiles; None for the first launch that is not autotuning's. Raises
    RecordingError where the script ends without it.
    """
    compiles = Compiles(sink)
    held: list[HeldLaunch] = []
    refused: list[IrscopeError] = []

    def on_launch(seen: SeenLaunch, proceed: Callable[[], Any]) -> Any:
        number = compiles.number_of(seen.kernel)
        is_it = number is not None and (number == wanted if wanted is not None else not is_timed_now())
        if held or refused or number is None or not is_it:
            return proceed()
        sink(Event("launch", {"hash": seen.kernel.hash, "grid": list(seen.grid)}))
        try:
            held.append(HeldLaunch(number, seen, compiles.options.get(number, {})))
        except IrscopeError as error:
            refused.append(error)
        raise StopScript

    @contextmanager
    def around(_: Watch) -> Iterator[None]:
        with watched_launches(on_launch):
            try:
                yield
            except StopScript:
                return

    work(request, compiles, folder, around)
    if refused:
        raise refused[0]
    if not held:
        which = f"launch {wanted}" if wanted is not None else "launch"
        made = (
            f"its kernels were compiled {len(compiles.options)} times" if compiles.options else "it compiled no kernel"
        )
        raise RecordingError(f"{Path(request.path).name} ended without the {which} that was asked for: {made}.")
    return held[0]


def guarded(measure: Callable[[], Agreement], sink: EventSink) -> Agreement:
    """What `measure` gives; "failed" where a launch is refused. A fault of the GPU is told, and ends the process."""
    try:
        return measure()
    except Exception as error:
        if is_broken():
            end_in_fault(first_line(error), sink)
        return Agreement("failed", detail=first_line(error))


def end_in_fault(detail: str, sink: EventSink, **fields: Any) -> NoReturn:
    """Tell of a fault, and end the process: nothing more can be launched in it."""
    sink(Event("fault", {"detail": detail, **fields}))
    os._exit(1)


def is_broken() -> bool:
    """Whether the GPU takes nothing more from this process."""
    try:
        torch.cuda.synchronize()
        torch.zeros(1, device="cuda").item()
    except Exception:
        return True
    return False


def first_line(error: BaseException) -> str:
    """An error as one line."""
    text = str(error).strip().splitlines()
    return text[0].strip() if text else type(error).__name__


def _bytes(command: Event) -> bytes:
    return command.data if isinstance(command.data, bytes) else b""
