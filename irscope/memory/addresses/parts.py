"""A launch in parts of programs that access memory alike: where each access lies, and which of its elements are on.

Where programs differ in more than the place at which an access begins, they are divided (those in which a scalar has
its least value, its greatest one, and the others) and each part is run by itself, until nothing is left open or a bound
is reached.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from irscope.ir.mlir.model import MlirModule
from irscope.machine.loops import evaluate
from irscope.machine.noted import AccessExecution, Evaluation
from irscope.machine.numbers import Integers, Number, Source
from irscope.machine.programs import Programs, Weight
from irscope.memory.addresses.arguments import LaunchArguments

MOST_PROGRAMS = 1 << 22
_AT_ONCE = 1 << 20
_MOST_PREDICATES = 4
_MOST_RUNS, _MOST_WORK = 48, 200_000


def program_at(number: int, grid: tuple[int, int, int]) -> tuple[int, int, int]:
    """The place of a program in its grid, by its number."""
    x, y, _ = grid
    return number % x, number // x % y, number // (x * y)


def spread_evenly(count: int, most: int) -> list[int]:
    """At most so many numbers below a count, evenly, the first and the last among them."""
    size = min(count, most)
    return sorted({(count - 1) * number // max(size - 1, 1) for number in range(size)})


def parts_of(
    module: MlirModule, arguments: LaunchArguments, grid: tuple[int, int, int], chosen: Integers | None = None
) -> Iterator[Evaluation]:
    """What the programs of a launch do, in parts: all of at most `MOST_PROGRAMS`, or those chosen."""
    count = prod(grid)
    waiting = [np.arange(first, min(first + _AT_ONCE, count)) for first in range(0, count, _AT_ONCE)]
    if chosen is not None:
        waiting = [chosen]
    runs = work = 0
    while waiting:
        found = evaluate(module, arguments.held, Programs(waiting.pop(), grid), arguments.contents)
        runs, work = runs + 1, work + found.work
        if runs + len(waiting) < _MOST_RUNS and work < _MOST_WORK and (parts := _divided(found)) is not None:
            waiting += parts
            continue
        yield found


def _divided(found: Evaluation) -> list[Integers] | None:
    """The programs in parts, by the scalar that leaves most accesses open; None if none does."""
    wanted: Counter[Source] = Counter()
    programs = found.programs
    for one in found.executions:
        if one.weight.span[1] and (place_of(programs, one) is None or active_parts(programs, one) is None):
            wanted.update(one.sources)
    # In a fixed order, whatever the order of a set is.
    for source, _ in sorted(wanted.items(), key=lambda item: (-item[1], item[0].text)):
        if (values := programs.of_source(source)) is not None:
            least, greatest = values == values.min(), values == values.max()
            parts = [programs.numbers[chosen] for chosen in (least, greatest, ~(least | greatest))]
            return [part for part in parts if part.size]
    return None


@dataclass(frozen=True, slots=True)
class AccessPlace:
    """Where an access lies: how far each program and each iteration moves it."""

    argument: str
    shifts: Integers
    """One for all programs or one for each."""
    iterations: tuple[tuple[int, int], ...]
    """(bytes, how many) of each loop around it."""


def place_of(programs: Programs, execution: AccessExecution) -> AccessPlace | None:
    """Where an access lies; None if that is not known."""
    found = programs.split(execution.addresses)
    if found is None or not execution.addresses.argument:
        return None
    shifts, rest = found
    iterations = tuple((rest.pop(token), count) for token, count in execution.iterations if token in rest)
    # What is left is the beginning of the argument.
    return AccessPlace(execution.addresses.argument, shifts, iterations) if list(rest.values()) == [1] else None


def active_parts(programs: Programs, execution: AccessExecution) -> list[tuple[Number | None, Weight]] | None:
    """Masks that are known, and how often an access is done with each; None if its mask is not known."""
    mask, weight = execution.mask, execution.weight
    if mask is None or mask.tokens is None:
        return [(mask, weight)]
    # Such as a predicate of the whole access, and beside it what is out of bounds in every program.
    shape = execution.addresses.shape
    known, tokens = np.broadcast_to(mask.known, shape), np.broadcast_to(mask.tokens, shape)
    predicates = np.unique(tokens[tokens != 0]).tolist()
    values = {token: own for token in predicates if (own := programs.of_token(token)) is not None}
    if len(values) < len(predicates) or len(predicates) > _MOST_PREDICATES:
        return None
    parts = [((known != 0) & (tokens == 0), weight)]
    for token, own in values.items():
        for value in np.unique(known[tokens == token]):
            parts.append(((tokens == token) & (known == value), weight.where(own + value != 0)))
    return [(Number(-holds.astype(np.int64), 1), often) for holds, often in parts]
