"""Triton's benchmark functions where nothing can be timed: what is timed is called once, and all times are equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irscope.record.triton.patches import Patches

_PLACEHOLDER_MS = 1.0
"""The time that is given for everything."""


def call_once(
    kernel_call: Callable[[], Any], quantiles: Sequence[float] | None = None, **_: Any
) -> list[float] | float:
    """A benchmarker: calls the function once, so that it compiles, and returns the placeholder time."""
    kernel_call()
    return [_PLACEHOLDER_MS] * len(quantiles) if quantiles is not None else _PLACEHOLDER_MS


def install_benchmarks(patches: Patches, on_read: Callable[[Any], Any]) -> None:
    """Make the functions of `triton.testing` call what they time once, and plot nothing.

    `on_read` is called with the times that the program reads, and returns what it gets.
    """
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
