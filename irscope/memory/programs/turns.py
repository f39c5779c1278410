"""What a loop begins with, how often it may turn, and what its carried values become."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from irscope.ir.mlir.model import Operation
from irscope.memory.addresses.evaluate import Runner
from irscope.memory.addresses.held import Held, Opaque, Place, kind_of_held
from irscope.memory.addresses.numbers import Integers, Number, Source, add
from irscope.memory.programs.weights import ENDLESS

__all__ = ["Loop", "bounds_of_turns", "difference", "merged_values"]


@dataclass(frozen=True, slots=True)
class Loop:
    """An `scf.for`, and what it begins with."""

    operation: Operation
    place: Place
    start: Number
    step: Number
    first: list[Held]
    source: Source
    """Of the number of the turn."""

    def lost(self, runner: Runner) -> list[Held]:
        """Nothing known for each carried value."""
        return [Opaque(kind_of_held(value), self.source, runner.fresh()) for value in self.first]


def bounds_of_turns(start: Number, stop: Number, step: Number) -> tuple[Integers, Integers]:
    """The fewest and the most turns of a loop in any program."""
    way = add(replace(stop, bits=64), replace(start, bits=64), -1)
    by = step.value
    if by is None or by <= 0:
        return np.zeros(1, np.int64), np.array([ENDLESS])
    low, high = (max(0, min(-(-bound // by), ENDLESS)) for bound in way.bounds)
    return np.array([low]), np.array([high])


def difference(old: Held, new: Held) -> Number | None:
    """By what a carried value grew in a turn; None if that is not known."""
    if not isinstance(old, Number) or not isinstance(new, Number) or old.shape != new.shape or old.bits == 1:
        return None
    return replace(add(new, old, -1), argument="") if old.bits == new.bits else None


def merged_values(runs: NDArray[np.bool_], new: Integers | None, old: Integers | None) -> Integers | None:
    """The values of a scalar after a turn that only some programs make; None if they are not known."""
    return None if new is None or old is None else np.where(runs, new, old)
