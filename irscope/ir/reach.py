"""What is reached from some things by following them on, each once; and numbers in groups that are joined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from irscope.ir.mlir.model import MlirModule, Operation, Value

_T = TypeVar("_T")


def reached(starts: Iterable[_T], following: Callable[[_T], Iterable[_T]]) -> Iterator[_T]:
    """Some things and what follows them in turn; what a loop over them does not come to is not followed."""
    open_ = [*starts]
    seen = set(open_)
    while open_:
        one = open_.pop()
        yield one
        for each in following(one):
            if each not in seen:
                seen.add(each)
                open_.append(each)


def all_makers(maker_of: Callable[[Value], Operation | None], values: Iterable[Value]) -> Iterator[Operation]:
    """The operations that make some values, those that make their operands, and so on, as far as `maker_of` knows."""

    def operands(value: Value) -> Iterable[Value]:
        made = maker_of(value)
        return made.operands if made is not None else ()

    return (made for value in reached(values, operands) if (made := maker_of(value)) is not None)


def all_users(module: MlirModule, values: Iterable[Value]) -> Iterator[Operation]:
    """The operations that read some values, those that read their results, and so on."""

    def results(value: Value) -> Iterable[Value]:
        return [result for user in module.users.get(value, ()) for result in user.results]

    return (user for value in reached(values, results) for user in module.users.get(value, ()))


class Unions:
    """Numbers in groups that are joined."""

    def __init__(self, count: int) -> None:
        self._above = [*range(count)]

    def root(self, index: int) -> int:
        """The number that stands for the group of a number."""
        above = self._above
        while above[index] != index:
            above[index] = index = above[above[index]]
        return index

    def join(self, one: int, other: int) -> None:
        """Join two groups; the one of `other` stands for both."""
        self._above[self.root(one)] = self.root(other)
