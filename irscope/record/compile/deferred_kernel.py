"""A compiled kernel whose compile goes on in another process: launched at once, waited for where it is read.

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

from irscope.record.triton import api as triton_api
from irscope.record.triton.versions import FUTURE_METHOD

__all__ = ["deferred_kernel"]

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


@cache
def _kernel_class() -> Any:
    real_class = triton_api.compiled_kernel_class()

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
            if name.startswith("__") or name == FUTURE_METHOD:
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
            if self._error is not None or _NEEDS_SCRATCH in text or triton_api.program_watches_compiles():
                self.settle()
            return self._real is not None

        def _is_being_launched(self) -> bool:
            return self._real is None and sys._getframe(2).f_globals.get("__name__") == "triton.runtime.jit"

        def _launch(self, *arguments: Any) -> Any:
            launcher = triton_api.active_driver().launcher_cls(self.src, SimpleNamespace())
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
