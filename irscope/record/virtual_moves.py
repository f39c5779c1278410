"""Moves between the host and the virtual device, and what a tensor says about the place it is in."""

from __future__ import annotations

from typing import Any

import torch

from irscope.record import virtual_memory, virtual_shapes
from irscope.record.virtual_memory import CPU, CUDA, META
from irscope.record.virtual_torch import VirtualCuda

T = torch.Tensor

_TYPE_NAMES = {
    torch.float32: "FloatTensor",
    torch.float64: "DoubleTensor",
    torch.float16: "HalfTensor",
    torch.bfloat16: "BFloat16Tensor",
    torch.uint8: "ByteTensor",
    torch.int8: "CharTensor",
    torch.int16: "ShortTensor",
    torch.int32: "IntTensor",
    torch.int64: "LongTensor",
    torch.bool: "BoolTensor",
}
_DTYPES = {name: dtype for dtype, name in _TYPE_NAMES.items()}


class _Upload(torch.autograd.Function):
    """A copy to the device whose gradient comes back to the host, as zeros."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        return tensor.detach().to(META, dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        # The engine gives the gradient of the input the input's own type.
        return torch.zeros(gradients[0].shape, dtype=gradients[0].dtype, device=CPU), None


class Moves:
    """The handlers of one mode that know of places."""

    def __init__(self, mode: VirtualCuda) -> None:
        self._mode = mode
        self._memory = mode.memory

    def install(self) -> None:
        """Give the mode its handlers."""
        handlers = self._mode.handlers
        memory = self._memory
        # A tensor's device and address are read at every launch: these four do nothing but look.
        handlers[T.device.__get__] = lambda func, args, kwargs: memory.device(args[0])
        handlers[T.is_cuda.__get__] = lambda func, args, kwargs: self._is(args[0], "cuda")
        handlers[T.is_cpu.__get__] = lambda func, args, kwargs: self._is(args[0], "cpu")
        handlers[T.is_meta.__get__] = lambda func, args, kwargs: self._is(args[0], "meta")
        handlers[T.data_ptr] = self.data_ptr
        handlers[T.get_device] = handlers[torch.get_device] = self.get_device
        handlers[T.to] = self.to
        handlers[T.cuda] = self.cuda
        handlers[T.cpu] = self.cpu
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
        """The address that a view at this offset would have: its alignment is what Triton specialises on."""
        return self._memory.data_ptr(args[0]) if args[0].is_meta else func(*args, **kwargs)

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

    def cuda(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`tensor.cuda()`."""
        return self._move(args[0], CUDA, args[0].dtype, False, kwargs.get("memory_format"))

    def cpu(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`tensor.cpu()`."""
        return self._move(args[0], CPU, args[0].dtype, False, kwargs.get("memory_format"))

    def _move(self, tensor: torch.Tensor, device: Any, dtype: torch.dtype, copy: bool, memory_format: Any) -> Any:
        options: dict[str, Any] = {} if memory_format is None else {"memory_format": memory_format}
        here = self._memory.device(tensor)
        there = here if device is None else CUDA if self._mode.wants_cuda(device) else torch.device(device)
        if here.type == there.type:
            return self._mode.call(T.to, (tensor, dtype), {"copy": copy, **options})
        if not tensor.is_meta and there.type != "cuda":
            return tensor.to(there, dtype, copy=copy, **options)
        if tensor.is_meta and there.type == "cpu":
            return self._download(tensor, dtype, options)
        return self._upload(tensor, there, dtype, options)

    def _upload(self, tensor: torch.Tensor, there: torch.device, dtype: torch.dtype, options: dict[str, Any]) -> Any:
        found = virtual_memory.known(tensor)
        if tensor.is_meta:
            result = tensor.to(dtype, copy=True, **options)
            virtual_shapes.carry_sizes([tensor], (), result)
        elif tensor.requires_grad and torch.is_grad_enabled():
            result = _Upload.apply(tensor, dtype)
        else:
            result = tensor.to(META, dtype, **options)
        if there.type == "meta":
            return self._memory.mark(result, META)
        if found is not None and tensor.numel() <= virtual_memory.KNOWN_ELEMENTS:
            virtual_memory.know(result, found.values.detach().to(dtype), drawn=found.drawn)
        return result

    def _download(self, tensor: torch.Tensor, dtype: torch.dtype, options: dict[str, Any]) -> Any:
        found = virtual_memory.known(tensor)
        if found is not None and not found.drawn and not tensor.requires_grad:
            return found.values.to(dtype, copy=True, **options)
        # Data that nobody has stays without: it reports the host's device, and costs none of its memory.
        result = self._memory.mark(tensor.to(dtype, copy=True, **options), CPU)
        if found is not None:
            virtual_memory.know(result, found.values.to(dtype), drawn=found.drawn)
        virtual_shapes.carry_sizes([tensor], (), result)
        holds = virtual_memory.truth(tensor)
        return result if holds is None else virtual_memory.suppose(result, holds)

    def type(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`tensor.type()` names the type with its device; `tensor.type(name)` converts."""
        tensor = args[0]
        wanted = kwargs.get("dtype", args[1] if len(args) > 1 else None)
        if wanted is None:
            if not self._is(tensor, "cuda"):
                return func(*args, **kwargs)
            return f"torch.cuda.{_TYPE_NAMES.get(tensor.dtype, 'Tensor')}"
        name = wanted if isinstance(wanted, str) else getattr(wanted, "__name__", "")
        device = CUDA if "cuda." in f"{getattr(wanted, '__module__', '')}.{name}" else None
        dtype = wanted if isinstance(wanted, torch.dtype) else _DTYPES.get(name.rpartition(".")[2])
        if dtype is None:
            return func(*args, **kwargs)
        return self._move(tensor, device, dtype, False, None)

    def copy_(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A copy into a real tensor of the host can only bring stand-ins."""
        target, source = args[0], kwargs.get("src", args[1] if len(args) > 1 else None)
        if isinstance(source, T) and source.is_meta and not target.is_meta:
            found = virtual_memory.known(source)
            with torch.no_grad():
                return target.zero_() if found is None else target.copy_(found.values)
        return self._mode.call(func, args, kwargs)

    def set_data(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """`parameter.data = tensor` may also take a parameter from the host to the device."""
        target, value = args
        if target.is_meta == value.is_meta:
            func(*args, **kwargs)
            return
        replacement = value.detach().requires_grad_(target.requires_grad)
        if isinstance(target, torch.nn.Parameter):
            replacement = torch.nn.Parameter(replacement, requires_grad=target.requires_grad)
        torch.utils.swap_tensors(target, replacement)

    def pin_memory(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A copy that says that it is pinned; itself where it is."""
        if self._memory.is_pinned(args[0]):
            return args[0]
        return self._memory.pin(self._mode.call(T.clone, (args[0],), {}))


def type_names() -> dict[str, torch.dtype]:
    """The legacy tensor types by name: `FloatTensor` and the like."""
    return dict(_DTYPES)
