"""The DRAM traffic of a launch: the reuse of tiles by later CTAs, its distance, and the part of it that hits L2.

A reuse distance is counted in CTAs, in launch order. In bytes it is the footprint of as many consecutive CTAs, each of
which adds the sectors that those before it did not access (Xiang et al., "HOTL: a higher order theory of locality",
ASPLOS 2013).
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irscope.device.clocks import Clock
from irscope.timing.accesses import SECTOR, Access, CtaWatch
from irscope.timing.neighbours import MOST_WARPS, NeighbourWatch, TileWatch
from irscope.timing.walk import Observed, Walked

__all__ = ["DramTraffic", "pairs_of", "traffic_of"]

Array = NDArray[Any]
Key = tuple[int, bool]
"""(argument, whether it is stored to)."""
_Counted = tuple[Access, float]
"""(an access, how many warps of a CTA execute it)."""

_KEPT = 0.6
"""The part of L2 that holds what is accessed again: its halves hold copies of what both access."""
_FETCHED = 2.0
"""Sectors that DRAM gives for one that is alone: it is read in 64 bytes."""
_DENSE = 0.7
"""The part of a tensor, or of a sector, from which on a launch is taken to access all of it."""
_FETCHED_FAR = 2.8
"""Likewise where pages change as well: microbenchmarks of sectors 256 bytes apart and more."""
_KINDS = ("load", "store", "copy", "atomic", "bulk", "bulk store")
_EXPLAINED = 1.05
"""Times the bytes of a tensor, up to which the tiles of CTAs explain the first accesses to it."""
_FEWEST = 32
"""Tiles that tell a part."""


@dataclass(frozen=True, slots=True)
class DramTraffic:
    """The requests to DRAM."""

    read: dict[int, float]
    """Argument → the part of L1's misses that DRAM serves."""
    written: dict[int, float]
    """The same of stores."""
    distinct: dict[int, float]
    """Argument → the distinct tiles that CTAs at the same time access, for each that is accessed."""
    fresh: dict[int, float]
    """Argument → the part of the accesses to tiles that no CTA as far as a wave before accessed."""


@dataclass(slots=True)
class _Reuse:
    """The accesses of a CTA to one argument."""

    amount: float
    """Sectors that L1 misses."""
    own: float
    """Those of them that are distinct."""
    new: Array
    """For each distance, the part of the distinct ones that no CTA within it accessed before."""
    far: float
    """The part whose reuse distance exceeds the CTAs that were walked."""
    cold: float
    """The part that no CTA accessed before (cold misses)."""
    spread: float
    """Bytes that L2 holds for each byte of these: whole lines, of which neighbours may access other sectors."""


def traffic_of(
    groups: Sequence[Walked], watch: CtaWatch, tiles: TileWatch, neighbours: NeighbourWatch,
    array_bytes: Mapping[int, int], clock: Clock, at_once: int, ctas: int, shown: Array, consecutive: Array,
) -> DramTraffic:  # fmt: skip
    """The traffic of a launch.

    Args:
        groups: the warps of one CTA.
        watch: its lines.
        tiles: the tiles of the CTAs of `shown`.
        neighbours: all sectors of one CTA and of its neighbours.
        array_bytes: of each argument's storage.
        clock: the part.
        at_once: CTAs that run at the same time.
        ctas: of the launch.
        shown: CTAs in order.
        consecutive: those of them that follow one another.
    """
    lags = _lags(ctas, at_once, neighbours.axes)
    accesses = list(_accesses(groups))
    reuses = _reuses(accesses, watch, tiles, neighbours, array_bytes, lags, ctas, shown, consecutive)
    footprint = _footprint(reuses.values(), lags)
    whole = sum(
        min(reuse.own * reuse.cold * reuse.spread * SECTOR * ctas, array_bytes.get(array, inf))
        for (array, _), reuse in reuses.items()
    )
    cache = _KEPT * clock.l2_size

    def hits(distance: Any) -> Any:
        """The part that L2 still holds of what was accessed so many bytes ago."""
        return np.clip(2.0 - distance / cache, 0.0, 1.0)

    together = int(np.searchsorted(lags, at_once))
    # CTAs of one wave access a tile at the same time; those of the wave before, if there is one, did a wave ago.
    within, across = np.maximum(at_once - lags, 0), np.minimum(lags, at_once) * (1 - at_once / ctas)
    same_wave = within / np.maximum(within + across, 1e-9)
    held = same_wave + (1 - same_wave) * hits(np.minimum(np.maximum(footprint, footprint[together]), whole))
    by_lanes = [one for one in accesses if one[0].kind in ("load", "store", "copy")]
    random, scattered = _random_arrays(by_lanes), _scattered(by_lanes)
    everything = sum(reuse.amount for reuse in reuses.values())
    found = DramTraffic({}, {}, {}, {})
    for (array, is_store), reuse in reuses.items():
        size = array_bytes.get(array)
        cold = reuse.cold * reuse.own / reuse.amount
        # Of what no CTA accessed before the first wave has more than its part: of a single wave `cold` tells all.
        first = reuse.cold * min(at_once / ctas, 1.0)
        again = np.maximum(reuse.new - first, 0.0) / max(1.0 - first, 1e-9)
        wave = float(_summed(1.0, again, lags)[together]) / int(lags[together])
        in_wave = max(reuse.own / reuse.amount * wave, cold)
        if array in random and size is not None:
            # Random sectors hit what L2 holds of the tensor; of what streams beside it none is accessed again.
            kept = hits(whole)
            part = kept * cold + (1 - kept) * max(cold, 1 - cache * reuse.amount / everything / size)
        else:
            steps = -np.diff(reuse.new, prepend=1.0)
            back = float((steps * (1 - held)).sum()) + reuse.far * (1 - float(hits(whole)))
            part = cold + back * reuse.own / reuse.amount
            if not is_store:
                # What a CTA itself loads again, and L1 no longer has, comes back after what all of a wave access
                # meanwhile; what it stores again in a sector follows at once.
                lost = 1 - float(hits(footprint[together]))
                part += lost * (1 - reuse.own / reuse.amount) * float(reuse.new[together])
        if random.get(array):
            part *= _FETCHED_FAR
        alone, used = scattered.get((array, is_store), (False, 1.0))
        # What is stored is written back, and what a sector lacks read before, where L2 does not hold all.
        evicted = 1.0 - float(hits(whole)) if is_store else 1.0
        is_sparse = size is not None and reuse.cold * reuse.own * SECTOR * ctas < _DENSE * size
        if alone and array not in random and is_sparse:
            # DRAM reads and writes pairs of sectors.
            part *= 1 + evicted * (_FETCHED - 1)
        if is_store and used * reuse.amount < _DENSE * reuse.cold * reuse.own:
            part *= 1 + evicted
        (found.written if is_store else found.read)[array] = float(part)
        found.distinct[array] = min(found.distinct.get(array, 1.0), in_wave)
        fresh = max(reuse.own / reuse.amount * float(reuse.new[together]), cold)
        found.fresh[array] = min(found.fresh.get(array, 1.0), fresh)
    return found


def _lags(ctas: int, at_once: int, others: Iterable[int]) -> Array:
    powers = (1 << np.arange(max(ctas - 1, 1).bit_length())).tolist()
    return np.array(sorted({*powers, *(3 * one // 2 for one in powers), at_once, *others}))


def _reuses(
    accesses: Iterable[_Counted], watch: CtaWatch, tiles: TileWatch, neighbours: NeighbourWatch,
    array_bytes: Mapping[int, int], lags: Array, ctas: int, shown: Array, consecutive: Array,
) -> dict[Key, _Reuse]:  # fmt: skip
    asked, amounts = defaultdict[Key, float](float), defaultdict[Key, float](float)
    for access, times in accesses:
        key = (access.array, "store" in access.kind)
        asked[key] += access.sectors * times
        amounts[key] += access.sectors * access.missed * times
    is_all = len(shown) >= ctas
    found: dict[Key, _Reuse] = {}
    for key, amount in amounts.items():
        if not amount:
            continue
        own, new, cold, spread = 1.0, np.ones(len(lags)), 1.0, watch.spread(*key)
        if parts := tiles.places.get(key):
            owners, values = (np.concatenate([part[side] for part in parts]) for side in (0, 1))
            here = (owners >= consecutive[0]) & (owners <= consecutive[-1])
            apart = ~here if not is_all and (~here).sum() > _FEWEST else np.ones(len(owners), np.bool_)
            # What one CTA accesses twice does not tell how many CTAs share a tile; what L1 served is gone already.
            if spread > 1 and here.any():
                # Tiles are numbers of sectors, and of warps.
                sectors = np.unique(values[here] // MOST_WARPS)
                spread = min(spread, 4 * len(np.unique(sectors >> 2)) / len(sectors))
            pairs = pairs_of(owners[apart], values[apart])
            own = pairs / max(int(apart.sum()), 1)
            new = _new(owners[here], values[here], None if is_all else int(consecutive[0]), lags)
            cold = _distinct_of_all(len(np.unique(values[apart])), pairs, round(ctas * len(owners) / len(shown) * own))
        own = min(1.0, own * asked[key] / amount)
        # More than the tensor has: a CTA requests sectors again, or neighbours share parts of tiles.
        if amount * own * max(float(new[-1]), cold) * SECTOR * ctas > _EXPLAINED * array_bytes.get(key[0], 0.0):
            own = min(own, neighbours.distinct(key) * asked[key] / amount)
            for lag, part in neighbours.overlapping(key, ctas if is_all else len(consecutive) // 2).items():
                new = np.where(lags >= lag, np.minimum(new, part), new)
                cold = min(cold, part)
        far = max(float(new[-1]) - cold, 0.0)
        # What a tensor is too small for, though no CTA was seen to access it before, neighbours share by parts.
        most = array_bytes.get(key[0], inf) / (amount * own * SECTOR * ctas)
        cold = max(min(cold, most), 1 / ctas)
        found[key] = _Reuse(amount, amount * own, new, far, cold, spread)
    return found


def _new(owners: Array, values: Array, begin: int | None, lags: Array) -> Array:
    """For each distance, the part of a CTA's tiles that no CTA within it accessed before.

    `begin`: the first CTA that was seen, where it is not the first of the launch.
    """
    order = np.lexsort((owners, values))
    owners, values = owners[order], values[order]
    gaps = np.full(len(owners), inf)
    again = values[1:] == values[:-1]
    gaps[1:][again] = (owners[1:] - owners[:-1])[again]
    once = gaps > 0
    gaps, owners = gaps[once], owners[once]
    found = np.empty(len(lags))
    part = 1.0
    for place, lag in enumerate(lags):
        chosen = gaps if begin is None else gaps[owners - begin >= lag]
        if len(chosen) >= min(_FEWEST, len(gaps)):
            part = min(part, float((chosen > lag).mean()))
        found[place] = part
    return found


def _footprint(reuses: Iterable[_Reuse], lags: Array) -> Array:
    """The distinct bytes of as many consecutive CTAs as each lag says."""
    each = np.zeros(len(lags))
    first = 0.0
    for reuse in reuses:
        own = reuse.own * reuse.spread * SECTOR
        first += own
        each += own * reuse.new
    return _summed(first, each, lags)


def _summed(first: float, each: Array, lags: Array) -> Array:
    """The sum over as many CTAs as each lag says: `first` of the first one, and `each` of those at each distance."""
    return np.cumsum(np.diff(lags, prepend=0) * np.concatenate([[first], each[:-1]]))


def _distinct_of_all(distinct: int, sample: int, ctas: int) -> float:
    """How many distinct tiles all CTAs access, for each that is accessed, by those of a sample.

    Of T tiles that are equally likely, n accesses meet T (1 - exp(-n / T)).
    """
    if sample >= ctas or distinct >= 0.98 * sample:
        return distinct / max(sample, 1)
    low, high = float(distinct), 1e12
    for _ in range(80):
        middle = (low * high) ** 0.5
        if middle * -np.expm1(-sample / middle) < distinct:
            low = middle
        else:
            high = middle
    return min(low / ctas, 1.0)


def pairs_of(owners: Array, values: Array) -> int:
    """How many different tiles CTAs access, each by itself."""
    # Pairs that differ are one number with a chance of one in 2**63 alone, which sorts faster than two.
    return len(np.unique(values * 0x1E3779B97F4A7C15 + owners))


def _accesses(groups: Iterable[Walked]) -> Iterator[_Counted]:
    """The accesses of a CTA to arguments."""
    for group in groups:
        for entry, weight in zip(group.trace, group.weights(), strict=True):
            access = entry.payload if isinstance(entry, Observed) else None
            if access is not None and access.kind in _KINDS:
                yield access, weight * len(group.rows) * access.is_on


def _scattered(accesses: Iterable[_Counted]) -> dict[tuple[int, bool], tuple[bool, float]]:
    """(argument, whether it is stored to) → whether most sectors are alone in their pair; what is used of a sector."""
    sums: dict[tuple[int, bool], list[float]] = {}
    for access, times in accesses:
        total = sums.setdefault((access.array, access.kind == "store"), [0.0, 0.0, 0.0, 0.0])
        total[0] += access.sectors * times
        total[1] += access.pairs * times
        total[2] += access.ideal_sectors * times
        total[3] += access.sectors * access.missed * times
    return {
        key: (sectors < 1.25 * pairs, ideal / missed) for key, (sectors, pairs, ideal, missed) in sums.items() if missed
    }


def _random_arrays(accesses: Iterable[_Counted]) -> dict[int, bool]:
    """Arguments of which data decide most accesses → whether most of their sectors are alone in their line."""
    sums: dict[int, list[float]] = {}
    for access, times in accesses:
        total = sums.setdefault(access.array, [0.0, 0.0, 0.0])
        total[0] += access.sectors * access.is_random * times
        total[1] += access.lines * access.is_random * times
        total[2] += access.sectors * times
    return {array: sectors < 1.5 * lines for array, (sectors, lines, every) in sums.items() if sectors > every / 2}
