"""What CTAs share of global memory: where each begins in a sector, the tiles of many, all sectors of neighbours."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irscope.ir.asm.instructions import Instruction
from irscope.timing.accesses import GRANULE, KINDS, LINE, SECTOR, Access, Shifts, active_lanes
from irscope.timing.scalars import ARRAY_BITS, State, address_of

__all__ = ["MOST_WARPS", "NeighbourWatch", "TileWatch"]

Array = NDArray[Any]

MOST_WARPS = 64
"""Of a CTA."""
_ALIGNED_CTAS, _ALIGNMENTS = 64, 8
"""CTAs whose alignments are compared, and how many different ones are counted."""
_EDGE = 0.5
"""Of what an instruction accesses first: the part up to which others access its edge alone."""
_LEAST_OVERLAP = 0.05
"""The part of a CTA's sectors from which on another one shares some, or from which on less than one has others."""
_CHAIN = 4
"""Neighbours one after another on an axis, as what two of them share depends on where they begin in a sector."""


class TileWatch:
    """Sees where CTAs access global memory, by one lane of each kind of warp."""

    def __init__(self) -> None:
        self.places: dict[tuple[int, bool], list[tuple[Array, Array]]] = {}
        """(argument, whether it is stored to) → (CTAs, a number for the tile of each) of each access.

        The argument of a bulk copy is -2 less its instruction."""
        self.granules: dict[int, list[tuple[Array, Array]]] = {}
        """Argument → (CTAs, the part of it in one slice of L2) of each atomic."""
        self._begins: dict[int, list[tuple[Array, Array, Array]]] = {}
        """Instruction → (CTAs, warps, address) of its first execution, where no unknown data or pointer decide it."""

    def __call__(self, index: int, item: Instruction, state: State, lanes: Array | None, count: int) -> None:
        kind = KINDS[item.opcode.partition(".")[0]]
        if kind not in ("load", "store", "copy", "atomic", "bulk", "bulk store") or count > 6:
            return
        ctas, warps = state.special["CTA"], state.special["WARP"]
        if kind.startswith("bulk"):
            value, address = _tile_of(item, state, kind), None
        else:
            operands = [one for one in item.operands if "[" in one]
            address = address_of(operands[-1] if kind == "copy" else operands[0]) if operands else None
            value = address.value(state) if address is not None else None
        if value is None:
            return
        active = active_lanes(item, state, lanes)
        on = np.ones(len(ctas), np.bool_) if active is None else np.broadcast_to(active, ctas.shape)[:, 0]
        if not on.any():
            return
        value = np.broadcast_to(value, ctas.shape)[on, 0]
        ctas, warps = ctas[on], np.broadcast_to(warps, ctas.shape)[on]
        array = -2 - index if kind.startswith("bulk") else int(value[0] >> ARRAY_BITS)
        is_known = array > 0 and address is not None and not address.origins(state)
        if not count and kind in ("load", "store", "copy") and is_known:
            self._begins.setdefault(index, []).append((ctas[:, 0], warps[:, 0], value))
        # Warps of one CTA have tiles of their own.
        tile = (value if kind.startswith("bulk") else value >> 5) * MOST_WARPS + warps[:, 0]
        self.places.setdefault((array, "store" in kind), []).append((ctas[:, 0], tile))
        if kind == "atomic":
            self.granules.setdefault(array, []).append((ctas[:, 0], value // GRANULE))

    def shifts(self, cta: int, shown: Array, counted: Container[int]) -> Shifts:
        """By how many bytes the addresses of some CTAs are beyond those of one, modulo a line of L1.

        Empty where all begin at the same place of a sector in the instructions that are counted.
        """
        some = np.random.default_rng(0).permutation(shown)[:_ALIGNED_CTAS]
        found: list[dict[int, int]] = [{} for _ in some]
        for index, parts in self._begins.items():
            ctas, warps, places = (np.concatenate(each) for each in zip(*parts, strict=True))
            own = dict(zip(warps[ctas == cta].tolist(), places[ctas == cta].tolist(), strict=True))
            beyond = {
                owner: (place - own[warp]) % LINE
                for owner, warp, place in zip(ctas.tolist(), warps.tolist(), places.tolist(), strict=True)
                if warp in own
            }
            for each, owner in zip(found, some.tolist(), strict=True):
                each[index] = beyond.get(owner, 0)
        alignments: dict[tuple[int, ...], list[dict[int, int]]] = {}
        for each in found:
            begins = tuple(by % SECTOR for index, by in each.items() if index in counted)
            alignments.setdefault(begins, []).append(each)
        if len(alignments) == 1:
            return []
        return [(each[0], len(each)) for each in list(alignments.values())[:_ALIGNMENTS]]


class NeighbourWatch:
    """Sees all sectors of the accesses of one CTA and of its neighbours on the axes of the grid.

    Few launches need it, so `prepare`, which walks these CTAs, is called by the first question.
    """

    def __init__(self, grid: tuple[int, int, int], cta: int | None = None) -> None:
        """`cta`: by its place in the order of launch; None for the one in the middle of each axis."""
        strides = (1, grid[0], grid[0] * grid[1])
        middle = sum(size // 2 * stride for size, stride in zip(grid, strides, strict=True))
        self.cta = middle if cta is None else cta
        axes = [(stride, size) for size, stride in zip(grid, strides, strict=True) if size > 1]
        diagonal = [(far - near, size) for (near, _), (far, size) in combinations(axes, 2) if far > near]
        self.axes = dict(sorted(axes + diagonal))
        """How many CTAs before it a neighbour is → the size of the grid on that axis."""
        before = {stride: min(_CHAIN, self.cta // stride % size) for stride, size in axes}
        self._chains = {
            lag: [self.cta - lag * number for number in range(max(before.get(lag, 1), 1) + 1)] for lag in self.axes
        }
        """Likewise → the CTA and others, each the neighbour of the one before."""
        self._seen: dict[tuple[int, bool], list[tuple[int, int, Array]]] = {}
        """(argument, whether it is stored to) → (number, instruction, (warps of the launch, sectors)) of accesses."""
        self._times: dict[int, float] = {}
        """Number of an access → how many executions of its instruction it stands for."""
        self.prepare: Callable[[], None] | None = None

    @property
    def ctas(self) -> list[int]:
        """The CTA, its neighbours, and theirs on the same axis."""
        return list(dict.fromkeys([self.cta, *(cta for chain in self._chains.values() for cta in chain)]))

    def __call__(self, index: int, item: Instruction, state: State, lanes: Array | None, _: int) -> Access | None:
        kind = KINDS[item.opcode.partition(".")[0]]
        operands = [one for one in item.operands if "[" in one]
        if kind not in ("load", "store", "copy") or not operands:
            return None
        address = address_of(operands[-1] if kind == "copy" else operands[0])
        value = address.value(state) if address is not None else None
        active = active_lanes(item, state, lanes)
        if address is None or value is None or address.origins(state):
            return None
        warps = state.special["CTA"] * MOST_WARPS + state.special["WARP"]
        shapes = value.shape, warps.shape, (state.rows, state.lanes), active.shape if active is not None else (1, 1)
        shape = np.broadcast_shapes(*shapes)
        on = np.ones(shape, np.bool_) if active is None else np.broadcast_to(active, shape)
        if not on.any():
            return None
        value = np.broadcast_to(value, shape)[on]
        if value[0] < 1 << ARRAY_BITS:
            # A loaded pointer: what stands for it tells nothing of others.
            return None
        # Row and sector as one number, which sorts faster than two.
        rows = np.broadcast_to(np.arange(shape[0])[:, None], shape)[on]
        pairs = np.unique(rows << 40 | value // SECTOR)
        asked = np.stack([np.broadcast_to(warps, (shape[0], 1))[pairs >> 40, 0], pairs & (1 << 40) - 1])
        return Access(kind, value=self.note(int(value[0] >> ARRAY_BITS), kind == "store", index, asked))

    def note(self, array: int, is_store: bool, index: int, asked: Array) -> int:
        """Note an access: (warps of the launch, sectors), of an instruction. Returns its number."""
        number = len(self._times)
        self._times[number] = 1.0
        self._seen.setdefault((array, is_store), []).append((number, index, asked))
        return number

    def _seen_of(self, key: tuple[int, bool]) -> list[tuple[int, int, Array]]:
        prepare, self.prepare = self.prepare, None
        if prepare is not None:
            prepare()
        return self._seen.get(key, [])

    def weigh(self, entries: Iterable[tuple[Access | None, float]]) -> None:
        """Weight each access by the iterations that were skipped after it: (access, executions)."""
        self._times |= {access.value: times for access, times in entries if access is not None}

    def distinct(self, key: tuple[int, bool]) -> float:
        """The part of a CTA's requested sectors that it requests for the first time."""
        executions: dict[int, list[tuple[float, Array]]] = {}
        for number, index, (warps, sectors) in self._seen_of(key):
            own = sectors[warps // MOST_WARPS == self.cta]
            if len(own):
                executions.setdefault(index, []).append((self._times[number], own))
        asked = distinct = 0.0
        before = np.zeros(0, np.int64)
        for walked in executions.values():
            every = sum(times * len(sectors) for times, sectors in walked)
            asked += every
            first = np.unique(walked[0][1])
            together = np.unique(np.concatenate([sectors for _, sectors in walked]))
            # What the first iterations share, the skipped ones do: all of it, or as much of each.
            is_same = len(walked) > 1 and len(together) == len(first)
            new = len(first) if is_same else every * len(together) / sum(len(sectors) for _, sectors in walked)
            # An instruction that begins where others did goes on as they did; an edge that they share says nothing.
            again = float(np.isin(first, before, assume_unique=True).mean())
            distinct += new * (1 - again * (again > _EDGE))
            before = np.union1d(before, together)
        return distinct / asked if asked else 1.0

    def overlapping(self, key: tuple[int, bool], seen: int) -> dict[int, float]:
        """For each neighbour that shares some of a CTA's sectors, the part that neither it nor nearer ones access.

        Args:
            key: the argument, and whether it is stored to.
            seen: the largest distance, in CTAs, at which `TileWatch` sees that two CTAs access the same tile. Nearer
                neighbours that share nearly all sectors are left to it.
        """
        if not (seen_here := self._seen_of(key)):
            return {}
        warps, sectors = np.concatenate([asked for _, _, asked in seen_here], axis=1)
        ctas = warps // MOST_WARPS
        of_cta = {cta: np.unique(sectors[ctas == cta]) for cta in self.ctas}
        left, part, found = of_cta[self.cta], 1.0, dict[int, float]()
        for lag, size in self.axes.items():
            shares = [
                float(np.isin(of_cta[one], of_cta[before], assume_unique=True).mean()) if len(of_cta[one]) else 0.0
                for one, before in pairwise(self._chains[lag])
            ]
            shared = sum(shares) / len(shares)
            if shared > _LEAST_OVERLAP and (shared < 1 - _LEAST_OVERLAP or lag > seen):
                # CTAs at the edge have no neighbour. What nearer neighbours share of the first one is gone already.
                before = max(len(left), 1)
                left = np.setdiff1d(left, of_cta[self._chains[lag][1]], assume_unique=True)
                apart = len(left) / before + sum(1 - one for one in shares[1:])
                part *= 1 / size + (1 - 1 / size) * apart / len(shares)
                found[lag] = part
        return found


def _tile_of(item: Instruction, state: State, kind: str) -> Array | None:
    operands = [one.strip("[]") for one in item.operands if "[" in one]
    if not operands or not operands[0].startswith("UR"):
        return None
    number = int(operands[0][2:])
    # The address in shared memory, of loads the mbarrier, then the coordinates.
    first = number + 2 if kind == "bulk" else number + 1
    rank = next((int(part[0]) for part in item.opcode.split(".") if part in ("1D", "2D", "3D", "4D", "5D")), 2)
    total: Array = np.zeros((1, 1), np.int64)
    for axis in range(rank):
        value = state.registers.get(f"UR{first + axis}")
        if value is None:
            return None
        total = total * 1_000_003 + value
    return total
