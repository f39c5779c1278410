"""Runs functions that torch cannot run on tensors without data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from irscope.record.virtual.numbers import plain, reads_of
from irscope.record.virtual.placeholders import current_following
from irscope.record.virtual.torch.memory import CPU, computed_values, set_sizes, values_of
from irscope.record.virtual.torch.shadow import OWN, mapped, tensors_in

_SMALL = 1 << 22
"""Up to this many elements in all, an operator is tried on the CPU, for the shapes of its results."""
_Fill = Callable[[torch.Size, torch.dtype], torch.Tensor]
_BACKWARD = frozenset({torch.Tensor.backward, torch.autograd.backward, torch.autograd.grad})
"""Run the script's own code, which must not run twice."""


class EachOperator(TorchDispatchMode):
    """Runs torch's own operators one by one, unseen by any function mode, and rescues each that fails."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func.namespace not in OWN:
            return func(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            try:
                return func(*args, **kwargs)
            except (NotImplementedError, RuntimeError) as error:
                return _operator_on_cpu(func, args, kwargs, error)

    @classmethod
    def is_on(cls) -> bool:
        return any(isinstance(mode, cls) for mode in _get_current_dispatch_mode_stack())


def rescue(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Any:
    """A result for a function that failed on tensors without data: with all operands on the device, with each of its
    operators rescued, or on the CPU, its gradients placeholder values. Raises `error` if none succeeds.
    """
    tensors = tensors_in((args, kwargs))
    if func in _BACKWARD or not any(tensor.is_meta for tensor in tensors):
        raise error
    if any(not tensor.is_meta for tensor in tensors):
        name = getattr(func, "__name__", "")
        first = args[0] if args else None
        if isinstance(first, torch.Tensor) and not first.is_meta and (name.endswith("_") or name == "__setitem__"):
            if any(computed_values(tensor) is None for tensor in tensors):
                # A tensor of the host does not remember that its values are placeholder values.
                current_following().convert()
            return func(*_on_cpu(args), **_on_cpu(kwargs))
        args, kwargs = _on_meta(args), _on_meta(kwargs)
        try:
            return func(*args, **kwargs)
        except (NotImplementedError, RuntimeError) as second:
            error = second
    if EachOperator.is_on() or not _needs_data(error):
        # The script's own mistake, such as shapes that do not match: the GPU would say the same.
        raise error
    try:
        with EachOperator():
            return func(*args, **kwargs)
    except (NotImplementedError, RuntimeError):
        # It reads values between its operators.
        result = _all_on_cpu(func, args, kwargs, error)
    differentiable = [tensor for tensor in tensors_in((args, kwargs)) if tensor.requires_grad]
    if not differentiable or not torch.is_grad_enabled():
        return result
    return mapped(result, lambda value: _Linked.apply(value, *differentiable) if _has_gradient(value) else value)


class _Linked(torch.autograd.Function):
    """A result that depends, for autograd, on some operands in an unknown way."""

    @staticmethod
    def forward(ctx: Any, result: torch.Tensor, *operands: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(*operands)
        return result.view_as(result)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return None, *[torch.empty_like(operand) for operand in ctx.saved_tensors]


def _has_gradient(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _needs_data(error: Exception) -> bool:
    # "… attempted to run this operator with Meta tensors", "… but its data is not allocated yet".
    text = str(error).lower()
    if "expected" in text and "to be on cpu" in text:
        # `tensor_split` takes its indices from the host only: the GPU would say the same.
        return False
    return isinstance(error, NotImplementedError) or "meta" in text or "not allocated" in text


def _operator_on_cpu(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Any:
    """As `_all_on_cpu`, for one operator that failed without data; raises `error` for any other failure."""
    tensors = tensors_in((args, kwargs))
    if not _needs_data(error) or not any(tensor.is_meta for tensor in tensors):
        raise error
    if func._schema.name.endswith("_"):
        return args[0]
    if func is torch.ops.aten._sparse_mm_reduce_impl_backward.default:
        # torch's code does not check the indices of the maxima, which are not known: it would write anywhere.
        matrix, _, dense, _, _, mask = args
        return tuple(
            torch.empty_like(tensor) if is_set else None for tensor, is_set in zip((matrix, dense), mask, strict=True)
        )
    if func is torch.ops.aten.equal.default and not all(map(values_of, tensors)):
        # Called by torch itself to explain an error: "is the window 0 anywhere?" The script's `torch.equal` is a read.
        return False
    result = _all_on_cpu(func, args, kwargs, error)
    if reads := reads_of(result):
        # The code between torch's operators is C++, in which a number is not followed.
        current_following().decide("conversion", reads)
    return plain(result)


def _all_on_cpu(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Any:
    """A function's results without data, of known and placeholder values: what follows from the latter is marked."""
    if sum(tensor.numel() for tensor in tensors_in((args, kwargs))) > _SMALL:
        raise error
    try:
        result = func(*_on_cpu(args), **_on_cpu(kwargs))
    except Exception:
        raise error from None
    tensors = tensors_in((args, kwargs))
    # Other values of a sparse tensor would be elsewhere.
    is_computed = all(computed_values(tensor) is not None for tensor in tensors)
    if is_computed or any(tensor.layout is not torch.strided for tensor in tensors):
        return _on_meta(result)
    for fill in _OTHER_VALUES[: 2 if any(tensor.numel() > _FEW for tensor in tensors) else None]:
        try:
            other = func(*_on_cpu(args, fill), **_on_cpu(kwargs, fill))
        except Exception:  # an index out of bounds, a matrix that has no inverse
            continue
        if _sizes(other) != _sizes(result):
            return _marked(_on_meta(result), other)
    return _on_meta(result)


def _sizes(value: Any) -> Any:
    """What a program sees of a result without reading data: sizes, and numbers."""
    if isinstance(value, torch.Tensor):
        return value.shape, 0 if value.layout is torch.strided else value._nnz()
    return list(map(_sizes, value)) if isinstance(value, list | tuple) else value


def _marked(result: Any, other: Any) -> Any:
    """A result whose sizes and numbers are marked as placeholder values where those of `other` differ."""
    following = current_following()
    if isinstance(result, torch.Tensor):
        if not isinstance(other, torch.Tensor) or result.dim() != other.dim():
            return result
        if result.layout is not torch.strided:
            following.decide("shape", following.read_of(_sizes(result)[1]))
            return result
        last = result.dim() - 1
        sizes = {
            last - place: following.read_of(size)
            for place, size in enumerate(result.shape)
            if size != other.shape[place]
        }
        return set_sizes(result, sizes, decides=True) if sizes else result
    if isinstance(result, list | tuple) and not isinstance(result, torch.Size):
        if not isinstance(other, list | tuple) or len(result) != len(other):
            following.convert(len(result))
            return result
        items = [_marked(*pair) for pair in zip(result, other, strict=True)]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    if isinstance(result, bool) and result != other:
        return following.question(result)
    if isinstance(result, int | float) and result != other:
        return following.read(result)
    return result


def _on_cpu(value: Any, fill: _Fill | None = None) -> Any:
    """Arguments with the known values of each tensor, and others in place of unknown ones; `fill` makes these."""
    fill = fill or _valid_values

    def change(item: torch.Tensor) -> torch.Tensor:
        if not item.is_meta:
            return item
        known = values_of(item)
        if known is not None and not (known.is_placeholder and fill is not _valid_values):
            return known.values
        if item.layout is not torch.strided:
            return fill(item.shape, item.dtype).to_sparse(layout=item.layout)
        # With its own strides: those of the result may follow from them.
        steps = [(size - 1) * stride for size, stride in zip(item.shape, item.stride(), strict=True)]
        extent = torch.Size((1 + sum(steps) if item.numel() else 0,))
        return fill(extent, item.dtype).as_strided(item.shape, item.stride())

    return mapped(value, change, CPU)


def _valid_values(shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
    # Weights and windows of ones are valid, of zeros often not; an index of 0 is valid for all but empty tensors.
    filler = 1 if dtype.is_floating_point or dtype.is_complex else 0
    return torch.full(shape, filler, dtype=dtype, device="cpu")


def _repeated(*values: int) -> _Fill:
    def fill(shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
        count = shape.numel()
        repeated = torch.tensor(values, device="cpu").repeat(count // len(values) + 1)
        return repeated[:count].to(dtype).reshape(shape)

    return fill


_FEW = 4096
_OTHER_VALUES = _repeated(2, 0, 3, 1), _repeated(0), _repeated(97, 0, 61, 113)
"""Small ones, zeros, and for few elements larger ones."""


def _on_meta(value: Any) -> Any:
    return mapped(value, lambda tensor: tensor if tensor.is_meta else tensor.to("meta"))
