"""Follows what a program measures by this machine's clock: differences of its times and dates are placeholder values.

A time of day or a date is the same with a GPU, and followed no further than to a difference or a comparison.
"""

from __future__ import annotations

import math
import operator
import time
import timeit
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial, wraps
from types import ModuleType
from typing import Any

from irscope.record.triton.patches import AfterImport, Patches
from irscope.record.virtual.numbers import operators_named, plain
from irscope.record.virtual.placeholders import current_following, measured
from irscope.record.virtual.places import is_called_by_program

_CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
_MEASURED = "this machine's time"
_ORDER = operators_named("lt le gt ge eq ne")


class ClockReading:
    """A number that the clock gave: its difference to another is a time that was measured on this machine."""

    def converted(self, kind: Any) -> Any:
        return _reading(kind(self))

    def __reduce__(self) -> Any:
        number = _number(self)
        return type(number), (number,)


class _FloatReading(ClockReading, float):
    pass


class _IntReading(ClockReading, int):
    pass


def _number(value: Any) -> Any:
    if isinstance(value, _FloatReading):
        return float.__float__(value)
    return int.__int__(value) if isinstance(value, _IntReading) else plain(value)


def _reading(value: Any) -> Any:
    return _FloatReading(value) if isinstance(value, float) else _IntReading(value)


def _read(value: Any) -> Any:
    return current_following().read(value, shown=_MEASURED)


def _of_readings(compute: Callable[[Any, Any], Any]) -> Any:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        result = compute(_number(self), _number(other))
        if isinstance(result, bool):
            return current_following().question(result, shown=_MEASURED)
        if compute is operator.mod or (compute is operator.sub and isinstance(other, ClockReading)):
            return _read(result)
        return _reading(result)

    return method


def _rounded(compute: Callable[..., Any]) -> Any:
    def method(self: Any, *digits: Any) -> Any:
        return _reading(compute(_number(self), *digits))

    return method


for _kind in (_FloatReading, _IntReading):
    for _name, _compute in (operators_named("add sub mul truediv floordiv mod") | _ORDER).items():
        setattr(_kind, f"__{_name}__", _of_readings(_compute))
    for _name, _compute in operators_named("add mul").items():
        setattr(_kind, f"__r{_name}__", _of_readings(_compute))
    for _name in ("round", "floor", "ceil", "trunc"):
        setattr(_kind, f"__{_name}__", _rounded(round if _name == "round" else getattr(math, _name)))
    _kind.__hash__ = _kind.__mro__[2].__hash__  # type: ignore[method-assign, assignment]


class _Moment(datetime):
    __hash__ = datetime.__hash__

    def timestamp(self) -> Any:
        return _reading(super().timestamp())

    def __sub__(self, other: Any) -> Any:
        return _as_span(datetime.__sub__(self, other))

    def __rsub__(self, other: Any) -> Any:
        return _as_span(other - _plain_date(self)) if isinstance(other, datetime) else NotImplemented

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _plain_date(self).__reduce_ex__(protocol)


class _Span(timedelta):
    """A difference of dates of which at least one is the clock's."""

    __hash__ = timedelta.__hash__

    def total_seconds(self) -> Any:
        return _read(super().total_seconds())

    def __reduce__(self) -> Any:
        return timedelta, (
            timedelta.days.__get__(self),
            timedelta.seconds.__get__(self),
            timedelta.microseconds.__get__(self),
        )


def _plain_date(moment: datetime) -> datetime:
    # Through `fromisoformat`, since `replace` and `astimezone` keep the class.
    return datetime.fromisoformat(datetime.isoformat(moment)).replace(tzinfo=moment.tzinfo, fold=moment.fold)


def _as_span(value: Any) -> Any:
    """A difference as a span, the quotient of two as a placeholder value, anything else unchanged."""
    if isinstance(value, timedelta):
        return timedelta.__new__(_Span, value.days, value.seconds, value.microseconds)
    return _read(value) if isinstance(value, int | float) else value


def _asking(kind: Any, name: str) -> Any:
    real = getattr(kind, f"__{name}__")

    def method(self: Any, other: Any) -> Any:
        result = real(self, other)
        return result if result is NotImplemented else current_following().question(result, shown=_MEASURED)

    return method


def _arithmetic(name: str) -> Any:
    real = getattr(timedelta, name)

    def method(self: Any, *other: Any) -> Any:
        return _as_span(real(self, *other))

    return method


def _field(name: str) -> property:
    return property(lambda self: measured(getattr(timedelta, name).__get__(self), shown=_MEASURED))


for _kind, _base in ((_Moment, datetime), (_Span, timedelta)):
    for _name in _ORDER:
        setattr(_kind, f"__{_name}__", _asking(_base, _name))
for _name in ("days", "seconds", "microseconds"):
    setattr(_Span, _name, _field(_name))
for _name in ["add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "floordiv", "mod", "neg", "pos", "abs"]:
    setattr(_Span, f"__{_name}__", _arithmetic(f"__{_name}__"))


def read_date(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The result of a call of any object's method of such a name: a date of the clock is followed."""
    of_clock = not function.__name__.endswith("timestamp") or isinstance(args[0] if args else None, ClockReading)
    if getattr(function, "__self__", None) is datetime and of_clock and current_following().is_on:
        return getattr(_Moment, function.__name__)(*map(_number, args), **options)
    return function(*args, **options)


def install_clock(patches: Patches) -> None:
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
