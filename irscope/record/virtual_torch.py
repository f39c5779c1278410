"""Lets torch run a program written for a GPU where there is none: each `cuda` tensor is one of torch's `meta` tensors.

A function mode sees every call: it turns the devices that are asked for into `meta`, answers as a GPU tensor would,
and hands reads of data to `virtual_reads.py`. What runs on the CPU is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils import _device as torch_default_device

from irscope.record import virtual_memory
from irscope.record.virtual_memory import CPU, CUDA, META, Known, Memory, Origin

Handler = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]

GIVEN = frozenset({torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor, torch.Tensor.new_tensor})
"""Factories whose numbers the script spells out."""
CONSTANT = frozenset(
    {torch.arange, torch.zeros, torch.ones, torch.full, torch.eye, torch.linspace, torch.randint, torch.randperm}
    | {torch.tril_indices, torch.triu_indices, torch.zeros_like, torch.ones_like, torch.full_like, torch.randint_like}
    | {torch.Tensor.new_zeros, torch.Tensor.new_ones, torch.Tensor.new_full}
)
"""Factories whose values follow from their arguments, or are random integers as good as any others."""
RANDOM = frozenset({torch.randint, torch.randperm})


class VirtualCuda(TorchFunctionMode):
    """The function mode: one for each virtual GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory()
        self.handlers: dict[Any, Handler] = {}
        """Functions with an answer of their own; all others go through `call`."""
        self.on_operator: Callable[[Any], None] | None = None
        """Called before an operator from a library's own registration is run."""
        self._seeded = torch.Generator().manual_seed(0)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        handler = self.handlers.get(func)
        if handler is not None:
            return handler(func, args, kwargs or {})
        return self.call(func, args, kwargs or {})

    @property
    def is_on(self) -> bool:
        """Whether the mode sees what is called now: torch switches it off within its own handlers."""
        return any(mode is self for mode in _get_current_function_mode_stack())

    # ---- devices

    def wants_cuda(self, device: Any) -> bool:
        """Whether a device, in any of the forms torch takes, is the GPU."""
        if isinstance(device, torch.device):
            return device.type == "cuda"
        if isinstance(device, str):
            return device == "cuda" or device.startswith("cuda:")
        return isinstance(device, int) and not isinstance(device, bool)

    def _device(self, device: Any) -> tuple[Any, torch.device | None]:
        """The device for torch, and the one that the result is to report (None: the GPU, or where it is)."""
        if device is None:
            return None, None
        if self.wants_cuda(device):
            return META, None
        asked = torch.device(device) if isinstance(device, str) else device
        return device, META if asked.type == "meta" else None

    # ---- any function

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a function on the data-less tensors, and let its results answer for the device they should be on."""
        reported: torch.device | None = None
        if kwargs:
            kwargs = dict(kwargs)
            if "device" in kwargs:
                kwargs["device"], reported = self._device(kwargs["device"])
            if kwargs.get("pin_memory"):
                return self.memory.pin(self.call(func, args, {**kwargs, "pin_memory": False}))
        tensors: list[torch.Tensor] = []
        args = tuple([self._argument(value, tensors) for value in args])
        if kwargs:
            kwargs = {name: self._argument(value, tensors) for name, value in kwargs.items()}
        virtual = [tensor for tensor in tensors if tensor.is_meta]
        on_device = kwargs.get("device") is META or reported is not None or self._default_is_cuda(func, kwargs)
        if not virtual and not on_device:
            return func(*args, **kwargs)
        if "generator" in kwargs:
            # A generator of the CPU stands for one of the device; the tensors that it would fill have no data.
            kwargs.pop("generator")
        result = self.run(func, args, kwargs, virtual)
        if reported is not None:
            self._each(result, lambda tensor: self.memory.mark(tensor, reported))
        elif self.memory.marks and virtual:
            self._inherit_device(result, virtual)
        self._learn(func, args, kwargs, tensors, result)
        return result

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], virtual: list[torch.Tensor]) -> Any:
        """Run a function on data-less tensors; where torch cannot, make do."""
        from irscope.record import virtual_rescue

        if self.on_operator is not None and isinstance(func, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
            self.on_operator(func)
        try:
            return func(*args, **kwargs)
        except (NotImplementedError, RuntimeError) as error:
            return virtual_rescue.rescue(func, args, kwargs, error)

    def _argument(self, value: Any, tensors: list[torch.Tensor]) -> Any:
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            return value
        kind = type(value)
        if kind is list or kind is tuple:
            found = [self._argument(item, tensors) for item in value]
            return kind(found)
        if kind is torch.device:
            return META if value.type == "cuda" else value
        if kind is str and value.startswith("cuda") and self.wants_cuda(value):
            return META
        return value

    def _default_is_cuda(self, func: Any, kwargs: dict[str, Any]) -> bool:
        default = torch_default_device.CURRENT_DEVICE
        if default is None or default.type != "cuda" or kwargs.get("device") is not None:
            return False
        return func in torch_default_device._device_constructors()

    def _inherit_device(self, result: Any, virtual: list[torch.Tensor]) -> None:
        """Mark a result with the device that its operands report, where none of them is on the GPU."""
        devices = [self.memory.device(tensor) for tensor in virtual]
        if CUDA in devices:
            return
        self._each(result, lambda tensor: self.memory.mark(tensor, devices[0]))

    def _each(self, result: Any, action: Callable[[torch.Tensor], Any]) -> None:
        if isinstance(result, torch.Tensor):
            if result.is_meta and result.layout is torch.strided:
                action(result)
        elif isinstance(result, list | tuple):
            for item in result:
                self._each(item, action)

    # ---- values

    def _learn(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[torch.Tensor], result: Any
    ) -> None:
        """Compute small results alongside, on the CPU, as far as all operands are known."""
        if _writes(func, kwargs):
            self._learn_write(func, args, kwargs, tensors)
            return
        given = func in GIVEN
        if given or func in CONSTANT:
            if isinstance(result, torch.Tensor) and result.is_meta and virtual_memory.worth_knowing(result, given):
                self._learn_constant(func, args, kwargs, result)
            return
        if not tensors:
            return
        first = result[0] if isinstance(result, list | tuple) and len(result) else result
        if not isinstance(first, torch.Tensor) or not virtual_memory.worth_knowing(first, True):
            return
        operands = [virtual_memory.known(tensor) for tensor in tensors]
        if any(operand is None for operand in operands):
            return
        origins = frozenset().union(*(operand.origins for operand in operands if operand is not None))
        try:
            values = func(*_known_arguments(args), **_known_arguments(kwargs))
        except Exception:  # whatever it is, the script did not ask for this computation
            return
        self._attach(result, values, origins or frozenset({Origin()}))

    def _attach(self, result: Any, values: Any, origins: frozenset[Origin]) -> None:
        if isinstance(result, torch.Tensor) and isinstance(values, torch.Tensor):
            found = Known(values.detach(), origins)
            if result.is_meta and result.shape == values.shape and not found.doubtful:
                virtual_memory.know(result, found)
        elif isinstance(result, list | tuple) and isinstance(values, list | tuple):
            for one, value in zip(result, values, strict=False):
                self._attach(one, value, origins)

    def _learn_constant(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor) -> None:
        options = {**_known_arguments(kwargs), "device": CPU}
        if func in RANDOM:
            options["generator"] = self._seeded
        try:
            values = func(*_known_arguments(args), **options)
        except Exception:  # for example `torch.tensor` of a tensor whose values are not known
            return
        self._attach(result, values, frozenset({Origin()}))

    def _learn_write(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[torch.Tensor]
    ) -> None:
        written = kwargs.get("out", args[0] if args else None)
        if not isinstance(written, torch.Tensor):
            return
        found = virtual_memory.known(written)
        if found is None or not written.is_meta:
            return
        try:
            if any(virtual_memory.known(tensor) is None for tensor in tensors):
                raise ValueError("an operand is not known")
            func(*_known_arguments(args), **_known_arguments(kwargs))
        except Exception:  # as above; but what was known holds no longer
            virtual_memory.lose(written)


def _known_arguments(values: Any) -> Any:
    """Arguments with every tensor replaced by its values, and the device by the CPU."""
    if isinstance(values, torch.Tensor):
        found = virtual_memory.known(values)
        return values if found is None else found.values
    if isinstance(values, list | tuple):
        return type(values)(_known_arguments(value) for value in values) if type(values) in (list, tuple) else values
    if isinstance(values, dict):
        return {name: _known_arguments(value) for name, value in values.items()}
    return CPU if values is META else values


def _writes(func: Any, kwargs: dict[str, Any]) -> bool:
    """Whether a function writes to its first argument, or to `out`: `add_`, `__iadd__`, `__setitem__`."""
    if kwargs.get("out") is not None:
        return True
    name = getattr(func, "__name__", "")
    if name.endswith("__"):
        return name == "__setitem__" or (name.startswith("__i") and name[3:-2] in _IN_PLACE)
    return name.endswith("_") and not name.startswith("_")


_IN_PLACE = frozenset(
    {"add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"}
)
