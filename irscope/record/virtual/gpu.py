"""Runs a program that expects a GPU, unchanged, on a machine that has none.

Within `virtual_gpu(target)` a tensor on `cuda` has a shape, a type and an address, but no data; a launch compiles its
kernel for the target and runs nothing; whatever reads data gets placeholder values, which are followed to what they
decide; and `torch.cuda` describes a real part of that architecture.
"""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from irscope.device.parts import part_of
from irscope.model.capture import Target
from irscope.record.compile.launches import spare_torch
from irscope.record.process.own_folder import parent_of_temporaries
from irscope.record.triton.autotuner import ConfigPolicy, OnTimed, install_benchmarks, is_timing, watched_autotuner
from irscope.record.triton.driver import OnLaunch, install_cublas, install_driver, profiler_replacements
from irscope.record.triton.patches import AfterImport, Patches, environment_variable
from irscope.record.virtual.arguments import install_arguments
from irscope.record.virtual.clock import install_clock
from irscope.record.virtual.placeholders import Following, follow
from irscope.record.virtual.rewrite import install_rewriting
from irscope.record.virtual.torch.streams import BareInterface

if TYPE_CHECKING:
    from irscope.machine.launch import RunLimits

_OnRun = Callable[[Any, tuple[Any, ...], Callable[[], None]], None]


@contextmanager
def virtual_gpu(
    target: Target,
    on_launch: OnLaunch | None = None,
    assume: Mapping[str, str] | None = None,
    configs: ConfigPolicy = "first",
    on_timed: OnTimed | None = None,
    on_note: Callable[[str], None] | None = None,
    limits: RunLimits | None = None,
    on_run: _OnRun | None = None,
) -> Iterator[Following]:
    """Let the programs that run within see a GPU.

    `on_launch`: is called before each launch with Triton's kernel, the grid, the source and the arguments. `on_timed`:
    after each configuration that was timed. `on_note`: with what a reader must know beside that. `limits`: tensors hold
    data, and launches are run on the CPU, within these. `on_run`: is called in place of each such run, with the kernel,
    its arguments and what makes the run.

    Yields what the placeholder values decided. Everything is restored on leaving. torch is not imported: it is replaced
    if and when the program imports it.
    """
    part = part_of(f"{target.backend}:{target.arch}")
    with Patches() as patches:
        # A program may end the interpreter from within, and a driver that is half gone must not unload kernels then.
        atexit.register(patches.close)
        patches.callback(atexit.unregister, patches.close)
        following = patches.enter_context(follow(assume))
        install_rewriting(patches)
        install_arguments(patches)
        spare_torch(patches)
        driver = install_driver(part, target.arch, on_launch, BareInterface, patches)
        patches.enter_context(watched_autotuner(on_timed, configs))
        install_benchmarks(patches, lambda times: times if is_timing() else following.read(times))
        install_clock(patches)
        _install_libraries("nvidia" if target.backend == "cuda" else "amd", patches)

        def open_torch(_: ModuleType) -> None:
            # Not above: it imports torch, which a program without torch must not be made to do.
            from irscope.record.virtual.torch.session import TorchSession, forget_written

            driver.on_arguments = forget_written
            if limits is not None:
                from irscope.record.virtual.torch.computing import ComputingSession

                session = ComputingSession(part, patches, limits, on_note)
                driver.is_host_memory, driver.compute = session.is_host_memory, session.launch
                if on_run is not None:
                    driver.compute = lambda kernel, source, grid, arguments: on_run(
                        kernel, arguments, lambda: session.launch(kernel, source, grid, arguments)
                    )
                return
            driver.is_host_memory = TorchSession(part, patches, on_note).is_host_memory

        patches.enter_context(AfterImport("torch", open_torch))
        yield following


def _install_libraries(vendor: str, patches: Patches) -> None:
    """Replace cuBLAS and proton, which need a GPU, and FlagGems' store of times in the user's home."""
    install_cublas(patches)
    for name, replace_functions in profiler_replacements(patches).items():
        patches.enter_context(AfterImport(name, replace_functions))
    folder = tempfile.TemporaryDirectory(
        prefix="irscope-choices-", dir=parent_of_temporaries(), ignore_cleanup_errors=True
    )
    path = Path(patches.enter_context(folder)) / "choices.db"
    patches.enter_context(environment_variable("FLAGGEMS_DB_URL", f"sqlite:///{path}"))
    # FlagGems would call `nvidia-smi` and the like to find the vendor of the GPU.
    patches.enter_context(environment_variable("GEMS_VENDOR", os.environ.get("GEMS_VENDOR", vendor)))
