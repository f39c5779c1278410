"""Global memory: the storages of a launch's arguments in one address space, loads, stores and atomics of elements."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from irscope.errors import NotRun, OutOfBounds, WrongProgram
from irscope.machine.values import Array

_BASE = 0x0A00_0000_0000
"""The first address; far from those of a recording and of this process, which tensors of pointers may hold."""
_FAR = 1 << 40
"""Bytes: an access that is farther off than any index takes it begins at a pointer to something else."""
_ALIGNMENT = 512
"""Of a storage's address in bytes, as torch's allocators give it."""
_FEW = 16
"""Elements that a write compares with those before it."""
_GAP = 4096
"""Bytes between two storages, and before the first one: an access a little out of bounds is in no storage."""
_MOST_COPIED = 4 << 30
_UNITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_AccessKind = Literal["load", "store", "atomic"]


@dataclass(frozen=True, slots=True, eq=False)
class ObservedAccess:
    """The accesses of some programs to global memory by one operation."""

    kind: _AccessKind
    rows: Array
    """The places of the programs in the part of the launch that runs."""
    addresses: Array
    """By program and element; an axis of size 1 stands for equal ones."""
    mask: Array | None
    """Which elements are accessed; None for all."""
    element_bytes: int


OnAccess = Callable[[ObservedAccess], None]


class GlobalMemory:
    """The storages of a launch, one behind another in one array of bytes."""

    def __init__(self, storages: Sequence[NDArray[np.uint8]], on_access: OnAccess | None = None) -> None:
        """`storages`: the bytes of each, which are copied; of one that is read-only nothing looks at the bytes."""
        self._elsewhere: list[tuple[int, int, int]] = []
        self._starts: list[int] = []
        self._sizes = [storage.size for storage in storages]
        end = _GAP
        for storage in storages:
            self._starts.append(end)
            end += -(-(storage.size + _GAP) // _ALIGNMENT) * _ALIGNMENT
        # An array of 64-bit numbers is aligned for every type of the machine; all bits set are NaN in each float.
        self._bytes = np.empty(-(-end // 16) * 2, np.int64).view(np.uint8)
        begin = 0
        for start, storage in zip(self._starts, storages, strict=True):
            self._bytes[begin:start] = 0xFF
            begin = start + storage.size
            if storage.flags.writeable:
                self._bytes[start:begin] = storage
        self._bytes[begin:] = 0xFF
        self.on_access = on_access
        self.arguments: dict[int, str] = {}
        """Number of a storage → the argument that points into it, for messages."""
        self.changes = 0
        """How many writes changed something: of a few elements, whose values are compared, or of many."""

    def address(self, storage: int) -> int:
        """The first address of a storage, by its number."""
        return _BASE + self._starts[storage]

    @property
    def extent(self) -> tuple[int, int]:
        """The first address of the first storage, and the one behind the last; equal without any."""
        if not self._starts:
            return _BASE, _BASE
        return _BASE + self._starts[0], _BASE + self._starts[-1] + self._sizes[-1]

    def name(self, storage: int, address: int) -> None:
        """Give a storage a second address, which tensors of pointers hold."""
        start, size = self._starts[storage], self._sizes[storage]
        self._elsewhere.append((address, address + size, _BASE + start - address))

    def contents(self, storage: int) -> NDArray[np.uint8]:
        """The bytes of a storage, which writes change."""
        start = self._starts[storage]
        return self._bytes[start : start + self._sizes[storage]]

    def peek(self, address: int, size: int) -> bytes:
        return self._bytes[address - _BASE : address - _BASE + size].tobytes()

    def allocate(self, size: int) -> int:
        """Another storage, of so many bytes that nobody wrote; returns its first address."""
        if self._bytes.size > _MOST_COPIED:
            raise NotRun("not run: it allocates memory next to tensors of more than 4 GiB")
        start = -(-self._bytes.size // _ALIGNMENT) * _ALIGNMENT + _GAP
        grown = np.full(-(-(start + size + _GAP) // 16) * 2, -1, np.int64).view(np.uint8)
        grown[: self._bytes.size] = self._bytes
        self._bytes = grown
        self._starts.append(start)
        self._sizes.append(size)
        return _BASE + start

    # ── elements ──────────────────────────────────────────────────────────────────────────────────────────────

    def load(
        self, addresses: Array, mask: Array | None, other: Array | None, dtype: np.dtype[Any], rows: Array
    ) -> Array:
        """The elements at addresses; where the mask does not hold, `other`, or zero."""
        places, mask = self._places("load", addresses, mask, dtype, rows)
        found = self._read(places, dtype, mask)
        if mask is None:
            return found
        return np.where(mask, found, np.zeros(1, found.dtype) if other is None else other)

    def store(self, addresses: Array, values: Array, mask: Array | None, rows: Array, dtype: np.dtype[Any]) -> None:
        """Write elements; of several at one address the last program's, and of these the last element stays."""
        places, mask = self._places("store", addresses, mask, dtype, rows)
        shape = np.broadcast_shapes(places.shape, values.shape, (1,) if mask is None else mask.shape)
        places, values = np.broadcast_to(places, shape), np.broadcast_to(values, shape)
        if mask is not None and not mask.all():
            chosen = np.broadcast_to(mask, shape)
            places, values = places[chosen], values[chosen]
        self._write(places, values, dtype)

    def update(
        self,
        addresses: Array,
        values: Sequence[Array],
        mask: Array | None,
        combine: Callable[..., Array],
        rows: Array,
        dtype: np.dtype[Any],
        *,
        is_used: bool = True,
    ) -> Array:
        """Replace elements one after another by a function of what stands there and of `values`; returns the old ones.

        Programs go in their order, and so do the elements of each. What the hardware does in which order is open.
        Where nobody uses the old ones, a ufunc takes all elements of one address at once.
        """
        places, mask = self._places("atomic", addresses, mask, dtype, rows)
        shape = np.broadcast_shapes(places.shape, *[one.shape for one in values], (1,) if mask is None else mask.shape)
        shape = (len(rows), *shape[1:])
        chosen = np.flatnonzero(np.broadcast_to(True if mask is None else mask, shape))
        flat, *operands = (np.broadcast_to(one, shape).reshape(-1)[chosen] for one in (places, *values))
        found = np.zeros(shape, values[0].dtype)
        if isinstance(combine, np.ufunc) and not is_used and len(flat):
            order = np.argsort(flat, kind="stable")
            flat = flat[order]
            begins = np.flatnonzero(np.concatenate(([True], flat[1:] != flat[:-1])))
            sums = combine.reduceat(operands[0][order], begins)
            here = flat[begins]
            self._write(here, combine(self._read(here, dtype), sums), dtype)
            return found
        for turn in _turns(flat):
            here = flat[turn]
            old = self._read(here, dtype).astype(values[0].dtype, copy=False)
            self._write(here, combine(old, *[one[turn] for one in operands]), dtype)
            found.reshape(-1)[chosen[turn]] = old
        return found

    def _read(self, places: Array, dtype: np.dtype[Any], mask: Array | None = None) -> Array:
        """The elements at indices; what is read where the mask does not hold is open."""
        return self._units(dtype).take(places, mode="clip").view(dtype)

    def _write(self, places: Array, values: Array, dtype: np.dtype[Any]) -> None:
        """Set elements; of several at one index the last one stays."""
        units, written = self._units(dtype), np.ascontiguousarray(values, dtype).view(_UNITS[dtype.itemsize])
        if places.size > _FEW or (units[places] != written).any():
            self.changes += 1
        units[places] = written

    def _units(self, dtype: np.dtype[Any]) -> Array:
        return self._bytes.view(_UNITS[dtype.itemsize])

    def _places(
        self, kind: _AccessKind, addresses: Array, mask: Array | None, dtype: np.dtype[Any], rows: Array
    ) -> tuple[Array, Array | None]:
        """The indices of elements, and the mask; raises OutOfBounds, WrongProgram if unaligned, NotRun if unknown."""
        if self.on_access is not None:
            self.on_access(ObservedAccess(kind, rows, addresses, mask, dtype.itemsize))
        if mask is not None:
            if mask.all():
                mask = None
            elif not mask.any():
                return np.zeros(np.broadcast_shapes(addresses.shape, mask.shape), np.int64), mask
            else:
                shape = np.broadcast_shapes(addresses.shape, mask.shape)
                first = np.unravel_index(int(mask.argmax()), mask.shape)
                some = np.broadcast_to(addresses, shape)[(0,) * (len(shape) - mask.ndim) + tuple(first)]
                addresses = np.where(mask, addresses, some)
        for first, end, distance in self._elsewhere:
            addresses = np.where((addresses >= first) & (addresses < end), addresses + distance, addresses)
        places = addresses - _BASE
        self._check(kind, places, dtype.itemsize, rows)
        shift = dtype.itemsize.bit_length() - 1
        if shift and int(np.bitwise_or.reduce(places, axis=None)) & (dtype.itemsize - 1):
            raise WrongProgram(f"a {kind} of {dtype.itemsize} bytes at an address that is not a multiple of them")
        return places >> shift if shift else places, mask

    def _check(self, kind: _AccessKind, places: Array, size: int, rows: Array) -> None:
        low, high = int(places.min()), int(places.max())
        first = int(np.searchsorted(self._starts, low, "right")) - 1
        if first >= 0 and high + size <= self._starts[first] + self._sizes[first]:
            return
        starts, sizes = np.array(self._starts), np.array(self._sizes)
        owners = np.searchsorted(starts, places, "right") - 1
        outside = (owners < 0) | (places + size > (starts + sizes)[owners])
        if outside.any():
            at = tuple(int(index[0]) for index in np.nonzero(outside))
            owner = int(owners[at])
            address = int(places[at]) + _BASE
            if address > _FAR and abs(int(places[at])) > _FAR:
                raise NotRun(
                    f"not run: a {kind} reaches address {address:#x}, which is in no tensor of the launch: what a "
                    "tensor of pointers points to is not known"
                )
            beyond = int(places[at]) - self._starts[max(owner, 0)]
            # What lies before the first storage.
            owner = max(owner, 0)
            raise OutOfBounds(
                f"{'an' if kind == 'atomic' else 'a'} {kind} of {size} bytes is out of bounds at {int(outside.sum())} "
                f"of the elements, the first is element {list(at[1:])}, {beyond} bytes from the beginning of "
                f"{self._named(owner)}, which has {self._sizes[owner]} bytes",
                int(rows[at[0]]),
            )

    def _named(self, storage: int) -> str:
        name = self.arguments.get(storage)
        return f"the memory of {name}" if name else f"storage {storage}"


def _turns(places: Array) -> list[Array]:
    """Indices into `places`, in parts of which each has a place at most once, earlier ones first."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    is_first = np.concatenate(([True], ordered[1:] != ordered[:-1])) if len(places) else np.zeros(0, np.bool_)
    begins = np.flatnonzero(is_first)
    if len(begins) == len(places):
        return [np.arange(len(places))] if len(places) else []
    rank = np.arange(len(places)) - begins[np.cumsum(is_first) - 1]
    by_rank = np.argsort(rank, kind="stable")
    counts = np.bincount(rank)
    return [np.sort(part) for part in np.split(order[by_rank], np.cumsum(counts)[:-1])]
