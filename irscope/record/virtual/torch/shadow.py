"""Computes small tensors on the CPU: every call whose operands are known is repeated with their values.

Torch's own version counters show what was written, so that no list of in-place functions has to be complete. Values
that cannot be computed again become unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from irscope.record.virtual.torch.memory import (
    CPU,
    KNOWN_BYTES,
    covers,
    has_shadow,
    has_values,
    invalidate,
    mark_placeholder,
    reserve_values,
    store_values,
    values_of,
)

T = torch.Tensor
OWN = frozenset({"aten", "prim", "prims", "_prims", "quantized", "c10d", "_c10d_functional", "inductor"})
"""The namespaces of torch's own operators."""
_GIVEN = frozenset({torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor, T.new_tensor})
"""Factories whose numbers are in the script."""
CONSTANT = _GIVEN | frozenset(
    {torch.arange, torch.zeros, torch.ones, torch.full, torch.eye, torch.linspace, torch.logspace}
    | {torch.range, torch.randint, torch.randperm, torch.from_numpy, torch.frombuffer, torch.complex, torch.block_diag}
    | {torch.tril_indices, torch.triu_indices, torch.zeros_like, torch.ones_like, torch.full_like, torch.randint_like}
    | {T.new_zeros, T.new_ones, T.new_full}
    | {torch.hann_window, torch.hamming_window, torch.bartlett_window, torch.blackman_window, torch.kaiser_window}
)
"""Factories whose values follow from their arguments, or are random integers as good as any others."""
_RANDOM = frozenset({torch.randint, torch.randperm, torch.randint_like})
_UNWRITTEN = frozenset(
    {torch.empty_like, torch.rand_like, torch.randn_like}
    | {T.new, T.new_empty, T.new_empty_strided, T.resize, T.resize_as}
)
"""Their results are uninitialised memory, or numbers of the GPU's own generator."""
_PLACES_ONLY = frozenset({T.requires_grad_, T.share_memory_, T.retain_grad, T.register_hook, T.backward})
_NORMALISATIONS = frozenset({F.batch_norm, F.instance_norm, torch.batch_norm, torch.instance_norm})
"""They write running averages that torch's version counters do not count."""
_OVERWRITES = frozenset({T.zero_, T.fill_, T.copy_, torch.zero_, torch.fill_})
"""They overwrite all of their first argument."""
_OPERAND_ELEMENTS = 1 << 16


@dataclass(frozen=True, slots=True)
class Call:
    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: list[torch.Tensor]
    result: Any
    is_placeholder: bool = False
    """Whether a number among its arguments is a placeholder value."""


class Shadows:
    def __init__(self) -> None:
        self._seeded = torch.Generator().manual_seed(0)

    def versions(self, virtual: Sequence[torch.Tensor]) -> list[int | None]:
        return [_version(tensor) for tensor in virtual]

    def learn(self, call: Call, versions: list[int | None]) -> None:
        """Compute the results of a call, and what it wrote, if its operands are known, by the `versions` before."""
        func, args, result = call.func, call.args, call.result
        if func in _PLACES_ONLY or _is_of_a_library(func):
            return
        if func is T.__deepcopy__:
            known = values_of(args[0])
            if known is not None:
                store_values(result, known.values, is_placeholder=known.is_placeholder)
            return
        virtual = [tensor for tensor in call.tensors if tensor.is_meta]
        written = [tensor for tensor, before in zip(virtual, versions, strict=True) if _version(tensor) != before]
        written += _named_as_written(call)
        if written:
            self._learn_write(call, written)
            return
        if func in CONSTANT:
            self._learn_constant(call)
            return
        if func in _UNWRITTEN or not virtual:
            return
        known = _all_known(call.tensors)
        if func in _NORMALISATIONS and not known:
            for tensor in virtual[1:]:
                invalidate(tensor)
        if known and (fresh := _fresh(result, virtual)) and all(map(_is_small, fresh)):
            self._replay(call, call.tensors, fresh)

    def _learn_constant(self, call: Call) -> None:
        func, result = call.func, call.result
        if not isinstance(result, T) or not result.is_meta or not _is_small(result):
            return
        options = {**_values(call.kwargs), "device": CPU}
        if func in _RANDOM:
            options["generator"] = self._seeded
        args = tuple(_values(call.args))
        try:
            with torch.inference_mode(False), torch.no_grad():
                values = func(*args, **options)
        except Exception:  # for example `torch.tensor` of a tensor whose values are not known
            return
        operands = tensors_in((*args, *call.kwargs.values()))
        _attach([(result, values)], func in _RANDOM or _has_placeholders(call, operands))

    def _learn_write(self, call: Call, written: list[torch.Tensor]) -> None:
        tensors = call.tensors
        if any(not tensor.is_meta for tensor in written):
            return
        # Unknown so far, and not read here: as all of it is written, it becomes known.
        regained = [
            tensor
            for tensor in _overwritten(call)
            if covers(tensor) and not has_values(tensor) and sum(_shares(tensor, other) for other in tensors) == 1
        ]
        rest = [tensor for tensor in tensors if not any(tensor is other for other in regained)]
        if _all_known(rest):
            for tensor in regained:
                reserve_values(tensor)
        if not _all_known(tensors):
            for tensor in written:
                invalidate(tensor)
            return
        fresh = _fresh(call.result, [tensor for tensor in tensors if tensor.is_meta])
        if not self._replay(call, rest, fresh, written):
            for tensor in written:
                invalidate(tensor)

    def _replay(
        self, call: Call, tensors: list[torch.Tensor], fresh: list[torch.Tensor], written: Sequence[torch.Tensor] = ()
    ) -> bool:
        """Repeat a call on values; returns whether it succeeded."""
        is_placeholder = _has_placeholders(call, tensors)
        generator = torch.default_generator
        state = generator.get_state()
        try:
            with torch.inference_mode(False), torch.no_grad():
                values = call.func(*_values(call.args), **_values(call.kwargs))
        except Exception:  # whatever it is, this computation is not the script's
            return False
        finally:
            after = generator.get_state()
            if not torch.equal(state, after):
                # The program's own random numbers go on as if nothing had been drawn.
                generator.set_state(state)
                is_placeholder = True
        if is_placeholder:
            for tensor in written:
                mark_placeholder(tensor)
        flat = tensors_in(call.result)
        computed = tensors_in(values)
        if len(flat) == len(computed):
            pairs = zip(flat, computed, strict=True)
            _attach([pair for pair in pairs if any(pair[0] is one for one in fresh)], is_placeholder)
        return True


def _has_placeholders(call: Call, operands: Sequence[torch.Tensor]) -> bool:
    return call.is_placeholder or any(known is not None and known.is_placeholder for known in map(values_of, operands))


def _is_of_a_library(func: Any) -> bool:
    """Whether a function is an operator that a library registered: its own calls and launches are followed instead."""
    if isinstance(func, torch._ops.OpOverload):
        return func.namespace not in OWN
    if isinstance(func, torch._ops.OpOverloadPacket):
        return func._qualified_op_name.partition("::")[0] not in OWN
    return False


def _attach(pairs: list[tuple[torch.Tensor, Any]], is_placeholder: bool) -> None:
    """Store the values of (result, value) that are alike."""
    made: set[int] = set()
    for result, value in pairs:
        if not isinstance(value, T) or value.device.type != "cpu" or value.layout is not torch.strided:
            continue
        if (value.shape, value.dtype) != (result.shape, result.dtype) or not has_shadow(result):
            continue
        storage = result.untyped_storage()._cdata
        if storage in made:
            known = values_of(result)
            if known is not None:
                known.values.copy_(value)
            continue
        store_values(result, value, is_placeholder=is_placeholder)
        made.add(storage)


def _fresh(result: Any, virtual: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    shared = {tensor.untyped_storage()._cdata for tensor in virtual if tensor.layout is torch.strided}
    return [
        tensor for tensor in tensors_in(result) if has_shadow(tensor) and tensor.untyped_storage()._cdata not in shared
    ]


def _shares(first: torch.Tensor, second: torch.Tensor) -> bool:
    if not second.is_meta or second.layout is not torch.strided:
        return False
    return first.untyped_storage()._cdata == second.untyped_storage()._cdata


def _is_small(tensor: torch.Tensor) -> bool:
    return tensor.numel() * tensor.element_size() <= KNOWN_BYTES


def _all_known(tensors: Sequence[torch.Tensor]) -> bool:
    return all(map(has_values, tensors)) and sum(tensor.numel() for tensor in tensors) <= _OPERAND_ELEMENTS


def _version(tensor: torch.Tensor) -> int | None:
    # Tensors of torch.inference_mode() have none.
    return None if tensor.is_inference() else tensor._version


def _named_as_written(call: Call) -> list[torch.Tensor]:
    """The tensors that a function writes by its name, as version counters may not: `out`, `add_`, `_foreach_mul_`."""
    written = tensors_in(call.kwargs.get("out"))
    name = getattr(call.func, "__name__", "")
    if name == "__setitem__" or (name.startswith("__i") and name[3:-2] in _IN_PLACE):
        return [*written, *tensors_in(call.args[:1])]
    if name.endswith("_") and not name.endswith("__"):
        # Optimisers pass several lists to one function, and write to most.
        return [*written, *tensors_in(call.args if name.startswith("_") else call.args[:1])]
    return written


def _overwritten(call: Call) -> list[torch.Tensor]:
    written = tensors_in(call.kwargs.get("out"))
    if call.func in _OVERWRITES:
        return [*written, *tensors_in(call.args[:1])]
    if call.func is T.__setitem__ and isinstance(call.args[0], T):
        places = call.args[1] if isinstance(call.args[1], tuple) else (call.args[1],)
        if all(not isinstance(place, T) and (place is Ellipsis or place == slice(None)) for place in places):
            return [*written, call.args[0]]
    return written


def _values(value: Any) -> Any:
    def values(tensor: torch.Tensor) -> torch.Tensor:
        known = values_of(tensor)
        return tensor if known is None else known.values

    return mapped(value, values, CPU)


_IN_PLACE = frozenset(
    {"add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift", "matmul"}
)


def tensors_in(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, slice):
        value = [value.start, value.stop, value.step]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in tensors_in(item)]
    return []


def mapped(value: Any, change: Callable[[torch.Tensor], Any], device: torch.device | None = None) -> Any:
    """A value with each tensor changed; `device` replaces the device `meta`."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {name: mapped(item, change, device) for name, item in value.items()}
    if isinstance(value, slice):
        return slice(*(mapped(bound, change, device) for bound in (value.start, value.stop, value.step)))
    if isinstance(value, list | tuple):
        items = [mapped(item, change, device) for item in value]
        # A named tuple of Python takes its fields one by one, one of torch takes them as a sequence.
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if device is not None and isinstance(value, torch.device) and value.type == "meta":
        return device
    return value
