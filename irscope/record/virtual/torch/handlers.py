"""Placeholder values of virtual tensors (`.item()`, `.cpu()`, `allclose`, printing, masks), and their devices.

They let a script that checks itself go on: results agree, errors are 0, nothing is NaN, every element of a mask is set.
Known values of small tensors (lengths, offsets, indices) are returned themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

from irscope.record.virtual.numbers import reads_of
from irscope.record.virtual.placeholders import PlaceholderText, current_following
from irscope.record.virtual.places import is_called_by_program
from irscope.record.virtual.torch.memory import (
    CPU,
    CUDA,
    KNOWN_BYTES,
    META,
    assume_result,
    assumed_result,
    carry_sizes,
    computed_values,
    has_values,
    install_shapes,
    invalidate,
    set_sizes,
    store_values,
    values_of,
)
from irscope.record.virtual.torch.mode import VirtualCuda

T = torch.Tensor
_LARGE_BYTES = 1 << 28
"""An array of placeholder values above this size is one element, broadcast."""


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


_Handler = TypeVar("_Handler", bound=Callable[..., Any])


def _handles(*functions: Any) -> Callable[[_Handler], _Handler]:
    """Let a method of `Handlers` take the calls of some functions of torch."""

    def named(method: _Handler) -> _Handler:
        method.functions = (*functions, *getattr(method, "functions", ()))  # type: ignore[attr-defined]
        return method

    return named


class Handlers:
    def __init__(self, mode: VirtualCuda) -> None:
        self._mode = mode
        self._memory = mode.memory

    def install(self) -> None:
        handlers = self._mode.handlers
        memory = self._memory
        install_shapes(handlers)
        for method in vars(Handlers).values():
            for func in getattr(method, "functions", ()):
                handlers[func] = method.__get__(self)
        for name, holds in _COMPARISONS.items():
            for owner in (torch, T):
                func = getattr(owner, name, None)
                if func is not None:
                    handlers[func] = _comparison(self._mode, holds)
        # A tensor's device and address are read at every launch: these four must be fast.
        handlers[T.device.__get__] = lambda func, args, kwargs: memory.device(args[0])
        handlers[T.is_cuda.__get__] = lambda func, args, kwargs: self._is(args[0], "cuda")
        handlers[T.is_cpu.__get__] = lambda func, args, kwargs: self._is(args[0], "cpu")
        handlers[T.is_meta.__get__] = lambda func, args, kwargs: self._is(args[0], "meta")
        handlers[T.cpu] = lambda func, args, kwargs: self._moved(args[0], CPU, kwargs)
        handlers[T.is_pinned] = lambda func, args, kwargs: memory.is_pinned(args[0])
        handlers[T.is_shared] = lambda func, args, kwargs: True if args[0].is_meta else func(*args, **kwargs)
        handlers[torch.device] = lambda func, args, kwargs: func(*args, **kwargs)

    # ---- reads of data

    @_handles(T.item, T.tolist, T.__float__, T.__int__, T.__index__, T.__complex__)
    @_handles(T.__bool__, T.is_nonzero, torch.is_nonzero)
    def scalar(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value if it is known, else a placeholder value: 0, or the assumed outcome of a comparison."""
        tensor = args[0]
        if not tensor.is_meta:
            return func(*args, **kwargs)
        computed = computed_values(tensor)
        if computed is not None:
            return func(computed, *args[1:], **kwargs)
        known = values_of(tensor)
        if known is None:
            holds = tensor.dtype is torch.bool and assumed_result(tensor) is not False
            values = torch.full((), int(holds), dtype=tensor.dtype, device="cpu").expand(tensor.shape)
        else:
            values = known.values
        # Raises the same error as on the GPU for a tensor that is no scalar.
        value = func(values, *args[1:], **kwargs)
        following = current_following()
        if isinstance(value, bool):
            return following.question(value)
        if func in (T.item, T.tolist):
            return following.read(value)
        # Python's own C code requires a plain number.
        following.convert(value)
        return value

    @_handles(T.__len__)
    def length(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """`len(tensor)`, for which Python requires a plain number."""
        size = func(*args)
        if args[0].is_meta and (reads := reads_of(args[0].shape)):
            current_following().decide("conversion", reads)
        return size

    @_handles(T.__contains__)
    def contains(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """`value in tensor`, which is assumed to be so where the values are not there."""
        tensor, value = args
        if not tensor.is_meta and not (isinstance(value, T) and value.is_meta):
            return func(*args)
        equal = self._mode.call(T.__eq__, (tensor, value), {})
        return self.scalar(T.__bool__, (self._mode.call(torch.any, (equal,), {}),), {})

    @_handles(T.__repr__, T.__format__)
    def text(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The tensor as text: as on the GPU if its values are known, else with dots for them."""
        tensor = args[0]
        if not tensor.is_meta:
            return func(*args, **kwargs)
        if func is T.__format__ and tensor.dim() == 0:
            return format(self.scalar(T.item, (tensor,), {}), args[1])
        device = self._mode.memory.device(tensor)
        place = "" if device.type == "cpu" else f", device='{device}'"
        if tensor.grad_fn is not None:
            place += f", grad_fn=<{type(tensor.grad_fn).__name__}>"
        elif tensor.requires_grad:
            place += ", requires_grad=True"
        known = values_of(tensor)
        if known is None:
            return PlaceholderText(f"tensor(..., size={tuple(tensor.shape)}, dtype={tensor.dtype}{place})")
        text = f"{repr(known.values)[:-1]}{place})"
        return PlaceholderText(text) if known.is_placeholder else text

    @_handles(T.numpy, T.__array__)
    def array(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A NumPy array of the values, else of placeholder values, which agree in any comparison."""
        tensor = args[0]
        if not tensor.is_meta:
            return func(*args, **kwargs)
        if computed_values(tensor) is None:
            current_following().convert()
        known = values_of(tensor)
        if known is not None:
            return func(known.values.clone(), *args[1:], **kwargs)
        from irscope.record.virtual.torch.array import placeholder_array

        kind = torch.zeros((), dtype=tensor.dtype, device="cpu").numpy().dtype
        return placeholder_array(tuple(tensor.shape), kind, tensor.numel() * tensor.element_size() > _LARGE_BYTES)

    @_handles(T.__dlpack__)
    def dlpack(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The memory of a tensor of the host for another library: the values, else zeros, which are placeholders."""
        tensor = args[0]
        if not tensor.is_meta or not self._is(tensor, "cpu"):
            return self._mode.call(func, args, kwargs)
        return func(self._host_values(tensor), *args[1:], **kwargs)

    @_handles(T.__dlpack_device__)
    def dlpack_device(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        device = self._memory.device(args[0])
        kinds = {"cpu": 1, "cuda": 2}
        return (kinds[device.type], device.index or 0) if device.type in kinds else func(*args, **kwargs)

    def _host_values(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor of the host with the values, else with zeros; that they are placeholders is reported."""
        if computed_values(tensor) is None:
            current_following().convert()
        known = values_of(tensor)
        return torch.zeros(tensor.shape, dtype=tensor.dtype, device=CPU) if known is None else known.values.clone()

    @_handles(torch.allclose, T.allclose, torch.equal, T.equal)
    def agree(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether two tensors agree: computed if the values of both are known, else assumed if their shapes do."""
        left, right = (*args, *kwargs.values())[:2]
        if not left.is_meta and not right.is_meta:
            return func(*args, **kwargs)
        if func in (torch.equal, T.equal) and left.shape != right.shape:
            return False
        operands = values_of(left), values_of(right)
        if operands[0] is not None and operands[1] is not None:
            answer = func(operands[0].values, operands[1].values, *args[2:], **kwargs)
            if not operands[0].is_placeholder and not operands[1].is_placeholder:
                return answer
        return current_following().question(True)

    @_handles(torch.all, T.all, torch.any, T.any, torch.min, T.min, torch.max, T.max)
    def carry(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = self._mode.call(func, args, kwargs)
        if not isinstance(args[0], T) or not args[0].is_meta or not isinstance(result, T):
            return result
        holds = assumed_result(args[0])
        if holds is not None:
            assume_result(result, holds)
        return result

    @_handles(torch.logical_not, T.logical_not, torch.bitwise_not, T.bitwise_not, T.__invert__)
    def carry_inverse(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = self._mode.call(func, args, kwargs)
        holds = assumed_result(args[0]) if args[0].is_meta else None
        return result if holds is None else assume_result(result, not holds)

    @_handles(torch.sum, T.sum, torch.count_nonzero, T.count_nonzero)
    def count(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The number of elements for which a comparison holds: all or none."""
        result = self._mode.call(func, args, kwargs)
        if args[0].is_meta and assumed_result(args[0]) and result.dim() == 0 and not result.is_floating_point():
            count = torch.tensor(args[0].numel(), dtype=result.dtype, device="cpu")
            store_values(result, count, is_placeholder=True)
        return result

    @_handles(T.__getitem__, T.__setitem__)
    def index(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Indexing: a boolean mask of unknown values selects every element."""
        tensor, where = args[0], args[1]
        if not isinstance(where, tuple):
            where = (where,)
        if not tensor.is_meta:
            # Of the host: torch's C++ reads the bounds of its slices itself.
            where = tuple(self._sliced(item) if isinstance(item, slice) else item for item in where)
        if not any(isinstance(item, T) for item in where):
            return self._mode.call(func, (tensor, where if isinstance(args[1], tuple) else where[0], *args[2:]), kwargs)
        indices: list[Any] = []
        guessed = False
        for item in where:
            if isinstance(item, T) and item.dim() == 0 and item.dtype is torch.bool and item.is_meta:
                known = values_of(item)
                indices.append(assumed_result(item) is not False if known is None else bool(known.values))
                guessed = guessed or known is None or known.is_placeholder
            elif isinstance(item, T) and item.dtype in (torch.bool, torch.uint8) and (tensor.is_meta or item.is_meta):
                indices.extend(self._places(item))
            elif isinstance(item, T) and item.is_meta and not tensor.is_meta:
                known = values_of(item)
                zeros = torch.zeros(item.shape, dtype=item.dtype, device="cpu")
                indices.append(zeros if known is None else known.values)
                if computed_values(item) is None:
                    # A tensor of the host does not remember where its values are from.
                    current_following().convert()
            else:
                indices.append(item)
        if tensor.is_meta:
            on_meta = [isinstance(item, T) and not (item.is_meta and has_values(item)) for item in indices]
            indices = [item.to("meta") if moves else item for item, moves in zip(indices, on_meta, strict=True)]
        result = self._mode.call(func, (tensor, tuple(indices), *args[2:]), kwargs)
        if guessed and func is T.__setitem__:
            invalidate(tensor)
        elif guessed:
            invalidate(result)
            following = current_following()
            # A scalar mask makes a dimension of one element or of none.
            following.decide("shape", following.read_of(result.numel()))
        return result

    def _sliced(self, item: slice) -> slice:
        bounds = (item.start, item.stop, item.step)
        return slice(*(self.scalar(T.__index__, (bound,), {}) if isinstance(bound, T) else bound for bound in bounds))

    @_handles(torch.nonzero, T.nonzero, torch.argwhere, T.argwhere)
    def nonzero(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tensor = args[0]
        if not tensor.is_meta:
            return func(*args, **kwargs)
        if tensor.dim() == 0 and not kwargs.get("as_tuple"):
            # A scalar's places have no coordinates.
            return self._mode.call(
                T.__getitem__, (self.nonzero(func, (tensor.view(1),), {}), (slice(None), slice(0, 0))), {}
            )
        places = self._places(tensor.view(1) if tensor.dim() == 0 else tensor)
        if kwargs.get("as_tuple"):
            return tuple(places)
        return self._mode.call(torch.stack, (places,), {"dim": 1})

    @_handles(torch.where, T.where)
    def where(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """`where(mask)` is `nonzero`; with three arguments it is any other function."""
        if len(args) == 1 and not kwargs:
            return self.nonzero(torch.nonzero, args, {"as_tuple": True})
        return self._mode.call(func, args, kwargs)

    @_handles(torch.masked_select, T.masked_select)
    def masked_select(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tensor, mask = (*args, *kwargs.values())[:2]
        if not tensor.is_meta and not mask.is_meta:
            return func(*args, **kwargs)
        shape = torch.broadcast_shapes(tensor.shape, mask.shape)
        return self.index(T.__getitem__, (tensor.expand(shape), mask.expand(shape)), {})

    @_handles(torch.repeat_interleave, T.repeat_interleave)
    def repeat_interleave(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The size of the result is the sum of the counts, each of which is 1 if their values are unknown."""
        counts = kwargs.get("repeats", args[-1] if len(args) < 3 else args[1])
        if not isinstance(counts, T) or not counts.is_meta or kwargs.get("output_size") is not None:
            return self._mode.call(func, args, kwargs)
        known = values_of(counts)
        size = int(known.values.sum()) if known is not None else counts.numel()
        result = self._mode.call(func, args, {**kwargs, "output_size": size})
        if computed_values(counts) is None:
            set_sizes(result, {0: current_following().read_of(size)}, decides=True)
        return result

    @_handles(torch.combinations)
    def combinations(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The size of the result depends on that of the tensor only; torch reads it from the values of a mask."""
        tensor, *rest = args
        if not tensor.is_meta:
            return func(*args, **kwargs)
        places = func(torch.arange(len(tensor), device="cpu"), *rest, **kwargs)
        return self._mode.call(T.__getitem__, (tensor, places.to("meta")), {}).view(places.shape)

    def _places(self, mask: torch.Tensor) -> list[torch.Tensor]:
        """The indices of the elements of a mask that are set, one tensor per dimension."""
        known = values_of(mask)
        if known is not None:
            values = torch.nonzero(known.values, as_tuple=True)
            places = [store_values(place.to("meta"), place, is_placeholder=known.is_placeholder) for place in values]
            if not known.is_placeholder:
                return places
        else:
            selected = 0 if assumed_result(mask) is False else mask.numel()
            places = [torch.empty(selected, dtype=torch.int64, device="meta") for _ in range(mask.dim())]
        if mask.numel():
            following = current_following()
            # The number of selected elements is a placeholder value.
            places = [set_sizes(place, {0: following.read_of(place.shape[0])}, decides=True) for place in places]
        return places

    # ---- devices, addresses and copies

    def _is(self, tensor: torch.Tensor, kind: str) -> bool:
        return self._memory.device(tensor).type == kind

    @_handles(T.data_ptr)
    def data_ptr(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """The address that a view at this offset has: Triton specialises on its alignment."""
        if not args[0].is_meta:
            return func(*args, **kwargs)
        address = self._memory.data_ptr(args[0])
        # Behind the function mode, whose caller the program is.
        if not address or not is_called_by_program(2):
            return address
        return current_following().address(address)

    @_handles(T.cuda)
    def cuda(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        device = kwargs.get("device", args[1] if len(args) > 1 else None)
        return self._moved(args[0], CUDA if device is None else device, kwargs)

    @_handles(T.get_device, torch.get_device)
    def get_device(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        device = self._memory.device(args[0])
        return device.index or 0 if device.type == "cuda" else -1

    @_handles(T.to)
    def to(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
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
        known = values_of(tensor)
        if tensor.is_meta:
            result = tensor.to(dtype, copy=True, **options)
            carry_sizes([tensor], (), result)
        elif tensor.requires_grad and torch.is_grad_enabled():
            result = _Upload.apply(tensor, dtype)
        else:
            result = tensor.to(META, dtype, **options)
        if there.type == "meta":
            return self._memory.mark(result, META)
        self._memory.allocate(result)
        if there != CUDA:
            self._memory.mark(result, there)
        if known is not None and tensor.numel() * tensor.element_size() <= KNOWN_BYTES:
            store_values(result, known.values.detach().to(dtype), is_placeholder=known.is_placeholder)
        return result

    def _download(self, tensor: torch.Tensor, dtype: torch.dtype, options: dict[str, Any]) -> Any:
        known = values_of(tensor)
        if known is not None and not known.is_placeholder and not tensor.requires_grad:
            return known.values.to(dtype, copy=True, **options)
        # A tensor without data only reports the host's device, and uses no memory.
        result = self._memory.mark(tensor.to(dtype, copy=True, **options), CPU)
        if known is not None:
            store_values(result, known.values.to(dtype), is_placeholder=known.is_placeholder)
        carry_sizes([tensor], (), result)
        holds = assumed_result(tensor)
        return result if holds is None else assume_result(result, holds)

    @_handles(T.type)
    def type(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
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

    @_handles(T.copy_)
    def copy_(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A copy from the device to a real tensor of the host: of the known values, else of zeros."""
        target, source = args[0], kwargs.get("src", args[1] if len(args) > 1 else None)
        if isinstance(source, T) and source.is_meta and not target.is_meta:
            known = values_of(source)
            if computed_values(source) is None:
                current_following().convert()
            with torch.no_grad():
                return target.zero_() if known is None else target.copy_(known.values)
        return self._mode.call(func, args, kwargs)

    @_handles(T.data.__set__)
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

    @_handles(T.pin_memory)
    def pin_memory(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._memory.is_pinned(args[0]):
            return args[0]
        return self._memory.pin(self._mode.call(T.clone, (args[0],), {}))


_COMPARISONS = {
    **dict.fromkeys(
        ("eq", "__eq__", "isclose", "isfinite", "lt", "__lt__", "le", "__le__", "less", "less_equal"), True
    ),
    **dict.fromkeys(("ge", "__ge__", "greater_equal"), True),
    **dict.fromkeys(("ne", "__ne__", "not_equal", "isnan", "isinf", "gt", "__gt__", "greater"), False),
}
"""The outcome of each comparison of unknown operands, so that checks pass."""
_ABOVE_ZERO = ("gt", "__gt__", "greater", "ge", "__ge__", "greater_equal")
_BELOW_ZERO = ("lt", "__lt__", "le", "__le__", "less", "less_equal")


def _comparison(mode: VirtualCuda, holds: bool) -> Any:
    def compare(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = mode.call(func, args, kwargs)
        if not isinstance(result, T) or not result.is_meta or values_of(result) is not None:
            return result
        return assume_result(result, _outcome(func, args, holds))

    return compare


def _outcome(func: Any, args: tuple[Any, ...], holds: bool) -> bool:
    """The outcome of one comparison: an unknown value is more than 0, and less than any limit above 0."""
    name = getattr(func, "__name__", "")
    limit = args[1] if len(args) > 1 else None
    if not isinstance(limit, int | float) or isinstance(limit, bool):
        return holds
    if name in _ABOVE_ZERO:
        return limit <= 0
    if name in _BELOW_ZERO:
        return limit > 0
    return holds
