"""Runs a program that expects a GPU, unchanged, on a machine that has none.

Within `virtual_gpu(target)` a tensor on `cuda` has a shape, a type and an address, but no data; a launch compiles its
kernel for the target and runs nothing; what reads data is given stand-ins; and `torch.cuda` speaks of a real part of
that architecture.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from irscope.record.device_table import DevicePart, part_of
from irscope.record.virtual_arguments import install_arguments
from irscope.record.virtual_driver import Launched, VirtualDriver, install_driver
from irscope.record.virtual_follow import Following, follow
from irscope.record.virtual_import import AfterImport
from irscope.record.virtual_libraries import Libraries
from irscope.record.virtual_patches import Patches
from irscope.record.virtual_rewrite import install_rewriting
from irscope.record.virtual_tuning import AutotuneRecord, ConfigPolicy, Tuning, TuningStep

if TYPE_CHECKING:
    from irscope.capture import Target

__all__ = ["AutotuneRecord", "ConfigPolicy", "TuningStep", "VirtualGpu", "virtual_gpu"]


class VirtualGpu:
    """A GPU that is not there, while the program runs that wants it."""

    def __init__(self, target: Target, on_launch: Launched | None, assume: Mapping[str, str] | None = None) -> None:
        self.target = target
        self.part: DevicePart = part_of(f"{target.backend}:{target.arch}")
        """The real part that it stands for."""
        self._patches = Patches()
        self._follow = follow(assume)
        self.following: Following = self._follow.__enter__()
        """What became of the stand-ins that the program was given."""
        install_rewriting(self._patches)
        install_arguments(self._patches)
        self._driver: VirtualDriver = install_driver(self.part, target.arch, on_launch, self._patches)
        self._tuning = Tuning(self._driver)
        self._tuning.install(self._patches)
        self._libraries = Libraries("nvidia" if target.backend == "cuda" else "amd", self._patches)
        self._libraries.install()
        self._torch: Any = None
        self._watch = AfterImport("torch", self._open_torch)
        self._closed = False
        self._watch.install()

    @property
    def autotune(self) -> ConfigPolicy:
        """Which configurations of an `@triton.autotune`d kernel are compiled; set it before the kernel is called.

        `"first"` (the default): the first that the part has the resources for, after the script's own pruning.
        `"all"`: every one that pruning leaves. A function of the configuration's 0-based index and the configuration:
        those it returns True for.
        """
        return self._tuning.policy

    @autotune.setter
    def autotune(self, policy: ConfigPolicy) -> None:
        if policy not in ("first", "all") and not callable(policy):
            raise ValueError(
                f"{policy!r} is no autotune policy: it is 'first', 'all', or a function of index and config"
            )
        self._tuning.policy = policy

    @property
    def autotuned(self) -> list[AutotuneRecord]:
        """What became of each autotuned kernel, in the order they were first called."""
        return self._tuning.records

    def kept_by_pruning(self, autotuner: Any) -> int:
        """How many configurations the script's own pruning left of an autotuner's that is at work."""
        return self._tuning.kept(autotuner)

    @property
    def tuning_step(self) -> TuningStep | None:
        """What the kernel that is being compiled or launched is configured with: for a compile hook, or `on_launch`."""
        return self._tuning.step

    def close(self) -> None:
        """Undo everything; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._watch.remove()
        self._libraries.remove()
        if self._torch is not None:
            self._torch.close()
        self._tuning.forget()
        self._driver.let_go()
        self._patches.restore()
        self._follow.__exit__(None, None, None)

    def _open_torch(self, torch: ModuleType) -> None:
        # Imported here, and not above: it imports torch, which a program without torch must not be made to do.
        from irscope.record.virtual_session import TorchSession

        self._torch = TorchSession(self.part)
        self._torch.open()
        self._driver.on_arguments = self._torch.note_arguments
        self._driver.is_host_memory = self._torch.is_host_memory


@contextmanager
def virtual_gpu(
    target: Target,
    on_launch: Callable[[Any, tuple[int, int, int]], None] | None = None,
    assume: Mapping[str, str] | None = None,
) -> Iterator[VirtualGpu]:
    """Let the programs run within take this machine for one that has a GPU.

    Arguments:
        target: the GPU to have.
        on_launch: called at each launch with Triton's compiled kernel and the grid, (x, y, z).
        assume: values of stand-ins, by the variable they are assigned to, the kernel's parameter, or FILE:LINE.

    Gives the VirtualGpu, to set how autotuning goes and to read what it chose. Everything is restored on leaving,
    after an exception too. torch is not imported: it is stood in for if and when the program imports it.
    """
    gpu = VirtualGpu(target, on_launch, assume)
    # A program may end the interpreter from within: kernels must not be unloaded then by a driver that is half gone.
    atexit.register(gpu.close)
    try:
        yield gpu
    finally:
        atexit.unregister(gpu.close)
        gpu.close()
