"""What comes from DRAM, against an L2 cache that is simulated tile by tile."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from irscope.device.clocks import clock_of
from irscope.target import Target
from irscope.timing.accesses import SECTOR, Access, CtaWatch
from irscope.timing.neighbours import NeighbourWatch, TileWatch
from irscope.timing.trace import Observed, Walked
from irscope.timing.traffic import DramTraffic, traffic_of

_SECTORS = 256
"""Of a tile: 8 KB."""
_TILES = 32
"""Of the matrices, along each axis."""
_AT_ONCE = 64
Order = Callable[[int], tuple[int, int]]


def _by_rows(cta: int) -> tuple[int, int]:
    return cta // _TILES, cta % _TILES


def _grouped(cta: int) -> tuple[int, int]:
    group, inside = divmod(cta, 8 * _TILES)
    return group * 8 + inside % 8, inside // 8


def _product(order: Order, l2_size: int, prepare: Callable[[], None] | None = None, rows: int = _TILES) -> DramTraffic:
    """The traffic of a product of square matrices: one tile of each for every step of K, as many steps as tiles.

    `rows`: of tiles, as many as the first matrix's storage has.
    """
    clock = replace(clock_of(Target.parse("cuda:90"), "h100"), l2_size=l2_size)
    trace = [
        Observed(step * 2 + array, Access("load", _SECTORS, _SECTORS, _SECTORS / 4, _SECTORS / 2, array=array))
        for step in range(_TILES)
        for array in (1, 2)
    ]
    ctas = np.arange(_TILES * _TILES)
    places = np.array([order(int(cta)) for cta in ctas])
    tiles = TileWatch()
    for step in range(_TILES):
        tiles.places.setdefault((1, False), []).append((ctas, places[:, 0] * _TILES + step))
        tiles.places.setdefault((2, False), []).append((ctas, places[:, 1] * _TILES + step))
    size = _TILES * _TILES * _SECTORS * SECTOR
    groups = [Walked(np.arange(1), list(trace))]
    neighbours = NeighbourWatch((len(ctas), 1, 1))
    neighbours.prepare = prepare
    watch = CtaWatch(clock, 1, 0, 0, {})
    return traffic_of(
        groups, watch, tiles, neighbours, {1: size * rows // _TILES, 2: size}, clock, _AT_ONCE, len(ctas), ctas, ctas
    )


def _accesses(order: Order) -> Iterator[tuple[int, int, int]]:
    """(matrix, row or column of tiles, step) in the order in which waves of CTAs that go side by side come to them."""
    ctas = iter(range(_TILES * _TILES))
    while wave := list(islice(ctas, _AT_ONCE)):
        for step in range(_TILES):
            for cta in wave:
                row, column = order(cta)
                yield 1, row, step
                yield 2, column, step


def _simulated(order: Order, l2_size: float) -> dict[int, float]:
    """Matrix → the part of its tiles that a cache of that size, which replaces the least recently used, misses."""
    cache: OrderedDict[tuple[int, int, int], None] = OrderedDict()
    missed = {1: 0, 2: 0}
    for tile in _accesses(order):
        if tile in cache:
            cache.move_to_end(tile)
            continue
        missed[tile[0]] += 1
        cache[tile] = None
        if len(cache) * _SECTORS * SECTOR > l2_size:
            cache.popitem(last=False)
    return {matrix: count / _TILES**3 for matrix, count in missed.items()}


@pytest.mark.parametrize("order", [_by_rows, _grouped])
@pytest.mark.parametrize("megabytes", [4, 8, 12, 16, 64])
def test_products_miss_as_often_as_in_a_simulated_cache(order: Order, megabytes: int) -> None:
    """The model's L2 holds all of what is up to 0.6 of its size away and nothing from 1.2 on: two caches bound it.

    Reuse next to one another is taken to cross waves now and then, which these orders never do: 0.02 more.
    """
    size = megabytes << 20
    read = _product(order, size).read
    small, large = _simulated(order, 0.6 * size), _simulated(order, 1.2 * size)
    for matrix in (1, 2):
        assert large[matrix] * 0.8 <= read[matrix] <= small[matrix] * 1.25 + 0.02


@pytest.mark.parametrize("order", [_by_rows, _grouped])
def test_the_distinct_tiles_of_a_wave_are_those_of_consecutive_ctas(order: Order) -> None:
    waves = [range(begin, begin + _AT_ONCE) for begin in range(_TILES * _TILES - _AT_ONCE + 1)]
    distinct = _product(order, 8 << 20).distinct
    for side in (0, 1):
        counted = sum(len({order(cta)[side] for cta in wave}) for wave in waves) / len(waves)
        assert distinct[side + 1] * _AT_ONCE == pytest.approx(counted, rel=0.15)


def test_a_grouped_order_moves_less() -> None:
    size = 8 << 20
    assert sum(_product(_grouped, size).read.values()) < 0.5 * sum(_product(_by_rows, size).read.values())


def test_neighbours_are_walked_only_where_tiles_do_not_explain_the_accesses() -> None:
    calls: list[str] = []
    _product(_by_rows, 1 << 30, lambda: calls.append("all of it"))
    assert calls == []
    _product(_by_rows, 1 << 30, lambda: calls.append("half of it"), rows=_TILES // 2)
    assert calls == ["half of it"]


def test_what_fits_is_read_once() -> None:
    assert _product(_by_rows, 1 << 30).read == {1: pytest.approx(1 / _TILES), 2: pytest.approx(1 / _TILES)}


def test_stencils_share_the_rows_between_them_with_their_neighbours() -> None:
    """Each CTA reads 4 rows of 2 sectors and one above and below; a neighbour on the axis has 2 of its 6 rows."""
    neighbours = NeighbourWatch((1, 64, 1))
    assert neighbours.ctas == [32, 31, 30, 29, 28]
    seen = [(cta * 64, np.arange(cta * 8 - 2, cta * 8 + 10)) for cta in neighbours.ctas]
    warps = np.concatenate([np.full(len(sectors), warp) for warp, sectors in seen])
    asked = np.stack([warps, np.concatenate([sectors for _, sectors in seen])])
    neighbours.note(1, False, 7, asked)
    assert neighbours.distinct((1, False)) == 1.0
    (found,) = neighbours.overlapping((1, False), 1).items()
    assert found == (1, pytest.approx(1 / 64 + 63 / 64 * 8 / 12))


def test_an_instruction_that_begins_where_another_one_did_reads_the_same_again() -> None:
    neighbours = NeighbourWatch((8, 1, 1))
    own = neighbours.cta * 64
    for number, (index, first, times) in enumerate([(3, 0, 1.0), (3, 16, 99.0), (9, 0, 1.0), (9, 16, 99.0)]):
        neighbours.note(1, False, index, np.stack([np.full(16, own), np.arange(first, first + 16)]))
        neighbours.weigh([(Access("load", value=number), times)])
    assert neighbours.distinct((1, False)) == 0.5


def test_what_each_iteration_reads_again_is_distinct_once() -> None:
    neighbours = NeighbourWatch((8, 1, 1))
    for number in range(3):
        neighbours.note(1, False, 3, np.stack([np.full(16, neighbours.cta * 64), np.arange(16)]))
        neighbours.weigh([(Access("load", value=number), 1.0 if number < 2 else 98.0)])
    assert neighbours.distinct((1, False)) == pytest.approx(0.01)
