"""Oracles: bank conflicts against the compiler's own count, and against every lane's addresses."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from irscope.layout.maps import MemoryMap, ThreadMap
from irscope.layout.rows import query_type
from irscope.memory.conflicts import core_matrix_ways, lane_groups, matrix_choices, shared_access
from irscope.model.capture import Target
from irscope.model.layout import LayoutMap, LinearLayout
from tests.layout.cases import blocked, dot, mma2, nvmma, swizzled

REGISTERS = (
    blocked((1, 8), (4, 8), (4, 1), (1, 0)),
    blocked((1, 1), (1, 32), (4, 1), (1, 0)),
    blocked((1, 1), (32, 1), (1, 4), (0, 1)),
    blocked((1, 4), (8, 4), (2, 2), (1, 0)),
    blocked((8, 1), (8, 4), (1, 4), (0, 1)),
    mma2((2, 2)),
    dot(0, mma2((2, 2)), 2),
)
SHARED = (
    swizzled(1, 1, 1, (1, 0)),
    swizzled(8, 1, 8, (1, 0)),
    swizzled(4, 2, 4, (1, 0)),
    swizzled(1, 1, 1, (0, 1)),
    nvmma(128),
)
PAIRS = [
    (registers, shared, element)
    for registers, shared, element in product(REGISTERS, SHARED, ("f16", "f32"))
    if element == "f16" or not ("nvmma" in shared or "dot_op" in registers)
]


@pytest.mark.triton
def test_wavefronts_are_the_compilers() -> None:
    from irscope.record.layouts.questions import bank_conflicts
    from irscope.record.process.annotations import LayoutServer, Module

    target = Target.parse("cuda:80")
    pairs = [
        (query_type(registers, (64, 64), element), query_type(shared, (64, 64), element))
        for registers, shared, element in PAIRS
    ]
    with LayoutServer() as server:
        job = server.wait(server.ask(Module.of(target), types=[text for pair in pairs for text in pair]))
    maps = [answer.layout for answer in job.answered_types() if isinstance(answer, LayoutMap)]
    counts = bank_conflicts(pairs, target)
    for number, (registers, shared, element) in enumerate(PAIRS):
        threads = ThreadMap.of(maps[2 * number])
        memory = MemoryMap.of(maps[2 * number + 1], 16 if element == "f16" else 32)
        # The compiler counts what each wavefront takes above one.
        ours = shared_access(threads, memory).ways - 1
        assert ours == counts[number], (registers, shared, element)
    assert len(PAIRS) >= 50


def counted(threads: ThreadMap, memory: MemoryMap, target: Target, store: bool) -> tuple[int, int]:
    """(bits per lane, wavefronts) of warp 0, from the address of every element of every lane."""
    offset_of = {element: memory.byte(place) for place, element in reversed(list(enumerate(memory.elements)))}
    size = memory.element_bits // 8
    held = [
        [offset_of[threads.elements[lane * threads.registers + register]] for register in range(threads.registers)]
        for lane in range(threads.lanes)
    ]
    # Registers of one access: as many as every lane has side by side, at an address that is a multiple of their size.
    best: tuple[int, list[list[int]]] = (1, [[register] for register in range(threads.registers)])
    for count in (2, 4, 8, 16):
        if count * size > 16:
            break
        order = sorted(range(threads.registers), key=held[0].__getitem__)
        parts = [order[at : at + count] for at in range(0, len(order), count)]
        steps = list(range(0, count * size, size))
        if len(order) % count or not all(
            row[part[0]] % (count * size) == 0 and [row[one] - row[part[0]] for one in part] == steps
            for row in held
            for part in parts
        ):
            break
        best = count, parts
    count, parts = best
    seen: set[int] = set()
    wavefronts = 0
    banks, groups = lane_groups(target, count * memory.element_bits, threads.lanes, store=store)
    for part in parts:
        if held[0][part[0]] in seen:
            continue  # a copy of what another register holds
        seen.add(held[0][part[0]])
        for group in groups:
            words = {(held[lane][one] + byte) // 4 for lane in group for one in part for byte in range(size)}
            wavefronts += max(Counter(word % banks for word in words).values())
    return count * memory.element_bits, wavefronts


def layout_in_registers(register: list, lane: list, shape: tuple[int, int]) -> ThreadMap:
    return ThreadMap.of(LinearLayout.of({"register": register, "lane": lane, "warp": [], "block": []}, shape))


def rows_of(columns: int, rows: int, swizzle: int = 0, per: int = 1) -> LinearLayout:
    """Rows one after another; with a swizzle of so many steps of eight columns, the step changed every `per` rows."""
    across = [(0, 1 << bit) for bit in range(columns.bit_length() - 1)]
    down = [(1 << bit, 8 * ((1 << bit) // per % swizzle) if swizzle else 0) for bit in range(rows.bit_length() - 1)]
    return LinearLayout.of({"offset": [list(one) for one in across + down], "block": []}, (rows, columns))


def bits(first: int, count: int, dimension: int) -> list[list[int]]:
    return [[first << bit, 0] if dimension == 0 else [0, first << bit] for bit in range(count)]


WAVE = {
    "rows of 8": ([*bits(1, 3, 1)], [*bits(8, 3, 1), *bits(1, 3, 0)]),
    "columns of rows": ([*bits(1, 3, 1)], [*bits(1, 6, 0)]),
    "operand of an mfma": ([*bits(1, 3, 1), *bits(32, 1, 1)], [*bits(1, 4, 0), *bits(8, 2, 1)]),
    "fours": ([*bits(1, 2, 1)], [*bits(1, 5, 0), *bits(4, 1, 1)]),
    "scalars": ([], [*bits(1, 6, 1)]),
}


@pytest.mark.parametrize("shared", [(64, 64, 0, 1), (64, 64, 8, 1), (64, 64, 4, 2), (64, 64, 8, 2)])
@pytest.mark.parametrize("registers", WAVE)
@pytest.mark.parametrize("target", ["hip:gfx942", "hip:gfx950", "hip:gfx90a"])
@pytest.mark.parametrize("store", [False, True])
def test_wavefronts_of_waves_of_64_are_those_of_the_addresses(
    shared: tuple, registers: str, target: str, store: bool
) -> None:
    memory = MemoryMap.of(rows_of(*shared), 16)
    threads = layout_in_registers(*WAVE[registers], (64, 64))
    access = shared_access(threads, memory, store=store, target=Target.parse(target))
    assert (access.bits_per_thread, access.wavefronts) == counted(threads, memory, Target.parse(target), store)


def test_reads_of_16_bytes_conflict_otherwise_than_writes() -> None:
    """A wave of 16 rows of four lanes each, 128 bytes a row: the reads of a swizzle for mfma operands."""
    gfx942 = Target.parse("hip:gfx942")
    threads = layout_in_registers([*bits(1, 3, 1)], [*bits(1, 4, 0), *bits(8, 2, 1)], (64, 64))
    memory = MemoryMap.of(rows_of(64, 64, 8, 1), 16)
    read, written = (shared_access(threads, memory, store=store, target=gfx942) for store in (False, True))
    assert (read.ways, written.ways) == (1, 1)
    # Lanes 16 to 31 lie half a row beside lanes 0 to 15: with the swizzle of four steps, 20 to 23 are beside 0 to 3.
    beside = layout_in_registers([*bits(1, 3, 1)], [*bits(1, 4, 0), [0, 32], [0, 8]], (64, 64))
    skewed = MemoryMap.of(rows_of(64, 64, 4, 1), 16)
    read, written = (shared_access(beside, skewed, store=store, target=gfx942) for store in (False, True))
    assert (read.ways, written.ways) == (1, 2)


BATCHED = LinearLayout.of(
    {
        "offset": [[0, 0, 1], [0, 0, 2], [0, 0, 4], [0, 0, 8], [0, 0, 16], [1, 0, 0], [2, 0, 8],
                   [0, 1, 0], [0, 2, 0], [0, 4, 0], [0, 8, 0], [0, 16, 0]],
        "block": [],
    },
    (4, 32, 32),
)  # fmt: skip
OPERANDS = {
    "ldmatrix": ([[0, 0, 1], [0, 8, 0], [0, 0, 8], [0, 0, 16], [0, 16, 0]],
                 [[0, 0, 2], [0, 0, 4], [0, 1, 0], [0, 2, 0], [0, 4, 0]]),
    "ldmatrix.trans": ([[0, 1, 0], [0, 8, 0], [0, 16, 0], [0, 0, 8], [0, 0, 16]],
                       [[0, 2, 0], [0, 4, 0], [0, 0, 1], [0, 0, 2], [0, 0, 4]]),
}  # fmt: skip


ADDRESSES = """0 256 512 768 1024 1280 1536 1792
0 16 512 528 1024 1040 1536 1552
0 256 512 768 1024 1280 1536 1792"""
"""Of the first eight lanes, from the PTX of that product: operand 0, operand 1 by Triton 3.9, and by 3.7 and 3.8."""


def test_a_matrix_is_eight_rows_wherever_they_lie() -> None:
    """The operands of a batched product: rows that are 256 bytes apart begin in one bank, transposed or not."""
    batch = [[1, 0, 0], [2, 0, 0]]
    memory = MemoryMap.of(BATCHED, 16)
    ways: list[float] = []
    for register, lane in OPERANDS.values():
        layout = LinearLayout.of({"register": register, "lane": lane, "warp": batch, "block": []}, (4, 32, 32))
        threads = ThreadMap.of(layout)
        found = [shared_access(threads, memory, packed=one) for one in matrix_choices(threads, memory)]
        assert {(one.instructions, one.minimum_wavefronts) for one in found} == {(16, 16)}
        ways += [min(one.ways for one in found)] + [found[0].ways] * (len(found) > 1)
    for own, line in zip(ways, ADDRESSES.splitlines(), strict=True):
        words = [address // 4 + word for address in map(int, line.split()) for word in range(4)]
        assert own == max(Counter(word % 32 for word in words).values())


def test_lanes_with_whole_rows_are_no_matrices() -> None:
    """A blocked layout beside an stmatrix on one line of Python: its stores are plain."""
    blocked_rows = layout_in_registers([*bits(1, 3, 1)], [*bits(8, 3, 1), *bits(1, 2, 0)], (64, 64))
    assert not matrix_choices(blocked_rows, MemoryMap.of(rows_of(64, 64, 8, 1), 16))


CORES = {
    (64, 64, 8, 1): 1,
    (32, 64, 4, 2): 1,
    (16, 64, 2, 4): 1,
    (8, 64, 0, 1): 1,
    (64, 64, 0, 1): 8,
    (32, 64, 0, 1): 4,
}


@pytest.mark.parametrize(("shared", "ways"), CORES.items())
def test_core_matrices(shared: tuple, ways: float) -> None:
    """Rows of 128, 64, 32 and 16 bytes, swizzled over their own width as wgmma wants them, and not swizzled."""
    assert core_matrix_ways(MemoryMap.of(rows_of(*shared), 16)) == ways
