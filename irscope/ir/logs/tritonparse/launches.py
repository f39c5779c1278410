"""Launches and tunings in a trace: the grid, the arguments, and which configuration was the fastest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from irscope.ir.logs.metadata import number
from irscope.model.capture import Launch
from irscope.model.launch_record import Argument, Autotuning, LaunchRecord

__all__ = ["autotuning_of", "grid_of", "record_of"]

_LARGEST = 1 << 53
_MOST_ARGUMENTS = 10_000
_MOST_ALIGNMENT = 512


def grid_of(event: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """The grid of a launch; None where it has none."""
    sizes = _sizes(event.get("grid"))
    if sizes is None or not 1 <= len(sizes) <= 3:
        return None
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def record_of(event: Mapping[str, Any], launch: Launch) -> LaunchRecord | None:
    """What a launch was given; None where the trace does not say, or says what cannot be."""
    given = event.get("extracted_args")
    if not isinstance(given, dict) or len(cast("dict[str, Any]", given)) > _MOST_ARGUMENTS:
        return None
    constants = dict(launch.constants)
    rows: list[Argument] = []
    for name, value in cast("dict[str, Any]", given).items():
        if name in constants or not isinstance(value, dict):
            continue
        row = _argument(name, cast("dict[str, Any]", value))
        if row is None:
            return None
        rows.append(row)
    return LaunchRecord(tuple(rows))


def _argument(name: str, value: Mapping[str, Any]) -> Argument | None:
    kind = value.get("type")
    if kind == "tensor":
        return _tensor(name, value)
    if kind == "TensorDescriptor":
        shape, strides, block = (_sizes(value.get(key)) for key in ("shape", "strides", "block_shape"))
        base = value.get("base")
        dtype = _dtype(cast("Mapping[str, Any]", base)) if isinstance(base, dict) else ""
        if shape is None or strides is None or block is None:
            return None
        return Argument(name, "descriptor", dtype, shape=shape, strides=strides, block_shape=block)
    scalar = value.get("value")
    if kind in ("int", "float", "bool") and isinstance(scalar, (bool, int, float, str)):
        return Argument(name, "scalar", str(kind), scalar)
    return None


def _tensor(name: str, value: Mapping[str, Any]) -> Argument | None:
    shape, strides = _sizes(value.get("shape")), _sizes(value.get("stride"))
    if shape is None or strides is None or len(shape) != len(strides):
        return None
    offset = number(value.get("storage_offset"))
    return Argument(
        name,
        "tensor",
        _dtype(value),
        shape=shape,
        strides=strides,
        storage_offset=offset if offset is not None and 0 <= offset < _LARGEST else None,
        alignment_bytes=_alignment(value.get("data_ptr")),
    )


def _dtype(value: Mapping[str, Any]) -> str:
    return str(value.get("dtype", "")).removeprefix("torch.")


def _alignment(address: Any) -> int | None:
    """The greatest power of two that divides an address such as `0x7f0000003200`, up to 512."""
    try:
        known = int(address, 16) if isinstance(address, str) and len(address) <= 20 else 0
    except ValueError:
        return None
    return min(known & -known, _MOST_ALIGNMENT) if known > 0 else None


def _sizes(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, list) or len(cast("list[Any]", value)) > 100:
        return None
    rows = tuple(number(item) for item in cast("list[Any]", value))
    return cast("tuple[int, ...]", rows) if all(row is not None and 0 <= row < _LARGEST for row in rows) else None


def autotuning_of(tunings: Sequence[Mapping[str, Any]], launch: Launch) -> Autotuning | None:
    """Where a launch stands in the first tuning of its kernel that has its configuration; None where none has."""
    known = {**dict(launch.constants), **{key: repr(value) for key, value in launch.options}}
    for event in tunings:
        timings = event.get("configs_timings")
        if event.get("kernel_name") != launch.kernel.name or not isinstance(timings, dict):
            continue
        rows = list(cast("dict[str, Any]", timings).items())
        fitting = [at for at, (config, _) in enumerate(rows) if _is_of(config, known)]
        if len(fitting) != 1:
            continue
        config, times = rows[fitting[0]]
        return Autotuning(
            fitting[0], len(rows), config, winner=config == event.get("best_config"), median_ms=_median(times)
        )
    return None


def _is_of(config: str, known: Mapping[str, str]) -> bool:
    """Whether a compile has the settings of `BLOCK: 128, num_warps: 4, num_ctas: 1`; what it does not name may vary."""
    pairs = [part.partition(": ") for part in config.split(", ")]
    return bool(pairs) and all(name not in known or known[name] == value for name, _, value in pairs)


def _median(times: Any) -> float | None:
    first: Any = cast("list[Any]", times)[0] if isinstance(times, list) and times else cast("Any", times)
    if type(first) is int or type(first) is float:
        return float(first) if 0 <= first < _LARGEST else None
    return None
