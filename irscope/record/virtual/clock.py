"""The clock of the machine, as a program on the virtual GPU reads it: times measured with it are placeholder values."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from functools import partial, wraps
from types import ModuleType
from typing import Any

from irscope.record.triton.patches import Patches
from irscope.record.virtual.after_import import AfterImport
from irscope.record.virtual.follow import current_following, measured
from irscope.record.virtual.numbers import plain
from irscope.record.virtual.places import is_called_by_program

_CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
_MEASURED = "this machine's time"


class ClockReading:
    """A number that the clock gave: its difference to another is a time that was measured on this machine."""

    def converted(self, kind: Any) -> Any:
        """The reading as an `int` or a `float`."""
        return _reading(kind(self))

    def __reduce__(self) -> Any:
        number = _number(self)
        return type(number), (number,)


class _FloatReading(float, ClockReading):
    pass


class _IntReading(int, ClockReading):
    pass


def _number(value: Any) -> Any:
    if isinstance(value, _FloatReading):
        return float.__float__(value)
    return int.__int__(value) if isinstance(value, _IntReading) else plain(value)


def _reading(value: Any) -> Any:
    return _FloatReading(value) if isinstance(value, float) else _IntReading(value)


def _arithmetic(name: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        number = _number(self)
        kind = float if isinstance(number, float) or isinstance(other, float) else int
        result = getattr(kind, name)(kind(number), kind(_number(other)))
        if name != "__sub__" or not isinstance(other, ClockReading):
            return result if result is NotImplemented else _reading(result)
        following = current_following()
        return result if following is None else following.read(result, shown=_MEASURED)

    return method


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        number = _number(self)
        kind = float if isinstance(number, float) or isinstance(other, float) else int
        result = getattr(kind, name)(kind(number), kind(_number(other)))
        following = current_following()
        return result if following is None else following.question(result, shown=_MEASURED)

    return method


for _kind in (_FloatReading, _IntReading):
    for _name in ("add", "radd", "sub", "mul", "rmul", "truediv", "floordiv"):
        setattr(_kind, f"__{_name}__", _arithmetic(f"__{_name}__"))
    for _name in ("lt", "le", "gt", "ge"):
        setattr(_kind, f"__{_name}__", _comparison(f"__{_name}__"))


def install_clock(patches: Patches) -> None:
    """Follow what a program reads of the clock, until `patches` are closed."""
    for name in _CLOCKS:
        for each in (name, f"{name}_ns"):
            patches.set(time, each, _followed(getattr(time, each)))
    patches.set(timeit, "default_timer", time.perf_counter)
    for owner in (timeit, timeit.Timer):
        for name in ("timeit", "repeat"):
            patches.set(owner, name, _timed(getattr(owner, name)))
    patches.enter_context(AfterImport("torch.utils.benchmark.utils.common", partial(_follow_measurements, patches)))


def _timed(real: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(real)
    def time_statement(*args: Any, **options: Any) -> Any:
        # The standard library's own code reads the clock.
        return measured(real(*args, **options), shown=_MEASURED)

    return time_statement


def _follow_measurements(patches: Patches, module: ModuleType) -> None:
    """What `torch.utils.benchmark` measured is read as properties of its results."""
    for name in ("mean", "median", "iqr", "times"):
        real = vars(module.Measurement)[name]

        def read(measurement: Any, real: property = real) -> Any:
            return measured(real.__get__(measurement), shown=_MEASURED)

        patches.set(module.Measurement, name, property(read))


def _followed(real: Callable[[], Any]) -> Callable[[], Any]:
    def read_clock() -> Any:
        return _reading(real()) if is_called_by_program() else real()

    read_clock.__name__ = read_clock.__qualname__ = real.__name__
    return read_clock
