"""What to do where torch cannot run a function on tensors without data."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

from irscope.record import virtual_memory
from irscope.record.virtual_shadow import OWN

SMALL = 1 << 22
"""Up to this many elements in all, an operator is tried on the CPU, for the shapes of its results."""
_BACKWARD = frozenset({torch.Tensor.backward, torch.autograd.backward, torch.autograd.grad})
"""Run the script's own code, which must not run twice."""


class EachOperator(TorchDispatchMode):
    """Runs torch's own operators one by one: unseen by any function mode, and each rescued where it fails.

    What is rescued here, below autograd, keeps its gradient; many operators are written in Python, and a function mode
    would tell them that their operands are on the GPU, and what they make themselves is not.
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
        """Whether operators are run one by one now."""
        return any(isinstance(mode, cls) for mode in _get_current_dispatch_mode_stack())


def rescue(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Any:
    """A result for a function that failed on data-less tensors.

    In this order: the operands of the CPU joined to those of the device; the function once more, each of its operators
    rescued; the whole function on the CPU, its gradients stand-ins. Raises `error` where none of these will do.
    """
    tensors = _tensors((args, kwargs))
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
    if EachOperator.is_on() or not _is_for_want_of_data(error):
        # The script's own mistake, such as shapes that do not match: the GPU would say the same.
        raise error
    try:
        with EachOperator():
            return func(*args, **kwargs)
    except (NotImplementedError, RuntimeError):
        # It looks at values on its way, and refused those that there are not.
        result = _all_on_cpu(func, args, kwargs, error)
    differentiable = [tensor for tensor in _tensors((args, kwargs)) if tensor.requires_grad]
    if not differentiable or not torch.is_grad_enabled():
        return result
    return _mapped(result, lambda value: _Linked.apply(value, *differentiable) if _has_gradient(value) else value)


class _Linked(torch.autograd.Function):
    """A result that autograd takes to depend on some operands, in an unknown way."""

    @staticmethod
    def forward(ctx: Any, result: torch.Tensor, *operands: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(*operands)
        return result.view_as(result)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return None, *[torch.empty_like(operand) for operand in ctx.saved_tensors]


def _has_gradient(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _is_for_want_of_data(error: Exception) -> bool:
    # "… attempted to run this operator with Meta tensors", "… but its data is not allocated yet".
    text = str(error).lower()
    if "expected" in text and "to be on cpu" in text:
        # `tensor_split` takes its places from the host alone: the GPU would say the same.
        return False
    return isinstance(error, NotImplementedError) or "meta" in text or "not allocated" in text


def _operator_on_cpu(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Any:
    """As `_all_on_cpu`, for one operator that failed for want of data; raises `error` for any other."""
    tensors = _tensors((args, kwargs))
    if not _is_for_want_of_data(error) or not any(tensor.is_meta for tensor in tensors):
        raise error
    if func._schema.name.endswith("_"):
        return args[0]
    if func is torch.ops.aten._sparse_mm_reduce_impl_backward.default:
        # The places of its maxima are not known, and torch's own code does not check them: it would write anywhere.
        matrix, _, dense, _, _, wanted = args
        return tuple(
            torch.empty_like(one) if asked else None for one, asked in zip((matrix, dense), wanted, strict=True)
        )
    if func is torch.ops.aten.equal.default and not all(map(virtual_memory.known, tensors)):
        # Asked within torch, after a mistake: "is the window 0 anywhere?" The script's own `torch.equal` is a read.
        return False
    return _all_on_cpu(func, args, kwargs, error)


def _all_on_cpu(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Any:
    """What a function makes of known values, and of stand-ins where none are known; its results without data."""
    if sum(tensor.numel() for tensor in _tensors((args, kwargs))) > SMALL:
        raise error
    try:
        result = func(*_on_cpu(args), **_on_cpu(kwargs))
    except Exception:
        raise error from None
    return _on_meta(result)


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


def _mapped(value: Any, change: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {name: _mapped(item, change) for name, item in value.items()}
    if isinstance(value, list | tuple):
        items = [_mapped(item, change) for item in value]
        if type(value) in (list, tuple):
            return type(value)(items)
        # A named tuple of Python takes its fields one by one, one of torch takes them as a sequence.
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, torch.device) and value.type == "meta":
        return change(value)
    return value


def _on_cpu(value: Any) -> Any:
    def change(item: Any) -> Any:
        if isinstance(item, torch.device):
            return torch.device("cpu")
        if not item.is_meta:
            return item
        found = virtual_memory.known(item)
        if found is not None:
            return found.values
        # Weights and windows of ones are valid, of zeros often not; an index of 0 is, where there is anything.
        filler = 1 if item.is_floating_point() or item.is_complex() else 0
        if item.layout is not torch.strided:
            return torch.full(item.shape, filler, dtype=item.dtype, device="cpu").to_sparse(layout=item.layout)
        # With the strides that it has: those of the result may follow from them.
        steps = [(size - 1) * stride for size, stride in zip(item.shape, item.stride(), strict=True)]
        extent = 1 + sum(steps) if item.numel() else 0
        return torch.full((extent,), filler, dtype=item.dtype, device="cpu").as_strided(item.shape, item.stride())

    return _mapped(value, change)


def _on_meta(value: Any) -> Any:
    def change(item: Any) -> Any:
        return item if isinstance(item, torch.device) or item.is_meta else item.to("meta")

    return _mapped(value, change)
