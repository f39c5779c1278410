"""Which write each load of a program reads from, to find loads that a pass moved over a store to the same address."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from irscope.ir.mlir.model import Operation
from irscope.machine.memory import GlobalMemory
from irscope.machine.values import Array
from irscope.verify.trace import Listener, Observed, places_of

_VERSIONS = 1 << 32
Key = tuple[Any, ...]
"""Where an operation comes from: its chain of Python locations."""


@dataclass(frozen=True, slots=True)
class _Moved:
    """A load that reads another write than before."""

    operation: Operation
    address: int
    before: int
    """How many writes of this place came before the load, in the IR that is compared with."""
    after: int


class ReadsFrom(Listener):
    """For each load of one program: the places it reads, and how often each had been written before."""

    def __init__(self, granule: int, place_of: Any) -> None:
        """`place_of`: of an operation → the key under which its counterpart in other IR is found."""
        self._granule, self._place_of = granule, place_of
        self.reads: dict[Key, list[tuple[Array, Array]]] = {}
        self.operations: dict[Key, Operation] = {}

    def begin(self, memory: GlobalMemory) -> None:
        begin, end = memory.extent
        self.first_address = begin
        self._versions = np.zeros(places_of(end - begin, self._granule), np.int32)

    def observe(self, observed: Observed) -> None:
        places = (observed.addresses - self.first_address) // self._granule
        places = places[(places >= 0) & (places < self._versions.size)]
        if observed.kind == "load":
            key = self._place_of(observed.operation)
            self.reads.setdefault(key, []).append((places, self._versions[places]))
            self.operations.setdefault(key, observed.operation)
        else:
            self._versions[places] += 1

    def versions(self, key: Key) -> Array:
        """Each place × `_VERSIONS` + version that the loads of a key read, once, in order."""
        rows = [places * _VERSIONS + versions for places, versions in self.reads.get(key, [])]
        if not rows:
            return np.zeros(0, np.int64)
        # np.unique of NumPy 2.3 hashes, which takes several times as long.
        ordered = np.sort(np.concatenate(rows))
        return ordered[np.diff(ordered, prepend=-1) != 0]


def moved_load(before: ReadsFrom, after: ReadsFrom, granule: int) -> _Moved | None:
    """The first load of `after` that reads a write which its counterpart in `before` does not; None without one."""
    for key, operation in after.operations.items():
        if key not in before.reads or _is_equal(after.reads[key], before.reads[key]):
            continue
        own, other = after.versions(key), before.versions(key)
        places = other // _VERSIONS
        others = own[~np.isin(own, other, assume_unique=True)]
        others = others[np.isin(others // _VERSIONS, places)]
        if others.size:
            place, version = divmod(int(others[0]), _VERSIONS)
            stated = int(other[np.searchsorted(places, place, "right") - 1]) % _VERSIONS
            return _Moved(operation, before.first_address + place * granule, stated, version)
    return None


def _is_equal(left: list[tuple[Array, Array]], right: list[tuple[Array, Array]]) -> bool:
    return len(left) == len(right) and all(
        np.array_equal(one, other) for pair in zip(left, right, strict=True) for one, other in zip(*pair, strict=True)
    )
