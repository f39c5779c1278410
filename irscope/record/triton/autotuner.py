"""The one patch of Triton's autotuner: configurations, times, and benchmarks where nothing can be timed.

For each new tuning key, Triton calls `prune_configs` for the configurations to try and `_bench` for the times of each,
and launches the fastest.
"""

from __future__ import annotations

import inspect
import itertools
import math
import threading
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from irscope.model.capture import Autotuning
from irscope.record.triton.api import jit_function_class
from irscope.record.triton.patches import Patches, replaced

_PLACEHOLDER_MS = 1.0


def call_once(
    kernel_call: Callable[[], Any], quantiles: Sequence[float] | None = None, **_: Any
) -> list[float] | float:
    """A benchmarker: calls the function once, so that it compiles, and returns the placeholder time."""
    kernel_call()
    return [_PLACEHOLDER_MS] * len(quantiles) if quantiles is not None else _PLACEHOLDER_MS


def install_benchmarks(patches: Patches, on_read: Callable[[Any], Any]) -> None:
    """Make the functions of `triton.testing` call what they time once; `on_read` gives the times for the program."""
    import triton.testing as testing

    def do_bench(
        fn: Callable[[], Any], *_: Any, quantiles: Sequence[float] | None = None, return_mode: str = "mean", **__: Any
    ) -> Any:
        times = on_read(call_once(fn, quantiles))
        if isinstance(times, list):
            return times[0] if len(times) == 1 else times
        return [times] if return_mode == "all" else times

    names = ("do_bench", "do_bench_cudagraph", "do_bench_proton", "do_bench_cudagraph_proton")
    patches.set_known(testing, dict.fromkeys(names, do_bench))
    patches.set(testing.Mark, "run", _run_benchmarks)


def _run_benchmarks(mark: Any, show_plots: bool = False, print_data: bool = False, *_: Any, **options: Any) -> None:
    """Call a `perf_report` function once for each of its points; there is nothing to plot or to compare."""
    several = hasattr(mark.benchmarks, "__iter__") and not hasattr(mark.benchmarks, "x_names")
    for bench in mark.benchmarks if several else [mark.benchmarks]:
        for point in bench.x_vals:
            values = point if isinstance(point, list | tuple) else [point] * len(bench.x_names)
            named = dict(zip(bench.x_names, values, strict=False))
            for line in bench.line_vals:
                mark.fn(**named, **{bench.line_arg: line}, **bench.args)


ConfigPolicy = Literal["first", "all"] | Callable[[int, Any], bool]
"""Which configurations of an autotuned kernel are compiled on a GPU that is not there.

`"first"`: the first that the part has the resources for, after the script's own pruning. `"all"`: every one that
pruning leaves. A function of the configuration's 0-based index and the configuration: those it returns True for.
"""

OnTimed = Callable[[str, int, Autotuning, list[float]], None]
"""Called after each configuration that was timed: the kernel's name, the number of the tuning (from 1, one for each
tuning key), the configuration, and its times in milliseconds, infinite where the GPU has not the resources for it."""

ERRORS_OF_A_CONFIGURATION = ("OutOfResources", "CompileTimeAssertionFailure", "PTXASError")
"""The errors after which Triton's autotuner tries the next configuration."""

_MOST_WRAPPERS = 16
"""Decorators around one `@triton.jit` function."""

_Described = Callable[[], "tuple[str, Autotuning] | None"]


class _ThreadState(threading.local):
    under_way: tuple[_Described, ...] = ()
    """The kernels and configurations that this thread compiles or launches, innermost last."""
    is_timing = False
    is_rehearsal = False
    deferred: list[Any] | None = None
    """The kernels that were launched for a configuration while they are compiled."""


_thread = _ThreadState()


def configuration_under_way(kernel: str) -> Autotuning | None:
    """The configuration of `@triton.autotune` that this thread compiles or launches a kernel with; None without one."""
    found = (describe() for describe in reversed(_thread.under_way))
    return next((row[1] for row in found if row is not None and row[0] == kernel), None)


@contextmanager
def configuration_set(kernel: str, tuning: Autotuning) -> Iterator[None]:
    with replaced(_thread, "under_way", (*_thread.under_way, lambda: (kernel, tuning))):
        yield


def is_timing() -> bool:
    return _thread.is_timing


def is_rehearsal() -> bool:
    return _thread.is_rehearsal


def note_deferred(kernel: Any) -> None:
    """Note a kernel that this thread launches while it is compiled: whether it can be launched decides its times."""
    if _thread.deferred is not None:
        _thread.deferred.append(kernel)


@dataclass(slots=True)
class _Tuning:
    autotuner: Any
    """Kept alive, for its `id` is the key."""
    number: int
    kept: int
    """How many configurations the script's own pruning left."""
    compiles_one: bool = False
    """Whether the first configuration that compiles is the only one."""
    compiled: int | None = None


@contextmanager
def watched_autotuner(on_timed: OnTimed | None = None, policy: ConfigPolicy | None = None) -> Iterator[None]:
    """Follow the autotuned kernels of this process until the end of the block.

    Arguments:
        on_timed: called after each configuration that was timed.
        policy: which configurations are compiled where nothing can be timed: all times are equal then, and no choice
            stays, neither in memory nor on disk. None on a real GPU.
    """
    from triton.runtime.autotuner import Autotuner

    real_run, real_prune, real_bench = Autotuner.run, Autotuner.prune_configs, Autotuner._bench
    tunings: dict[int, _Tuning] = {}
    numbers = itertools.count(1)
    caches: dict[int, tuple[Any, Any]] = {}
    """Each autotuner, with the choices that it held before: its own mapping, which may be a file."""

    def describe(autotuner: Any, config: Any) -> tuple[str, Autotuning]:
        tuning = tunings.get(id(autotuner))
        kept = tuning.kept if tuning is not None else None
        name = getattr(autotuner.base_fn, "__name__", "")
        return name, Autotuning(_index_of(autotuner, config), len(autotuner.configs), str(config), kept=kept)

    def run(autotuner: Any, *args: Any, **keywords: Any) -> Any:
        def chosen() -> tuple[str, Autotuning] | None:
            # Chosen now, or for an earlier launch: either way Triton sets it just before it launches.
            config = getattr(autotuner, "best_config", None) if len(autotuner.configs) > 1 else None
            return describe(autotuner, config) if config is not None else None

        with replaced(_thread, "under_way", (*_thread.under_way, chosen)):
            return real_run(autotuner, *args, **keywords)

    def prune_configs(autotuner: Any, *args: Any, **keywords: Any) -> list[Any]:
        left = list(real_prune(autotuner, *args, **keywords))
        tuning = tunings[id(autotuner)] = _Tuning(autotuner, next(numbers), len(left))
        if policy is None:
            return left
        if id(autotuner) not in caches:
            held = autotuner.cache
            caches[id(autotuner)] = autotuner, held
            # What is chosen here was not timed: it must not reach a mapping of the program's own, nor stay.
            autotuner.cache = dict(held) if type(held) is dict else ChainMap({}, held)
        picked = left
        if callable(policy):
            picked = [config for config in left if policy(_index_of(autotuner, config), config)]
        # The script cannot do without any: where none is picked, the first that compiles stands for them.
        tuning.compiles_one = policy == "first" or not picked
        return picked or left

    def bench(autotuner: Any, *args: Any, config: Any, **meta: Any) -> Any:
        name, row = describe(autotuner, config)
        tuning = tunings.get(id(autotuner))
        compiles_one = tuning is not None and tuning.compiles_one
        if tuning is not None and compiles_one and tuning.compiled not in (None, row.index):
            return [math.inf] * 3
        with (
            replaced(_thread, "under_way", (*_thread.under_way, lambda: (name, row))),
            replaced(_thread, "is_timing", True),
            replaced(_thread, "is_rehearsal", compiles_one or _thread.is_rehearsal),
            replaced(_thread, "deferred", []),
        ):
            times = real_bench(autotuner, *args, config=config, **meta)
            if kernels := _thread.deferred:
                if tuning is not None and compiles_one:
                    # A capture of it is stored: it has compiled before, and is the only one again.
                    tuning.compiled = row.index
                    return times
                return _DeferredTimes(times, kernels, _errors_of_a_configuration())
        if tuning is not None and times[0] != math.inf:
            tuning.compiled = row.index
        if on_timed is not None:
            on_timed(name, tuning.number if tuning is not None else 0, row, [float(time) for time in times])
        return times

    def check_disk_cache(autotuner: Any, key: Any, configs: Any, bench_fn: Callable[[], Any]) -> bool:
        # Times that nobody took must not reach the user's cache, nor hide a configuration.
        bench_fn()
        return False

    with Patches() as patches:
        patches.set_known(Autotuner, {"run": run, "prune_configs": prune_configs, "_bench": bench})
        if policy is not None:
            # A property comes before the benchmarker that an autotuner has already used on another driver.
            do_bench = property(lambda _: call_once, lambda self, value: vars(self).update(do_bench=value))
            patches.set_known(Autotuner, {"check_disk_cache": check_disk_cache, "do_bench": do_bench})
        try:
            yield
        finally:
            for autotuner, held in caches.values():
                autotuner.cache = held


class _DeferredTimes(list[float]):
    """The times of a configuration whose kernels are being compiled; only a comparison that depends on them waits."""

    def __init__(self, times: list[float], kernels: list[Any], refused: tuple[type[BaseException], ...]) -> None:
        super().__init__(times)
        self._kernels = kernels
        self._refused = refused

    def settled(self) -> list[float]:
        """The times, once the kernels are compiled and loaded; raises what a compile raised."""
        while self._kernels:
            try:
                self._kernels.pop()._init_handles()
            except self._refused:
                self[:] = [float("inf")] * 3
        return list(self)

    def __lt__(self, other: Any) -> bool:
        best = other.settled() if isinstance(other, _DeferredTimes) else other
        if best[0] != float("inf"):
            return False
        return self.settled() < best

    def __gt__(self, other: Any) -> bool:
        return self.settled() > (other.settled() if isinstance(other, _DeferredTimes) else other)

    def __getitem__(self, index: Any) -> Any:
        if self._kernels:
            self.settled()
        return super().__getitem__(index)

    def __iter__(self) -> Any:
        if self._kernels:
            self.settled()
        return super().__iter__()


def _errors_of_a_configuration() -> tuple[type[BaseException], ...]:
    from triton.compiler import errors
    from triton.runtime import errors as runtime_errors

    return tuple(vars(runtime_errors).get(name) or vars(errors)[name] for name in ERRORS_OF_A_CONFIGURATION)


def _index_of(autotuner: Any, config: Any) -> int:
    """Where a configuration stands among all of the script's, 0-based; -1 for one that its pruning made up."""
    for index, other in enumerate(autotuner.configs):
        if other is config:
            return index
    return autotuner.configs.index(config) if config in autotuner.configs else -1


def kernel_functions(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The `@triton.jit` functions in a module's namespace, by name, without their autotuners and heuristics."""
    kernels = {name: _innermost(value) for name, value in namespace.items()}
    return {name: inner for name, inner in kernels.items() if inner is not None}


def _innermost(value: Any) -> Any:
    """The `@triton.jit` function within autotuners, heuristics and what else has `fn` and `run`; None if none is."""
    kernel_class, missing = jit_function_class(), object()
    for _ in range(_MOST_WRAPPERS):
        if isinstance(value, kernel_class):
            return value
        if inspect.getattr_static(value, "fn", missing) is missing or not hasattr(value, "run"):
            return None
        value = getattr(value, "fn", None)
    return None
