"""Tensors that wrap others (`torch.Tensor._make_wrapper_subclass`): quantised, masked, nested and distributed ones."""

from __future__ import annotations

from typing import Any

import torch
from torch._guards import detect_fake_mode

from irscope.record.triton.patches import Patches
from irscope.record.virtual.torch.memory import CUDA, META
from irscope.record.virtual.torch.mode import VirtualCuda
from irscope.record.virtual.torch.shadow import mapped


class Wrappers:
    """Makes wrappers of the device without data, as other tensors are, and runs their own code as that of a program."""

    def __init__(self, mode: VirtualCuda, patches: Patches) -> None:
        """In place until `patches` are closed."""
        self._mode = mode
        self._patches = patches
        self._known = {torch.Tensor}
        """The classes whose code is followed."""
        make = torch.Tensor._make_wrapper_subclass

        def make_wrapper(kind: Any, *args: Any, device: Any = None, **options: Any) -> Any:
            if detect_fake_mode() is None:
                self._follow(kind)
                if device is not None and mode.is_cuda(device):
                    device = META
            given = {} if device is None else {"device": device}
            return make(kind, *args, **given, **options)

        patches.set(torch.Tensor, "_make_wrapper_subclass", staticmethod(make_wrapper))

    def _follow(self, kind: type) -> None:
        """Enter the function mode in a class's own implementation of torch's operators.

        Such code runs within a function that the mode handles, where the mode is off.
        """
        owner = next(each for each in kind.__mro__ if "__torch_dispatch__" in vars(each))
        if owner in self._known:
            return
        self._known.add(owner)
        run = vars(owner)["__torch_dispatch__"].__get__(None, owner).__func__
        mode = self._mode

        def in_mode(
            cls: Any, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            if mode.is_on or detect_fake_mode() is not None:
                return run(cls, func, types, args, kwargs or {})
            with mode:
                # The operators of tensors without data are told to be on the GPU, as their operands tell.
                return run(cls, func, types, mapped(args, _same, CUDA), mapped(kwargs or {}, _same, CUDA))

        self._patches.set(owner, "__torch_dispatch__", classmethod(in_mode))


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor
