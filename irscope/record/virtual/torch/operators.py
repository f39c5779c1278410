"""Operators that a library registers with torch: on tensors without data, runs the library's code for the GPU.

torch itself would run the operator's shape function, which launches no kernel, or fail without one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import torch

from irscope.record.virtual.torch.mode import VirtualCuda
from irscope.record.virtual.torch.shadow import OWN

_KEYS = ("CUDA", "CompositeExplicitAutograd")
"""The dispatch keys under which a library's code for the GPU may be registered."""


class Operators:
    """Registers a library's code for tensors without data when its operators are first called."""

    def __init__(self, mode: VirtualCuda) -> None:
        self._mode = mode
        self._registered: set[str] = set()
        self._libraries: dict[str, Any] = {}

    def register(self, func: Any) -> None:
        """Register the GPU's code of an operator for tensors without data too, unless that was done before."""
        for overload in _overloads(func):
            name = overload.name()
            if name in self._registered:
                continue
            self._registered.add(name)
            if overload.namespace in OWN:
                # Among them are names that are no operators of the dispatcher's.
                continue
            if any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in _KEYS):
                self._register(overload)

    def close(self) -> None:
        """Remove the registrations."""
        for library in self._libraries.values():
            library._destroy()
        self._libraries.clear()
        self._registered.clear()

    def _register(self, overload: Any) -> None:
        mode = self._mode
        keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)

        def on_meta(*args: Any, **kwargs: Any) -> Any:
            # Not a call of the operator, which the mode would send back here: a redispatch skips modes.
            with nullcontext() if mode.is_on else mode:
                return overload.redispatch(keys, *args, **kwargs)

        namespace = overload.namespace
        if namespace not in self._libraries:
            self._libraries[namespace] = torch.library.Library(namespace, "IMPL")
        with warnings.catch_warnings():
            # torch warns that the shape function is replaced, which is intended.
            warnings.simplefilter("ignore")
            self._libraries[namespace].impl(overload, on_meta, "Meta", allow_override=True)


def _overloads(func: Any) -> Iterator[Any]:
    if isinstance(func, torch._ops.OpOverload):
        yield func
    elif isinstance(func, torch._ops.OpOverloadPacket):
        for name in func.overloads():
            yield getattr(func, name)
