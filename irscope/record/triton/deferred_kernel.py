"""A compiled kernel whose compile goes on in another process: launched at once, waited for where anything else is read.

On the virtual GPU a launch needs of its kernel no more than the source. Whatever a program reads beyond that (metadata,
texts, registers) is the real kernel's, which is waited for.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any

from irscope.record.triton.api import compiled_kernel_class

__all__ = ["DeferredTimes", "deferred_kernel", "program_watches_compiles"]

# A kernel that makes descriptors on the device takes scratch memory, which the script has to provide.
_NEEDS_SCRATCH = "tensor_descriptor"


def deferred_kernel(source: Any, key: str, texts: Mapping[str, str], compiled: Callable[[], Any]) -> Any:
    """A kernel that is being compiled.

    Args:
        source: what is compiled, Triton's ASTSource.
        key: its key in Triton's cache.
        texts: the stages that are known, by name.
        compiled: waits for the kernel and returns it; raises what its compile raised.
    """
    return _kernel_class()(source, key, texts, compiled)


class DeferredTimes(list[float]):
    """The times of a configuration whose kernels are being compiled: those of all that compile are equal.

    To find that a configuration is not faster than one that compiles, it need not be waited for.
    """

    def __init__(self, times: list[float], kernels: list[Any], refused: tuple[type[BaseException], ...]) -> None:
        """`refused`: the errors after which the autotuner goes on, with infinite times."""
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
        best = other.settled() if isinstance(other, DeferredTimes) else other
        if best[0] != float("inf"):
            return False
        return self.settled() < best

    def __gt__(self, other: Any) -> bool:
        return self.settled() > (other.settled() if isinstance(other, DeferredTimes) else other)

    def __getitem__(self, index: Any) -> Any:
        if self._kernels:
            self.settled()
        return super().__getitem__(index)

    def __iter__(self) -> Any:
        if self._kernels:
            self.settled()
        return super().__iter__()


def program_watches_compiles() -> bool:
    """Whether the program asked Triton to call it at compiles, loads or launches, or to read no cache."""
    from triton import knobs

    runtime = vars(type(knobs.runtime)) | vars(knobs.runtime)
    names = ("launch_enter_hook", "launch_exit_hook", "kernel_load_start_hook", "kernel_load_end_hook")
    hooks = [runtime.get(name) for name in (*names, "kernel_unload_hook", "jit_cache_hook", "jit_post_compile_hook")]
    asked = [knobs.compilation.listener, knobs.compilation.always_compile, knobs.compilation.override]
    # A chain of hooks without any is none.
    return any(getattr(hook, "calls", hook) for hook in (*hooks, *asked))


@cache
def _kernel_class() -> Any:
    real_class = compiled_kernel_class()

    class DeferredKernel(real_class):
        def __init__(self, source: Any, key: str, texts: Mapping[str, str], compiled: Callable[[], Any]) -> None:
            self.src = source
            self.hash = key
            self.known_texts = dict(texts)
            self._compiled = compiled
            self._real: Any = None
            self._error: BaseException | None = None
            self._was_launched = False

        def settle(self) -> Any:
            """The kernel itself, once it is compiled; raises what its compile raised, each time."""
            if self._error is not None:
                raise self._error
            if self._real is None:
                try:
                    self._real = self._compiled()
                    if self._was_launched:
                        # A launch loads the kernel, which fails where the part has not the resources for it.
                        self._real._init_handles()
                except Exception as error:
                    self._error = error
                    raise
            return self._real

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return getattr(self.settle(), name)

        def _init_handles(self) -> None:
            self.settle()._init_handles()

        def __getitem__(self, grid: Any) -> Any:
            return self.settle()[grid]

        def launch_metadata(self, grid: Any, stream: Any, *arguments: Any) -> Any:
            return self._real.launch_metadata(grid, stream, *arguments) if self._must_settle() else None

        @property
        def run(self) -> Any:
            return self._real.run if self._must_settle() else self._launch

        @property
        def function(self) -> Any:
            return None if self._is_being_launched() else self.settle().function

        @property
        def packed_metadata(self) -> Any:
            return None if self._is_being_launched() else self.settle().packed_metadata

        def _must_settle(self) -> bool:
            """Wait for the kernel if its launch depends on it; whether it is there."""
            text = "".join(self.known_texts.values())
            if self._error is not None or _NEEDS_SCRATCH in text or program_watches_compiles():
                self.settle()
            return self._real is not None

        def _is_being_launched(self) -> bool:
            return self._real is None and sys._getframe(2).f_globals.get("__name__") == "triton.runtime.jit"

        def _launch(self, *arguments: Any) -> Any:
            from triton.runtime.driver import driver

            active: Any = driver.active
            launcher = active.launcher_cls(self.src, SimpleNamespace())
            launcher.kernel = weakref.ref(self)
            try:
                launcher(*arguments)
                self._was_launched = True
            except ValueError:
                # Whether an argument is refused may depend on how the kernel takes it.
                return self.settle().run(*arguments)

        def __del__(self) -> None:
            """The kernel that was loaded is unloaded by itself."""

    return DeferredKernel
