"""Which elements each warp instruction of an access moves: those of registers with copies once."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false
# numpy's own types leave those of its methods partly unknown.

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from irscope.layout.linear import eliminate
from irscope.layout.thread_map import IN_DIMS, ThreadMap
from irscope.memory.addresses.numbers import Number
from irscope.model.linear_layout import LinearLayout

__all__ = ["Lanes", "box_lanes", "distinct_instructions", "lanes_of", "scalar_map", "strides_of", "widest_vector"]


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


def scalar_map(warps: int, lanes: int) -> ThreadMap:
    """The layout of a scalar: every thread holds it."""
    bits = {"lane": lanes, "warp": warps}
    return ThreadMap.of(LinearLayout.of({name: [()] * (size.bit_length() - 1) for name, size in bits.items()}, ()))


def lanes_of(threads: ThreadMap, width: int, *, once: bool) -> Lanes:
    """The warp instructions of an access.

    Args:
        threads: the layout of the pointers.
        width: elements of a lane's part of an instruction, a power of two.
        once: whether an element that several threads hold is accessed by one of them only.

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


def distinct_instructions(lanes: Lanes, addresses: Number, mask: Number | None) -> Lanes:
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


def box_lanes(size: int) -> Lanes:
    """The elements of a block that a descriptor's copy moves as a whole."""
    return Lanes(np.arange(size).reshape(1, size), 1, np.ones((1, size), np.bool_), np.zeros(1, np.int64))


def widest_vector(
    threads: ThreadMap, addresses: Number, mask: Number | None, element_bytes: int, most: int, *, aligned: bool
) -> int:
    """The elements of the widest vector of consecutive registers whose addresses follow one another.

    Args:
        threads: the layout of the pointers.
        addresses: of each element.
        mask: a vector lies within it or outside; None for none.
        element_bytes: the size of an element.
        most: no vector has more elements.
        aligned: whether it must begin at a multiple of its size.
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
