"""What a backend of Triton concludes from the arguments of a launch, told by the launch's record in their place."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from irscope.launch_record import Argument, LaunchRecord
from irscope.record.tap import replaced

OPTIONS_OF_THE_LAUNCHER = ("debug", "instrumentation_mode", "fpsan_homomorphic_casts")
"""The options that a launch sets whatever the script says; 3.6 to 3.8 only the first two."""

_UNKNOWN_BYTES = 1 << 62

Attributes = dict[str, tuple[tuple[str, Any], ...]]
"""Path of an argument → (attribute, value), as the backend orders them."""


class _Tensor:
    """What a backend asks of a tensor."""

    def __init__(self, argument: Argument) -> None:
        self._argument = argument

    def data_ptr(self) -> int:
        return self._argument.alignment_bytes or 1

    def ptr_range(self) -> int:
        held = self._argument.storage_bytes
        return _UNKNOWN_BYTES if held is None else held


def attributes_of(backend: Any, record: LaunchRecord, signature: dict[str, str]) -> Attributes:
    """The attributes that a backend gives the arguments of a launch, by path; those with none are left out."""
    found: Attributes = {}
    with _torch_left_alone(backend):
        for argument in record.arguments:
            is_constant = signature.get(argument.path) == "constexpr"
            rows = () if is_constant or not argument.specializes else _rows(backend, argument)
            if rows:
                found[argument.path] = rows
    return found


@contextmanager
def _torch_left_alone(backend: Any) -> Iterator[None]:
    """AMD's backend imports torch, to ask whether a tensor is one: it takes seconds, and need not be there."""
    kind = type(backend)
    if hasattr(kind, "_torch_available"):
        with replaced(kind, "_torch_available", False):
            yield
        return
    # 3.6 and 3.7 have no such switch.
    missing = "torch" not in sys.modules
    sys.modules.setdefault("torch", ModuleType("torch"))
    try:
        yield
    finally:
        if missing:
            del sys.modules["torch"]


def _rows(backend: Any, argument: Argument) -> tuple[tuple[str, Any], ...]:
    aligned = argument.specializes_on_alignment
    if argument.kind == "tensor":
        return parsed_attributes(backend, backend.get_tensor_specialization(_Tensor(argument), align=aligned))
    if argument.kind == "scalar" and argument.dtype == "int":
        return parsed_attributes(backend, backend.get_int_specialization(argument.value, align=aligned))
    return ()


def parsed_attributes(backend: Any, key: str) -> tuple[tuple[str, Any], ...]:
    """A backend's attributes for the key of a specialization: `D` where a value is known to be divisible by 16."""
    return tuple((name, value) for name, value in backend.parse_attr(key))


def attributes_of_small_tensor(backend: Any) -> tuple[tuple[str, Any], ...]:
    """What a backend gives a tensor that is aligned and small."""
    argument = Argument("x", "tensor", storage_bytes=0, alignment_bytes=512)
    return attributes_of(backend, LaunchRecord((argument,)), {}).get("x", ())
