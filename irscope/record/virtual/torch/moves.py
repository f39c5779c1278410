"""Copies between the host and the virtual device, and a tensor's device, address and type name."""

from __future__ import annotations

from typing import Any

import torch

from irscope.record.virtual.follow import current_following
from irscope.record.virtual.places import is_called_by_program
from irscope.record.virtual.torch import memory as virtual_memory
from irscope.record.virtual.torch import shapes as virtual_shapes
from irscope.record.virtual.torch.memory import CPU, CUDA, META
from irscope.record.virtual.torch.mode import VirtualCuda

T = torch.Tensor

LEGACY_TYPES = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "ByteTensor": torch.uint8,
    "CharTensor": torch.int8,
    "ShortTensor": torch.int16,
    "IntTensor": torch.int32,
    "LongTensor": torch.int64,
    "BoolTensor": torch.bool,
}
_TYPE_NAMES = {dtype: name for name, dtype in LEGACY_TYPES.items()}


class _Upload(torch.autograd.Function):
    """A copy to the device whose gradient on the host is zeros."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        return tensor.detach().to(META, dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        # The engine gives the gradient of the input the input's own type.
        return torch.zeros(gradients[0].shape, dtype=gradients[0].dtype, device=CPU), None


class Moves:
    """The handlers of one mode for devices and addresses."""

    def __init__(self, mode: VirtualCuda) -> None:
        self._mode = mode
        self._memory = mode.memory

    def install(self) -> None:
        """Add them to the mode."""
        handlers = self._mode.handlers
        memory = self._memory
        # A tensor's device and address are read at every launch: these four must be fast.
        handlers[T.device.__get__] = lambda func, args, kwargs: memory.device(args[0])
        handlers[T.is_cuda.__get__] = lambda func, args, kwargs: self._is(args[0], "cuda")
        handlers[T.is_cpu.__get__] = lambda func, args, kwargs: self._is(args[0], "cpu")
        handlers[T.is_meta.__get__] = lambda func, args, kwargs: self._is(args[0], "meta")
        handlers[T.data_ptr] = self.data_ptr
        handlers[T.get_device] = handlers[torch.get_device] = self.get_device
        handlers[T.to] = self.to
        handlers[T.cuda] = self.cuda
        handlers[T.cpu] = lambda func, args, kwargs: self._moved(args[0], CPU, kwargs)
        handlers[T.type] = self.type
        handlers[T.copy_] = self.copy_
        handlers[T.data.__set__] = self.set_data
        handlers[T.pin_memory] = self.pin_memory
        handlers[T.is_pinned] = lambda func, args, kwargs: memory.is_pinned(args[0])
        handlers[T.is_shared] = lambda func, args, kwargs: True if args[0].is_meta else func(*args, **kwargs)
        handlers[torch.device] = lambda func, args, kwargs: func(*args, **kwargs)

    def _is(self, tensor: torch.Tensor, kind: str) -> bool:
        return self._memory.device(tensor).type == kind

    def data_ptr(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """The address that a view at this offset has: Triton specialises on its alignment."""
        if not args[0].is_meta:
            return func(*args, **kwargs)
        address = self._memory.data_ptr(args[0])
        following = current_following()
        # Behind the function mode, whose caller the program is.
        return following.address(address) if following is not None and is_called_by_program(2) else address

    def cuda(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`tensor.cuda(device)`."""
        device = kwargs.get("device", args[1] if len(args) > 1 else None)
        return self._moved(args[0], CUDA if device is None else device, kwargs)

    def get_device(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """The index of the GPU, -1 for the host."""
        device = self._memory.device(args[0])
        return device.index or 0 if device.type == "cuda" else -1

    def to(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`tensor.to(...)` in all its forms: a device, a type, another tensor."""
        tensor, *rest = args
        kwargs = dict(kwargs)
        device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
        other = kwargs.pop("other", None)
        if rest and isinstance(rest[0], T):
            other = rest.pop(0)
        elif rest and (rest[0] is None or isinstance(rest[0], str | int | torch.device)):
            device = rest.pop(0)
        if rest and isinstance(rest[0], torch.dtype):
            dtype = rest.pop(0)
        if other is not None:
            device, dtype = self._memory.device(other), other.dtype
        copy = kwargs.get("copy", rest[1] if len(rest) > 1 else False)
        return self._move(tensor, device, tensor.dtype if dtype is None else dtype, copy, kwargs.get("memory_format"))

    def _moved(self, tensor: torch.Tensor, device: Any, kwargs: dict[str, Any]) -> Any:
        return self._move(tensor, device, tensor.dtype, False, kwargs.get("memory_format"))

    def _move(self, tensor: torch.Tensor, device: Any, dtype: torch.dtype, copy: bool, memory_format: Any) -> Any:
        options: dict[str, Any] = {} if memory_format is None else {"memory_format": memory_format}
        here = self._memory.device(tensor)
        if device is None:
            there = here
        elif self._mode.is_cuda(device):
            there = self._mode.other_gpu(device) or CUDA
        else:
            there = torch.device(device)
        if here.type == there.type and (here.index or 0) == (there.index or 0):
            return self._mode.call(T.to, (tensor, dtype), {"copy": copy, **options})
        if not tensor.is_meta and there.type != "cuda":
            return tensor.to(there, dtype, copy=copy, **options)
        if tensor.is_meta and there.type == "cpu":
            return self._download(tensor, dtype, options)
        return self._upload(tensor, there, dtype, options)

    def _upload(self, tensor: torch.Tensor, there: torch.device, dtype: torch.dtype, options: dict[str, Any]) -> Any:
        found = virtual_memory.values_of(tensor)
        if tensor.is_meta:
            result = tensor.to(dtype, copy=True, **options)
            virtual_shapes.carry_sizes([tensor], (), result)
        elif tensor.requires_grad and torch.is_grad_enabled():
            result = _Upload.apply(tensor, dtype)
        else:
            result = tensor.to(META, dtype, **options)
        if there.type == "meta":
            return self._memory.mark(result, META)
        self._memory.allocate(result)
        if there != CUDA:
            self._memory.mark(result, there)
        if found is not None and tensor.numel() <= virtual_memory.KNOWN_ELEMENTS:
            virtual_memory.store_values(result, found.values.detach().to(dtype), is_placeholder=found.is_placeholder)
        return result

    def _download(self, tensor: torch.Tensor, dtype: torch.dtype, options: dict[str, Any]) -> Any:
        found = virtual_memory.values_of(tensor)
        if found is not None and not found.is_placeholder and not tensor.requires_grad:
            return found.values.to(dtype, copy=True, **options)
        # A tensor without data only reports the host's device, and uses no memory.
        result = self._memory.mark(tensor.to(dtype, copy=True, **options), CPU)
        if found is not None:
            virtual_memory.store_values(result, found.values.to(dtype), is_placeholder=found.is_placeholder)
        virtual_shapes.carry_sizes([tensor], (), result)
        holds = virtual_memory.assumed_result(tensor)
        return result if holds is None else virtual_memory.assume_result(result, holds)

    def type(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`tensor.type()` names the type with its device; `tensor.type(name)` converts."""
        tensor = args[0]
        kind = kwargs.get("dtype", args[1] if len(args) > 1 else None)
        if kind is None:
            if not self._is(tensor, "cuda"):
                return func(*args, **kwargs)
            return f"torch.cuda.{_TYPE_NAMES.get(tensor.dtype, 'Tensor')}"
        name = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
        device = CUDA if "cuda." in f"{getattr(kind, '__module__', '')}.{name}" else None
        dtype = kind if isinstance(kind, torch.dtype) else LEGACY_TYPES.get(name.rpartition(".")[2])
        if dtype is None:
            return func(*args, **kwargs)
        return self._move(tensor, device, dtype, False, None)

    def copy_(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A copy from the device to a real tensor of the host: of the known values, else of zeros."""
        target, source = args[0], kwargs.get("src", args[1] if len(args) > 1 else None)
        if isinstance(source, T) and source.is_meta and not target.is_meta:
            found = virtual_memory.values_of(source)
            if (found is None or found.is_placeholder) and (following := current_following()) is not None:
                following.decide("conversion", following.read_of([]))
            with torch.no_grad():
                return target.zero_() if found is None else target.copy_(found.values)
        return self._mode.call(func, args, kwargs)

    def set_data(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """`parameter.data = tensor`, which may also move a parameter between host and device."""
        target, value = args
        if target.is_meta == value.is_meta:
            func(*args, **kwargs)
            return
        replacement = value.detach().requires_grad_(target.requires_grad)
        if isinstance(target, torch.nn.Parameter):
            replacement = torch.nn.Parameter(replacement, requires_grad=target.requires_grad)
        torch.utils.swap_tensors(target, replacement)

    def pin_memory(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A copy that reports to be pinned; the tensor itself if it is."""
        if self._memory.is_pinned(args[0]):
            return args[0]
        return self._memory.pin(self._mode.call(T.clone, (args[0],), {}))
