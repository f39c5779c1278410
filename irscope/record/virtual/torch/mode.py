"""Lets torch run a program written for a GPU without one: each `cuda` tensor is one of torch's `meta` tensors.

A function mode sees every call: it replaces the device `cuda` by `meta`, answers as a GPU tensor would, and lets
`reads.py` handle reads of data. What runs on the CPU is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils import _device as torch_default_device

from irscope.model.launch_record import DecisionKind
from irscope.record.virtual.follow import current_following
from irscope.record.virtual.numbers import Placeholder, plain, reads_of
from irscope.record.virtual.torch import shapes as virtual_shapes
from irscope.record.virtual.torch.memory import CUDA, META, Memory
from irscope.record.virtual.torch.shadow import Call, Shadows, tensors_in

_Handler = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


class VirtualCuda(TorchFunctionMode):
    """The function mode: one for each virtual GPU."""

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self.memory = memory
        self.handlers: dict[Any, _Handler] = {}
        """Functions that `call` does not run."""
        self.on_operator: Callable[[Any], None] | None = None
        """Called before an operator from a library's own registration is run."""
        self._shadows = Shadows()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        handler = self.handlers.get(func)
        if handler is not None:
            return handler(func, args, kwargs or {})
        return self.call(func, args, kwargs or {})

    @property
    def is_on(self) -> bool:
        """Whether the mode sees calls now: torch switches it off within its own handlers."""
        return any(mode is self for mode in _get_current_function_mode_stack())

    # ---- devices

    def is_cuda(self, device: Any) -> bool:
        """Whether a device, in any of the forms torch takes, is the GPU."""
        if isinstance(device, torch.device):
            return device.type == "cuda"
        if isinstance(device, str):
            return device == "cuda" or device.startswith("cuda:")
        return isinstance(device, int) and not isinstance(device, bool)

    def other_gpu(self, device: Any) -> torch.device | None:
        """The device that a tensor on a GPU reports, if it is not `cuda:0`."""
        index = self.memory.index_of(device)
        return torch.device("cuda", index) if index else None

    def _device(self, device: Any) -> tuple[Any, torch.device | None]:
        """The device for torch, and the one that the result reports (None for `cuda:0`, or the device of the CPU)."""
        if device is None:
            return None, None
        if self.is_cuda(device):
            return META, self.other_gpu(device)
        named = torch.device(device) if isinstance(device, str) else device
        return device, META if named.type == "meta" else None

    # ---- any function

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a function on tensors without data, and let its results report the right device."""
        reported: torch.device | None = None
        if kwargs:
            kwargs = dict(kwargs)
            if "device" in kwargs:
                kwargs["device"], reported = self._device(kwargs["device"])
            if kwargs.get("pin_memory"):
                return self.memory.pin(self.call(func, args, {**kwargs, "pin_memory": False}))
        tensors: list[torch.Tensor] = []
        numbers: list[Any] = []
        args = tuple([self._argument(value, tensors, numbers) for value in args])
        if kwargs:
            kwargs = {name: self._argument(value, tensors, numbers) for name, value in kwargs.items()}
        virtual = [tensor for tensor in tensors if tensor.is_meta]
        on_device = kwargs.get("device") is META or reported is not None or self._default_is_cuda(func, kwargs)
        if not virtual and not on_device:
            if numbers:
                # Tensors of the host do not remember reads.
                _decide("conversion", numbers)
            return func(*args, **kwargs)
        if "generator" in kwargs:
            # A generator of the CPU stands in for one of the device; the tensors that it would fill have no data.
            kwargs.pop("generator")
        versions = self._shadows.versions(virtual)
        try:
            result = self.run(func, args, kwargs, virtual)
        except Exception:
            if numbers:
                _decide("error", numbers)
            raise
        if reported is not None:
            self._each(result, lambda tensor: self.memory.mark(tensor, reported))
        elif self.memory.marks and virtual:
            self._inherit_device(result, virtual)
        if isinstance(result, torch.Tensor) and result.is_meta and self.memory.device(result).type == "cuda":
            self.memory.allocate(result)
        self._shadows.learn(Call(func, args, kwargs, tensors, result, bool(numbers)), versions)
        virtual_shapes.carry_sizes(virtual, numbers, result)
        return result

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], virtual: list[torch.Tensor]) -> Any:
        """Run a function on tensors without data, as far as possible where torch cannot."""
        from irscope.record.virtual.torch import rescue as virtual_rescue

        if self.on_operator is not None and isinstance(func, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
            self.on_operator(func)
        try:
            return func(*args, **kwargs)
        except (NotImplementedError, RuntimeError) as error:
            return virtual_rescue.rescue(func, args, kwargs, error)

    def _argument(self, value: Any, tensors: list[torch.Tensor], numbers: list[Any]) -> Any:
        """A call's argument for torch; adds its tensors and placeholder numbers to the lists."""
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            return value
        kind = type(value)
        if kind is list or kind is tuple:
            found = [self._argument(item, tensors, numbers) for item in value]
            return kind(found)
        if isinstance(value, Placeholder):
            numbers.append(value)
            return plain(value)
        if kind is slice and any(isinstance(bound, Placeholder) for bound in (value.start, value.stop, value.step)):
            return slice(*(self._argument(bound, tensors, numbers) for bound in (value.start, value.stop, value.step)))
        if kind is torch.Size and any(isinstance(size, Placeholder) for size in value):
            return tuple([self._argument(size, tensors, numbers) for size in value])
        if kind is torch.device:
            return META if value.type == "cuda" else value
        if kind is str and value.startswith("cuda") and self.is_cuda(value):
            return META
        return value

    def _default_is_cuda(self, func: Any, kwargs: dict[str, Any]) -> bool:
        default = torch_default_device.CURRENT_DEVICE
        if default is None or default.type != "cuda" or kwargs.get("device") is not None:
            return False
        return func in torch_default_device._device_constructors()

    def _inherit_device(self, result: Any, virtual: list[torch.Tensor]) -> None:
        """Let a result report the device of its operands, if none of them is on the GPU."""
        devices = [self.memory.device(tensor) for tensor in virtual]
        if CUDA in devices:
            return
        self._each(result, lambda tensor: self.memory.mark(tensor, devices[0]))

    def _each(self, result: Any, action: Callable[[torch.Tensor], Any]) -> None:
        for tensor in tensors_in(result):
            if tensor.is_meta and tensor.layout is torch.strided:
                action(tensor)


def _decide(kind: DecisionKind, numbers: list[Any]) -> None:
    following = current_following()
    if following is not None:
        following.decide(kind, reads_of(tuple(numbers)))
