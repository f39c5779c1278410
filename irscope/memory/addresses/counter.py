"""Counts what an execution of an access asks of memory: units, lines and bytes, as ranges where addresses are unknown.

Lanes whose addresses have one token are at known distances. What is not known of a token is the place that it begins
at, within a unit, and which of its lanes lie in a unit together with lanes of another token: the least is counted as if
all tokens were at one place, the most as if no two shared a unit.
Source: "Nsight Compute" documentation, "sectors" and "L2 Theoretical Sectors Global": the distinct 32-byte sectors of
each warp instruction, summed; how copies of 16 bytes are counted was seen in an H200's counters (both are held against
these by `benchmarks/counters.py`).
"""

# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from irscope.ir.mlir.model import Operation
from irscope.layout.maps import IN_DIMS, ThreadMap, eliminate
from irscope.machine.noted import AccessExecution
from irscope.machine.numbers import Integers, Number, Tokens
from irscope.memory.access import Span, Traffic
from irscope.memory.machine import ACCESSES
from irscope.model.layout import LinearLayout


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes of every warp instruction of one execution."""

    elements: NDArray[np.int64]
    """(instruction, lane) → row-major index of the first element."""
    width: int
    """Elements of a lane, from the first one on."""
    takes_part: NDArray[np.bool_]
    """(instruction, lane) → whether it does: a store leaves out lanes and warps with copies."""
    warps: NDArray[np.int64]
    """Instruction → its warp, counted over all CTAs."""


def _scalar_map(warps: int, lanes: int) -> ThreadMap:
    """The layout of a scalar: every thread holds it."""
    bits = {"lane": lanes, "warp": warps}
    return ThreadMap.of(LinearLayout.of({name: [()] * (size.bit_length() - 1) for name, size in bits.items()}, ()))


def _lanes_of(threads: ThreadMap, width: int, *, once: bool) -> Lanes:
    """The warp instructions of an access; `once`: by only one of the threads that hold an element.

    Source: Triton's LoadStoreOpToLLVM.cpp (vectors of consecutive registers) and getFreeVariableMasks in
    LinearLayout.cpp (which threads and registers hold copies).
    """
    sizes = [1 << len(threads.layout.vectors(name)) for name in IN_DIMS]
    elements = np.zeros(1, np.int64)
    for vector in threads.layout.flat_bases():
        elements = np.concatenate([elements, elements ^ vector])
    registers, lanes, warps, blocks = sizes
    elements = elements.reshape(blocks * warps, lanes, registers)
    free = _free_bits(threads)
    starts = [register for register in range(0, registers, width) if not register & free[0]]
    first = elements[:, :, starts].transpose(0, 2, 1)
    idle_lanes = (np.arange(lanes) & free[1]) != 0
    places = np.arange(blocks * warps)
    idle_warps = ((places % warps) & free[2]) != 0
    takes_part = np.broadcast_to(~(idle_warps[:, None, None] | idle_lanes[None, None, :]) | (not once), first.shape)
    rows = len(places) * len(starts)
    return Lanes(
        first.reshape(rows, lanes),
        width,
        takes_part.reshape(rows, lanes),
        np.repeat(places, max(len(starts), 1))[:rows],
    )


def _distinct_instructions(lanes: Lanes, addresses: Number, mask: Number | None) -> Lanes:
    """The lanes without the instructions of a warp that load what an earlier one of the same warp loads."""
    full = addresses.full()
    keys = [lanes.warps[:, None], full.known.reshape(-1)[lanes.elements]]
    if full.tokens is not None:
        keys.append(full.tokens.reshape(-1)[lanes.elements].view(np.int64))
    if mask is not None:
        keys.append(_truth(mask)[lanes.elements].view(np.int64))
    first = np.sort(np.unique(np.concatenate(keys, axis=1), axis=0, return_index=True)[1])
    return Lanes(lanes.elements[first], lanes.width, lanes.takes_part[first], lanes.warps[first])


def _free_bits(threads: ThreadMap) -> list[int]:
    """Of each input the bits that lead to no element that those before do not lead to."""
    columns: list[int] = []
    masks: list[int] = []
    for name in IN_DIMS:
        mask = 0
        for bit, vector in enumerate(threads.layout.flat_vectors(name)):
            if len(eliminate([*columns, vector])[0]) == len(eliminate(columns)[0]):
                mask |= 1 << bit
            else:
                columns.append(vector)
        masks.append(mask)
    return masks


def _box_lanes(size: int) -> Lanes:
    """The elements of a block that a descriptor's copy moves as a whole."""
    return Lanes(np.arange(size).reshape(1, size), 1, np.ones((1, size), np.bool_), np.zeros(1, np.int64))


def widest_vector(
    threads: ThreadMap, addresses: Number, mask: Number | None, element_bytes: int, most: int, *, aligned: bool
) -> int:
    """The elements of the widest vector of consecutive registers whose addresses follow one another.

    It lies within the mask or outside, and begins at a multiple of its size if `aligned`.
    """
    full = addresses.full()
    known = full.known.reshape(-1)
    tokens = full.tokens.reshape(-1) if full.tokens is not None and full.tokens.size > 1 else None
    held = None if mask is None else _truth(mask)
    elements = np.array(threads.layout.all_elements()).reshape(-1, threads.registers)
    width = 1
    while 2 * width <= min(most, threads.registers):
        first, second = elements[:, 0 :: 2 * width], elements[:, width :: 2 * width]
        size = 2 * width * element_bytes
        fits = bool((known[second] - known[first] == size // 2).all())
        fits = fits and (tokens is None or bool((tokens[first] == tokens[second]).all()))
        fits = fits and (held is None or bool((held[first] == held[second]).all()))
        fits = fits and not (aligned and (full.step % size or (known[first] % size).any()))
        if not fits:
            break
        width *= 2
    return width


def _truth(mask: Number) -> NDArray[np.uint64]:
    """A number for each element: equal where the mask is surely equal."""
    full = mask.full()
    known = (full.known != 0).astype(np.uint64)
    return (known if full.tokens is None else known + full.tokens).reshape(-1)


def strides_of(addresses: Number) -> tuple[int | None, ...]:
    """The distance between neighbours along each dimension; None where it is not the same everywhere."""
    return tuple(_stride(addresses, axis) for axis in range(len(addresses.shape)))


def _stride(addresses: Number, axis: int) -> int | None:
    tokens = addresses.tokens
    if tokens is not None and tokens.shape[axis] > 1 and np.diff(tokens, axis=axis).any():
        return None
    if addresses.known.shape[axis] == 1:
        return 0
    apart = np.diff(addresses.known, axis=axis)
    return int(apart.flat[0]) if (apart == apart.flat[0]).all() else None


_Truths = NDArray[np.bool_]
_Bytes = tuple[Integers, Integers]


def counted(
    lanes: Lanes,
    addresses: Number,
    mask: Number | None,
    element_bytes: int,
    unit_bytes: int,
    line_bytes: int,
    *,
    by_pairs: bool = False,
) -> Traffic:
    """The traffic of one execution.

    `by_pairs`: of an asynchronous copy of 16 bytes per lane, which passes by L1: lanes 2n and 2n + 1 that read the two
    halves of a sector read it once, and every other lane reads its own, also if another one reads the same bytes.
    """
    full = addresses.full()
    # Only distances and the place within the largest unit matter.
    known = full.known.reshape(-1)
    known = known - known.min() // 4096 * 4096
    starts = known[lanes.elements]
    groups = _groups(full, lanes)
    surely, perhaps = _active(mask, addresses, lanes)
    size = lanes.width * element_bytes
    rows = np.arange(len(starts))
    parts = _Parts(starts, groups, size, full.step if full.tokens is not None else 0)
    spans: list[Span] = []
    for unit in (unit_bytes, line_bytes):
        spans.append(_both(lambda active: parts.units(rows, active, unit), surely, perhaps))  # noqa: B023
    if by_pairs:
        spans[0] = _both(lambda active: parts.units_of_pairs(active, unit_bytes), surely, perhaps)
    distinct, of_warps, of_all = (
        _each(lambda active: parts.distinct_bytes(by, active), surely, perhaps)  # noqa: B023
        for by in (rows, lanes.warps, np.zeros_like(rows))
    )
    takes_part = int(lanes.takes_part.sum())
    low, high = int(surely.sum()), int(perhaps.sum())
    return Traffic(
        executions=(1, 1),
        instructions=(len(starts), len(starts)),
        active_instructions=(int(surely.any(axis=1).sum()), int(perhaps.any(axis=1).sum())),
        bytes=(low * size, high * size),
        masked_lanes=(takes_part - high, takes_part - low),
        units=spans[0],
        ideal_units=_filled(distinct, unit_bytes),
        least_units=_filled(of_warps, unit_bytes),
        lines=spans[1],
        distinct_bytes=_filled(of_all, 1),
    )


def _groups(addresses: Number, lanes: Lanes) -> Integers | None:
    """(instruction, lane) → the number of its token; None if all have one."""
    if addresses.tokens is None or addresses.tokens.size == 1:
        return None
    tokens = addresses.tokens.reshape(-1)
    if (tokens == tokens[0]).all():
        return None
    return np.unique(tokens, return_inverse=True)[1].reshape(-1)[lanes.elements]


def bounds_of_mask(mask: Number | None, addresses: Number) -> tuple[_Truths, _Truths]:
    """The elements that are accessed for certain, and those that may be: one array where they are the same."""
    if mask is None:
        every = np.ones(addresses.shape, np.bool_)
        return every, every
    holds = np.broadcast_to(mask.known != 0, addresses.shape)
    if mask.tokens is None:
        return holds, holds
    is_known = np.broadcast_to(mask.tokens == 0, addresses.shape)
    return holds & is_known, holds | ~is_known


def _active(mask: Number | None, addresses: Number, lanes: Lanes) -> tuple[_Truths, _Truths]:
    surely, perhaps = bounds_of_mask(mask, addresses)
    active = surely.reshape(-1)[lanes.elements] & lanes.takes_part
    return active, active if surely is perhaps else perhaps.reshape(-1)[lanes.elements] & lanes.takes_part


def _each(figure: Callable[[_Truths], _Bytes], surely: _Truths, perhaps: _Truths) -> list[_Bytes]:
    found = figure(surely)
    return [found, found if surely is perhaps else figure(perhaps)]


def _both(figure: Callable[[_Truths], Span], surely: _Truths, perhaps: _Truths) -> Span:
    low, high = figure(surely)
    return (low, high) if surely is perhaps else (low, figure(perhaps)[1])


def _filled(distinct: list[_Bytes], unit: int) -> Span:
    (low, _), (_, high) = distinct
    return int((-(-low // unit)).sum()), int((-(-high // unit)).sum())


class _Parts:
    """The parts of memory that the lanes touch, each `size` bytes from its start on."""

    def __init__(self, starts: Integers, groups: Integers | None, size: int, step: int) -> None:
        self.starts = starts
        self.groups = groups
        self.tokens = int(groups.max(initial=0)) + 1 if groups is not None else 1
        self.size = size
        self.step = step

    def units(self, rows: Integers, active: _Truths, unit: int) -> Span:
        """Distinct units of each row, summed: the fewest and the most, wherever the tokens begin."""
        step = gcd(self.step, unit)
        totals = [self._units_at(rows, active, unit, shift) for shift in range(0, unit, step)] if step else []
        totals = totals or [self._units_at(rows, active, unit, 0)]
        if self.groups is None:
            sums = [int(most.sum()) for _, most in totals]
            return min(sums), max(sums)
        # Each token may begin at another place.
        keys = totals[0][0]
        counts = np.stack([most for _, most in totals])
        least, most = counts.min(axis=0), counts.max(axis=0)
        return int(_greatest(keys, least).sum()), int(most.sum())

    def units_of_pairs(self, active: _Truths, unit: int) -> Span:
        """Units of halves that lanes 2n and 2n + 1 read together, and of those that one reads: fewest and most."""
        starts, pairs = self.starts, active[:, 0::2] & active[:, 1::2]
        is_other = starts[:, 0::2] != starts[:, 1::2]
        lanes, shared = int(active.sum()), list[int]()
        for shift in range(0, unit, gcd(self.step, unit) or unit):
            places = (starts + shift) // unit
            shared.append(int((pairs & is_other & (places[:, 0::2] == places[:, 1::2])).sum()))
        if self.groups is None:
            return lanes - max(shared), lanes - min(shared)
        # Lanes of two tokens may read one unit or not.
        is_open = self.groups[:, 0::2] != self.groups[:, 1::2]
        return lanes - int((pairs & (is_other | is_open)).sum()), lanes

    def _units_at(self, rows: Integers, active: _Truths, unit: int, shift: int) -> tuple[Integers, Integers]:
        """(row, distinct units) of each row and token."""
        starts = self.starts + shift
        first = starts // unit
        pieces = int(((starts + self.size - 1) // unit - first)[active].max(initial=0)) + 1
        columns = [np.minimum(first + piece, (starts + self.size - 1) // unit) for piece in range(pieces)]
        if self.groups is None:
            return rows, _distinct_of_rows(np.stack(columns, -1), active)
        owner = self._owners(rows)[active]
        values = np.concatenate([column[active] for column in columns])
        order = values - values.min(initial=0)
        width = int(order.max(initial=0)) + 1
        if width > (1 << 62) // (int(owner.max(initial=0)) + 1):
            order = np.unique(values, return_inverse=True)[1].reshape(-1)
            width = int(order.max(initial=0)) + 1
        found = np.sort(np.tile(owner, pieces) * width + order)
        owners = found[_heads(found)] // width
        places = _heads(owners)
        return owners[places] // self.tokens, np.diff(np.append(np.flatnonzero(places), owners.size))

    def _owners(self, rows: Integers) -> Integers:
        """(row, token) of each lane as one number."""
        own = np.broadcast_to(rows[:, None], self.starts.shape)
        return own if self.groups is None else own * self.tokens + self.groups

    def distinct_bytes(self, rows: Integers, active: _Truths) -> tuple[Integers, Integers]:
        """The fewest and the most distinct bytes of each row that has any."""
        owners, starts = self._owners(rows)[active], self.starts[active]
        if not starts.size:
            return np.zeros(1, np.int64), np.zeros(1, np.int64)
        order = np.lexsort((starts, owners))
        owners, starts = owners[order], starts[order]
        begins = _heads(owners)
        # Of two parts that overlap, the later one adds what is behind the earlier one's end.
        added = np.where(begins, self.size, np.minimum(np.diff(starts, prepend=starts[:1]), self.size))
        sums = np.add.reduceat(added, np.flatnonzero(begins))
        heads = np.flatnonzero(_heads(owners[begins] // self.tokens))
        return np.maximum.reduceat(sums, heads), np.add.reduceat(sums, heads)


def _heads(values: Integers) -> _Truths:
    return np.concatenate([np.ones(min(values.size, 1), np.bool_), values[1:] != values[:-1]])


def _distinct_of_rows(values: Integers, active: _Truths) -> Integers:
    rows, lanes, pieces = values.shape
    # An inactive lane repeats a value of an active one, or stands alone.
    nothing = np.int64(np.iinfo(np.int64).max)
    flat = np.where(active[:, :, None], values, nothing).reshape(rows, lanes * pieces)
    flat = np.sort(flat, axis=1)
    distinct = (flat[:, 1:] != flat[:, :-1]).sum(axis=1) + 1
    return distinct - (flat[:, -1] == nothing)


def _greatest(rows: Integers, values: Integers) -> Integers:
    if not rows.size:
        return values
    return np.maximum.reduceat(values, np.flatnonzero(_heads(rows)))


_WIDEST_BITS = 128
_PAST_L1_BYTES = 16
"""Of a lane's asynchronous copy that does not go through NVIDIA's L1: cp.async.cg."""
_MOST_BITS = 22
"""Of the inputs of a layout whose places are written out."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """How a target's memory is counted."""

    unit_bytes: int
    line_bytes: int
    warp_size: int


@dataclass(frozen=True, slots=True)
class _InstructionShape:
    """The instructions of an operation, as its first execution shows them."""

    bits: int = 0
    possible_bits: int = 0
    strides: tuple[int | None, ...] = ()


@dataclass(slots=True)
class Counter:
    """Counts executions; those that touch memory alike only once."""

    hardware: Hardware
    threads_of: Callable[[Operation], ThreadMap | None]
    width_of: Callable[[Operation], int]
    made_of: Callable[[Operation], int | None] = lambda operation: None
    """How many instructions the machine code has for an access; None where that is not known."""
    lanes: dict[tuple[int, int], Lanes] = field(default_factory=dict[tuple[int, int], Lanes])
    shapes: dict[tuple[int, int], _InstructionShape] = field(default_factory=dict[tuple[int, int], _InstructionShape])
    known: dict[object, Traffic] = field(default_factory=dict[object, Traffic])
    each: dict[int, Traffic] = field(default_factory=dict[int, Traffic])
    """Line → the traffic of its first execution."""

    def traffic(self, execution: AccessExecution) -> Traffic:
        addresses, mask = execution.addresses, execution.mask
        begin = int(addresses.known.flat[0])
        key = (
            execution.operation.first_line,
            execution.warps,
            (addresses.known - begin).tobytes(),
            begin % self.hardware.line_bytes,
            addresses.step,
            _pattern(addresses.tokens),
            None if mask is None else (mask.known.shape, mask.known.tobytes(), _open(mask.tokens)),
        )
        if key not in self.known:
            lanes = self._lanes(execution)
            if lanes is None:
                return Traffic.unknown()
            size = max(execution.element_bits // 8, 1)
            units = (self.hardware.unit_bytes, self.hardware.line_bytes)
            pairs = self._by_pairs(execution, lanes)
            least = most = counted(lanes, addresses, mask, size, *units, by_pairs=pairs)
            # Of loads of the same addresses the assembler may make one.
            is_load = ACCESSES[execution.operation.opcode] == "load" and not execution.is_box
            distinct = _distinct_instructions(lanes, addresses, mask) if is_load else lanes
            if len(distinct.warps) < len(lanes.warps):
                least = counted(distinct, addresses, mask, size, *units, by_pairs=pairs)
                each = len(lanes.warps) // execution.warps, len(distinct.warps) // execution.warps
                made = self.made_of(execution.operation)
                if made is not None and made <= each[1]:
                    most = least
                elif made is not None and made >= each[0]:
                    least = most
            self.known[key] = Traffic.between(least, most)
            self.each.setdefault(execution.operation.first_line, self.known[key])
        return self.known[key]

    def shape(self, operation: Operation) -> _InstructionShape:
        return next(
            (shape for (line, _), shape in self.shapes.items() if line == operation.first_line), _InstructionShape()
        )

    def _lanes(self, execution: AccessExecution) -> Lanes | None:
        operation, addresses = execution.operation, execution.addresses
        key = (operation.first_line, execution.warps)
        if key not in self.lanes:
            shape = _InstructionShape(strides=strides_of(addresses))
            if execution.is_box:
                found = _box_lanes(prod(addresses.shape))
            else:
                scalar = _scalar_map(execution.warps, self.hardware.warp_size)
                threads = self.threads_of(operation) if addresses.shape else scalar
                if threads is None or threads.shape != addresses.shape or threads.layout.in_bits > _MOST_BITS:
                    return None
                width, possible = self._widths(execution, threads)
                found = _lanes_of(threads, width, once=ACCESSES[operation.opcode] != "load")
                bits = execution.element_bits
                shape = _InstructionShape(width * bits, possible * bits, shape.strides)
            self.lanes[key], self.shapes[key] = found, shape
        return self.lanes[key]

    def _by_pairs(self, execution: AccessExecution, lanes: Lanes) -> bool:
        is_copy = ACCESSES[execution.operation.opcode] == "copy" and not execution.is_box
        size = lanes.width * execution.element_bits // 8
        return is_copy and size == _PAST_L1_BYTES and self.hardware.unit_bytes == 2 * _PAST_L1_BYTES

    def _widths(self, execution: AccessExecution, threads: ThreadMap) -> tuple[int, int]:
        bits = max(execution.element_bits, 1)
        given = (threads, execution.addresses, execution.mask, max(bits // 8, 1))
        possible = widest_vector(*given, max(_WIDEST_BITS // bits, 1), aligned=True)
        real = self.width_of(execution.operation) // bits
        if not real:
            return possible, possible
        if not execution.addresses.is_rigid:
            # The compiler knew more of the addresses than can be seen here.
            return min(real, threads.registers), possible
        return widest_vector(*given, real, aligned=False), possible


def _pattern(tokens: Tokens | None) -> bytes:
    """Which elements have one token."""
    if tokens is None or tokens.size == 1:
        return b"" if tokens is None else b"1"
    return np.unique(tokens, return_inverse=True)[1].tobytes()


def _open(tokens: Tokens | None) -> bytes:
    return b"" if tokens is None else (tokens != 0).tobytes()
