"""Counts what an execution of an access asks of memory: units, lines and bytes, as ranges where addresses are unknown.

Lanes whose addresses have one token are at known distances. What is not known of a token is the place that it begins
at, within a unit, and which of its lanes lie in a unit together with lanes of another token: the least is counted as if
all tokens were at one place, the most as if no two shared a unit.
Source: "Nsight Compute" documentation, "sectors" and "L2 Theoretical Sectors Global": the distinct 32-byte sectors of
each warp instruction, summed; how copies of 16 bytes are counted was seen in an H200's counters (both are held against
these by `benchmarks/counters.py`).
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from collections.abc import Callable
from math import gcd

import numpy as np
from numpy.typing import NDArray

from irscope.memory.access import Span, Traffic
from irscope.memory.addresses.lanes import Lanes
from irscope.memory.addresses.numbers import Number

__all__ = ["counted"]

Integers = NDArray[np.int64]
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
    surely, perhaps = _active(mask, lanes)
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


def _active(mask: Number | None, lanes: Lanes) -> tuple[_Truths, _Truths]:
    """The lanes that surely access memory, and those that may."""
    if mask is None:
        return lanes.takes_part, lanes.takes_part
    full = mask.full()
    holds = (full.known != 0).reshape(-1)[lanes.elements] & lanes.takes_part
    if full.tokens is None:
        return holds, holds
    known = (full.tokens == 0).reshape(-1)[lanes.elements]
    return holds & known, (holds | ~known) & lanes.takes_part


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
    """Which values differ from the one before."""
    return np.concatenate([np.ones(min(values.size, 1), np.bool_), values[1:] != values[:-1]])


def _distinct_of_rows(values: Integers, active: _Truths) -> Integers:
    """The number of distinct values in each row, of active lanes."""
    rows, lanes, pieces = values.shape
    # An inactive lane repeats a value of an active one, or stands alone.
    nothing = np.int64(np.iinfo(np.int64).max)
    flat = np.where(active[:, :, None], values, nothing).reshape(rows, lanes * pieces)
    flat = np.sort(flat, axis=1)
    distinct = (flat[:, 1:] != flat[:, :-1]).sum(axis=1) + 1
    return distinct - (flat[:, -1] == nothing)


def _greatest(rows: Integers, values: Integers) -> Integers:
    """The greatest value of each row; rows are sorted."""
    if not rows.size:
        return values
    return np.maximum.reduceat(values, np.flatnonzero(_heads(rows)))
