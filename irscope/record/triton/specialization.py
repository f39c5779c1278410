"""The attributes that a backend of Triton derives from a launch's arguments, here from the launch's record of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from irscope.model.launch_record import Argument, LaunchRecord
from irscope.record.triton.api import backend_classes
from irscope.record.triton.patches import Patches, replaced

OPTIONS_OF_THE_LAUNCHER = ("debug", "instrumentation_mode", "fpsan_homomorphic_casts")
"""The options that every launch sets, also without the script; 3.6 to 3.8 only the first two."""

_UNKNOWN_BYTES = 1 << 62

Attributes = dict[str, tuple[tuple[str, Any], ...]]
"""Path of an argument → (attribute, value) in the backend's order."""


class _Tensor:
    """A recorded tensor with the methods that a backend calls."""

    def __init__(self, argument: Argument) -> None:
        self._argument = argument

    def data_ptr(self) -> int:
        return self._argument.alignment_bytes or 1

    def ptr_range(self) -> int:
        size = self._argument.storage_bytes
        return _UNKNOWN_BYTES if size is None else size


def attributes_of(backend: Any, record: LaunchRecord, signature: dict[str, str]) -> Attributes:
    """The attributes that a backend gives the arguments of a launch, by path; without those that have none."""
    found: Attributes = {}
    with _without_torch(type(backend)):
        for argument in record.arguments:
            is_constant = signature.get(argument.path) == "constexpr"
            rows = () if is_constant or not argument.specializes else _rows(backend, argument)
            if rows:
                found[argument.path] = rows
    return found


def spare_torch(patches: Patches) -> None:
    """Keep AMD's backend from importing torch at the launches of a program that has not: none gets a tensor of it."""
    for kind in backend_classes():
        if hasattr(kind, "is_within_2gb"):
            patches.set(kind, "is_within_2gb", staticmethod(_sparing_torch(kind, kind.is_within_2gb)))


def _sparing_torch(kind: Any, is_within_2gb: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def is_within(argument: Any) -> bool:
        if "torch" in sys.modules:
            return is_within_2gb(argument)
        with _without_torch(kind):
            return is_within_2gb(argument)

    return is_within


@contextmanager
def _without_torch(kind: Any) -> Iterator[None]:
    """Keep AMD's backend from importing torch for an isinstance check: it takes seconds, and may be missing."""
    if hasattr(kind, "_torch_available"):
        with replaced(kind, "_torch_available", False):
            yield
        return
    # 3.6 and 3.7 have no such switch.
    missing = "torch" not in sys.modules
    stand_in = ModuleType("torch")
    vars(stand_in)["Tensor"] = _Tensor
    sys.modules.setdefault("torch", stand_in)
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
    """The attributes that a backend gives an aligned, small tensor."""
    argument = Argument("x", "tensor", storage_bytes=0, alignment_bytes=512)
    return attributes_of(backend, LaunchRecord((argument,)), {}).get("x", ())
