"""Watches launches and autotuning while a script runs, on the virtual GPU or on a real one.

Nothing here stays on a launch's path: on a real GPU a kernel's first launch is seen, and the launcher put back.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from irscope.capture import Autotuning, Target
from irscope.errors import UsageError
from irscope.record import triton_api
from irscope.record.tap import replaced
from irscope.record.virtual_arguments import assumptions_under_way

Emit = Callable[..., None]

_tuned = threading.local()


def configuration_under_way(kernel: str) -> dict[str, Any] | None:
    """Which configuration of `@triton.autotune` this thread compiles a kernel for, as JSON holds `Autotuning`."""
    under_way: list[Callable[[], dict[str, Any] | None]] = getattr(_tuned, "under_way", [])
    for row in (described() for described in reversed(under_way)):
        if row is not None and row["kernel"] == kernel:
            return {key: row[key] for key in ("index", "count", "config", "kept")}
    return None


def is_timed_now() -> bool:
    """Whether this thread's launches are `@triton.autotune`'s, to find the fastest configuration."""
    return getattr(_tuned, "timing", False)


@contextmanager
def virtual_launches(
    target: Target, configs: str, emit: Emit, assume: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run what follows on the virtual GPU for a target, and tell of its launches and tunings.

    `assume`: what `--assume` says.
    """
    from irscope.record.virtual_gpu import virtual_gpu

    def launched(kernel: Any, grid: tuple[int, int, int]) -> None:
        emit("launch", hash=kernel.hash, grid=list(grid), assumptions=assumptions_under_way())

    with virtual_gpu(target, launched, assume) as gpu:
        gpu.autotune = config_policy(configs)
        try:
            with _watched_tuning(emit, gpu.kept_by_pruning):
                yield
        finally:
            for name in gpu.following.unused():
                known = ", ".join(gpu.following.names()) or "none was read"
                emit("note", text=f"--assume {name} set nothing. What could be set: {known}.")


@contextmanager
def real_launches(emit: Emit) -> Iterator[None]:
    """Tell of the launches and tunings of what follows, on the GPU that is there."""
    with _watched_tuning(emit), _watched_first_launches(emit):
        yield


def config_policy(text: str) -> Any:
    """Which configurations `--config` asks for: `first`, `all`, an index, or KEY=VALUE; raises UsageError."""
    if text in ("first", "all"):
        return text
    name, equals, _ = text.partition("=")
    if not text.isdigit() and not (name and equals):
        raise UsageError(
            f"--config {text!r}: write all, a configuration's index from 0, or KEY=VALUE such as BLOCK_M=64."
        )
    return lambda index, config: Autotuning(index, 0, str(config)).is_named(text)


@contextmanager
def _watched_tuning(emit: Emit, kept_by_pruning: Callable[[Any], int] | None = None) -> Iterator[None]:
    autotuner_class = triton_api.autotuner_class()
    run, bench, prune = autotuner_class.run, autotuner_class._bench, autotuner_class.prune_configs

    def watched_run(autotuner: Any, *args: Any, **keywords: Any) -> Any:
        def chosen() -> dict[str, Any] | None:
            # Chosen now, or for an earlier launch: either way Triton sets it just before it launches.
            config = getattr(autotuner, "best_config", None) if len(autotuner.configs) > 1 else None
            return _row(autotuner, config, kept.get(id(autotuner))) if config is not None else None

        with _under_way(chosen):
            return run(autotuner, *args, **keywords)

    def watched_bench(autotuner: Any, *args: Any, config: Any, **meta: Any) -> Any:
        row = _row(autotuner, config, kept.get(id(autotuner)))
        _tuned.timing = True
        try:
            with _under_way(lambda: row):
                times = bench(autotuner, *args, config=config, **meta)
        finally:
            _tuned.timing = False
        emit("timed", tuning=tunings.get(id(autotuner), 0), times_ms=[float(time) for time in times], **row)
        return times

    def watched_prune(autotuner: Any, *args: Any, **keywords: Any) -> list[Any]:
        left = list(prune(autotuner, *args, **keywords))
        tunings[id(autotuner)] = next(numbers)
        # On the virtual GPU `left` holds no more than --config asks for.
        kept[id(autotuner)] = kept_by_pruning(autotuner) if kept_by_pruning is not None else len(left)
        return left

    numbers = itertools.count(1)
    tunings: dict[int, int] = {}
    kept: dict[int, int] = {}
    with (
        replaced(autotuner_class, "run", watched_run),
        replaced(autotuner_class, "_bench", watched_bench),
        replaced(autotuner_class, "prune_configs", watched_prune),
    ):
        yield


@contextmanager
def _under_way(described: Callable[[], dict[str, Any] | None]) -> Iterator[None]:
    """Let this thread's compiles be for the configuration that `described` tells, until the end of the block."""
    before: list[Callable[[], dict[str, Any] | None]] = getattr(_tuned, "under_way", [])
    _tuned.under_way = [*before, described]
    try:
        yield
    finally:
        _tuned.under_way = before


def _row(autotuner: Any, config: Any, kept: int | None) -> dict[str, Any]:
    index = next((number for number, other in enumerate(autotuner.configs) if other is config), -1)
    kernel = getattr(autotuner.base_fn, "__name__", "")
    return {"kernel": kernel, "index": index, "count": len(autotuner.configs), "config": str(config), "kept": kept}


@contextmanager
def _watched_first_launches(emit: Emit) -> Iterator[None]:
    kernel_class = triton_api.compiled_kernel_class()
    init_handles = kernel_class._init_handles

    def watched_init_handles(kernel: Any) -> None:
        fresh = kernel.module is None
        init_handles(kernel)
        if not fresh:
            return
        launcher = kernel._run

        def first_launch(grid_x: int, grid_y: int, grid_z: int, *rest: Any) -> Any:
            kernel._run = launcher
            emit("launch", hash=kernel.hash, grid=[int(grid_x), int(grid_y), int(grid_z)])
            return launcher(grid_x, grid_y, grid_z, *rest)

        kernel._run = first_launch

    with replaced(kernel_class, "_init_handles", watched_init_handles):
        yield
