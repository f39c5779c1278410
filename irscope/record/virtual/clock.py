"""Follows what a program reads of this machine's clock: times, dates and their differences are placeholder values."""

from __future__ import annotations

import math
import operator
import time
import timeit
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import partial, wraps
from types import ModuleType
from typing import Any

from irscope.record.triton.patches import AfterImport, Patches
from irscope.record.virtual.numbers import operators_named, plain
from irscope.record.virtual.placeholders import PlaceholderText, current_following, measured
from irscope.record.virtual.places import is_called_by_program

_CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")
_MEASURED = "this machine's time"
_ORDER = operators_named("lt le gt ge eq ne")


class _ClockText(PlaceholderText):
    """A time or a date of this machine's clock as text."""

    __slots__ = ()
    source = "the text of a time"
    shown = _MEASURED


class ClockReading:
    """A number that the clock gave: its difference to another is a time that was measured on this machine."""

    def converted(self, kind: Any) -> Any:
        return _reading(kind(self))

    def __reduce__(self) -> Any:
        number = _number(self)
        return type(number), (number,)

    def __format__(self, form: str) -> str:
        return _ClockText(format(_number(self), form))

    def __repr__(self) -> str:
        return _ClockText(repr(_number(self)))


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


class _Day(date):
    """A date of this machine's clock."""

    __hash__ = date.__hash__


class _Moment(datetime):
    """A date and time of this machine's clock."""

    __hash__ = datetime.__hash__

    def date(self) -> Any:
        """The day."""
        return _Day.fromordinal(self.toordinal())

    def timestamp(self) -> Any:
        """The seconds since the epoch, a reading of the clock."""
        return _reading(super().timestamp())


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


def _plain_date(moment: Any) -> Any:
    # Through `fromisoformat`, since `replace` and `astimezone` keep the class.
    if not isinstance(moment, datetime):
        return date.fromisoformat(date.isoformat(moment))
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


def _shown(kind: Any, name: str) -> Any:
    real = getattr(kind, name)
    return lambda self, *args, **options: _ClockText(real(self, *args, **options))


def _dated(kind: Any, base: Any) -> None:
    """Give a class of dates the differences, the texts and the pickled form of the clock's."""

    def subtracted_from(self: Any, other: Any) -> Any:
        return _as_span(other - _plain_date(self)) if isinstance(other, base) else NotImplemented

    kind.__sub__ = lambda self, other: _as_span(base.__sub__(self, other))
    kind.__rsub__ = subtracted_from
    kind.__reduce_ex__ = lambda self, protocol: _plain_date(self).__reduce_ex__(protocol)
    for name in ("__format__", "__str__", "ctime", "isoformat", "strftime"):
        setattr(kind, name, _shown(base, name))


_dated(_Day, date)
_dated(_Moment, datetime)


def _field(kind: Any, name: str) -> property:
    return property(lambda self: measured(getattr(kind, name).__get__(self), shown=_MEASURED))


for _kind, _base, _fields in (
    (_Day, date, "year month day"),
    (_Moment, datetime, "year month day hour minute second microsecond"),
    (_Span, timedelta, "days seconds microseconds"),
):
    for _name in _ORDER:
        setattr(_kind, f"__{_name}__", _asking(_base, _name))
    for _name in _fields.split():
        setattr(_kind, _name, _field(_base, _name))
for _name in ["add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "floordiv", "mod", "neg", "pos", "abs"]:
    setattr(_Span, f"__{_name}__", _arithmetic(f"__{_name}__"))


def read_date(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The result of a call of any object's method of such a name: a date of the clock is followed."""
    kind = {datetime: _Moment, date: _Day}.get(getattr(function, "__self__", None))
    of_clock = not function.__name__.endswith("timestamp") or isinstance(args[0] if args else None, ClockReading)
    if kind is not None and of_clock and current_following().is_on:
        return getattr(kind, function.__name__)(*map(_number, args), **options)
    return function(*args, **options)


def install_clock(patches: Patches) -> None:
    """Follow what a program reads of the clock, until `patches` are closed."""
    for name in _CLOCKS:
        for each in (name, f"{name}_ns"):
            patches.set(time, each, _followed(getattr(time, each)))
    for name in ("localtime", "gmtime"):
        patches.set(time, name, _followed_date(getattr(time, name)))
    for name in ("asctime", "ctime", "strftime"):
        patches.set(time, name, _followed_text(getattr(time, name)))
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


def _followed_date(real: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(real)
    def read_clock(*seconds: Any) -> Any:
        date = real(*map(_number, seconds))
        is_reading = not seconds or isinstance(seconds[0], ClockReading)
        return time.struct_time(map(_reading, date)) if is_reading and is_called_by_program() else date

    return read_clock


def _followed_text(real: Callable[..., str]) -> Callable[..., str]:
    @wraps(real)
    def read_clock(*args: Any) -> str:
        text = real(*map(_number, args))
        times = [each for each in args if not isinstance(each, str)]
        fields = times[0] if times and isinstance(times[0], tuple) else times[:1]
        is_reading = not times or any(isinstance(each, ClockReading) for each in fields)
        return _ClockText(text) if is_reading and is_called_by_program() else text

    return read_clock
