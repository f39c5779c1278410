"""Autotuning and benchmarking where nothing can be timed: what is compared is compiled, and all times are equal."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from irscope.record.virtual_driver import VirtualDriver
from irscope.record.virtual_patches import Patches

STAND_IN_MS = 1.0
"""What everything takes."""

ConfigPolicy = Literal["first", "all"] | Callable[[int, Any], bool]
"""Which configurations of an autotuned kernel are compiled: the first that can be, all, or those a function picks."""


@dataclass(slots=True)
class AutotuneRecord:
    """What became of the configurations of one autotuned kernel, for one tuning key."""

    kernel: str
    total: int
    """How many configurations the script gave."""
    pruned: int
    """How many of them the script's own pruning left."""
    compiled: list[int] = field(default_factory=list)
    """The configurations that compiled, by their 0-based index among all."""
    failed: list[int] = field(default_factory=list)
    """The configurations that the part has not the resources for."""
    first_only: bool = False
    """Whether the first configuration that compiles is the only one: by the policy, or because it picked none."""
    configs: list[str] = field(default_factory=list)
    """The text of each compiled configuration, in the order of `compiled`."""


@dataclass(frozen=True, slots=True)
class TuningStep:
    """The configuration that an autotuned kernel is being compiled or launched with."""

    kernel: str
    index: int
    """0-based among all of the script's configurations."""
    total: int
    config: str


def call_once(
    kernel_call: Callable[[], Any], quantiles: Sequence[float] | None = None, **_: Any
) -> list[float] | float:
    """A benchmarker: calls the function once, so that it compiles, and gives the stand-in time."""
    kernel_call()
    return [STAND_IN_MS] * len(quantiles) if quantiles is not None else STAND_IN_MS


class Tuning:
    """The stand-in for autotuning: what it chose, and by which policy."""

    def __init__(self, driver: VirtualDriver) -> None:
        self.policy: ConfigPolicy = "first"
        self.records: list[AutotuneRecord] = []
        self._driver = driver
        self._open: dict[int, AutotuneRecord] = {}
        """The record being written, by the identity of its autotuner."""
        self._before: dict[int, tuple[Any, Any]] = {}
        """Each autotuner met, with the choices that it held before: its own mapping, which may be a file."""
        self._running: list[tuple[Any, Any]] = []
        """The autotuners at work, innermost last, each with the configuration being tried (None: the chosen one)."""

    @property
    def step(self) -> TuningStep | None:
        """What the kernel that is compiled or launched right now is configured with; None where none is autotuned."""
        if not self._running:
            return None
        autotuner, config = self._running[-1]
        config = config if config is not None else getattr(autotuner, "best_config", None)
        if config is None:
            return None
        return TuningStep(_kernel_name(autotuner), _index_of(autotuner, config), len(autotuner.configs), str(config))

    def install(self, patches: Patches) -> None:
        """Put the stand-ins in place, until `patches` are restored."""
        from triton.runtime.autotuner import Autotuner

        run, prune, bench = Autotuner.run, Autotuner.prune_configs, Autotuner._bench
        tuning = self

        def run_noted(autotuner: Any, *args: Any, **kwargs: Any) -> Any:
            tuning._running.append((autotuner, None))
            try:
                return run(autotuner, *args, **kwargs)
            finally:
                tuning._running.pop()

        def prune_configs(autotuner: Any, kwargs: Any, *more: Any, **others: Any) -> list[Any]:
            left = list(prune(autotuner, kwargs, *more, **others))
            return tuning._begin(autotuner, left)

        def _bench(autotuner: Any, *args: Any, config: Any, **meta: Any) -> Any:
            return tuning._try(autotuner, config, lambda: bench(autotuner, *args, config=config, **meta))

        def check_disk_cache(autotuner: Any, key: Any, configs: Any, bench_fn: Callable[[], Any]) -> bool:
            # Times that nobody took must not reach the user's cache, nor hide a configuration.
            bench_fn()
            return False

        stand_ins = {
            "run": run_noted,
            "prune_configs": prune_configs,
            "_bench": _bench,
            "check_disk_cache": check_disk_cache,
            "do_bench": lambda autotuner, kernel_call, quantiles=None, **others: call_once(kernel_call, quantiles),
        }
        patches.set_known(Autotuner, stand_ins)
        install_benchmarks(patches)

    def forget(self) -> None:
        """Take back the choices that were made, so that a real GPU makes its own."""
        for autotuner, held in self._before.values():
            autotuner.cache = held
        self._before.clear()
        self._open.clear()

    def kept(self, autotuner: Any) -> int:
        """How many configurations the script's own pruning left, where an autotuner is at work."""
        return self._open[id(autotuner)].pruned

    def _begin(self, autotuner: Any, left: list[Any]) -> list[Any]:
        if id(autotuner) not in self._before:
            held = autotuner.cache
            self._before[id(autotuner)] = autotuner, held
            # What is chosen here was not timed: it must not reach a mapping of the program's own, nor stay.
            autotuner.cache = dict(held) if type(held) is dict else ChainMap({}, held)
        record = AutotuneRecord(_kernel_name(autotuner), len(autotuner.configs), len(left))
        self.records.append(record)
        self._open[id(autotuner)] = record
        picked = left
        if callable(self.policy):
            picked = [config for config in left if self.policy(_index_of(autotuner, config), config)]
        # None picked would leave the script without any: then the first that can be stands for them.
        record.first_only = self.policy == "first" or not picked
        left = picked or left
        if len(left) == 1:
            # Triton 3.7 and later launch the only one that is left without benchmarking it.
            self._note(record, autotuner, left[0])
        return left

    def _try(self, autotuner: Any, config: Any, bench: Callable[[], Any]) -> Any:
        record = self._open.get(id(autotuner))
        index = _index_of(autotuner, config)
        if record is None:
            return bench()
        if record.first_only and record.compiled and record.compiled != [index]:
            return [float("inf")] * 3
        # Read by Triton in place of `do_bench` above: the benchmarker that this autotuner already used on another
        # driver.
        held = autotuner.__dict__.pop("do_bench", None)
        on_launch = self._driver.on_launch
        if record.first_only:
            # The one configuration is launched again as the script's own launch.
            self._driver.on_launch = None
        self._running.append((autotuner, config))
        try:
            times = bench()
        finally:
            self._running.pop()
            self._driver.on_launch = on_launch
            if held is not None:
                autotuner.__dict__["do_bench"] = held
        if times[0] == float("inf"):
            record.failed.append(index)
        else:
            self._note(record, autotuner, config)
        return times

    def _note(self, record: AutotuneRecord, autotuner: Any, config: Any) -> None:
        index = _index_of(autotuner, config)
        if index not in record.compiled:
            record.compiled.append(index)
            record.configs.append(str(config))


def install_benchmarks(patches: Patches) -> None:
    """Make the functions of `triton.testing` call what they time once, and plot nothing."""
    import triton.testing as testing

    def do_bench(
        fn: Callable[[], Any],
        *_: Any,
        quantiles: Sequence[float] | None = None,
        return_mode: str = "mean",
        **__: Any,
    ) -> Any:
        fn()
        if quantiles is not None:
            times = [STAND_IN_MS] * len(quantiles)
            return times[0] if len(times) == 1 else times
        return [STAND_IN_MS] if return_mode == "all" else STAND_IN_MS

    names = ("do_bench", "do_bench_cudagraph", "do_bench_proton", "do_bench_cudagraph_proton")
    patches.set_known(testing, dict.fromkeys(names, do_bench))
    patches.set(testing.Mark, "run", _run_benchmarks)


def _run_benchmarks(mark: Any, show_plots: bool = False, print_data: bool = False, *_: Any, **options: Any) -> Any:
    """Call a `perf_report` function for each of its points, once; there is nothing to plot, nor to compare."""
    several = hasattr(mark.benchmarks, "__iter__") and not hasattr(mark.benchmarks, "x_names")
    for bench in mark.benchmarks if several else [mark.benchmarks]:
        for point in bench.x_vals:
            values = point if isinstance(point, list | tuple) else [point] * len(bench.x_names)
            named = dict(zip(bench.x_names, values, strict=False))
            for line in bench.line_vals:
                mark.fn(**named, **{bench.line_arg: line}, **bench.args)
    return None


def _index_of(autotuner: Any, config: Any) -> int:
    """Where a configuration stands among all of the script's, 0-based; -1 for one that its pruning made up."""
    for index, other in enumerate(autotuner.configs):
        if other is config:
            return index
    return autotuner.configs.index(config) if config in autotuner.configs else -1


def _kernel_name(autotuner: Any) -> str:
    return getattr(autotuner.base_fn, "__name__", str(autotuner.base_fn))
