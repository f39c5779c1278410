"""Placeholder numbers, in place of data that has not been computed: integers and floats with the places of their reads.

Arithmetic keeps the reads; a comparison or a test of truth is a question, which the innermost listener receives. C code
makes plain numbers of them; `plain` converts them for everything but the program itself.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Read:
    """One place at which a program reads data that has not been computed."""

    name: str
    """The variable that the value is assigned to, or an empty string."""
    value: str
    """The value that the program got, as Python prints it."""
    file: str
    line: int
    expression: str = ""
    given: bool = False

    @property
    def place(self) -> str:
        return f"{self.file.rpartition('/')[2]}:{self.line}"


Reads = frozenset[Read]

listeners: list[Callable[[Reads], None]] = []
"""Called with the reads of each question, the innermost only, which is last."""


class Placeholder:
    reads: Reads = frozenset()

    def __reduce__(self) -> Any:
        number = plain(self)
        return type(number), (number,)

    def __deepcopy__(self, memo: Any) -> Any:
        return self


class PlaceholderInt(int, Placeholder):
    """A placeholder integer."""


class PlaceholderFloat(float, Placeholder):
    """A placeholder float."""


def plain(value: Any) -> Any:
    """A number without its reads, also in tuples and lists; anything else unchanged."""
    if isinstance(value, PlaceholderInt):
        return int.__int__(value)
    if isinstance(value, PlaceholderFloat):
        return float.__float__(value)
    if type(value) in (tuple, list) and any(map(reads_of, value)):
        return type(value)(map(plain, value))
    return value


def reads_of(value: Any) -> Reads:
    """The reads of a number, or of all in a tuple or list; none for anything that is no placeholder value."""
    if isinstance(value, Placeholder):
        return value.reads
    if isinstance(value, tuple | list) and len(value) <= _SEARCHED:
        return frozenset().union(*(reads_of(item) for item in value))
    return frozenset()


_SEARCHED = 64


def carry(value: Any, reads: Reads) -> Any:
    """A value that follows from reads: a number with these reads, a list or tuple of such."""
    if not reads or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        kind = PlaceholderInt if isinstance(value, int) else PlaceholderFloat
        number = kind(plain(value))
        number.reads = reads
        return number
    if type(value) in (list, tuple):
        return type(value)(carry(item, reads) for item in value)
    return value


def _binary(compute: Callable[[Any, Any], Any], *, reflected: bool = False) -> Any:
    def method(self: Any, other: Any, *rest: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        first, second = (other, self) if reflected else (self, other)
        result = compute(plain(first), plain(second), *rest)
        return carry(result, self.reads | reads_of(other))

    return method


def _unary(compute: Callable[..., Any]) -> Any:
    def method(self: Any, *rest: Any) -> Any:
        return carry(compute(plain(self), *rest), self.reads)

    return method


def _question(compute: Callable[[Any, Any], Any]) -> Any:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        # The sizes of two tensors made with one number are equal, whatever it is.
        if not (
            compute in (operator.eq, operator.ne) and self.reads == reads_of(other) and plain(self) == plain(other)
        ):
            _ask(self.reads | reads_of(other))
        return compute(plain(self), plain(other))

    return method


def _ask(reads: Reads) -> None:
    if listeners:
        listeners[-1](reads)


def _truth(self: Any) -> bool:
    _ask(self.reads)
    return bool(plain(self))


def operators_named(names: str) -> dict[str, Any]:
    return {name: getattr(operator, f"__{name}__") for name in names.split()}


_ARITHMETIC = operators_named("add sub mul truediv floordiv mod") | {"divmod": divmod, "pow": pow}
_BITS = operators_named("and or xor lshift rshift")


def _equip(kind: type, binary: dict[str, Any], unary: dict[str, Any]) -> None:
    for name, compute in binary.items():
        setattr(kind, f"__{name}__", _binary(compute))
        setattr(kind, f"__r{name}__", _binary(compute, reflected=True))
    for name, compute in unary.items():
        setattr(kind, f"__{name}__", _unary(compute))
    for name, compute in operators_named("eq ne lt le gt ge").items():
        setattr(kind, f"__{name}__", _question(compute))
    base: Any = kind.__mro__[1]
    kind.__hash__ = base.__hash__  # type: ignore[method-assign, assignment]
    kind.__bool__ = _truth  # type: ignore[attr-defined]


_ROUNDED = operators_named("neg pos abs") | {
    "round": round,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
}
_equip(PlaceholderInt, _ARITHMETIC | _BITS, _ROUNDED | {"invert": operator.invert})
_equip(PlaceholderFloat, _ARITHMETIC, _ROUNDED)
# `n.bit_length()`, as `triton.next_power_of_2` and programs of their own use it.
PlaceholderInt.bit_length = _unary(int.bit_length)  # type: ignore[method-assign]


class Address(PlaceholderInt):
    """The address of a tensor: its alignment, and whether it is another tensor's address, are those of a real one."""

    def __mod__(self, other: Any) -> Any:
        return plain(self) % other if _is_alignment(other) else super().__mod__(other)

    def __and__(self, other: Any) -> Any:
        is_mask = isinstance(other, int) and _is_alignment(other + 1)
        return plain(self) & other if is_mask else super().__and__(other)

    def __eq__(self, other: object) -> bool:
        return plain(self) == plain(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __bool__(self) -> bool:
        return plain(self) != 0

    __hash__ = int.__hash__


_ALIGNMENT = 512
"""Of an allocation, in bytes, as in torch's own allocator."""


def _is_alignment(value: Any) -> bool:
    return isinstance(value, int) and value > 0 and _ALIGNMENT % value == 0


def address(value: int, reads: Reads) -> Address:
    number = Address(value)
    number.reads = reads
    return number
