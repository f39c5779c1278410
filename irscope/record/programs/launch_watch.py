"""Watches launches and autotuning while a script runs, on the virtual GPU or on a real one.

Nothing here stays on a launch's path: on a real GPU a kernel's first launch is seen, and the launcher put back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from irscope.errors import UsageError
from irscope.model.capture import Autotuning, Target
from irscope.model.launch_record import notes_of
from irscope.record.process.events import EventSink, Launched, LaunchLeft, Note, Timed
from irscope.record.programs.graph_watch import watched_graphs
from irscope.record.programs.launch_data import launch_contents
from irscope.record.triton import api as triton_api
from irscope.record.triton.autotuner import ConfigPolicy, OnTimed, watched_autotuner
from irscope.record.triton.patches import replaced
from irscope.record.virtual.arguments import assumptions_under_way
from irscope.record.virtual.follow import current_following


@contextmanager
def virtual_launches(
    target: Target, configs: str, sink: EventSink, assume: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run what follows on the virtual GPU for a target, and report its launches and tunings.

    `assume`: what `--assume` says.
    """
    from irscope.record.virtual.gpu import virtual_gpu

    hashes: set[str] = set()

    def launched(kernel: Any, grid: tuple[int, int, int]) -> None:
        assumptions = assumptions_under_way()
        sink(Launched(kernel.hash, grid, assumptions))
        # A capture states those of its first launch alone.
        following = current_following()
        if following is not None and kernel.hash not in hashes:
            hashes.add(kernel.hash)
            following.reported(assumptions)

    def noted(text: str) -> None:
        sink(Note(text))

    policy = _config_policy(configs)
    with (
        watched_graphs(sink, policy),
        virtual_gpu(target, launched, assume, policy, _timed(sink), noted) as following,
    ):
        try:
            yield
        finally:
            for note in notes_of(following.unreported()):
                sink(Note(note))
            for name in following.unused():
                known = ", ".join(following.names()) or "none was read"
                sink(Note(f"--assume {name} set nothing. What could be set: {known}."))


@contextmanager
def real_launches(sink: EventSink, data_limit_bytes: int = 0) -> Iterator[None]:
    """Report the launches and tunings of what follows, on the GPU that is there.

    `data_limit_bytes`: of each tensor whose data are reported; 0 for none.
    """
    with watched_autotuner(_timed(sink)), watched_graphs(sink), _watched_first_launches(sink, data_limit_bytes):
        yield


def _config_policy(text: str) -> ConfigPolicy:
    """The configurations that `--config` selects: `first`, `all`, an index, or KEY=VALUE; raises UsageError."""
    if text == "first" or text == "all":
        return text
    name, equals, _ = text.partition("=")
    if not text.isdigit() and not (name and equals):
        raise UsageError(
            f"--config {text!r}: write all, a configuration's index from 0, or KEY=VALUE such as BLOCK_M=64."
        )
    return lambda index, config: Autotuning(index, 0, str(config)).is_named(text)


def _timed(sink: EventSink) -> OnTimed:
    def timed(kernel: str, tuning: int, configuration: Autotuning, times_ms: list[float]) -> None:
        sink(Timed(kernel, tuning, configuration.config, tuple(times_ms)))

    return timed


@contextmanager
def _watched_first_launches(sink: EventSink, data_limit_bytes: int) -> Iterator[None]:
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
            sink(Launched(kernel.hash, (int(grid_x), int(grid_y), int(grid_z))))
            if not data_limit_bytes:
                return launcher(grid_x, grid_y, grid_z, *rest)
            # As in `irscope.record.gpu.kernels`: stream, function, packed_metadata, launch_metadata, two hooks.
            result, contents = launch_contents(
                kernel, rest[6:], data_limit_bytes, lambda: launcher(grid_x, grid_y, grid_z, *rest)
            )
            if contents:
                sink(LaunchLeft(kernel.hash, contents))
            return result

        kernel._run = first_launch

    with replaced(kernel_class, "_init_handles", watched_init_handles):
        yield
