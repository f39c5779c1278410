"""What a launch is given: its arguments and the options that its script set, read just before its compile."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

from irscope.record.triton_specialization import OPTIONS_OF_THE_LAUNCHER

_MOST_ALIGNMENT = 512


class GivenLaunches:
    """The launches whose compile is about to begin, by the options object that Triton made for them.

    Not by thread: Triton may compile in a thread of its own.
    """

    def __init__(self) -> None:
        self._given: dict[int, tuple[Any, dict[str, Any]]] = {}

    def stand_in(self, real: Callable[..., Any]) -> Callable[..., Any]:
        """What stands for `JITFunction._pack_args`, which Triton calls for a launch that must be compiled."""

        def pack_args(function: Any, backend: Any, keywords: dict[str, Any], bound: dict[str, Any], *rest: Any) -> Any:
            packed = real(function, backend, keywords, bound, *rest)
            options = packed[0]
            described = {
                "set_options": _set_options(keywords, vars(options), backend),
                "record": {"arguments": list(_described_arguments(function, bound))},
            }
            self._given[id(vars(options))] = (options, described)
            return packed

        return pack_args

    def take(self, src: Any, options: Any) -> dict[str, Any]:
        """`set_options` and `record` of what `triton.compile` is given, as JSON holds them in a Launch."""
        _, described = self._given.pop(id(options), (None, None))
        if described is not None:
            return described
        # A call of triton.compile itself: what it is given is what was set.
        return {} if isinstance(src, str) else {"set_options": sorted(dict(options or {}).items())}


def _set_options(keywords: dict[str, Any], known: dict[str, Any], backend: Any) -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    defaults = vars(backend.parse_options({}))
    for name, value in sorted(keywords.items()):
        by_launcher = name in OPTIONS_OF_THE_LAUNCHER and value == defaults.get(name)
        if name in known and not by_launcher:
            rows.append((name, value))
    return rows


def _described_arguments(function: Any, bound: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for param in function.params:
        if param.is_constexpr or param.name not in bound:
            continue
        flags: dict[str, Any] = {}
        # As Triton's binder: what is annotated as a float or a truth value is not specialised on either.
        annotated = str(param.annotation_type)
        if param.do_not_specialize or annotated == "u1" or annotated.startswith(("fp", "bf")):
            flags["specializes"] = False
        if param.do_not_specialize_on_alignment:
            flags["specializes_on_alignment"] = False
        for row in _described(param.name, bound[param.name]):
            yield {**row, **flags}


def _described(path: str, value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, (bool, int, float)):
        held = value if isinstance(value, int) or math.isfinite(value) else str(value)
        yield {"path": path, "kind": "scalar", "dtype": _scalar_kind(value), "value": held}
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from _described(f"{path}[{index}]", item)
    elif hasattr(value, "data_ptr"):
        yield {"path": path, "kind": "tensor", **_tensor(value)}
    elif hasattr(value, "block_shape") and hasattr(value, "base"):
        row = {"path": path, "kind": "descriptor", **_tensor(value.base)}
        yield row | {name: [int(size) for size in getattr(value, name)] for name in ("shape", "strides", "block_shape")}


def _scalar_kind(value: Any) -> str:
    return next(kind.__name__ for kind in (bool, int, float) if isinstance(value, kind))


def _tensor(tensor: Any) -> dict[str, Any]:
    # Anything with an address is a tensor to Triton: what one does not tell stays unknown.
    row: dict[str, Any] = {"dtype": str(getattr(tensor, "dtype", "")).rpartition(".")[2]}
    for name, read in _TENSOR_FIELDS.items():
        with contextlib.suppress(Exception):
            row[name] = read(tensor)
    return row


_TENSOR_FIELDS: dict[str, Callable[[Any], Any]] = {
    "shape": lambda tensor: [int(size) for size in tensor.shape],
    "strides": lambda tensor: [int(stride) for stride in tensor.stride()],
    "storage_offset": lambda tensor: int(tensor.storage_offset()),
    "storage_bytes": lambda tensor: int(
        tensor.ptr_range() if hasattr(tensor, "ptr_range") else tensor.untyped_storage().nbytes()
    ),
    "alignment_bytes": lambda tensor: _alignment(int(tensor.data_ptr())),
}


def _alignment(address: int) -> int:
    return min(address & -address, _MOST_ALIGNMENT) if address else _MOST_ALIGNMENT
