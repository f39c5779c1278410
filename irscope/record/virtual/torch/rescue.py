"""Runs functions that torch cannot run on tensors without data."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from irscope.record.virtual.torch import memory as virtual_memory
from irscope.record.virtual.torch.memory import CPU
from irscope.record.virtual.torch.nested import mapped, tensors_in
from irscope.record.virtual.torch.shadow import OWN

_SMALL = 1 << 22
"""Up to this many elements in all, an operator is tried on the CPU, for the shapes of its results."""
_BACKWARD = frozenset({torch.Tensor.backward, torch.autograd.backward, torch.autograd.grad})
"""Run the script's own code, which must not run twice."""


class EachOperator(TorchDispatchMode):
    """Runs torch's own operators one by one, unseen by any function mode, and rescues each that fails.

    Here, below autograd, a rescued operator keeps its gradient. Many operators are written in Python: within a function
    mode, their operands would be on the GPU, and the tensors that they make themselves would not.
    """

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
        """Whether the mode is on."""
        return any(isinstance(mode, cls) for mode in _get_current_dispatch_mode_stack())


def rescue(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Any:
    """A result for a function that failed on tensors without data.

    Tries in this order: the function with its operands of the CPU moved to the device; the function with each of its
    operators rescued; the whole function on the CPU, its gradients stand-ins. Raises `error` if none succeeds.
    """
    tensors = tensors_in((args, kwargs))
    if func in _BACKWARD or not any(tensor.is_meta for tensor in tensors):
        raise error
    if any(not tensor.is_meta for tensor in tensors):
        name = getattr(func, "__name__", "")
        first = args[0] if args else None
        if isinstance(first, torch.Tensor) and not first.is_meta and (name.endswith("_") or name == "__setitem__"):
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
            torch.empty_like(one) if is_set else None for one, is_set in zip((matrix, dense), mask, strict=True)
        )
    if func is torch.ops.aten.equal.default and not all(map(virtual_memory.known, tensors)):
        # Called by torch itself to explain an error: "is the window 0 anywhere?" The script's `torch.equal` is a read.
        return False
    return _all_on_cpu(func, args, kwargs, error)


def _all_on_cpu(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Any:
    """A function's results without data, computed of the known values and of stand-ins for the others."""
    if sum(tensor.numel() for tensor in tensors_in((args, kwargs))) > _SMALL:
        raise error
    try:
        result = func(*_on_cpu(args), **_on_cpu(kwargs))
    except Exception:
        raise error from None
    return _on_meta(result)


def _on_cpu(value: Any) -> Any:
    def change(item: torch.Tensor) -> torch.Tensor:
        if not item.is_meta:
            return item
        found = virtual_memory.known(item)
        if found is not None:
            return found.values
        # Weights and windows of ones are valid, of zeros often not; an index of 0 is valid for all but empty tensors.
        filler = 1 if item.is_floating_point() or item.is_complex() else 0
        if item.layout is not torch.strided:
            return torch.full(item.shape, filler, dtype=item.dtype, device="cpu").to_sparse(layout=item.layout)
        # With its own strides: those of the result may follow from them.
        steps = [(size - 1) * stride for size, stride in zip(item.shape, item.stride(), strict=True)]
        extent = 1 + sum(steps) if item.numel() else 0
        return torch.full((extent,), filler, dtype=item.dtype, device="cpu").as_strided(item.shape, item.stride())

    return mapped(value, change, CPU)


def _on_meta(value: Any) -> Any:
    return mapped(value, lambda tensor: tensor if tensor.is_meta else tensor.to("meta"))
