"""A launch's arguments and the options that its script set, read just before its compile."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from irscope.model.launch_record import Argument, LaunchRecord, without_largest
from irscope.model.plain import tupled
from irscope.record.triton.specialization import OPTIONS_OF_THE_LAUNCHER

_MOST_ALIGNMENT = 512


class PendingLaunches:
    """The launches whose compile is about to begin, by the options object that Triton made for them.

    Not by thread: Triton may compile in a thread of its own.
    """

    def __init__(self, values: Callable[[Any], dict[str, Any]] = lambda tensor: {}) -> None:
        """`values`: what is known of a tensor's data, as fields of an Argument."""
        self._values = values
        self._described: dict[int, tuple[Any, dict[str, Any]]] = {}

    def stand_in(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """A stand-in for `JITFunction._pack_args`, which Triton calls for a launch that must be compiled."""

        def pack_args(function: Any, backend: Any, keywords: dict[str, Any], bound: dict[str, Any], *rest: Any) -> Any:
            packed = real(function, backend, keywords, bound, *rest)
            options = packed[0]
            described = {
                "set_options": _set_options(keywords, vars(options), backend),
                "record": _within_bounds(LaunchRecord(tuple(_described_arguments(function, bound, self._values)))),
            }
            self._described[id(vars(options))] = (options, described)
            return packed

        return pack_args

    def take(self, src: Any, options: Any) -> dict[str, Any]:
        """The fields `set_options` and `record` of the Launch that `triton.compile` is given, as far as known."""
        _, described = self._described.pop(id(options), (None, None))
        if described is not None:
            return described
        # A call of triton.compile itself: what it is given is what was set.
        return {} if isinstance(src, str) else {"set_options": _pairs(dict(options or {}))}


def _within_bounds(record: LaunchRecord) -> LaunchRecord:
    kept = without_largest({one.path: one.data for one in record.arguments if one.data})
    return record.with_contents((path, data, "") for path, data in kept.items())


def _set_options(keywords: dict[str, Any], known: dict[str, Any], backend: Any) -> tuple[tuple[str, Any], ...]:
    defaults = vars(backend.parse_options({}))

    def by_launcher(name: str) -> bool:
        return name in OPTIONS_OF_THE_LAUNCHER and keywords[name] == defaults.get(name)

    return _pairs({name: value for name, value in keywords.items() if name in known and not by_launcher(name)})


def _pairs(options: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, tupled(plain(value))) for name, value in sorted(options.items()))


def _described_arguments(
    function: Any, bound: dict[str, Any], values: Callable[[Any], dict[str, Any]]
) -> Iterator[Argument]:
    for param in function.params:
        if param.is_constexpr or param.name not in bound:
            continue
        flags: dict[str, Any] = {}
        # As Triton's binder does: nothing is specialised on a parameter annotated as a float or a bool.
        annotated = str(param.annotation_type)
        if param.do_not_specialize or annotated == "u1" or annotated.startswith(("fp", "bf")):
            flags["specializes"] = False
        if param.do_not_specialize_on_alignment:
            flags["specializes_on_alignment"] = False
        for argument in _described(param.name, bound[param.name], values):
            yield replace(argument, **flags)


def _described(path: str, value: Any, values: Callable[[Any], dict[str, Any]]) -> Iterator[Argument]:
    if isinstance(value, (bool, int, float)):
        held = value if isinstance(value, int) or math.isfinite(value) else str(value)
        yield Argument(path, "scalar", _scalar_kind(value), held)
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from _described(f"{path}[{index}]", item, values)
    elif hasattr(value, "data_ptr"):
        row = _tensor(value)
        # It is read beside the launch, which nothing here may fail.
        with contextlib.suppress(Exception):
            row |= values(value)
        yield Argument(path, "tensor", **row)
    elif hasattr(value, "block_shape") and hasattr(value, "base"):
        sizes = {name: tuple(map(int, getattr(value, name))) for name in ("shape", "strides", "block_shape")}
        yield Argument(path, "descriptor", **{**_tensor(value.base), **sizes})


def _scalar_kind(value: Any) -> str:
    return next(kind.__name__ for kind in (bool, int, float) if isinstance(value, kind))


def _tensor(tensor: Any) -> dict[str, Any]:
    # To Triton, anything with an address is a tensor; what an object does not answer stays unknown.
    row: dict[str, Any] = {"dtype": str(getattr(tensor, "dtype", "")).rpartition(".")[2]}
    for name, read in _TENSOR_FIELDS.items():
        with contextlib.suppress(Exception):
            row[name] = read(tensor)
    return row


_TENSOR_FIELDS: dict[str, Callable[[Any], Any]] = {
    "shape": lambda tensor: tuple(map(int, tensor.shape)),
    "strides": lambda tensor: tuple(map(int, tensor.stride())),
    "storage_offset": lambda tensor: int(tensor.storage_offset()),
    "storage_bytes": lambda tensor: int(
        tensor.ptr_range() if hasattr(tensor, "ptr_range") else tensor.untyped_storage().nbytes()
    ),
    "alignment_bytes": lambda tensor: _alignment(int(tensor.data_ptr())),
}


def _alignment(address: int) -> int:
    return min(address & -address, _MOST_ALIGNMENT) if address else _MOST_ALIGNMENT


def plain(value: Any) -> Any:
    """A value as JSON holds it."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
